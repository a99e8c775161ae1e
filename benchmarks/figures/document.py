"""Writes the tables of docs/performance.md from the folder that a run left.

python -m benchmarks.figures.document FOLDER [--page docs/performance.md]

All between the two markers of the page is replaced: where and when the figures were taken, how far to trust them, every
row with its verdict, and the reason of each goal that was missed. The rest of the page is left as it is.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import goals, noise, reasons, report, results

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


class PageError(ValueError):
    """The page has no place for the figures; the message says what it lacks."""


def _taken(host: dict[str, object]) -> str:
    return f"Taken on {host['date']}: {host['cores']} cores of an {host['cpu']}, Linux {host['kernel']}."


def _reasons(verdicts: Sequence[goals.Verdict]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.met is False:
            row = verdict.row
            by_reason.setdefault(reasons.of(row), []).append(f"{row.section}: {row.work}")
    lines = ["## What bounds what is missed", ""]
    if not by_reason:
        lines.append("Nothing was missed.")
    for reason, works in by_reason.items():
        lines.append(f"- **{'; '.join(works)}.** {reason}")
    return [*lines, ""]


def block(measured: results.Results) -> str:
    """What stands between the markers.

    Raises:
        PageError: no program has run.
    """
    if not measured.hosts:
        raise PageError("no program has left its results there")
    verdicts = [goals.judge(row, measured) for row in goals.rows(measured.objects)]
    judged = [verdict for verdict in verdicts if verdict.met is not None]
    met = sum(bool(verdict.met) for verdict in judged)
    weighed = noise.weigh(measured, measured.steal).text()
    lines = [f"{_taken(measured.hosts[0])} {weighed}", "", f"**{met} of {len(judged)} goals are met.**", ""]
    lines += [*report.tables(verdicts), *_reasons(verdicts)]
    failures = measured.failures()
    if failures:
        lines += ["## Calls that failed", "", *(f"- {failure}" for failure in failures), ""]
    return "\n".join(lines)


def insert(page: str, figures: str) -> str:
    """The page with ``figures`` between its markers.

    Raises:
        PageError: it has not exactly one of each marker, in their order.
    """
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise PageError(f"the page needs one line {BEGIN!r} and after it one line {END!r}")
    before, after = page.split(BEGIN, maxsplit=1)[0], page.split(END)[1]
    return f"{before}{BEGIN}\n\n{figures}\n{END}{after}"


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code: 0, or 1 if the folder or the page will not do."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what benchmarks/run was given with --out")
    parser.add_argument("--page", type=Path, default=PAGE)
    args = parser.parse_args(argv)
    try:
        page = insert(args.page.read_text(encoding="utf-8"), block(results.load(args.folder)))
        args.page.write_text(page, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"figures.document: {args.folder}, {args.page}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
