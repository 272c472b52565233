"""Lines a second that one core reads, by format; beside it, N-Triples cut up by pyarrow and by pyoxigraph."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pyoxigraph as ox

from hdlog.benchmarks.data import lubm
from hdlog.benchmarks.data.writing import write_triples
from hdlog.reading.files import Split, find_splits, read_split

_IRI = r'<[^\x00-\x20<>"{}|^`\\]*>'
_TRIPLE = (
    rf"^[ \t]*(?P<s>{_IRI}|_:[^ \t]+)[ \t]+(?P<p>{_IRI})[ \t]+"
    rf'(?P<o>{_IRI}|_:[^ \t]+|"(?:[^"\\]|\\.)*"(?:@[a-zA-Z0-9-]+|\^\^{_IRI})?)[ \t]*\.[ \t]*$'
)


def write_files(folder: Path, megabytes: int) -> None:
    """The same triples in every format that has triples, and tables of their subjects and of numbers."""
    write_triples(lubm.generate(max(1, megabytes // 16)), folder / "all")
    with (folder / "all").open("rb") as file:
        lines = file.read(megabytes << 20)
    (folder / "all").unlink()
    lines = lines[: lines.rindex(b"\n") + 1]
    (folder / "plain.nt").write_bytes(lines)
    (folder / "quads.nq").write_bytes(lines.replace(b" .\n", b" <http://example.org/graph> .\n"))
    (folder / "escapes.nt").write_bytes(lines.replace(b'#name> "', b'#name> "\\u00e0 '))
    # No loop is compiled for escapes in IRIs: this is what pyoxigraph reads in their stead.
    (folder / "escapes_in_iris.nt").write_bytes(lines.replace(b"edu", b"\\u0065du"))
    for name, kind in (("packed.nt.gz", "gzip"), ("packed.nt.zst", "zstd")):
        with pa.CompressedOutputStream(folder / name, kind) as out:
            out.write(lines)
    few = lines[: lines.rindex(b"\n", 0, len(lines) // 4) + 1]
    for name, rdf_format in (("quarter.ttl", ox.RdfFormat.TURTLE), ("quarter.rdf", ox.RdfFormat.RDF_XML)):
        with (folder / name).open("wb") as out:
            ox.serialize(ox.parse(few, format=ox.RdfFormat.N_TRIPLES), out, rdf_format)
    _write_tables(folder, read_split(Split(str(folder / "plain.nt"), "nt")))


def _write_tables(folder: Path, chunk: Any) -> None:
    _, columns = max(chunk.facts.items(), key=lambda item: len(item[1][0]) if item[0].arity == 2 else 0)
    table = pa.table([chunk.texts.take(c) for c in columns], ["a", "b"])
    pcsv.write_csv(table, folder / "strings.csv", pcsv.WriteOptions(quoting_style="needed"))
    pq.write_table(table, folder / "strings.parquet")
    chance = np.random.default_rng(1).integers(0, 1 << 20, (2, 2_000_000))
    numbers = pa.table(list(chance), ["a", "b"])
    pcsv.write_csv(numbers, folder / "numbers.csv")
    options = pcsv.WriteOptions(include_header=False, delimiter="\t")
    pcsv.write_csv(numbers, folder / "numbers.facts", options)
    rows = "".join(f'{{"a": {a}, "b": "{b}"}}\n' for a, b in chance[:, :500_000].T.tolist())
    (folder / "objects.jsonl").write_text(rows)


def read(path: Path) -> int:
    return sum(chunk.rows for chunk in map(read_split, find_splits([path])))


def read_by_pyarrow(path: Path) -> int:
    """Lines by the CSV reader, terms by a regular expression, distinct terms by dictionaries."""
    lines = pcsv.read_csv(
        BytesIO(path.read_bytes()),
        pcsv.ReadOptions(column_names=["line"], use_threads=False, block_size=16 << 20),
        pcsv.ParseOptions(delimiter="\x01", quote_char=False),
        pcsv.ConvertOptions(column_types={"line": pa.string()}),
    )["line"]
    parts = pc.extract_regex(lines, _TRIPLE).combine_chunks()
    pa.chunked_array([parts.field(0), parts.field(2)]).dictionary_encode()
    parts.field(1).dictionary_encode()
    return len(lines)


def read_by_pyoxigraph(path: Path) -> int:
    """Triples one by one, without any dictionary."""
    return sum(1 for _ in ox.parse(path=str(path), format=ox.RdfFormat.N_TRIPLES))


def measure(folder: Path, repeat: int) -> Iterator[tuple[str, int, int, float]]:
    """What was read, bytes, lines, and the best of some times on the processor."""
    jobs: list[tuple[str, Path, Callable[[Path], int]]] = [
        (p.name, p, read) for p in sorted(folder.iterdir())
    ]
    jobs += [("plain.nt by pyarrow", folder / "plain.nt", read_by_pyarrow)]
    jobs += [("plain.nt by pyoxigraph", folder / "plain.nt", read_by_pyoxigraph)]
    for name, path, job in jobs:
        times = []
        for _ in range(repeat):
            start = time.process_time()
            rows = job(path)
            times.append(time.process_time() - start)
        yield name, path.stat().st_size, rows, min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    pa.set_cpu_count(1)
    with TemporaryDirectory() as folder:
        write_files(Path(folder), options.megabytes)
        for name, size, rows, seconds in measure(Path(folder), options.repeat):
            print(
                f"{name:24} {size / 1e6:6.1f} MB {rows:9,} rows {seconds:6.2f} s {rows / seconds:12,.0f} rows/s"
            )


if __name__ == "__main__":
    main()
