"""SPARQL 1.1 Update: what a text does, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from hdlog.program.terms import BlankNode, Iri, Variable
from hdlog.query.algebra import Node, Selection, names_of
from hdlog.query.sparql.parsing import parse, part, refuse
from hdlog.query.sparql.patterns import Dataset, Quad, Translation

GraphName = Iri | Literal["DEFAULT", "NAMED", "ALL"]


@dataclass(frozen=True)
class Modify:
    """Quads that go and quads that come, for each answer to a query, or once."""

    delete: tuple[Quad, ...]
    insert: tuple[Quad, ...]
    where: Selection | None = None


@dataclass(frozen=True)
class Clear:
    graph: GraphName


@dataclass(frozen=True)
class Load:
    """What is in a file, into a graph."""

    source: str
    graph: Iri | None
    silent: bool


@dataclass(frozen=True)
class Transfer:
    """What is in one graph into another, which is emptied before if it is to be `replaced`; the one is, in the end, if it is `moved`."""

    source: GraphName
    target: GraphName
    replaced: bool
    moved: bool


Operation = Modify | Clear | Load | Transfer


def parse_sparql_update(text: str, prefixes: Mapping[str, str]) -> list[Operation]:
    """What a text in SPARQL Update does, one after the other."""
    _, operations = parse(text, prefixes, is_update=True)
    return [made for operation in operations for made in _operation(operation)]


def _operation(operation: Any) -> Iterator[Operation]:
    graph = part(operation, "graphiri")
    match operation.name:
        case "InsertData" | "DeleteData":
            quads = tuple(Translation().quads(operation, None))
            if any(isinstance(term, Variable) for quad in quads for term in quad):
                raise refuse("DATA has no variables; write INSERT or DELETE with WHERE")
            yield Modify((), quads) if operation.name == "InsertData" else _delete(quads)
        case "DeleteWhere":
            translation = Translation()
            quads = tuple(translation.quads(operation, None))
            yield _delete(quads, _everything(translation.matches(operation)))
        case "Modify":
            yield _modify(operation)
        case "Clear" | "Drop":
            yield Clear(_graph_name(graph))
        case "Load":
            yield Load(
                str(operation.iri),
                None if graph is None else Iri(str(graph)),
                bool(part(operation, "silent")),
            )
        case "Add" | "Move" | "Copy":
            source, target = map(_graph_name, operation.graph)
            if source != target:
                yield Transfer(source, target, operation.name != "Add", operation.name == "Move")
        case "Create":
            return  # a graph is there when it has triples
        case _:
            raise refuse(f"{operation.name} is not supported")


def _modify(operation: Any) -> Modify:
    given = part(operation, "withClause")
    own = None if given is None else Iri(str(given))
    using = part(operation, "using")
    dataset = Dataset.read(using) if using else Dataset(None if own is None else (own,))
    translation = Translation(dataset)
    where = translation.node(operation.where)
    delete, insert = (part(operation, name) for name in ("delete", "insert"))
    return _delete(_template(delete, own), _everything(where), _template(insert, own))


def _delete(quads: tuple[Quad, ...], where: Selection | None = None, insert: tuple[Quad, ...] = ()) -> Modify:
    if any(isinstance(term, BlankNode) for quad in quads for term in quad):
        raise refuse("a blank node in DELETE stands for a new one, which nothing has; use a variable")
    return Modify(quads, insert, where)


def _template(clause: Any, graph: Iri | None) -> tuple[Quad, ...]:
    return () if clause is None else tuple(Translation().quads(clause, graph))


def _everything(node: Node) -> Selection:
    return Selection(node, tuple(sorted(n for n in names_of(node) if not n.startswith("#"))), distinct=True)


def _graph_name(name: Any) -> GraphName:
    return str(name) if type(name).__name__ == "str" else Iri(str(name))  # type: ignore[return-value]
