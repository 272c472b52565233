"""Files that somebody has spoilt: `python -m tests.mutations --inputs 100000 --seed 1`.

Files of every format and rule texts of both dialects are changed at random: bytes flipped, cut, doubled, put elsewhere, words of other files in between. Each
is read and given to a reasoner that has facts and rules, some to a store by way of the command. What comes is an error that names the file, or an update; never a
traceback, a hang, or a change by something that was refused.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hdlog import Reasoner
from hdlog.dialects import Dialect
from hdlog.errors import HdlogError
from hdlog.operations.stores import verify
from hdlog.operations.work import Settings
from hdlog.store.store import open_store
from hdlog.text import parse
from tests.crashes import memory_folder
from tests.unit.test_bad_input import hdlog

RULES = "link[?x, ?y] :- edge[?x, ?y] . link[?x, ?z] :- link[?x, ?y], edge[?y, ?z] ."
_SECONDS = 30
_THROUGH_A_STORE = 25
"""One in so many inputs goes through a store."""
_LONGEST = 4000

TRIPLES = """<http://e/a> <http://e/p> <http://e/b> .
_:n <http://e/p> "x\\n\\u00e4"@en-GB .
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C> .
<http://e/a> <http://e/q> "1.5"^^<http://www.w3.org/2001/XMLSchema#double> . # why
"""
TURTLE = """@prefix e: <http://e/> .
e:a e:p e:b, "x"@en, 1, 1.5, true ; a e:C .
[ e:q ( 1 2 "three" ) ] e:p _:x .
"""
XML = """<?xml version="1.0"?>
<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">
<e:C rdf:about="&e;a"><e:p rdf:resource="http://e/b"/><e:q rdf:datatype="http://www.w3.org/2001/XMLSchema#int">1</e:q></e:C>
</rdf:RDF>
"""
FILES: dict[str, bytes] = {
    "a.nt": TRIPLES.encode(),
    "a.nq": TRIPLES.replace(" .\n", " <http://e/g> .\n").encode(),
    "a.ttl": TURTLE.encode(),
    "a.rdf": XML.encode(),
    "edge.csv": b'x,y\n1,2\n"a ""b"" c",<http://e/c>\n2026-11-18,1e5\n',
    "edge.tsv": b"x\ty\n1\t2\ntrue\t-7\n",
    "edge.facts": b"1\t2\nx\ty z\n",
    "edge.jsonl": b'{"x": 1, "y": "two"}\n{"x": null, "y": 2}\n{"predicate": "edge", "args": [1, {"iri": "http://e/a"}]}\n',
    "a.changes": b'+ <http://e/a> <http://e/p> "x" .\n- edge[1, 2] .\n+ edge(3, "x")\n',
}
PROGRAMS: dict[Dialect, str] = {
    "rdfox": """PREFIX : <http://e/>
        @decl age(who: symbol, years: number) .
        :p[?x, ?z] :- :q[?x, ?y], NOT :r[?y, "a"@en], FILTER(?x > 1 && REGEX(STR(?y), "^a+$")), BIND(SKOLEM("f", ?x) AS ?z) .
        [?s, ?p, ?o] :- [?o, ?p, ?s], :sym[?p] .
        n[?c] :- AGGREGATE(edge[?x, ?y] ON ?x BIND COUNT(?y) AS ?c) .
        edge[1, 2] . edge["x", true] . @standard :c[?x] :- :d[?x] .""",
    "souffle": """.type T <: symbol
        .decl edge(x: number, y: number)
        .decl path(x: number, y: number)
        path(x, y) :- edge(x, y), !path(y, x), x != y + 1.
        .decl n(c: number)
        n(c) :- c = count : { edge(_, _) }.
        edge(1, 2). edge(0x10, -3).
        .output n(IO=file, filename="n.csv")
        """,
}
WORDS = [b'"', b"'", b"\\", b"<", b">", b"{", b"}", b"(", b")", b"[", b"]", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\t", b"_:",
         b"^^", b"@", b"&", b";", b"%", b"?x", b"99999999999999999999", b"1e999", b"NaN", b"-", b"\\uD800", b"\\U00110000", b"]]>", b"<!--",
         b"/*", b"*/", b"//", b"#", b".", b",", b":-", b"NOT", b"AGGREGATE", b"\xf0\x9f\x92\xa5", b"\xe2\x80\xae", b" " * 200, b"(" * 60]  # fmt: skip


_TOKEN = re.compile(rb"\s+|\w+|\W")


def shuffle_words(data: bytes, chance: random.Random) -> bytes:
    """Words left out, doubled, and put in the place of others: most of what comes of that can be read."""
    words = _TOKEN.findall(data)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at, other = chance.randrange(len(words)), chance.randrange(len(words))
        match chance.randrange(3):
            case 0:
                words[at] = words[other]
            case 1:
                words[at], words[other] = words[other], words[at]
            case _:
                words.insert(at, words[other])
    return b"".join(words)


def mutate(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """A few random changes."""
    if chance.random() < 0.4:
        return shuffle_words(data, chance)
    content = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        at = chance.randrange(len(content) + 1)
        end = min(len(content), at + chance.choice([1, 1, 2, 5, 40]))
        match chance.randrange(8):
            case 0 if content:
                content[min(at, len(content) - 1)] ^= 1 << chance.randrange(8)
            case 1:
                del content[at:end]
            case 2:
                content[at:at] = chance.choice(WORDS)
            case 3:
                content[at:end] = chance.choice(WORDS)
            case 4:
                content[at:at] = content[at:end] * chance.choice([1, 2, 50])
            case 5:
                other = chance.choice(others)
                start = chance.randrange(len(other) + 1)
                content[at:at] = other[start : start + chance.choice([3, 20, 100])]
            case 6:
                del content[at:]
            case _:
                content[at:at] = bytes(chance.randrange(256) for _ in range(chance.choice([1, 4, 20])))
    return bytes(content[:_LONGEST])


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Mutations:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.files = {**FILES, **_binary_files(folder)}
        self.everything = [*self.files.values(), *(p.encode() for p in PROGRAMS.values())]
        (folder / "rules.dlog").write_text(RULES)
        (folder / "first.facts").write_text("1\t2\n2\t3\n")
        self.store = folder / "store"
        self.reasoner = self._begin_anew()

    def _begin_anew(self) -> Reasoner:
        """What is read stays, so that there are more and more predicates."""
        data = [self.folder / "rules.dlog", self.folder / "first.facts"]
        hdlog("materialise", *data, "--store", self.store, "--overwrite")
        reasoner = Reasoner(RULES, max_rounds=30, max_facts=20_000)
        reasoner.update(add={"edge": [(1, 2), (2, 3)]})
        return reasoner

    def run(self, number: int) -> None:
        if self.chance.random() < 0.2:
            self._try(number, self._program())
            return
        name, data = self.chance.choice(list(self.files.items()))
        path = self.folder / name
        path.write_bytes(mutate(data, self.chance, self.everything))
        self._try(number, lambda: self._read(path, number % _THROUGH_A_STORE == 0))
        if number % 500 == 0:
            self.reasoner = self._begin_anew()

    def _try(self, number: int, attempt: Callable[[], str]) -> None:
        try:
            with no_longer_than(_SECONDS):
                self.counts[attempt()] += 1
        except BaseException:
            kept = Path(tempfile.mkdtemp(prefix="hdlog-mutation-"))
            shutil.copytree(self.folder, kept, dirs_exist_ok=True)
            print(f"input {number} of this seed; the files are in {kept}")
            raise

    def _read(self, path: Path, through_a_store: bool) -> str:
        if through_a_store or path.suffix == ".changes":
            return self._update_store(path)
        before = self.reasoner.counts()
        try:
            self.reasoner.update(add=path)
        except HdlogError as error:
            told = str(error)
        else:
            return "read"
        assert self.reasoner.counts() == before, "what is refused changes nothing"
        assert path.name in told or "arguments" in told, told
        return "refused"

    def _update_store(self, path: Path) -> str:
        before = open_store(self.store).manifest.version
        word = "--from" if path.suffix == ".changes" else "--add"
        run = hdlog("update", self.store, word, path, "--max-rounds", "30", "--max-facts", "20000")
        after = open_store(self.store).manifest.version
        assert after == before + (run.exit_code == 0), run.output
        if not run.exit_code and self.chance.random() < 0.05:
            verify(self.store, Settings(), deep=True)
        return "refused by a store" if run.exit_code else "in a store"

    def _program(self) -> Callable[[], str]:
        dialect, text = self.chance.choice(list(PROGRAMS.items()))
        lines = text.encode().splitlines(keepends=True)
        at = self.chance.randrange(len(lines))
        if self.chance.random() < 0.7:
            lines[at] = shuffle_words(lines[at], self.chance)
            changed = b"".join(lines)
        else:
            changed = mutate(b"".join(lines), self.chance, self.everything)
        spoilt = changed.decode(errors="replace")
        (self.folder / f"spoilt.{dialect}").write_text(spoilt)

        def attempt() -> str:
            try:
                program = parse(spoilt, dialect)
                Reasoner(program, max_rounds=30, max_facts=20_000, memory="2GB")
            except HdlogError:
                return "refused rules"
            return "rules"

        return attempt


def _binary_files(folder: Path) -> dict[str, bytes]:
    table = folder / "table.parquet"
    pq.write_table(pa.table({"x": [1, 2, None], "y": ["a", "b", "c"]}), table)
    return {"edge.parquet": table.read_bytes(), "a.nt.gz": gzip.compress(TRIPLES.encode())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    started = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        mutations = Mutations(Path(name), arguments.seed)
        for number in range(arguments.inputs):
            mutations.run(number)
            if number % 5000 == 4999:
                print(f"{number + 1:,} inputs, {time.perf_counter() - started:.0f} s", flush=True)
    print(", ".join(f"{count:,} {what}" for what, count in sorted(mutations.counts.items())))


if __name__ == "__main__":
    main()
