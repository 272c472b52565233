"""Terms: variables and the constants of RDF and of typed tables, as immutable values.

Two terms are equal when they are the same RDF term: `"1"` and `"01"` of xsd:integer differ.
Comparison by value is what the built-in functions do. A span says where a term was read and
takes no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from hdlog.errors import Span

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"

RDF_TYPE = RDF + "type"
XSD_STRING = XSD + "string"
XSD_INTEGER = XSD + "integer"
XSD_DECIMAL = XSD + "decimal"
XSD_FLOAT = XSD + "float"
XSD_DOUBLE = XSD + "double"
XSD_BOOLEAN = XSD + "boolean"
XSD_DATE = XSD + "date"
XSD_DATETIME = XSD + "dateTime"
LANG_STRING = RDF + "langString"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable; the name `_` stands for a variable of its own at every occurrence."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def is_wildcard(self) -> bool:
        return self.name == "_"

    def __str__(self) -> str:
        """As it stands in its text, if it was read from one."""
        if self.is_wildcard:
            return "_"
        return self.span.text if self.span else f"?{self.name}"


@dataclass(frozen=True, slots=True)
class Iri:
    value: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"<{self.value}>"


@dataclass(frozen=True, slots=True)
class BlankNode:
    label: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"_:{self.label}"


@dataclass(frozen=True, slots=True)
class Literal:
    lexical: str
    datatype: str = XSD_STRING
    language: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.language and self.datatype == XSD_STRING:
            object.__setattr__(self, "datatype", LANG_STRING)

    def __str__(self) -> str:
        if self.datatype == XSD_INTEGER:
            return self.lexical
        quoted = '"' + self.lexical.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if self.language:
            return f"{quoted}@{self.language}"
        return quoted if self.datatype == XSD_STRING else f"{quoted}^^<{self.datatype}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Skolem:
    """The individual that SKOLEM(name, arguments...) names; equal arguments, equal individual.

    Terms are made of terms thousands of levels deep, so nothing here calls itself.
    """

    name: str
    arguments: tuple[Constant, ...]
    _hash: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.name, self.arguments)))

    def __reduce__(self) -> tuple[type[Skolem], tuple[str, tuple[Constant, ...]]]:
        return Skolem, (self.name, self.arguments)  # hashes of texts are others in another process

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        waiting: list[tuple[object, object]] = [(self, other)]
        while waiting:
            a, b = waiting.pop()
            if a is b:
                continue
            if not isinstance(a, Skolem) or not isinstance(b, Skolem):
                if isinstance(a, Skolem) or isinstance(b, Skolem) or a != b:
                    return False
            elif a._hash != b._hash or a.name != b.name or len(a.arguments) != len(b.arguments):
                return False
            else:
                waiting += zip(a.arguments, b.arguments, strict=True)
        return True

    def __str__(self) -> str:
        text: list[str] = []
        waiting: list[Constant | str] = [self]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Skolem):
                waiting.append(")")
                for argument in reversed(part.arguments):
                    waiting += [argument, ", "]
                text.append(f"SKOLEM({part.name!r}")
            else:
                text.append(str(part))
        return "".join(text)

    __repr__ = __str__


UNBOUND = BlankNode("hdlog.unbound")
"""Stands for no value in the rows of a query. No file has this node, since those of a file have a scope, and no rule makes it."""
Constant = Iri | BlankNode | Literal | Skolem
Term = Variable | Constant


def integer(value: int) -> Literal:
    return Literal(str(value), XSD_INTEGER)


def string(value: str) -> Literal:
    return Literal(value)


def boolean(value: bool) -> Literal:
    return Literal("true" if value else "false", XSD_BOOLEAN)


def double(value: float) -> Literal:
    special = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}
    text = repr(float(value))
    return Literal(special.get(text, text), XSD_DOUBLE)


def decimal(value: Decimal) -> Literal:
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0")
        text += "0" if text.endswith(".") else ""
    else:
        text += ".0"
    return Literal("0.0" if text == "-0.0" else text, XSD_DECIMAL)


def last_part(name: str) -> str:
    """The last part of an IRI, by which people call it."""
    return name.rstrip("/#").rsplit("#", 1)[-1].rsplit("/", 1)[-1]
