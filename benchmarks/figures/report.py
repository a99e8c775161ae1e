"""The table of all figures as Markdown, and as one HTML file with plots that needs nothing else."""

from collections.abc import Sequence
from html import escape
from itertools import groupby

from benchmarks.figures.goals import NIXL, OURS, WHEEL, Verdict
from benchmarks.figures.noise import Noise

_COLUMNS = ("", "unit", OURS, WHEEL, NIXL, "limit", "ours of the limit", "goal", "met")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; } td, th { padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }
.no { color: #b3261e; font-weight: 600; } .yes { color: #1a7f37; }
.bars { display: grid; grid-template-columns: 26em 1fr; gap: .1em 1em; margin: .6em 0; align-items: center; }
.bar { height: .8em; border-radius: 2px; display: inline-block; vertical-align: middle; margin-right: .4em; }
.ours { background: #1f6fb4; } .published { background: #d1662a; } .nixl { background: #8a56a8; }
.limit { background: #9aa0a6; } small { color: #555; }
"""


def number(value: float | None) -> str:
    """Three digits that matter: "1.30", "18.7", "4 120 000", "-" for None."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}".replace(",", " ")
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def _cells(verdict: Verdict) -> tuple[str, ...]:
    row = verdict.row
    of_limit = f"{verdict.of_limit:.0%}" if verdict.of_limit is not None else ""
    limit = f"{number(verdict.limit)} ({row.limit_name})" if verdict.limit is not None else ""
    met = {True: "yes", False: "**no**", None: ""}[verdict.met]
    return (
        row.work,
        row.unit,
        number(verdict.ours),
        number(verdict.rivals.get(WHEEL)) if WHEEL in row.rivals else "",
        number(verdict.rivals.get(NIXL)) if NIXL in row.rivals else "",
        limit,
        of_limit,
        " and ".join(bound.text() for bound in row.bounds),
        met,
    )


def _sections(verdicts: Sequence[Verdict]) -> list[tuple[str, list[Verdict]]]:
    return [(name, list(group)) for name, group in groupby(verdicts, key=lambda verdict: verdict.row.section)]


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many goals are met, in one sentence that names those that are not."""
    judged = [verdict for verdict in verdicts if verdict.met is not None]
    missed = [verdict.row for verdict in judged if not verdict.met]
    text = f"{len(judged) - len(missed)} of {len(judged)} goals that were measured are met."
    if missed:
        text += " Missed: " + "; ".join(f"{row.section}, {row.work}" for row in missed) + "."
    return text


def tables(verdicts: Sequence[Verdict]) -> list[str]:
    """Lines of Markdown: a heading and a table a section."""
    lines = []
    for name, group in _sections(verdicts):
        lines += [f"## {name}", "", "| " + " | ".join(_COLUMNS) + " |", "|---" * len(_COLUMNS) + "|"]
        lines += ["| " + " | ".join(_cells(verdict)) + " |" for verdict in group]
        lines.append("")
    return lines


def markdown(verdicts: Sequence[Verdict], noise: Noise, host: str, failures: Sequence[str]) -> str:
    """The page: where it was taken, how noisy it was, a table a section, what failed."""
    lines = [host, "", noise.text(), "", summary(verdicts), "", *tables(verdicts)]
    if failures:
        lines += ["## Calls that failed", "", *(f"* {failure}" for failure in failures), ""]
    return "\n".join(lines)


def _bars(verdict: Verdict) -> str:
    figures = [(OURS, verdict.ours), *verdict.rivals.items(), ("limit", verdict.limit)]
    shown = [(name, value) for name, value in figures if value is not None]
    most = max((value for _, value in shown), default=0) or 1
    bars = "".join(
        f'<div><span class="bar {escape(name)}" style="width:{max(0.2, value / most * 70):.1f}%"></span>'
        f"<small>{escape(name)} {number(value)}</small></div>"
        for name, value in shown
    )
    label = f"{escape(verdict.row.work)} <small>{escape(verdict.row.unit)}</small>"
    return f"<div>{label}</div><div>{bars}</div>"


def html(verdicts: Sequence[Verdict], noise: Noise, host: str, failures: Sequence[str]) -> str:
    """The report: the same tables, and a bar for every figure."""
    parts = [f"<p>{escape(text)}</p>" for text in (host, noise.text(), summary(verdicts))]
    head = "".join(f"<th>{escape(column)}</th>" for column in _COLUMNS)
    for name, group in _sections(verdicts):
        parts.append(f"<h2>{escape(name)}</h2><table><tr>{head}</tr>")
        for verdict in group:
            *cells, _ = _cells(verdict)
            met = {True: '<td class="yes">yes</td>', False: '<td class="no">no</td>', None: "<td></td>"}[verdict.met]
            parts.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + met + "</tr>")
        parts.append(f'</table><div class="bars">{"".join(_bars(verdict) for verdict in group)}</div>')
    if failures:
        items = "".join(f"<li>{escape(failure)}</li>" for failure in failures)
        parts.append(f"<h2>Calls that failed</h2><ul>{items}</ul>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Mooncake: figures</title>'
        f"<style>{_STYLE}</style></head><body><h1>Figures</h1>{''.join(parts)}</body></html>\n"
    )
