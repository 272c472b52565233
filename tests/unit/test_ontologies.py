"""Ontologies as rules: each rule of OWL 2 RL about classes and properties, by its name in the standard; what is left out; commands."""

from __future__ import annotations

import random
from pathlib import Path

import owlrl
import pytest
import rdflib
import reasonable

from hdlog import Iri, Reasoner, parse, read
from hdlog.errors import ProgramError
from hdlog.text import examine, rule_texts
from tests.engines import ON_SPARK
from tests.shell import call

pytestmark = pytest.mark.skipif(ON_SPARK, reason="rules are those of either engine")

PREFIXES = """
@prefix : <http://e/> . @prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
BROKEN = "urn:hdlog:inconsistency"
Triples = set[tuple[str, str, str]]


def triples_of(text: str) -> Triples:
    graph = rdflib.Graph().parse(data=PREFIXES + text, format="turtle")
    return {(_name(s), _name(p), _name(o)) for s, p, o in graph}


def _name(term: object) -> str:
    text = term.value if isinstance(term, Iri) else str(term)
    return "a" if text == TYPE else text.removeprefix("http://e/")


def derive(ontology: str, data: str, dialect: str = "owl-rl") -> Triples:
    """What follows from data, without these."""
    reasoner = Reasoner(parse(PREFIXES + ontology, dialect))  # type: ignore[arg-type]
    reasoner.update(add=rdflib.Graph().parse(data=PREFIXES + data, format="turtle"))
    found: Triples = set()
    for predicate in reasoner.counts():
        name = _name(predicate.name)
        for row in reasoner.facts(predicate):
            found.add(
                (_name(row[0]), "a", name) if predicate.arity == 1 else (_name(row[0]), name, _name(row[1]))
            )
    return found - triples_of(data)


RULES = [
    # name, ontology, data, what follows
    ("prp-dom", ":p rdfs:domain :C .", ":a :p :b .", ":a a :C ."),
    ("prp-rng", ":p rdfs:range :C .", ":a :p :b .", ":b a :C ."),
    ("prp-symp", ":p a owl:SymmetricProperty .", ":a :p :b .", ":b :p :a ."),
    ("prp-trp", ":p a owl:TransitiveProperty .", ":a :p :b . :b :p :c .", ":a :p :c ."),
    ("prp-spo1", ":p rdfs:subPropertyOf :q .", ":a :p :b .", ":a :q :b ."),
    ("prp-spo2", ":r owl:propertyChainAxiom ( :p :q ) .", ":a :p :b . :b :q :c .", ":a :r :c ."),
    ("prp-eqp1", ":p owl:equivalentProperty :q .", ":a :p :b .", ":a :q :b ."),
    ("prp-eqp2", ":p owl:equivalentProperty :q .", ":a :q :b .", ":a :p :b ."),
    ("prp-inv1", ":p owl:inverseOf :q .", ":a :p :b .", ":b :q :a ."),
    ("prp-inv2", ":p owl:inverseOf :q .", ":a :q :b .", ":b :p :a ."),
    ("cls-int1", ":C owl:intersectionOf ( :D :E ) .", ":a a :D , :E .", ":a a :C ."),
    ("cls-int2", ":C owl:intersectionOf ( :D :E ) .", ":a a :C .", ":a a :D , :E ."),
    ("cls-uni", ":C owl:unionOf ( :D :E ) .", ":a a :D . :b a :E .", ":a a :C . :b a :C ."),
    ("cls-svf1", "[ owl:onProperty :p ; owl:someValuesFrom :D ] rdfs:subClassOf :C .", ":a :p :b . :b a :D .", ":a a :C ."),
    ("cls-svf2", "[ owl:onProperty :p ; owl:someValuesFrom owl:Thing ] rdfs:subClassOf :C .", ":a :p :b .", ":a a :C ."),
    ("cls-avf", ":C rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :D ] .", ":a a :C ; :p :b .", ":b a :D ."),
    ("cls-hv1", ":C rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue :v ] .", ":a a :C .", ":a :p :v ."),
    ("cls-hv2", "[ owl:onProperty :p ; owl:hasValue 7 ] rdfs:subClassOf :C .", ":a :p 7 . :b :p 8 .", ":a a :C ."),
    ("cls-oo", ":C owl:oneOf ( :x :y ) .", "", ":x a :C . :y a :C ."),
    ("cax-sco", ":C rdfs:subClassOf :D .", ":a a :C .", ":a a :D ."),
    ("cax-eqc1", ":C owl:equivalentClass :D .", ":a a :C .", ":a a :D ."),
    ("cax-eqc2", ":C owl:equivalentClass :D .", ":a a :D .", ":a a :C ."),
    ("inverse in an expression", ":r owl:propertyChainAxiom ( [ owl:inverseOf :p ] :q ) .", ":b :p :a . :b :q :c .", ":a :r :c ."),
    ("nested", ":C owl:equivalentClass [ owl:unionOf ( [ owl:intersectionOf ( :D :E ) ] [ owl:onProperty :p ; owl:hasValue :v ] ) ] .", ":a a :D , :E . :b :p :v .", ":a a :C . :b a :C ."),
    ("a member of an expression", ":a a [ owl:onProperty :p ; owl:hasValue :v ] .", "", ":a :p :v ."),
    ("individuals are facts", ":C rdfs:subClassOf :D . :a a :C ; :p :b ; rdfs:label 'A' .", "", ":a a :C , :D ; :p :b ."),
    ("half of a conjunction", ":C rdfs:subClassOf [ owl:intersectionOf ( :D [ owl:onProperty :p ; owl:someValuesFrom :E ] ) ] .", ":a a :C .", ":a a :D ."),
    ("one of an enumeration", "[ owl:intersectionOf ( :D [ owl:oneOf ( :x :y ) ] ) ] rdfs:subClassOf :C .", ":x a :D . :z a :D .", ":x a :C ."),
]  # fmt: skip
BROKEN_BY = [
    ("prp-irp", ":p a owl:IrreflexiveProperty .", ":a :p :a . :a :p :b ."),
    ("prp-asyp", ":p a owl:AsymmetricProperty .", ":a :p :b . :b :p :a . :a :p :c ."),
    ("prp-pdw", ":p owl:propertyDisjointWith :q .", ":a :p :b ; :q :b ."),
    ("prp-adp", "[] a owl:AllDisjointProperties ; owl:members ( :p :q :r ) .", ":a :q :b ; :r :b ."),
    ("prp-npa1", "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetIndividual :b .", ":a :p :b , :c ."),
    ("prp-npa2", "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; owl:assertionProperty :p ; owl:targetValue 3 .", ":a :p 3 ."),
    ("cls-nothing2", ":C rdfs:subClassOf owl:Nothing .", ":a a :C ."),
    ("cls-com", ":C owl:complementOf :D .", ":a a :C , :D ."),
    ("cls-maxc1", ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 0 ] .", ":a a :C ; :p :b ."),
    ("cls-maxqc1", ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 0 ; owl:onClass :D ] .", ":a a :C ; :p :b . :b a :D ."),
    ("cls-maxqc2", ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 0 ; owl:onClass owl:Thing ] .", ":a a :C ; :p :b ."),
    ("cax-dw", ":C owl:disjointWith :D .", ":a a :C , :D . :b a :C ."),
    ("cax-adc", "[] a owl:AllDisjointClasses ; owl:members ( :C :D :E ) .", ":a a :D , :E ."),
    ("disjoint union", ":U owl:disjointUnionOf ( :C :D ) . :C rdfs:subClassOf :D .", ":a a :C ."),
]  # fmt: skip
LEFT_OUT = [
    (":p a owl:FunctionalProperty .", "equality"),
    (":p a owl:InverseFunctionalProperty .", "equality"),
    (":C owl:hasKey ( :p ) .", "equality"),
    (":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 1 ] .", "equality"),
    (":a owl:sameAs :b .", "equality"),
    (":a owl:differentFrom :b .", "equality"),
    ("[] a owl:AllDifferent ; owl:members ( :a :b ) .", "equality"),
    (":p a owl:ReflexiveProperty .", "everything"),
    (":C rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom :D ] .", "right"),
    (":C rdfs:subClassOf [ owl:unionOf ( :D :E ) ] .", "right"),
    (":C rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality 2 ] .", "right"),
    ("[ owl:onProperty :p ; owl:allValuesFrom :D ] rdfs:subClassOf :C .", "left"),
    ("owl:Thing rdfs:subClassOf :C .", "everything"),
    (":p rdfs:range xsd:integer .", "datatype"),
    ("<http://e/> a owl:Ontology ; owl:imports <http://e/other> .", "file"),
    (":C owl:oneOf ( :a ) .", "right"),
]  # fmt: skip


@pytest.mark.parametrize(("ontology", "data", "expected"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule_of_the_standard(ontology: str, data: str, expected: str) -> None:
    assert derive(ontology, data) == triples_of(expected)


@pytest.mark.parametrize(("ontology", "data"), [r[1:] for r in BROKEN_BY], ids=[r[0] for r in BROKEN_BY])
def test_what_must_not_be_is_a_fact(ontology: str, data: str) -> None:
    found = {s for s, p, _ in derive(ontology, data) if p == BROKEN}
    assert found >= {"a"}
    assert found <= {"a", "b"}
    # One triple less, and all is well.
    lines = [
        line for line in data.replace(" ,", " . :a a").replace(" ;", " . :a").split(" . ") if line.strip(" .")
    ]
    for gone in range(len(lines)):
        rest = " . ".join(line.strip(" .") for i, line in enumerate(lines) if i != gone)
        fewer = {s for s, p, _ in derive(ontology, rest + " ." if rest else "") if p == BROKEN}
        assert fewer <= found


@pytest.mark.parametrize(("ontology", "why"), LEFT_OUT)
def test_what_is_left_out_is_told(ontology: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "o.owl"
    path.write_text(PREFIXES + ontology)
    (text,) = rule_texts([path])
    assert any(why in line for line in text.left_out), text.left_out


def test_rdfs_takes_less() -> None:
    ontology = (
        ":C rdfs:subClassOf :D . :p a owl:TransitiveProperty ; rdfs:domain :C . :E owl:disjointWith :C ."
    )
    data = ":a :p :b . :b :p :c ."
    assert derive(ontology, data, "rdfs") == triples_of(":a a :C , :D . :b a :C , :D .")
    assert ("a", "p", "c") in derive(ontology, data)


def test_what_is_no_ontology_is_refused() -> None:
    with pytest.raises(ProgramError, match="no Turtle"):
        parse("this is : no ontology", "owl-rl")
    assert examine("<rdf:RDF", "owl-rl").errors


def test_rdf_xml_is_read(tmp_path: Path) -> None:
    graph = rdflib.Graph().parse(data=PREFIXES + ":C rdfs:subClassOf :D .", format="turtle")
    path = tmp_path / "o.owl"
    graph.serialize(str(path), format="xml")
    assert len(read(path).rules) == 1


# Against others.

CLASSES, PROPERTIES, THINGS = ([":C1", ":C2", ":C3", ":C4"], [":p1", ":p2", ":p3"], [":a", ":b", ":c", ":d"])


def random_ontology(chance: random.Random) -> str:
    """Axioms that need no equality."""

    def c() -> str:
        return chance.choice(CLASSES)

    def p() -> str:
        return chance.choice(PROPERTIES)

    def left(depth: int = 2) -> str:
        kind = chance.random()
        if not depth or kind < 0.4:
            return c()
        if kind < 0.6:
            return f"[ owl:intersectionOf ( {left(depth - 1)} {left(depth - 1)} ) ]"
        if kind < 0.75:
            return f"[ owl:unionOf ( {left(depth - 1)} {left(depth - 1)} ) ]"
        if kind < 0.9:
            return f"[ a owl:Restriction ; owl:onProperty {p()} ; owl:someValuesFrom {left(depth - 1)} ]"
        return f"[ a owl:Restriction ; owl:onProperty {p()} ; owl:hasValue {chance.choice(THINGS)} ]"

    def right(depth: int = 2) -> str:
        kind = chance.random()
        if not depth or kind < 0.5:
            return c()
        if kind < 0.7:
            return f"[ owl:intersectionOf ( {right(depth - 1)} {right(depth - 1)} ) ]"
        if kind < 0.85:
            return f"[ a owl:Restriction ; owl:onProperty {p()} ; owl:allValuesFrom {right(depth - 1)} ]"
        return f"[ a owl:Restriction ; owl:onProperty {p()} ; owl:hasValue {chance.choice(THINGS)} ]"

    makers = [
        lambda: f"{left()} rdfs:subClassOf {right()} .",
        lambda: f"{left()} rdfs:subClassOf {right()} .",
        lambda: f"{c()} owl:equivalentClass {c()} .",
        lambda: f"{p()} rdfs:domain {c()} .",
        lambda: f"{p()} rdfs:range {c()} .",
        lambda: f"{p()} rdfs:subPropertyOf {p()} .",
        lambda: f"{p()} owl:inverseOf {p()} .",
        lambda: f"{p()} a owl:TransitiveProperty .",
        lambda: f"{p()} a owl:SymmetricProperty .",
        lambda: f"{p()} owl:propertyChainAxiom ( {p()} {p()} ) .",
    ]
    return "\n".join(chance.choice(makers)() for _ in range(chance.randrange(2, 7)))


def random_data(chance: random.Random) -> str:
    lines = [f"{chance.choice(THINGS)} a {chance.choice(CLASSES)} ." for _ in range(3)]
    lines += [
        f"{chance.choice(THINGS)} {chance.choice(PROPERTIES)} {chance.choice(THINGS)} ." for _ in range(4)
    ]
    return "\n".join(lines)


def about_things(triples: Triples) -> Triples:
    names = {t.removeprefix(":") for t in THINGS}
    words = {w.removeprefix(":") for w in (*CLASSES, *PROPERTIES)}
    return {(s, p, o) for s, p, o in triples if s in names and (p in words or (p == "a" and o in words))}


def check(seed: int) -> int:
    """How much follows, as owlrl has it."""
    chance = random.Random(seed)
    ontology, data = random_ontology(chance), random_data(chance)
    graph = rdflib.Graph().parse(data=PREFIXES + ontology + data, format="turtle")
    owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
    expected = about_things({(_name(s), _name(p), _name(o)) for s, p, o in graph}) - triples_of(data)
    found = about_things(derive(ontology, data))
    assert found == expected, f"{ontology}\n{data}\nmissing {expected - found}\nmore {found - expected}"
    return len(found)


def test_random_ontologies_against_owlrl() -> None:
    assert sum(map(check, range(12))) > 30


def test_another_opinion() -> None:
    """What `reasonable` finds, which is less than all, we find."""
    for seed in range(12):
        chance = random.Random(seed)
        ontology, data = random_ontology(chance), random_data(chance)
        other = reasonable.PyReasoner()
        other.from_graph(rdflib.Graph().parse(data=PREFIXES + ontology + data, format="turtle"))
        found = about_things({(_name(s), _name(p), _name(o)) for s, p, o in other.reason()})
        assert found - triples_of(data) <= about_things(derive(ontology, data)), f"{ontology}\n{data}"


# Commands.


def test_an_ontology_changes_and_so_does_the_store(tmp_path: Path) -> None:
    old, new, data = (tmp_path / name for name in ("old.owl", "new.owl", "data.ttl"))
    old.write_text(PREFIXES + ":C rdfs:subClassOf :D . :p a owl:FunctionalProperty .")
    new.write_text(PREFIXES + ":C rdfs:subClassOf :E .")
    data.write_text(PREFIXES + ":a a :C .")
    store = tmp_path / "store"
    told = call("materialise", old, data, "--store", store).stderr
    assert "1 axiom" in told or "an axiom is in no rule" in told
    out = call("rules", store, "--remove", old, "--add", new).stdout
    assert sorted(line for line in out.splitlines() if line[:2] in ("+ ", "- ")) == [
        f"+ <http://e/a> <{TYPE}> <http://e/E> .",
        f"- <http://e/a> <{TYPE}> <http://e/D> .",
    ]


def test_rules_of_an_ontology_are_printed_or_written(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    path.write_text(PREFIXES + ":C rdfs:subClassOf :D . :p a owl:FunctionalProperty .")
    shown = call("owl", path)
    out, told = shown.stdout, shown.stderr
    assert "# SubClassOf(C D)\n:D[?x] :- :C[?x] ." in out
    assert "left out: FunctionalProperty(p)" in told
    call("owl", path, "--level", "rdfs", "-o", tmp_path / "o.dlog")
    assert len(read(tmp_path / "o.dlog").rules) == 1
