"""Constants as N-Triples text and back; the text is what dictionaries and stores keep."""

from __future__ import annotations

import re

from hdlog.program.terms import LANG_STRING, XSD_STRING, BlankNode, Constant, Iri, Literal, Skolem

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_TO_ESCAPE = re.compile(r'[\\"\n\r\t]')
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
SKOLEM = "_:skolem"


def quote(text: str) -> str:
    return '"' + _TO_ESCAPE.sub(lambda m: _ESCAPES[m.group()], text) + '"'


def unquote(text: str) -> str:
    """The string in quotes, its escapes replaced."""
    if "\\" not in text:
        return text[1:-1]
    return _ESCAPED.sub(_unescaped, text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    code = found.group(1)
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    return _UNESCAPES.get(code, code)


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
        case Skolem(name, arguments):
            # A blank node whose label spells out what it stands for, so that it survives an export.
            return SKOLEM + "".join(f".{_hex(part)}" for part in (name, *map(term_text, arguments)))


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
    if text.startswith(SKOLEM + "."):
        name, *arguments = (bytes.fromhex(part).decode() for part in text[len(SKOLEM) + 1 :].split("."))
        return Skolem(name, tuple(map(parse_term, arguments)))
    return BlankNode(text[2:])
