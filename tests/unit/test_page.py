"""The page of an explanation: sound markup, all rules, nothing from elsewhere; and what a browser makes of it."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hdlog import Reasoner
from hdlog.program.model import Atom, Program, Rule
from hdlog.program.terms import Variable
from hdlog.report.page import page
from hdlog.tuning import Tuning

RULES = """
square[?x, ?y], far[?z, ?u] :- e[?x, ?y], e[?y, ?z], e[?z, ?u], e[?u, ?x] .
reach[?x, ?y] :- e[?x, ?y] .
reach[?x, ?z] :- reach[?x, ?y], reach[?y, ?z] .
mixed[?x] :- t(?x, ?y, ?z), t(?z, ?u, ?v), e[?x, ?y], f[?x, ?y], f[?y, ?v], loop[?y, ?y], mark[?z, "<i>&amp;"] .
many[?n] :- AGGREGATE(e[?x, ?y] ON ?x BIND COUNT(?y) AS ?n) .
no_rows[?x] :- e[?x, ?y], NOT f[?x, ?y], FILTER(?x > ?y) .
"""
TREES = ["square", "mixed"]
FACTS = {
    "e": [(i, (3 * i + j) % 11) for i, j in product(range(11), range(3))],
    "f": [(i, i) for i in range(5)],
    "t": [(i, i + 1, i + 2) for i in range(9)],
    "loop": [(i, i) for i in range(9)],
    "mark": [(i, "<i>&amp;") for i in range(9)],
}


def explained(run: bool = True, without: str = "") -> dict[str, Any]:
    reasoner = Reasoner(RULES, tuning=Tuning("hd").without(without))
    if run:
        reasoner.update(add=FACTS)
    return reasoner.explain()


def parsed(text: str) -> ElementTree.Element:
    """The page is XML too, so that every element of it is closed where it should be."""
    return ElementTree.fromstring(text)


def words(element: ElementTree.Element) -> str:
    return "".join(element.itertext())


@pytest.mark.parametrize("run", [True, False])
@pytest.mark.parametrize("without", ["", "views", "views,virtual"])
def test_every_rule_has_a_row_and_every_tree_a_picture(run: bool, without: str) -> None:
    explanation = explained(run, without)
    root = parsed(page(explanation, ["a.dlog", "b.nt"]))
    rules = {r["text"]: r for c in explanation["components"] for r in c["rules"]}
    shown = words(root)
    assert all(text[:109] in shown for text in rules)
    assert len(root.findall(".//table[@class='rules']/tbody/tr")) == len(rules)
    trees = [
        [*r["trees"], r["hypertree"]] if r["hypertree"] else r["trees"] for r in rules.values() if r["trees"]
    ]
    assert {r["heads"][0] for r in rules.values() if r["trees"]} >= set(TREES)
    assert len(root.findall(".//svg")) == sum(1 + len(t) for t in trees)
    assert ("no facts" in shown) is not run


def test_links_go_to_places_on_the_page_and_nothing_is_loaded() -> None:
    text = page(explained(), ["a.dlog"])
    ids, links = set(), []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in {"script", "link", "img", "iframe", "object"}
            given = dict(attrs)
            ids.add(given.get("id"))
            assert "src" not in given
            if "href" in given:
                links.append(given["href"])

    Reader().feed(text)
    assert links
    assert all(link and link.startswith("#") and link[1:] in ids for link in links)
    assert "url(" not in text
    assert "@import" not in text


def test_markup_in_names_is_shown_not_obeyed() -> None:
    name = "</pre><script>alert('\"1\"')</script>&lt;"
    x, y, z = (Variable(f"<b>{v}") for v in "xyz")
    rule = Rule((Atom(name, (x,)),), tuple(Atom(name + "2", vs) for vs in ((x, y), (y, z), (z, x))))
    text = page(Reasoner(Program((rule,)), method="hd").explain(), [name])
    root = parsed(text)
    assert root.findall(".//script") == []
    assert root.findall(".//svg//b") == []
    assert words(root).count(name) > 3
    assert "<b>x" in [t.text for t in root.findall(".//svg/text")]


def test_variables_of_the_head_are_filled_dots() -> None:
    root = parsed(page(Reasoner("p[?x, ?y] :- e[?x, ?y], e[?y, ?z], e[?z, ?x] .", method="hd").explain(), []))
    assert [t.text for t in root.findall(".//svg/text[@class='bold']")] == ["x", "y"]
    assert len(root.findall(".//circle[@class='dot head']")) == 2
    assert len(root.findall(".//circle[@class='dot']")) == 1


def test_rule_without_variables_has_no_hypergraph() -> None:
    root = parsed(page(Reasoner("p[1] :- e[1, 2], e[2, 3], e[3, 1] .", method="hd").explain(), []))
    assert words(root).count("p('1')") > 0


def test_program_without_rules_has_a_page() -> None:
    assert "no rules" in words(parsed(page(Reasoner("").explain(), [])))


def test_many_rounds_share_bars_and_none_is_lost() -> None:
    reasoner = Reasoner("path[?x, ?y] :- edge[?x, ?y] . path[?x, ?z] :- path[?x, ?y], edge[?y, ?z] .")
    reasoner.update(add={"edge": [(i, i + 1) for i in range(600)]})
    explanation = reasoner.explain()
    assert len(explanation["rounds"]) > 600
    root = parsed(page(explanation, []))
    facts, seconds = (plot.findall("div/b") for plot in root.findall(".//div[@class='plot']"))
    assert len(facts) == len(seconds) <= 241
    assert sum(int(bar.attrib["title"].rsplit(" ", 1)[1].replace(",", "")) for bar in facts) == sum(
        event["facts"] for event in explanation["rounds"]
    )


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not installed")
@pytest.mark.parametrize("width", [1200, 500])
def test_browser_draws_the_page(width: int, tmp_path: Path) -> None:
    text = page(explained(), ["a.dlog"])
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(text, encoding="utf-8")
    dom = chromium(tmp_path, "--dump-dom", file.as_uri())
    assert dom.count("<svg") == text.count("<svg") > 0
    assert dom.count("<tr") == text.count("<tr")
    chromium(tmp_path, f"--screenshot={picture}", f"--window-size={width},1400", file.as_uri())
    assert len(set(scanlines(picture.read_bytes()))) > 300


def chromium(folder: Path, *options: str) -> str:
    assert CHROMIUM
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'user'}"]
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=True, timeout=120)
    return run.stdout


def scanlines(png: bytes) -> list[bytes]:
    """The lines of a picture as filtered; a blank one has two or three different ones."""
    data, at = b"", 8
    width, height = struct.unpack(">II", png[16:24])
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    pixels = zlib.decompress(data)
    line = len(pixels) // height
    assert line > width
    return [pixels[i : i + line] for i in range(0, len(pixels), line)]
