"""Answers written out: the formats of SPARQL's standard, tables, and triples. Texts are made once for each different term."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import IO, Literal, get_args
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hdlog.engines.encoding import Ids
from hdlog.errors import UsageError
from hdlog.program.functions import text_of
from hdlog.program.ntriples import parse_term, term_text
from hdlog.program.terms import LANG_STRING, UNBOUND, XSD_STRING, BlankNode, Constant, Iri
from hdlog.program.terms import Literal as LiteralTerm
from hdlog.query.answers import Answers
from hdlog.writing.files import write_texts

AnswerFormat = Literal["csv", "tsv", "json", "xml", "parquet", "nt"]
FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
_NAMESPACE = "http://www.w3.org/2005/sparql-results#"
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_BATCH = 1 << 20
_UNBOUND = term_text(UNBOUND)


def write_answers(answers: Answers, format_: AnswerFormat, out: IO[bytes], is_question: bool = False) -> None:
    """All answers, in their order; `is_question`: whether it was asked only whether there is one."""
    match format_:
        case "csv":
            _write_lines(answers, out, ",".join(answers.names) + "\r\n", _csv_text, ",", "\r\n")
        case "tsv":
            names = "\t".join(f"?{name}" for name in answers.names)
            _write_lines(answers, out, f"{names}\n", _tsv_text, "\t", "\n")
        case "json":
            _write_json(answers, out, is_question)
        case "xml":
            _write_xml(answers, out, is_question)
        case "parquet":
            import pyarrow.parquet as pq

            pq.write_table(answers.arrow, out, compression="zstd")
        case "nt":
            if answers.names != ("subject", "predicate", "object"):
                raise UsageError("only triples can be written as N-Triples: those of CONSTRUCT and DESCRIBE")
            _write_lines(answers, out, "", lambda text: text, " ", " .\n")


def _write_lines(
    answers: Answers,
    out: IO[bytes],
    head: str,
    text: Callable[[str], str],
    between: str,
    end: str,
) -> None:
    out.write(head.encode())
    if not answers.names:
        out.write(end.encode() * len(answers))
        return
    for columns in _batches(answers):
        shown = [_texts(answers, column, text) for column in columns]
        parts: list[pa.Array | pa.Scalar] = []
        for column in shown:
            parts += [column, _scalar(between)]
        write_texts(out, pc.binary_join_element_wise(*parts[:-1], _scalar(end), _scalar("")))


def _batches(answers: Answers) -> list[list[Ids]]:
    columns = answers.ids()
    return [[c[start : start + _BATCH] for c in columns] for start in range(0, len(answers), _BATCH)]


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _texts(answers: Answers, ids: Ids, text: Callable[[str], str]) -> pa.Array:
    """What stands for each id: worked out once for each different one."""
    unique, inverse = np.unique(ids, return_inverse=True)
    made = [text(term) for term in answers.texts_of(unique)]
    return pa.array(made, pa.large_string()).take(pa.array(inverse))


def plain_text(text: str) -> str:
    """A term as people write it; nothing where there is no value."""
    if text == _UNBOUND:
        return ""
    term = parse_term(text)
    return f"_:{term.label}" if isinstance(term, BlankNode) else text_of(term)


def _csv_text(text: str) -> str:
    plain = plain_text(text)
    if not plain and text != _UNBOUND:
        return '""'  # an empty text is a value, and a line with nothing is none
    return '"' + plain.replace('"', '""') + '"' if any(c in plain for c in ',"\n\r') else plain


def _tsv_text(text: str) -> str:
    return "" if text == _UNBOUND else text


def _write_json(answers: Answers, out: IO[bytes], is_question: bool) -> None:
    if is_question:
        out.write(json.dumps({"head": {}, "boolean": bool(answers)}).encode() + b"\n")
        return
    out.write(
        f'{{"head": {{"vars": {json.dumps(list(answers.names))}}}, "results": {{"bindings": [\n'.encode()
    )
    _write_rows(answers, out, "{", "}", ", ", _json_term, ",\n")
    out.write(b"\n]}}\n")


def _write_rows(
    answers: Answers,
    out: IO[bytes],
    begin: str,
    end: str,
    between: str,
    make: Callable[[str, Constant], str],
    separator: str,
) -> None:
    """A text for each row, of those of its values that are there, with separators between."""
    is_first = True
    if not answers.names:
        out.write(separator.join([begin + end] * len(answers)).encode())
        return
    for columns in _batches(answers):
        rows = None
        for name, column in zip(answers.names, columns, strict=True):
            one = _texts(answers, column, lambda t, n=name: "" if t == _UNBOUND else make(n, parse_term(t)))  # type: ignore[misc]
            if rows is None:
                rows = one
                continue
            both = pc.and_(pc.not_equal(rows, ""), pc.not_equal(one, ""))
            gap = pc.if_else(both, between, "").cast(pa.large_string())
            rows = pc.binary_join_element_wise(rows, gap, one, _scalar(""))
        assert rows is not None, "there are names"
        whole = pc.binary_join_element_wise(_scalar(begin), rows, _scalar(end), _scalar(""))
        if not is_first:
            out.write(separator.encode())
        is_first = False
        out.write(separator.join(whole.to_pylist()).encode())


def _json_term(name: str, term: Constant) -> str:
    return f"{json.dumps(name)}: {json.dumps(_describe(term), ensure_ascii=False)}"


def _describe(term: Constant) -> dict[str, str]:
    if isinstance(term, Iri):
        return {"type": "uri", "value": term.value}
    if not isinstance(term, LiteralTerm):
        return {"type": "bnode", "value": term_text(term).removeprefix("_:")}
    found = {"type": "literal", "value": term.lexical}
    if term.language:
        found["xml:lang"] = term.language
    elif term.datatype not in (XSD_STRING, LANG_STRING):
        found["datatype"] = term.datatype
    return found


def _write_xml(answers: Answers, out: IO[bytes], is_question: bool) -> None:
    out.write(f'<?xml version="1.0"?>\n<sparql xmlns="{_NAMESPACE}">\n'.encode())
    if is_question:
        out.write(f"<head/>\n<boolean>{str(bool(answers)).lower()}</boolean>\n</sparql>\n".encode())
        return
    names = "".join(f"<variable name={quoteattr(name)}/>" for name in answers.names)
    out.write(f"<head>{names}</head>\n<results>\n".encode())
    _write_rows(answers, out, "<result>", "</result>", "", _xml_term, "\n")
    out.write(b"\n</results>\n</sparql>\n")


def _xml_term(name: str, term: Constant) -> str:
    described = _describe(term)
    value = _xml_text(described["value"])
    match described["type"]:
        case "uri":
            inner = f"<uri>{value}</uri>"
        case "bnode":
            inner = f"<bnode>{value}</bnode>"
        case _:
            language, datatype = described.get("xml:lang"), described.get("datatype")
            mark = f" xml:lang={quoteattr(language)}" if language else ""
            mark += f" datatype={quoteattr(datatype)}" if datatype else ""
            inner = f"<literal{mark}>{value}</literal>"
    return f"<binding name={quoteattr(name)}>{inner}</binding>"


def _xml_text(text: str) -> str:
    unknown = _NOT_IN_XML.search(text)
    if unknown is not None:
        raise UsageError(
            f"an answer has the character U+{ord(unknown[0]):04X}, which XML cannot hold; take JSON or TSV"
        )
    return escape(text, {"\r": "&#13;"})


def shown_rows(answers: Answers, most: int) -> list[Sequence[str]]:
    """The first rows, as a table shows them."""
    columns = [[plain_text(t) for t in answers.texts_of(c[:most])] for c in answers.ids()]
    return list(zip(*columns, strict=True)) if columns else [()] * min(most, len(answers))
