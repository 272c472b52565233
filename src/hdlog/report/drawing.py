"""A rule's hypergraph and its trees as SVG pictures, made of markup that escapes what it is given."""

from __future__ import annotations

import cmath
import html
import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Markup.


class Markup(str):
    """Text that is markup already; all other text is escaped when it enters markup."""

    __slots__ = ()


def tag(name: str, /, *inside: str, **attributes: object) -> Markup:
    """An element; `class_` and `text_anchor` are the attributes class and text-anchor, None is no attribute."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{shown}>{join_markup(inside)}</{name}>")


def join_markup(parts: Iterable[str]) -> Markup:
    return Markup("".join(p if isinstance(p, Markup) else html.escape(p) for p in parts))


def _value(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else html.escape(str(value))


def _svg(parts: Iterable[Markup], left: float, top: float, width: float, height: float, says: str) -> Markup:
    box = f"{left:.0f} {top:.0f} {width:.0f} {height:.0f}"
    size = {"viewBox": box, "width": f"{width:.0f}", "height": f"{height:.0f}"}
    return tag("svg", *parts, **size, role="img", aria_label=says)


# Numbers.


def seconds_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:,.2f} s"
    if seconds >= 0.001 or not seconds:
        return f"{seconds * 1000:.{1 if 0 < seconds < 0.01 else 0}f} ms"
    return f"{seconds * 1e6:.0f} µs"


def bytes_text(size: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.2f} GB"


def shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


# The hypergraph: variables as dots on a circle. A point of the plane is a complex number.

_LETTER, _LINE = 7.2, 15
"""the size of a letter of the pictures' font, which is monospaced with 12 pixels"""
_DOT = 6
HUES = 6
_PLACES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)

Rectangle = tuple[float, float, float, float]


def hypergraph(rule: Mapping[str, Any]) -> Markup:
    """Two variables of an atom are joined by an arrow, three and more have an outline, a single one has a ring."""
    atoms = [(_atom_label(a), tuple(a["variables"])) for a in rule["atoms"]]
    pairs = [(label, vs) for label, vs in atoms if len(vs) == 2]
    single = [(label, vs[0]) for label, vs in atoms if len(vs) == 1]
    hulls = [(label, vs, 12 + 5 * i) for i, (label, vs) in enumerate(a for a in atoms if len(a[1]) > 2)]
    points = _place_on_circle(list(dict.fromkeys(v for _, vs in atoms for v in vs)), atoms)
    if not points:
        return Markup()
    room = {
        v: max([_DOT, *(p for _, vs, p in hulls if v in vs), *(10 for _, w in single if w == v)])
        for v in points
    }
    taken = [_surround(points[v], 2 * room[v], 2 * room[v]) for v in points]
    names = [_name(v, points, room[v], [s for s, w in single if w == v], _heads(rule), taken) for v in points]
    parts = [_hull([points[v] for v in points if v in vs], pad, i) for i, (_, vs, pad) in enumerate(hulls)]
    labels = []
    for label, path, places in _arrows(pairs, points):
        parts.append(path)
        labels.append(_label(label, places, taken))
        taken.append(_surround(places[0], 4, 4))
    for i, (label, vs, _) in enumerate(hulls):
        labels.append(_label(label, _find_places_inside([points[v] for v in vs]), taken, f"hue{i % HUES}"))
    parts += [_circle(points[v], 10, "ring") for v in dict.fromkeys(v for _, v in single)]
    parts += [_circle(p, _DOT, "dot head" if v in _heads(rule) else "dot") for v, p in points.items()]
    left, top = (min(r[i] for r in taken) - 8 for i in (0, 1))
    right, bottom = (max(r[i] for r in taken) + 8 for i in (2, 3))
    return _svg([*parts, *labels, *names], left, top, right - left, bottom - top, "the rule's hypergraph")


def _heads(rule: Mapping[str, Any]) -> set[str]:
    return set(rule["head_variables"])


def _atom_label(atom: Mapping[str, Any]) -> str:
    """The predicate alone, where the picture shows all terms."""
    name = atom["text"].removesuffix(f"({', '.join(atom['variables'])})")
    return shorten(name, 26)


def _place_on_circle(variables: list[str], atoms: Sequence[tuple[str, Sequence[str]]]) -> dict[str, complex]:
    n = len(variables)
    side = 70 + _LETTER * max((len(label) for label, vs in atoms if len(vs) > 1), default=0)
    radius = max(side, 110) / (2 * math.sin(math.pi / n)) if n > 1 else 0
    start = -math.pi / 2 - math.pi / n if n else 0
    order = _untangle(variables, [vs for _, vs in atoms])
    return {v: cmath.rect(radius, start + 2 * math.pi * i / n) for i, v in enumerate(order)}


def _untangle(order: list[str], edges: Sequence[Sequence[str]]) -> list[str]:
    """An order in which variables of an atom are near each other: turns parts around as long as that helps."""
    n = len(order)

    def length(order: Sequence[str]) -> int:
        at = {v: i for i, v in enumerate(order)}
        gaps = (abs(at[v] - at[w]) for vs in edges for v in vs for w in vs)
        return sum(min(gap, n - gap) for gap in gaps)

    turned = ([*order[:i], *reversed(order[i:j]), *order[j:]] for i in range(n) for j in range(i + 2, n + 1))
    best = min(turned, key=length, default=order)
    return _untangle(best, edges) if length(best) < length(order) else order


def _arrows(
    pairs: Sequence[tuple[str, tuple[str, ...]]], points: Mapping[str, complex]
) -> Iterable[tuple[str, Markup, list[complex]]]:
    """For each atom with two variables its arrow and places for its label; parallel ones bend apart."""
    parallel = defaultdict(list)
    for label, (v, w) in pairs:
        parallel[frozenset((v, w))].append((label, points[v], points[w]))
    for edges in parallel.values():
        _, first, last = edges[0]
        aside = _unit(last - first) * 1j
        for i, (label, a, b) in enumerate(edges):
            bend = (a + b) / 2 + aside * 64 * (i - (len(edges) - 1) / 2)
            tip, toward = b - _unit(b - bend) * (_DOT + 2), _unit(b - bend)
            path = f"M{_xy(a)}Q{_xy(bend)} {_xy(tip - toward * 6)}"
            point = f"M{_xy(tip)}L{_xy(tip - toward * (9 + 4j))}L{_xy(tip - toward * (9 - 4j))}Z"
            places = [(1 - t) ** 2 * a + 2 * t * (1 - t) * bend + t * t * b for t in _PLACES]
            arrow = tag("path", d=path, class_="edge") + tag("path", d=point, class_="point")
            yield label, Markup(arrow), places


def _hull(corners: Sequence[complex], pad: float, hue: int) -> Markup:
    """The outline at a distance from corners that lie clockwise on a circle."""
    path = ""
    for a, b in zip(corners, [*corners[1:], corners[0]], strict=True):
        out = _unit(b - a) * -1j * pad
        path += f"{f'A{pad} {pad} 0 0 1 ' if path else 'M'}{_xy(a + out)}L{_xy(b + out)}"
    close = corners[0] + _unit(corners[1] - corners[0]) * -1j * pad
    return tag("path", d=f"{path}A{pad} {pad} 0 0 1 {_xy(close)}Z", class_=f"hull hue{hue % HUES}")


def _find_places_inside(corners: Sequence[complex]) -> list[complex]:
    centre = sum(corners) / len(corners)
    return [centre + (corner - centre) * t for t in (0, 0.25, 0.4, 0.55) for corner in corners]


def _name(
    variable: str,
    points: Mapping[str, complex],
    room: float,
    atoms: Sequence[str],
    heads: set[str],
    taken: list[Rectangle],
) -> Markup:
    """A variable's name outside the circle, and below it the atoms that have no other variable."""
    lines = [shorten(variable, 26), *atoms]
    width, height = max(map(len, lines)) * _LETTER, len(lines) * _LINE
    point = points[variable]
    out = _unit(point) if point else -1j
    if abs(out.real) < 0.3:
        centre = point + 1j * math.copysign(room + 3 + height / 2, out.imag)
    else:
        beside = abs(out.real) * room + 6 + width / 2
        centre = point + complex(math.copysign(beside, out.real), out.imag * (room + height / 2))
    taken.append(_surround(centre, width, height))
    first = centre - 1j * (height - _LINE) / 2
    classes = ["bold" if variable in heads else None, *("quiet" for _ in atoms)]
    return join_markup(
        _text(line, first + 1j * _LINE * i, c) for i, (line, c) in enumerate(zip(lines, classes, strict=True))
    )


def _label(
    label: str, places: Sequence[complex], taken: list[Rectangle], class_: str | None = None
) -> Markup:
    """A label at the first of the places where nothing else is, or at the first."""
    boxes = [_surround(p, len(label) * _LETTER, _LINE) for p in places]
    free = next((i for i, box in enumerate(boxes) if not any(_has_overlap(box, t) for t in taken)), 0)
    taken.append(boxes[free])
    return _plate(label, places[free], class_)


def _plate(label: str, centre: complex, class_: str | None = None) -> Markup:
    """A text that hides the line below it."""
    x, y, right, bottom = _surround(centre, len(label) * _LETTER + 4, _LINE - 2)
    plate = tag("rect", x=x, y=y, width=right - x, height=bottom - y, class_="plate")
    return join_markup([plate, _text(label, centre, class_)])


def _surround(centre: complex, width: float, height: float) -> Rectangle:
    x, y = centre.real, centre.imag
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def _has_overlap(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _unit(vector: complex) -> complex:
    return vector / abs(vector)


def _xy(point: complex) -> str:
    return f"{point.real:.1f} {point.imag:.1f}"


def _circle(centre: complex, radius: float, class_: str) -> Markup:
    return tag("circle", cx=centre.real, cy=centre.imag, r=radius, class_=class_)


def _text(text: str, centre: complex, class_: str | None = None) -> Markup:
    return tag("text", text, x=centre.real, y=centre.imag, dy=".35em", text_anchor="middle", class_=class_)


# The tree: boxes from the root down.

_BETWEEN, _BELOW, _MARGIN = 24, 58, 12


def tree(root: Mapping[str, Any]) -> Markup:
    parts, width, height, _ = _subtree(root)
    return _svg([parts], -1, -1, width + 2, height + 2, "the tree of the rule")


def _subtree(node: Mapping[str, Any]) -> tuple[Markup, float, float, float]:
    """The picture of a node and all below it, its width and height, and where the node's middle is."""
    box, box_width, box_height = _box(node)
    below = [(child, *_subtree(child)) for child in node["children"]]
    children_width = sum(width for _, _, width, _, _ in below) + _BETWEEN * max(0, len(below) - 1)
    width = max(box_width, children_width)
    x, y = (width - children_width) / 2, box_height + _BELOW
    starts = []
    for _, _, child_width, _, _ in below:
        starts.append(x)
        x += child_width + _BETWEEN
    middles = [start + middle for start, (*_, middle) in zip(starts, below, strict=True)]
    middle = (middles[0] + middles[-1]) / 2 if middles else width / 2
    middle = min(max(middle, box_width / 2), width - box_width / 2)
    lines, texts, placed = [], [], []
    for start, below_middle, (child, part, *_) in zip(starts, middles, below, strict=True):
        lines.append(tag("path", d=f"M{middle:.1f} {box_height}v18H{below_middle:.1f}V{y}", class_="edge"))
        shared = shorten(", ".join(v for v in child["bag"] if v in node["bag"]) or "nothing shared", 40)
        texts.append(_plate(shared, complex(below_middle, y - 18)))
        placed.append(tag("g", part, transform=f"translate({start:.1f} {y:.1f})"))
    own = tag("g", box, transform=f"translate({middle - box_width / 2:.1f} 0)")
    height = max([box_height, *(y + h for _, _, _, h, _ in below)])
    return join_markup([*lines, *texts, own, *placed]), width, height, middle


def _box(node: Mapping[str, Any]) -> tuple[Markup, float, float]:
    upper: list[tuple[str, str | None]] = [(line, "bold") for line in _wrap(f"{{{', '.join(node['bag'])}}}")]
    upper += [(line, None) for item in node["cover"] for line in _wrap(item)]
    lower = [(line, "quiet") for text in _facts(node) for line in _wrap(text)]
    width = max(len(line) for line, _ in (*upper, *lower)) * _LETTER + 2 * _MARGIN
    rule = _MARGIN + len(upper) * _LINE + 4
    height = rule + 6 + len(lower) * _LINE + _MARGIN - 4
    tops = [_MARGIN - 2 + _LINE * i for i in range(len(upper))]
    tops += [rule + 6 + _LINE * i for i in range(len(lower))]
    kept = "node unkept" if node["keeps"] is None else "node"
    parts = [
        tag("rect", width=width, height=height, rx=6, class_=kept),
        tag("line", x1=0, x2=width, y1=rule, y2=rule, class_="divide"),
    ]
    for top, (line, class_) in zip(tops, (*upper, *lower), strict=True):
        parts.append(tag("text", line, x=_MARGIN, y=top + _LINE / 2, dy=".35em", class_=class_))
    return join_markup(parts), width, height


def _facts(node: Mapping[str, Any]) -> list[str]:
    about = f"{node['estimate']:,.0f} rows estimated"
    lines = ["keeps nothing" if node["keeps"] is None else f"keeps ({', '.join(node['keeps'])})"]
    lines += ["in the store"] if node["stored"] else []
    lines.append(about if node["rows"] is None else f"{node['rows']:,} rows, {about.replace(' rows', '')}")
    if node["seconds"] is not None:
        lines.append(f"{seconds_text(node['seconds'])}, {bytes_text(node['bytes'])}")
    return lines


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 40, subsequent_indent="\N{NO-BREAK SPACE}" * 2) or [text]
