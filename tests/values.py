"""Values of every kind, each with the term it stands for: what every way in and every way out must agree on."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hdlog.program.terms import (
    XSD,
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATETIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_INTEGER,
    BlankNode,
    Constant,
    Iri,
    Literal,
    Skolem,
    string,
)

Pairs = list[tuple[Any, Constant]]


def _literals(datatype: str, **lexical: Any) -> Pairs:
    return [(value, Literal(text, datatype)) for text, value in lexical.items()]


INTEGERS: Pairs = [
    (n, Literal(str(n), XSD_INTEGER)) for n in (0, 7, -1, 2**31, -(2**61), 2**61, 2**62, 2**63 - 1, -(2**63))
]
LARGE_INTEGERS: Pairs = [(n, Literal(str(n), XSD_INTEGER)) for n in (2**63, -(2**63) - 1, 10**30)]
DOUBLES: Pairs = [
    (0.0, Literal("0.0", XSD_DOUBLE)),
    (-0.0, Literal("-0.0", XSD_DOUBLE)),
    (1.5, Literal("1.5", XSD_DOUBLE)),
    (1e10, Literal("10000000000.0", XSD_DOUBLE)),
    (1e-300, Literal("1e-300", XSD_DOUBLE)),
    (float("inf"), Literal("INF", XSD_DOUBLE)),
    (float("-inf"), Literal("-INF", XSD_DOUBLE)),
    (float("nan"), Literal("NaN", XSD_DOUBLE)),
]
DECIMALS: Pairs = [
    (Decimal("1.50"), Literal("1.5", XSD_DECIMAL)),
    (Decimal("-2.00"), Literal("-2.0", XSD_DECIMAL)),
]
BOOLEANS: Pairs = [(True, Literal("true", XSD_BOOLEAN)), (False, Literal("false", XSD_BOOLEAN))]
DATES: Pairs = [
    (date(2024, 2, 29), Literal("2024-02-29", XSD_DATE)),
    (date(1, 1, 1), Literal("0001-01-01", XSD_DATE)),
]
TIMES: Pairs = [
    (datetime(2024, 2, 29, 12, 30), Literal("2024-02-29T12:30:00", XSD_DATETIME)),
    (datetime(1999, 12, 31, 23, 59, 59, 250_000), Literal("1999-12-31T23:59:59.25", XSD_DATETIME)),
]
ZONED_TIMES: Pairs = [
    (datetime(2024, 2, 29, 12, 30, tzinfo=UTC), Literal("2024-02-29T12:30:00Z", XSD_DATETIME))
]
STRINGS: Pairs = [
    (text, string(text))
    for text in (
        "",
        " ",
        "a",
        "é",
        "😀",
        'a "quote"',
        "it's",
        "back\\slash",
        "tab\there",
        "two\nlines",
        "carriage\rreturn",
        "a,b;c",
        " spaces around ",
        "10001",
        "1.5",
        "true",
        "2024-02-29",
        "<http://example.org/a>",
        "_:b",
        '"',
        "NULL",
        "\u0001",
    )
]
TAGGED: Pairs = [(t, t) for t in (Literal("chat", language="fr"), Literal('"', language="en-gb"))]
TYPED: Pairs = [
    (t, t) for t in (Literal("P1D", XSD + "duration"), Literal("x\ny", "http://example.org/type"))
]
IRIS: Pairs = [(Iri(i), Iri(i)) for i in ("http://example.org/a", "urn:x:é", "mailto:a@b")]
BLANK_NODES: Pairs = [(BlankNode("b1"), BlankNode("b1"))]
SKOLEMS: Pairs = [
    (t, t)
    for t in (Skolem("f", (string('a"b'),)), Skolem("g", (Skolem("f", ()), Iri("http://example.org/a"))))
]
KINDS: dict[str, Pairs] = {
    "integers": INTEGERS,
    "large integers": LARGE_INTEGERS,
    "doubles": DOUBLES,
    "decimals": DECIMALS,
    "booleans": BOOLEANS,
    "dates": DATES,
    "times": TIMES,
    "zoned times": ZONED_TIMES,
    "strings": STRINGS,
    "tagged": TAGGED,
    "typed": TYPED,
    "IRIs": IRIS,
    "blank nodes": BLANK_NODES,
    "Skolem terms": SKOLEMS,
}
