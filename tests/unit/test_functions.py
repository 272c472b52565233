"""The built-in functions on single values."""

from __future__ import annotations

import pytest

from hdlog.program.functions import NoValue, aggregate, evaluate, holds
from hdlog.program.model import AggregateCall, AggregateFunction, Filter
from hdlog.program.terms import Constant, Literal, Skolem, Variable, double, integer, string
from hdlog.text import examine, parse

X = Variable("x")


def value(expression: str, x: Constant = string("")) -> str:
    """The value of an expression as text, or `none`."""
    (rule,) = examine(f"p[?x] :- q[?x], FILTER({expression}) .", "rdfox").program.rules
    item = rule.body[1]
    assert isinstance(item, Filter)
    try:
        result = evaluate(item.condition, {X: x})
    except NoValue:
        return "none"
    short = str(result).replace("http://www.w3.org/2001/XMLSchema#", "xsd:")
    return short.replace("^^<xsd:", " ").rstrip(">") if "^^" in short else short


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 + 2 * 3", "7"),
        ("7 - 10", "-3"),
        ("1 / 4", '"0.25" decimal'),
        ("1 / 0", "none"),
        ("1.50 + 1", '"2.5" decimal'),
        ("1 + 1e0", '"2.0" double'),
        ("1e0 / 0", '"INF" double'),
        ("-(3)", "-3"),
        ("IDIV(-7, 2)", "-3"),
        ("MOD(-7, 2)", "-1"),
        ("POW(2, 10)", "1024"),
        ("xsd:int(2147483647)", "2147483647"),
        ("xsd:int(3000000000)", "none"),
        ("xsd:long(3000000000)", "3000000000"),
        ('REGEX("ab1", "^[[:alpha:]]+[[:digit:]]$")', '"true" boolean'),
        ("9223372036854775807 + 1", "none"),
        ('1 + "1"', "none"),
        ("ABS(-2.5)", '"2.5" decimal'),
        ("CEIL(2.1)", '"3.0" decimal'),
        ("FLOOR(-2.1)", '"-3.0" decimal'),
        ("ROUND(2.5)", '"3.0" decimal'),
        ("1 = 1.0", '"true" boolean'),
        ('"01"^^xsd:integer = 1', '"true" boolean'),
        ('sameTerm("01"^^xsd:integer, 1)', '"false" boolean'),
        ('1 < "a"', "none"),
        ('"a" < "b"', '"true" boolean'),
        ('1 = "a"', '"false" boolean'),
        ("<a> = <a>", '"true" boolean'),
        (
            '"2020-01-01T00:00:00Z"^^xsd:dateTime < "2020-01-01T00:00:00-01:00"^^xsd:dateTime',
            '"true" boolean',
        ),
        ('YEAR("2020-03-04T05:06:07.5Z"^^xsd:dateTime)', "2020"),
        ('YEAR("2021-02-30"^^xsd:date)', "none"),
        ('SECONDS("2020-03-04T05:06:07.5Z"^^xsd:dateTime)', '"7.5" decimal'),
        ("1 / 0 = 1 || 1 = 1", '"true" boolean'),
        ("1 / 0 = 1 && 1 = 2", '"false" boolean'),
        ("1 / 0 = 1 || 1 = 2", "none"),
        ("!(1 = 1)", '"false" boolean'),
        ('IF(1 < 2, "y", 1 / 0)', '"y"'),
        ("COALESCE(1 / 0, 3)", "3"),
        ("2 IN (1, 2.0)", '"true" boolean'),
        ("2 NOT IN (1, 3)", '"true" boolean'),
        ('STRLEN("héé")', "3"),
        ('SUBSTR("abcd", 2, 2)', '"bc"'),
        ('SUBSTR("abcd", 0, 3)', '"ab"'),
        ('UCASE("a"@en)', '"A"@en'),
        ('CONCAT("a", "b", "c")', '"abc"'),
        ('CONTAINS("abc", "b")', '"true" boolean'),
        ('STRSTARTS("abc", "ab")', '"true" boolean'),
        ('STRBEFORE("a-b", "-")', '"a"'),
        ('STRAFTER("a-b", "-")', '"b"'),
        ('STRAFTER("ab", "-")', '""'),
        ('REPLACE("abab", "(a)b", "$1c")', '"acac"'),
        ('REGEX("abc", "^A", "i")', '"true" boolean'),
        ('REGEX("abc", "(")', "none"),
        ('MATCH("a.*", "abc")', '"true" boolean'),
        ('MATCH("b", "abc")', '"false" boolean'),
        ('ENCODE_FOR_URI("a b/c")', '"a%20b%2Fc"'),
        ('LANG("a"@en)', '"en"'),
        ('LANGMATCHES("en-gb", "en")', '"true" boolean'),
        ("DATATYPE(1)", "<xsd:integer>"),
        ('STRDT("1", xsd:integer)', "1"),
        ('STRLANG("a", "EN")', '"a"@en'),
        ('IRI("http://e")', "<http://e>"),
        ("isIRI(<a>) && isLiteral(1) && isNumeric(1) && !isBlank(1)", '"true" boolean'),
        ('xsd:integer("12")', "12"),
        ('xsd:integer("x")', "none"),
        ("xsd:integer(-2.7)", "-2"),
        ('xsd:double("1.5")', '"1.5" double'),
        ("xsd:decimal(0.1)", '"0.1" decimal'),
        ('xsd:boolean("1")', '"true" boolean'),
        ("xsd:string(12)", '"12"'),
        ("STR(<http://e>)", '"http://e"'),
        ("MIN(3, 1, 2)", "1"),
        ('MAX("a", "b")', '"b"'),
        ("BAND(6, 3)", "2"),
        ("BSHL(1, 3)", "8"),
        ("BNOT(0)", "-1"),
        ('"NaN"^^xsd:double = "NaN"^^xsd:double', '"false" boolean'),
        ('ABS("-INF"^^xsd:double)', '"INF" double'),
        ("ROUND(0.49999999999999994e0)", '"0.0" double'),
        ("-1234567890123456789012345678901.5", '"-1234567890123456789012345678901.5" decimal'),
        ('MONTH("2020-99-99"^^xsd:date)', "none"),
        ('YEAR("999999999999-01-01"^^xsd:date)', "none"),
        ('SECONDS("2020-03-04T05:06:13Z"^^xsd:dateTime)', '"13.0" decimal'),
        ('xsd:dateTime("2020-01-01Z"^^xsd:date)', '"2020-01-01T00:00:00Z" dateTime'),
        ('xsd:date("2020-01-01T01:00:00+05:00"^^xsd:dateTime)', '"2020-01-01+05:00" date'),
        (r'REPLACE("abc", "b", "\\$1")', '"a$1c"'),
        ('REPLACE("abc", "x*", "-")', "none"),
        (r'REGEX("abc\n", "c$")', '"false" boolean'),
        ('CONTAINS("abc"@en, "b"@fr)', "none"),
        ('xsd:float("1.5")', '"1.5" float'),
    ],
)
def test_value(expression: str, expected: str) -> None:
    assert value(expression) == expected


def test_equal_arguments_make_equal_skolem_individuals() -> None:
    rule = parse('p[?y] :- q[?x], BIND(SKOLEM("f", ?x) AS ?y) .').rules[0]
    expression = rule.body[1].expression  # type: ignore[union-attr]
    assert evaluate(expression, {X: integer(1)}) == Skolem("f", (integer(1),))
    assert evaluate(expression, {X: integer(1)}) != evaluate(expression, {X: integer(2)})


def test_a_filter_without_value_does_not_hold() -> None:
    rule = parse("p[?x] :- q[?x], FILTER(?x > 1) .").rules[0]
    condition = rule.body[1].condition  # type: ignore[union-attr]
    assert not holds(condition, {X: string("a")})
    assert holds(condition, {X: integer(2)})


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("count", [integer(1), integer(1)], integer(2)),
        ("sum", [integer(1), integer(2)], integer(3)),
        ("sum", [], integer(0)),
        ("sum", [double(0.1)] * 10, double(1.0)),
        ("min", [integer(3), Literal("1.5", "http://www.w3.org/2001/XMLSchema#decimal")], None),
        ("max", [string("a"), string("b")], string("b")),
        ("avg", [integer(1), integer(2)], Literal("1.5", "http://www.w3.org/2001/XMLSchema#decimal")),
        ("mean", [integer(1), integer(2)], double(1.5)),
    ],
)
def test_aggregate(function: AggregateFunction, values: list[Constant], expected: Constant | None) -> None:
    assert aggregate(AggregateCall(function, X, X), values) == (expected or values[1])


def test_distinct_aggregates_take_each_value_once() -> None:
    assert aggregate(AggregateCall("sum", X, X, distinct=True), [integer(2), integer(2)]) == integer(2)


@pytest.mark.parametrize(
    ("function", "values"),
    [("min", []), ("avg", []), ("sum", [string("a")]), ("max", [string("a"), integer(1)])],
)
def test_some_bags_have_no_aggregate(function: AggregateFunction, values: list[Constant]) -> None:
    with pytest.raises(NoValue):
        aggregate(AggregateCall(function, X, X), values)
