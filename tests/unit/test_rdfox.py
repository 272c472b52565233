"""RDFox Datalog: what each construct reads as."""

from __future__ import annotations

from pathlib import Path

import pytest

from hdlog.program.model import (
    TRIPLE,
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
)
from hdlog.program.terms import (
    LANG_STRING,
    RDF_TYPE,
    XSD,
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    BlankNode,
    Iri,
    Literal,
    Variable,
    boolean,
    double,
    integer,
    string,
)
from hdlog.text import examine, parse, read

PAPER_RULES = Path(__file__).parents[3] / "shared" / "paper" / "rules"
E = "http://e#"
X, Y, Z = Variable("x"), Variable("y"), Variable("z")

EVERYTHING = """
PREFIX : <http://e#>
prefix ex: <http://example.org/>
@prefix q: <http://q#> .
@base <http://base.org/dir/> .
@decl :edge(from: any, to: number) .
@input :edge(IO="file", filename="a.tsv") .
@output :knows .
# a comment
:knows[?x, ?y], :knows[?y, ?x] :- :meets[?x, ?y], NOT :foe[?x, ?y] .
:A[?x] :- [?x, rdf:type, :B], rdf:type[?x, :C], [?x, a, :D], :E[?x] .
:any[?x] :- [?x, ?p, ?y], ?c[?x], ?p[?y, ?x] .
:edge(?x, 1) :- <local>(?x, _), ex:a-b.c[?x] .
:f[:a, "x"@en-GB, "y"^^xsd:date, -5, 1.5, 2e3, true, _:b, 'single', \"\"\"long "quoted" text\"\"\", "tab\\t\\u00e9"] .
:v[?x, ?v] :- :w[?x, ?a, ?b], BIND(?a + ?b * -2 / (?a - 1) AS ?v), FILTER(?v > 3 && !(?a = ?b) || ?x IN (1, 2)) .
:s[?e] :- :w[?x, ?a, ?b], BIND(SKOLEM("Eval", ?x, ?a) AS ?e), FILTER(?x NOT IN (3)), FILTER(STRLEN(STR(?b)) >= 2) .
:n[?x] :- :w[?x, ?a, ?b], NOT EXISTS ?k IN (:knows[?x, ?k], :A[?k]), BIND(xsd:integer(?a) AS ?i), FILTER(?i < 4) .
:count[?x, ?n, ?m] :- AGGREGATE(:knows[?x, ?y], FILTER(?y != ?x) ON ?x BIND COUNT(DISTINCT ?y) AS ?n BIND MAX(?y) AS ?m) .
:all[?n] :- AGGREGATE(:knows[?x, ?y] BIND COUNT(*) AS ?n) .
:zero[] :- :one() .
"""


def rules(text: str) -> tuple[Rule, ...]:
    return parse("PREFIX : <http://e#>\n" + text).rules


def only(text: str) -> Rule:
    (rule,) = rules(text)
    return rule


def test_everything_reads_without_a_problem_but_unused_variables() -> None:
    reading = examine(EVERYTHING, "rdfox")
    assert [p for p in reading.problems if p.kind != "unused"] == []
    assert len(reading.program.rules) == 11


@pytest.mark.skipif(not PAPER_RULES.is_dir(), reason="the paper is not beside the project")
@pytest.mark.parametrize(
    ("name", "count"),
    [("LUBM_L.dlog", 98), ("LUBM_L-C.dlog", 114), ("YAGO_rules.dlog", 23), ("exp-rules.dlog", 3)],
)
def test_the_rule_sets_of_the_paper_are_read_unmodified(name: str, count: int) -> None:
    assert len(read(PAPER_RULES / name).rules) == count


def test_class_and_property_atoms_are_unary_and_binary_predicates() -> None:
    rule = only(":p[?x, ?y] :- :C[?x], :q[?x, ?y] .")
    assert rule == Rule((Atom(E + "p", (X, Y)),), (Atom(E + "C", (X,)), Atom(E + "q", (X, Y))))


def test_three_ways_to_write_a_class_are_one_predicate() -> None:
    rule = only(":p[?x] :- [?x, rdf:type, :C], rdf:type[?x, :C], [?x, a, :C], :C[?x] .")
    assert set(rule.body) == {Atom(E + "C", (X,))}


def test_a_triple_with_a_known_predicate_is_its_atom() -> None:
    assert only("[?x, :p, ?y] :- [?y, :q, ?x] .") == only(":p[?x, ?y] :- :q[?y, ?x] .")


def test_variables_in_predicate_and_class_position_are_triples() -> None:
    rule = only(":p[?x] :- [?x, ?y, ?z], ?y[?x, ?z], ?z[?x] .")
    assert rule.body == (
        Atom(TRIPLE, (X, Y, Z)),
        Atom(TRIPLE, (X, Y, Z)),
        Atom(TRIPLE, (X, Iri(RDF_TYPE), Z)),
    )


def test_round_brackets_and_full_iris_are_read() -> None:
    assert only("<http://e#p>(?x) :- <http://e#q>(?x,?y) .") == only(":p[?x] :- :q[?x, ?y] .")


def test_a_rule_may_have_several_heads() -> None:
    assert len(only(":p[?x], :q[?x], :r[?x, ?x] :- :s[?x] .").heads) == 3


def test_constants_keep_their_lexical_form_but_bare_doubles() -> None:
    rule = only(':f["x"@en-GB, "y"^^xsd:date, -05, 1.50, 2e3, "2e3"^^xsd:double, true, _:b, 7] .')
    assert rule.heads[0].terms == (
        Literal("x", LANG_STRING, "en-gb"),
        Literal("y", XSD + "date"),
        integer(0).__class__("-05", XSD + "integer"),
        Literal("1.50", XSD_DECIMAL),
        double(2000.0),
        Literal("2e3", XSD_DOUBLE),
        Literal("true", XSD_BOOLEAN),
        BlankNode("b"),
        integer(7),
    )


def test_strings_are_unescaped() -> None:
    rule = only(r''':f["tab\t\u00e9\"", 'it\'s', """two
"lines" """] .''')
    assert rule.heads[0].terms == (string('tab\té"'), string("it's"), string('two\n"lines" '))


def test_a_base_resolves_relative_iris() -> None:
    assert parse("BASE <http://b.org/d/>\n<p>[<../x>] .").rules == (
        Rule((Atom("http://b.org/d/p", (Iri("http://b.org/x"),)),)),
    )


def test_operators_bind_as_in_sparql() -> None:
    rule = only(":p[?x] :- :q[?x], FILTER(?x + 1 * 2 > 3 && ?x < 9 || !(?x = 4)) .")
    one, two = integer(1), integer(2)
    total = Call("add", (X, Call("mul", (one, two))))
    both = Call("and", (Call("gt", (total, integer(3))), Call("lt", (X, integer(9)))))
    assert rule.body[1] == Filter(Call("or", (both, Call("not", (Call("eq", (X, integer(4))),)))))


def test_subtraction_without_blanks_is_not_a_negative_number() -> None:
    rule = only(":p[?z] :- :q[?x], BIND(?x -1 AS ?z) .")
    assert rule.body[1] == Bind(Call("sub", (X, integer(1))), Z)


def test_in_and_not_in() -> None:
    rule = only(":p[?x] :- :q[?x], FILTER(?x NOT IN (1, true)) .")
    assert rule.body[1] == Filter(Call("not", (Call("in", (X, integer(1), boolean(True))),)))


def test_negation_of_one_atom_of_several_and_with_local_variables() -> None:
    rule = only(":p[?x] :- :q[?x], NOT :r[?x], NOT (:r[?x], :s[?x]), NOT EXISTS ?y IN (:t[?x, ?y]) .")
    r, s = Atom(E + "r", (X,)), Atom(E + "s", (X,))
    assert rule.body[1:] == (
        Negation((r,)),
        Negation((r, s)),
        Negation((Atom(E + "t", (X, Y)),), (Y,)),
    )


def test_aggregates_have_a_group_and_several_results() -> None:
    rule = only(
        ":p[?x, ?n, ?m] :- AGGREGATE(:q[?x, ?y] ON ?x BIND COUNT(DISTINCT ?y) AS ?n BIND sum(?y + 1) AS ?m) ."
    )
    calls = (
        AggregateCall("count", Y, Variable("n"), True),
        AggregateCall("sum", Call("add", (Y, integer(1))), Variable("m")),
    )
    assert rule.body == (Aggregate((Atom(E + "q", (X, Y)),), (X,), calls),)


def test_skolem_terms_and_casts_are_calls() -> None:
    rule = only(':p[?z] :- :q[?x], BIND(SKOLEM("S", ?x, xsd:integer("4")) AS ?z) .')
    cast = Call(XSD + "integer", (string("4"),))
    assert rule.body[1] == Bind(Call("skolem", (string("S"), X, cast)), Z)


def test_declarations_and_directives() -> None:
    program = parse(
        '@decl edge(from: any, to:number) .\n@input edge(IO="file") .\n@output edge .\nedge[1, 2] .'
    )
    assert program.declarations == (
        Declaration("edge", (Attribute("from", "any"), Attribute("to", "number"))),
    )
    assert program.directives == (Directive("input", "edge", (("IO", "file"),)), Directive("output", "edge"))


def test_one_mistake_does_not_hide_the_others() -> None:
    text = "p[?x :- q[?x] .\nr[?x] :- s[?x] .\nt[?x] :- u[?x], v[?x .\nr[?y] :- s[?x] ."
    reading = examine(text, "rdfox", "f.dlog")
    assert [str(p.span) for p in reading.errors] == ["f.dlog:1:6", "f.dlog:3:22", "f.dlog:4:3"]
    assert len(reading.program.rules) == 2
