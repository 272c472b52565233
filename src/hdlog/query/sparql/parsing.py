"""rdflib's parser of SPARQL, and its nodes as they are."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from hdlog.errors import Problem, ProgramError, Source, Span, UsageError

_parsing = Lock()


def parse(text: str, prefixes: Mapping[str, str], is_update: bool = False) -> tuple[Any, Any]:
    try:
        import rdflib
        from pyparsing import ParseException
        from rdflib.plugins.sparql import algebra, parser
    except ImportError:
        raise UsageError("SPARQL needs rdflib; install it with: pip install 'hdlog[query]'") from None
    with _parsing:
        # Terms of a query are what it says: "01" is not 1.
        before, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            _mend_grammar(parser)
            read: Any = parser.parseUpdate if is_update else parser.parseQuery
            translate: Any = algebra.translateUpdate if is_update else algebra.translateQuery
            parsed = read(text)
            translated = translate(parsed, initNs=dict(prefixes)).algebra
        except ParseException as error:
            span = Span(Source("<query>", text), error.lineno, error.column, error.column + 1)
            raise ProgramError([Problem("sparql", f"this is no SPARQL: {error.msg}", span)]) from None
        except Exception as error:  # noqa: BLE001 - rdflib raises whatever comes to its mind
            raise refuse(f"rdflib cannot make sense of it: {error}") from None
        finally:
            rdflib.NORMALIZE_LITERALS = before
    return parsed, translated


def _mend_grammar(parser: Any) -> None:
    """rdflib forgets the property of an inverse one in a negated set, as in !(p|^q)."""
    inverse = parser.PathOneInPropertySet.exprs[-1]
    if "part" not in str(inverse):
        mended = parser.Comp("InversePath", "^" + parser.Param("part", parser.iri | parser.A))
        parser.PathOneInPropertySet.exprs[-1] = mended


def part(node: Any, name: str) -> Any:
    """A part of a node of rdflib, if it has it; its own `get` gives the name of what is not there."""
    return node[name] if name in node else None  # noqa: SIM401


def refuse(message: str) -> ProgramError:
    return ProgramError([Problem("sparql", message)])


def is_variable(term: Any) -> bool:
    return type(term).__name__ == "Variable"


def is_path(term: Any) -> bool:
    return type(term).__name__.endswith("Path")
