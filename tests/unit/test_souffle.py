"""Soufflé: what each construct reads as, and what is refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hdlog.errors import ProgramError
from hdlog.program.model import (
    Aggregate,
    AggregateCall,
    Atom,
    Attribute,
    Bind,
    Call,
    Declaration,
    Directive,
    Filter,
    Negation,
    Rule,
    TypeDeclaration,
)
from hdlog.program.terms import XSD_DOUBLE, Variable, double, integer, string
from hdlog.text import examine, parse, read
from hdlog.text.write import write

X, Y, Z, N = Variable("x"), Variable("y"), Variable("z"), Variable("n")
WILDCARD = Variable("_")

EVERYTHING = """
// a comment
/* another
   comment */
.type Node <: symbol
.type Id = number
.type Any = Node | symbol
.number_type Old
.decl edge(x: Node, y: Node, w: float) brie
.decl path, trail(x: Node, y: Node) no_inline
.decl deg(x: symbol, n: Id) output
.decl flag()
.decl u(x: unsigned)
.input edge(IO=file, filename="edge.csv", delimiter=",", headers=true)
.output path, trail
.printsize path
.pragma "legacy"
edge("a", "b", 1.5). edge("b", "c", 2).
u(5u). u(0x1F). u(0b11).
flag() :- true.
path(x, y), trail(x, y) :- edge(x, y, _).
path(x, z) :- path(x, y), edge(y, z, w), w * 2 > 1 ; trail(x, z), !edge(x, z, 1.5), (x < z ; x = "a").
.plan 0:(1,2)
deg(x, n) :- path(x, _), n = count : { path(x, y), y != x }.
deg(x, strlen(x) / 2 + sum k : { deg2(x, k) }) :- path(x, _), !match("a.*", x), contains("b", x).
.decl deg2(x: symbol, n: number)
deg2(x, n) :- path(x, _), n = max(1, -2) ^ 2 % 3 bor 4 bshl 1.
deg2(cat(x, "!"), to_number("3")) :- path(x, y), y = substr(x, 0, 1), x != y.
deg2(x, as(min n : { deg2b(x, n) }, number)) :- path(x, _), 3 <= mean m : { deg2b(x, m) }.
.decl deg2b(x: symbol, n: number)
"""

DECLARED = """.decl p(x: number, y: number)
.decl q(x: number, y: number)
.decl s(x: symbol)
.decl f(x: float)
"""


def rules(text: str) -> tuple[Rule, ...]:
    return parse(DECLARED + text, "souffle").rules


def only(text: str) -> Rule:
    (rule,) = rules(text)
    return rule


def problem(text: str) -> str:
    reading = examine(DECLARED + text, "souffle", "f.dl")
    (found,) = reading.errors
    return f"{found.message} at {found.span}"


def test_everything_reads_without_a_problem() -> None:
    assert [str(p) for p in examine(EVERYTHING, "souffle").errors] == []


def test_declarations_types_and_directives() -> None:
    program = parse(
        '.type Node <: symbol\n.type A = Node | symbol\n.decl e(x: Node, n: number)\n.input e(IO=file, delimiter=",")\n'
        ".output e\n.printsize e",
        "souffle",
    )
    assert program.types == (
        TypeDeclaration("Node", ("symbol",), True),
        TypeDeclaration("A", ("Node", "symbol"), False),
    )
    assert program.declarations == (Declaration("e", (Attribute("x", "Node"), Attribute("n", "number"))),)
    assert program.directives == (
        Directive("input", "e", (("IO", "file"), ("delimiter", ","))),
        Directive("output", "e"),
        Directive("printsize", "e"),
    )


def test_a_disjunction_is_one_rule_for_each_alternative() -> None:
    found = rules("p(x, y) :- q(x, y), (x = 1 ; y = 2 ; q(y, x)).")
    assert [len(r.body) for r in found] == [2, 2, 2]
    assert found[2].body[1] == Atom("q", (Y, X))


def test_negation_of_a_disjunction_is_pushed_inwards() -> None:
    rule = only("p(x, y) :- q(x, y), !(x < y ; q(y, x)).")
    assert rule.body[1:] == (Filter(Call("ge", (X, Y))), Negation((Atom("q", (Y, X)),)))


def test_equality_gives_a_value_or_compares() -> None:
    rule = only("p(x, z) :- q(x, y), z = x + 1, x = y.")
    assert rule.body[1:] == (
        Bind(Call("add", (X, integer(1))), Z),
        Filter(Call("eq", (X, Y))),
    )


def test_equalities_give_values_in_any_order() -> None:
    rule = only("p(x, n) :- n = z * 2, x + 1 = z, q(x, _).")
    assert rule.body[:2] == (Bind(Call("mul", (Z, integer(2))), N), Bind(Call("add", (X, integer(1))), Z))


def test_functors_in_arguments_become_values_of_fresh_variables() -> None:
    rule = only("p(x + 1, e1) :- q(x, e1).")
    assert rule.heads == (Atom("p", (Variable("e2"), Variable("e1"))),)
    assert rule.body[1] == Bind(Call("add", (X, integer(1))), Variable("e2"))


def test_division_is_exact_for_floats_and_truncates_for_numbers() -> None:
    assert only("p(x, n) :- q(x, y), n = x / y.").body[1] == Bind(Call("idiv", (X, Y)), N)
    assert only("f(n) :- f(x), n = x / 2.").body[1] == Bind(Call("div", (X, double(2.0))), N)


def test_a_number_in_a_float_column_is_a_float() -> None:
    assert only("f(2).").heads[0].terms == (double(2.0),)


def test_an_aggregate_groups_by_the_variables_it_shares_with_the_rest() -> None:
    rule = only("p(x, n) :- q(x, _), n = sum y : { q(x, y), y > z, q(z, _) }.")
    inner = (Atom("q", (X, Y)), Filter(Call("gt", (Y, Z))), Atom("q", (Z, WILDCARD)))
    assert rule.body[1] == Aggregate(inner, (X,), (AggregateCall("sum", Y, N),), True)


def test_an_aggregate_inside_an_expression_gets_a_variable() -> None:
    rule = only("p(x, 1 + count : q(x, _)) :- q(x, _).")
    assert rule.body[1] == Aggregate(
        (Atom("q", (X, WILDCARD)),), (X,), (AggregateCall("count", None, Variable("e2")),), True
    )
    assert rule.body[2] == Bind(Call("add", (integer(1), Variable("e2"))), Variable("e1"))


def test_an_aggregate_compared_with_a_bound_variable_is_a_filter() -> None:
    rule = only("p(x, y) :- q(x, y), y = count : { q(x, _) }.")
    assert rule.body[2] == Filter(Call("eq", (Y, Variable("e1"))))


def test_the_target_of_an_aggregate_is_its_own_whatever_it_is_called() -> None:
    rule = only("p(x, y) :- q(x, y), y = max y : { q(x, y) }.")
    own = Variable("e2")
    assert rule.body[1] == Aggregate(
        (Atom("q", (X, own)),), (X,), (AggregateCall("max", own, Variable("e1")),), True
    )
    assert rule.body[2] == Filter(Call("eq", (Y, Variable("e1"))))


def test_a_functor_in_a_body_atom_is_compared() -> None:
    rule = only("p(x, x) :- q(x, x + 1).")
    assert rule.body == (
        Atom("q", (X, Variable("e1"))),
        Filter(Call("eq", (Variable("e1"), Call("add", (X, integer(1)))))),
    )


def test_operators_bind_as_in_souffle() -> None:
    rule = only("p(n, n) :- q(x, _), n = -x ^ 2 bor 2 band 4.")
    power = Call("neg", (Call("pow", (X, integer(2))),))
    assert rule.body[1] == Bind(Call("bor", (power, Call("band", (integer(2), integer(4))))), N)


def test_numbers_take_the_type_of_their_place() -> None:
    assert only("f(x) :- x = 1.").body == (Bind(double(1.0), X),)
    assert only("f(1 / 2).").body == (Bind(Call("div", (double(1.0), double(2.0))), Variable("e1")),)


def test_string_functors_and_tests() -> None:
    rule = only('s(cat(x, "!")) :- s(x), contains("a", x), !match(".*b", x).')
    assert rule.body[1:3] == (
        Filter(Call("contains", (X, string("a")))),
        Filter(Call("not", (Call("match", (string(".*b"), X)),))),
    )


def test_conversions() -> None:
    assert only("f(n) :- q(x, _), n = to_float(x).").body[1] == Bind(Call(XSD_DOUBLE, (X,)), N)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".type R = [x: number]", "records are not supported at f.dl:5:11"),
        ("p(x, [x, 1]) :- q(x, _).", "records are not supported at f.dl:5:6"),
        ("p(x, nil) :- q(x, _).", "records (nil) are not supported at f.dl:5:6"),
        (".type T = A { x: number } | B {}", "algebraic data types are not supported at f.dl:5:7"),
        ("p(x, $Node(1)) :- q(x, _).", "algebraic data types are not supported at f.dl:5:6"),
        (".comp C { .decl a(x: number) a(1). }", "components are not supported at f.dl:5:1"),
        ("p(x, y) :- c.q(x, y).", "components (names with a dot) are not supported at f.dl:5:12"),
        (".functor f(x: number): number", "user-defined functors are not supported at f.dl:5:1"),
        ("p(x, @f(x)) :- q(x, _).", "user-defined functors are not supported at f.dl:5:6"),
        ("p(x, y) <= p(x, z) :- y < z.", "subsumption rules are not supported at f.dl:5:9"),
        (".decl c(x: number, y: number) choice-domain x", "choice domains are not supported at f.dl:5:31"),
        (".decl c(x: number, y: number) eqrel", "eqrel relations are not supported at f.dl:5:31"),
        ("p(x, $) :- q(x, _).", "counters ($) are not supported at f.dl:5:6"),
        (
            "p(x, range(1, 5)) :- q(x, _).",
            "the functors ord, range and autoinc are not supported at f.dl:5:6",
        ),
        (
            "p(x, x lor 1) :- q(x, _).",
            "the operators land, lor, lxor, lnot and bshru are not supported at f.dl:5:8",
        ),
        (".lattice L()", "lattices are not supported at f.dl:5:1"),
    ],
)
def test_what_is_not_supported_is_refused_by_name_with_its_place(text: str, expected: str) -> None:
    assert problem(text) == expected


def test_statements_after_a_refused_one_are_read() -> None:
    reading = examine(DECLARED + ".init c = C\n.comp C { .decl z(x: number) z(1). }\np(1, 2).", "souffle")
    assert len(reading.program.rules) == 1


@pytest.mark.skipif(not shutil.which("cpp"), reason="no C preprocessor on this machine")
def test_the_preprocessor_runs_and_places_stay_right(tmp_path: Path) -> None:
    (tmp_path / "decls.dl").write_text(".decl p(x: number)\n\np(y) :- p(x).\n")
    main = tmp_path / "main.dl"
    main.write_text('#include "decls.dl"\n#define ONE 1\n\np(ONE).\np(x, x) :- p(x).\n')
    from hdlog.text import examine_file

    reading = examine_file(main)
    assert reading.program.rules[1].heads[0].terms == (integer(1),)
    assert sorted(str(p.span).removeprefix(str(tmp_path) + "/") for p in reading.errors) == [
        "decls.dl:3:3",
        "main.dl:5:1",
    ]


def test_without_a_preprocessor_its_lines_are_refused_with_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "")
    assert problem("#define A 1\np(1, 2).") == (
        "this line needs a C preprocessor, and there is none on this machine at f.dl:5:1"
    )


def test_the_dialect_follows_the_file_ending(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text(".decl p(x: number)\np(1).")
    (tmp_path / "a.rules").write_text("p[1] .")
    assert read(tmp_path / "a.dl").rules == read(tmp_path / "a.rules", "rdfox").rules


def test_a_backslash_before_a_letter_is_not_an_escape_of_that_letter() -> None:
    program = parse(
        r""".decl p(x: symbol)
p("C:\\apps\\view"). p("\a\v").""",
        "souffle",
    )
    assert [h.terms[0] for r in program.rules for h in r.heads] == [string(r"C:\apps\view"), string("\a\v")]


def test_a_comment_before_a_rule_says_how_to_evaluate_it() -> None:
    text = """.decl e(x: number, y: number)
.decl p(x: number)
// @standard deviation
p(x) :- e(x, _).
//@standard
p(y) :- e(x, y), e(y, x).
// @hd
p(x) :- e(x, y); e(y, x).
"""
    program = parse(text, "souffle")
    assert [rule.method for rule in program.rules] == [None, "standard", "hd", "hd"]
    assert [r.method for r in parse(write(program, "souffle"), "souffle").rules] == [
        None,
        "standard",
        "hd",
        "hd",
    ]
    with pytest.raises(ProgramError, match="expected a name"):
        parse(".decl e(x: number)\n//@standard\n.output e\n", "souffle")


def test_the_least_number_is_one() -> None:
    program = parse(
        ".decl p(x: number) .decl q(x: number)\n"
        "p(-9223372036854775808). q(x - 9223372036854775807) :- p(x), x >= -0x8000000000000000.",
        "souffle",
    )
    fact, _ = program.rules
    assert str(fact.heads[0].terms[0]) == "-9223372036854775808"
    assert "-9223372036854775808" in write(program, "souffle")
    refused = examine(".decl p(x: number) p(9223372036854775808).", "souffle")
    assert "does not fit" in str(refused.problems[0])
