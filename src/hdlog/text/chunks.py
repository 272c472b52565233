"""Text into chunks of tokens, and syntax errors into problems.

A chunk is one statement. Each is parsed on its own, so all mistakes of a text are found at once.
The lexers have a last terminal that takes any character, so that they never fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer, LexerThread

from hdlog.errors import Problem, Source, Span, did_you_mean
from hdlog.program.model import Program
from hdlog.text.parse_tables import load_tables

MAX_NESTING = 250
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_NAMES = frozenset(["IRIREF", "PNAME_LN", "PNAME_NS", "VARIABLE"])
_OPERATORS = frozenset(
    ["+", "-", "*", "/", "%", "^", "!", "&&", "||", "band", "bor", "bxor", "bnot", "bshl", "bshr"]
)


class Refusal(Exception):
    """Raised by a reader inside a chunk: the chunk has this problem and is left out."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class _TokenList(Lexer):
    """Hands the parser the tokens of a chunk."""

    def __init__(self) -> None: ...

    def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Token]:
        return iter(lexer_state)


def _parse_tokens(parser: Any, chunk: list[Token]) -> object:
    return parser.parse(LexerThread(_TokenList(), cast(Any, chunk)), "chunk")


class Reader(Transformer[Token, object]):
    """Turns the reductions of a grammar into values, and keeps what one text says."""

    problems: list[Problem]

    def start(self, source: Source) -> None:
        """Forget the last text."""
        raise NotImplementedError

    def program(self) -> Program:
        raise NotImplementedError


R = TypeVar("R", bound=Reader)
Result = TypeVar("Result")


class Grammar(Generic[R]):
    """A grammar file: its lexer, and parsers that each call a reader of their own.

    Making a parser takes longer than reading a small program, so they are used again.
    """

    def __init__(self, name: str, reader: type[R], names: dict[str, str]) -> None:
        self.names = names
        self._reader = reader
        self._tables = load_tables(Path(__file__).with_name(f"{name}.lark"))
        self._lexer = self._make_lark()
        self._idle: list[tuple[R, Callable[[Any], object]]] = []

    def _make_lark(self, **options: Any) -> Any:
        load: Any = Lark._load_from_dict
        return load(*self._tables, **options)

    def tokens(self, source: Source) -> Iterator[Token]:
        tokens: Iterator[Token] = self._lexer.lex(source.text)
        return tokens

    def read(self, source: Source, chunks: Iterable[list[Token]]) -> tuple[Program, list[Problem]]:
        """Parse each chunk; what could be read, and a problem for each that could not."""
        return self.read_as(source, chunks, lambda reader: reader.program())

    def read_as(
        self,
        source: Source,
        chunks: Iterable[list[Token]],
        result: Callable[[R], Result],
        prepare: Callable[[R], None] = lambda _: None,
    ) -> tuple[Result, list[Problem]]:
        """Likewise, with what a reader has made of it; `prepare` tells it what it knows before it begins."""
        if self._idle:
            reader, parse = self._idle.pop()
        else:
            reader = self._reader()
            parse = partial(_parse_tokens, self._make_lark(transformer=reader).parser.parser)
        reader.start(source)
        prepare(reader)
        problems = [p for chunk in chunks if (p := self._problem(source, parse, chunk))]
        made = result(reader)
        problems += reader.problems
        self._idle.append((reader, parse))
        return made, problems

    def _problem(self, source: Source, parse: Callable[[Any], object], chunk: list[Token]) -> Problem | None:
        deep = find_deep_nesting(chunk)
        if deep:
            hint = "split it, with BIND or a predicate of its own for a part"
            return Problem("nesting", "this expression is nested too deeply", span_of(source, deep), hint)
        try:
            parse(chunk)
        except UnexpectedToken as error:
            return _explain_unexpected(source, self.names, chunk, error)
        except Refusal as refusal:
            return refusal.problem
        return None


def find_deep_nesting(chunk: list[Token]) -> Token | None:
    """The token at which brackets and operators pass the limit, if they do."""
    operators = [0]
    total = 0
    for token in chunk:
        if token in _OPENING:
            operators.append(1)
            total += 1
        elif token in _CLOSING and len(operators) > 1:
            total -= operators.pop()
        elif token == ",":
            kept = 1 if len(operators) > 1 else 0
            total -= operators[-1] - kept
            operators[-1] = kept
        elif token in _OPERATORS:
            operators[-1] += 1
            total += 1
        if total > MAX_NESTING:
            return token
    return None


def span_of(source: Source, token: Token) -> Span:
    """Where a token stands; one that runs over several lines is marked on its first."""
    line, column = token.line or 1, token.column or 1
    one_line = token.end_line in (None, line)
    end = token.end_column if one_line and token.end_column else column + 1
    return Span(source, line, column, max(end, column + 1))


def _explain_unexpected(
    source: Source, names: dict[str, str], chunk: list[Token], error: UnexpectedToken
) -> Problem:
    token = error.token
    expected = set(error.accepts or error.expected) - {"$END", "BAD"}
    place = next((i for i, t in enumerate(chunk) if t is token), 0)
    if token in _OPENING and place > 1 and chunk[place - 2] in _CLOSING and chunk[place - 1].type in _NAMES:
        # The name of an atom was taken for that of a graph.
        span = span_of(source, chunk[place - 1])
        return Problem("syntax", f"unexpected {show_token(chunk[place - 1])}", span, "expected ',' or '.'")
    hint = _suggest_keyword(names, chunk[: chunk.index(token) + 1] if token in chunk else chunk)
    if token.type == "$END":
        last = chunk[-1]
        message = f"the text ends in the middle of a statement, after {show_token(last)}"
        return Problem("syntax", message, span_of(source, last), hint or _expectation(names, expected))
    span = span_of(source, token)
    if token.type == "BAD":
        return Problem("syntax", f"unexpected character {show_token(token)}", span)
    if token.type == "UNCLOSED_STRING":
        return Problem("syntax", "this string is not closed", span, "strings end on their line")
    if token.type == "UNCLOSED_COMMENT":
        return Problem("syntax", "this comment is not closed", span, "close it with */")
    if token.type == "ARROW" and sum(t.type == "ARROW" for t in chunk) > 1:
        hint = "a rule has one arrow; does the rule before this one end with '.'?"
    return Problem("syntax", f"unexpected {show_token(token)}", span, hint or _expectation(names, expected))


def _suggest_keyword(names: dict[str, str], tokens: list[Token]) -> str:
    """A hint for a name in front of a bracket that looks like a keyword."""
    keywords = names["keywords"].split()
    for token, following in pairwise(tokens):
        if token.type == "NAME" and following == "(":
            hint = did_you_mean(token.upper(), keywords)
            if hint:
                return hint
    return ""


def show_token(token: Token) -> str:
    text = str(token)
    text = text if len(text) <= 40 else text[:37] + "..."
    return f"'{text}'" if text.isprintable() else repr(text)


def _expectation(names: dict[str, str], expected: set[str]) -> str:
    words = sorted({names.get(t, f"'{t.lower()}'") for t in expected})
    if not words or len(words) > 9:
        return ""
    return "expected " + " or ".join(words)
