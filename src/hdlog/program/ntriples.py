"""Constants as N-Triples text and back; the text is what dictionaries and stores keep.

A Skolem term is a blank node whose label spells out what it stands for, so that it survives an export: its parts in prefix order,
`COUNT-NAME` for each Skolem term and `tTEXT` for each other one, names and texts in hexadecimal. So a label is as long as
what it stands for, however deep that is nested.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from hdlog.errors import TermTooLarge
from hdlog.program.terms import LANG_STRING, XSD_STRING, BlankNode, Constant, Iri, Literal, Skolem

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
UNESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_TO_ESCAPE = re.compile(r'[\\"\n\r\t]')
ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
SKOLEM = "_:skolem."
"""What the text of a Skolem term begins with."""
MOST_CHARACTERS = 1 << 20
"""Of a Skolem term's text. Terms that share parts have texts that double with each level."""
Node = TypeVar("Node")


_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_LANGUAGE = re.compile(r"[A-Za-z]+(-[A-Za-z0-9]+)*")


def is_iri(text: str) -> bool:
    """Whether this is an absolute IRI, as N-Triples have it between brackets."""
    return _IRI.fullmatch(text) is not None


def is_language(text: str) -> bool:
    return _LANGUAGE.fullmatch(text) is not None


def quote(text: str) -> str:
    return '"' + _TO_ESCAPE.sub(lambda m: _ESCAPES[m.group()], text) + '"'


def unquote(text: str) -> str:
    """The string in quotes, its escapes replaced."""
    if "\\" not in text:
        return text[1:-1]
    return ESCAPED.sub(_unescape, text[1:-1])


def _unescape(match: re.Match[str]) -> str:
    code = match.group(1)
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return UNESCAPES.get(code, code)


def term_text(term: Constant) -> str:
    match term:
        case Iri(value):
            return f"<{value}>"
        case Literal(lexical, datatype, language):
            if language:
                return f"{quote(lexical)}@{language}"
            return quote(lexical) if datatype == XSD_STRING else f"{quote(lexical)}^^<{datatype}>"
        case BlankNode(label):
            return f"_:{label}"
        case Skolem():
            whole: Constant = term
            return skolem_text(whole, _take_apart)


def skolem_text(root: Node, take_apart: Callable[[Node], str | tuple[str, Sequence[Node]]]) -> str:
    """The text of a Skolem term: `take_apart` gives the name and arguments of one, or the text of another term."""
    tokens: list[str] = []
    length = len(SKOLEM)
    waiting = [root]
    while waiting:
        text_or_parts = take_apart(waiting.pop())
        if isinstance(text_or_parts, str):
            tokens.append(text_token(text_or_parts))
        else:
            name, arguments = text_or_parts
            tokens.append(skolem_token(name, len(arguments)))
            waiting += reversed(arguments)
        length += len(tokens[-1]) + 1
        if length > MOST_CHARACTERS:
            raise TermTooLarge(MOST_CHARACTERS)
    return SKOLEM + ".".join(tokens)


def _take_apart(term: Constant) -> str | tuple[str, Sequence[Constant]]:
    return (term.name, term.arguments) if isinstance(term, Skolem) else term_text(term)


def is_typed(text: str) -> bool:
    """Whether a text is a literal with a datatype or language, which may be equal by value to one that is written otherwise."""
    return text[0] == '"' and text[-1] != '"'


def _hex(text: str) -> str:
    return text.encode().hex()


def parse_term(text: str) -> Constant:
    """The constant a text made by `term_text`, or a term of an N-Triples file, stands for."""
    if text[0] == "<":
        return Iri(text[1:-1])
    if text[0] == '"':
        end = text.rindex('"')
        lexical, mark = unquote(text[: end + 1]), text[end + 1 :]
        if not mark:
            return Literal(lexical)
        if mark[0] == "@":
            return Literal(lexical, LANG_STRING, mark[1:].lower())
        return Literal(lexical, mark[3:-1])
    return _parse_skolem(text) or BlankNode(text[2:])


def _parse_skolem(text: str) -> Constant | None:
    made: list[Constant] = []
    parts = skolem_parts(text)
    for name, arguments in parts or ():
        terms = (made[a] if isinstance(a, int) else parse_term(a) for a in arguments)
        made.append(Skolem(name, tuple(terms)))
    return made[-1] if made else None


SkolemPart = tuple[str, tuple[int | str, ...]]
"""Name and arguments: texts, or places of other parts."""


def skolem_parts(text: str) -> list[SkolemPart] | None:
    """The Skolem terms that a text spells out, each after those it is made of; the last is the whole.

    None for the text of another term, such as a blank node that somebody else has given such a label.
    """
    if not text.startswith(SKOLEM):
        return None
    parts: list[SkolemPart] = []
    waiting: list[int | str] = []
    try:
        for token in reversed(text[len(SKOLEM) :].split(".")):
            if token[:1] == "t":
                waiting.append(bytes.fromhex(token[1:]).decode())
            else:
                count, _, name = token.partition("-")
                parts.append((bytes.fromhex(name).decode(), tuple(waiting.pop() for _ in range(int(count)))))
                waiting.append(len(parts) - 1)
    except (ValueError, IndexError):
        return None
    return parts if len(waiting) == 1 and waiting == [len(parts) - 1] else None


def text_token(text: str) -> str:
    """An argument that is no Skolem term, in the text of one."""
    return f"t{_hex(text)}"


def skolem_token(name: str, count: int) -> str:
    """What the text of a Skolem term goes on with, before its arguments."""
    return f"{count}-{_hex(name)}"
