"""Derivations, and what is missing for one, as text and as a page with a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hdlog.report.drawing import Markup, tag

Step = Mapping[str, Any]
_DEEPEST = 12
"""Levels up to which a derivation is shown as a tree; deeper ones are lists of steps."""
_MOST_DRAWN = 80
"""Facts of a derivation that is drawn."""
_WIDTH, _HEIGHT, _GAP = 7.2, 46.0, 18.0
"""Of a letter, of a level, and between boxes, in the picture."""
_LONGEST = 48


def why_text(why: Mapping[str, Any]) -> str:
    """A derivation to read: a tree, or numbered steps where it is deep."""
    return "\n".join(_why_lines(why))


def _why_lines(why: Mapping[str, Any]) -> Iterator[str]:
    steps = {step["number"]: step for step in why["steps"]}
    if _find_depth(steps) <= _DEEPEST and len(steps) <= _MOST_DRAWN:
        yield from _tree_lines(steps, 1, "", "", set())
    else:
        for step in why["steps"]:
            yield from _step_lines(step)
    if not why["smallest"]:
        yield "there are too many derivations to look at all of them; a smaller one may exist"
    for other in why["others"]:
        yield ""
        yield "another way:"
        yield from _why_lines({**other, "others": []})


def _find_depth(steps: Mapping[int, Step]) -> int:
    """How many levels a derivation has; a fact that is used several times is told of once."""
    depth, level, seen = 0, [1], {1}
    while level:
        depth += 1
        below = dict.fromkeys(n for number in level for n in steps[number]["uses"])
        level = [n for n in below if n not in seen]
        seen.update(level)
    return depth


def _tree_lines(
    steps: Mapping[int, Step], number: int, indent: str, mark: str, seen: set[int]
) -> Iterator[str]:
    step = steps[number]
    deeper = indent + {"": "", "├─ ": "│  ", "└─ ": "   "}[mark]
    if number in seen and step["uses"]:
        yield f"{indent}{mark}{step['fact']}, as above"
        return
    seen.add(number)
    yield f"{indent}{mark}{step['fact']}{_reason(step)}"
    bar = "│  " if step["uses"] else "   "
    yield from (f"{deeper}{bar}{note}" for note in step["notes"])
    for place, used in enumerate(step["uses"]):
        last = place == len(step["uses"]) - 1
        yield from _tree_lines(steps, used, deeper, "└─ " if last else "├─ ", seen)


def _reason(step: Step) -> str:
    if step["kind"] == "asserted":
        return ", asserted"
    place = f" ({step['where']})" if step["where"] else ""
    return f", by {step['rule']}{place}"


def _step_lines(step: Step) -> Iterator[str]:
    uses = f", from {', '.join(map(str, step['uses']))}" if step["uses"] else ""
    yield f"{step['number']}. {step['fact']}{_reason(step)}{uses}"
    yield from (f"     {note}" for note in step["notes"])


def why_not_text(why_not: Mapping[str, Any]) -> str:
    lines = [f"{why_not['fact']} does not hold"]
    if not why_not["misses"]:
        lines.append("it is not asserted, and no rule could derive it")
    for miss in why_not["misses"]:
        place = f" ({miss['where']})" if miss["where"] else ""
        lines += ["", f"{miss['rule']}{place}"]
        if miss["matched"]:
            ways = "one way" if miss["matches"] == 1 else f"{miss['matches']:,} ways"
            lines.append(f"  matches {', '.join(miss['matched'])} in {ways}")
        lines.append(f"  fails at {miss['failed']}")
        lines += [f"    tried {text}" for text in miss["tried"]]
    return "\n".join(lines)


# A page.


def why_page(why: Mapping[str, Any]) -> str:
    """A page with the derivation as a picture, if it is not too large, and as steps."""
    parts = [tag("h1", f"Why {why['fact']}")]
    if len(why["steps"]) <= _MOST_DRAWN:
        parts.append(tag("figure", draw(why["steps"])))
    rows = [
        tag(
            "tr",
            tag("td", str(step["number"])),
            tag("td", tag("code", step["fact"])),
            tag("td", _reason(step).removeprefix(", ")),
            tag("td", ", ".join(map(str, step["uses"]))),
            tag("td", *(tag("div", note) for note in step["notes"])),
        )
        for step in why["steps"]
    ]
    head = tag("tr", *(tag("th", word) for word in ("step", "fact", "how", "from", "and")))
    parts.append(tag("table", tag("thead", head), tag("tbody", *rows)))
    if not why["smallest"]:
        parts.append(
            tag("p", "There are too many derivations to look at all of them; a smaller one may exist.")
        )
    meta = Markup(
        '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
    )
    header = tag("head", meta, tag("title", f"why {why['fact']}"), tag("style", Markup(_STYLE)))
    return f"<!DOCTYPE html>\n{tag('html', header, tag('body', tag('main', *parts)), lang='en')}\n"


def draw(steps: Sequence[Step]) -> Markup:
    """The derivation as a tree of facts, what is asserted at the bottom."""
    by_number = {step["number"]: step for step in steps}
    seen: set[int] = set()
    boxes, lines = [], []
    right, bottom = _GAP, 0.0

    def place(number: int, depth: int) -> tuple[float, float]:
        """Put a fact below the one that uses it; the middle of its upper edge. What it rests on is drawn once."""
        nonlocal right, bottom
        step = by_number[number]
        label = _shorten(step["fact"])
        width = _WIDTH * len(label) + 16
        top = depth * _HEIGHT * 1.6 + 10
        bottom = max(bottom, top + _HEIGHT)
        below = () if number in seen else step["uses"]
        seen.add(number)
        children = [place(n, depth + 1) for n in below]
        if children:
            middle = (children[0][0] + children[-1][0]) / 2
            middle = max(middle, _GAP + width / 2)
        else:
            middle = right + width / 2
        right = max(right, middle + width / 2 + _GAP)
        for child, child_top in children:
            lines.append(
                tag("line", x1=middle, y1=top + _HEIGHT * 0.8, x2=child, y2=child_top, class_="edge")
            )
        kind = "asserted" if step["kind"] == "asserted" else "derived"
        boxes.append(
            tag("rect", x=middle - width / 2, y=top, width=width, height=_HEIGHT * 0.8, rx=6, class_=kind)
        )
        boxes.append(tag("text", label, x=middle, y=top + _HEIGHT * 0.38, text_anchor="middle"))
        if step["where"]:
            boxes.append(
                tag(
                    "text",
                    _shorten(step["where"]),
                    x=middle,
                    y=top + _HEIGHT * 0.64,
                    text_anchor="middle",
                    class_="where",
                )
            )
        return middle, top

    place(1, 0)
    size = {"viewBox": f"0 0 {right:.0f} {bottom:.0f}", "width": f"{right:.0f}", "height": f"{bottom:.0f}"}
    return tag("svg", *lines, *boxes, **size, role="img", aria_label="the derivation as a tree")


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 0; color: #1b1f24; background: #fff; }
main { max-width: 1200px; margin: 0 auto; padding: 24px; }
h1 { font-size: 20px; overflow-wrap: anywhere; }
figure { margin: 0 0 24px; overflow-x: auto; }
svg text { font: 12px ui-monospace, monospace; fill: currentColor; }
svg .where { font-size: 9px; opacity: .65; }
svg .edge { stroke: #8a939c; }
svg rect { fill: #eef3f8; stroke: #7b95ad; }
svg rect.asserted { fill: #eaf5ec; stroke: #6da17a; }
table { border-collapse: collapse; width: 100%; }
th { white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: 4px 10px 4px 0; border-bottom: 1px solid #e3e6e9; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) {
  body { color: #e6e8ea; background: #15181b; }
  svg rect { fill: #22303c; stroke: #5a7b96; }
  svg rect.asserted { fill: #1f3225; stroke: #5b8f68; }
  th, td { border-color: #33383d; }
}
"""
