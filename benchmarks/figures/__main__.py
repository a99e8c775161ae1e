"""Measures every figure that the project promises, beside the rivals and the machine's limits, and writes one table.

benchmarks/run [--published VENV] [--nixl VENV] [--quick] [--only engine,store] [--out build/figures]

VENV is a virtual environment with mooncake-transfer-engine-non-cuda==0.3.13.post1, or nixl-cu12==1.5.1. A full run
takes nine minutes, on a machine where nothing else runs; --quick takes a few and is good for ratios of two. A program
that was left out keeps the figures of an earlier run into the same folder. Then

python -m benchmarks.figures.document FOLDER

writes the tables of docs/performance.md.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import goals, measure, noise, report, results


def _programs(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in measure.PROGRAMS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(measure.PROGRAMS)}")
    return names


def _venv(text: str) -> Path:
    path = Path(text)
    if not (path / "bin" / "python").exists():
        raise argparse.ArgumentTypeError(f"{text!r} is no virtual environment: it has no bin/python")
    return path.absolute()


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ours", type=_venv, default=".venv", help="where this project is installed")
    parser.add_argument("--published", type=_venv, help="where the published package is installed")
    parser.add_argument("--nixl", type=_venv, help="where NIXL is installed")
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--only", type=_programs, default=list(measure.PROGRAMS), help="programs, by commas")
    parser.add_argument("--out", type=Path, default=Path("build/figures"), help="folder of the results")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code: 0, or 1 if a program failed or a value that was read was wrong."""
    args = _arguments(argv)
    plan = measure.Plan(args.ours, args.published, args.nixl, args.quick, args.out)
    before = noise.CpuTimes.now()
    failed = False
    for program in args.only:
        start = time.monotonic()
        print(f"{program} ...", end=" ", file=sys.stderr, flush=True)
        try:
            measure.run(program, plan)
            print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)
        except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            failed = True
            print(f"failed: {error}; see {args.out / program}.txt", file=sys.stderr)
    args.out.mkdir(parents=True, exist_ok=True)
    results.note_run(args.out, before.steal_until(noise.CpuTimes.now()), plan.objects)
    measured = results.load(args.out)
    weighed = noise.weigh(measured, measured.steal)
    verdicts = [goals.judge(row, measured) for row in goals.rows(measured.objects)]
    host = json.dumps(measured.hosts[0]) if measured.hosts else "host unknown"
    failures = measured.failures()
    (args.out / "table.md").write_text(report.markdown(verdicts, weighed, host, failures), encoding="utf-8")
    page = args.out / "report.html"
    page.write_text(report.html(verdicts, weighed, host, failures), encoding="utf-8")
    print(weighed.text())
    print(report.summary(verdicts))
    print(f"table: {args.out / 'table.md'}; report: {page}")
    return 1 if failed or any("VERIFY" in failure for failure in failures) else 0


if __name__ == "__main__":
    raise SystemExit(main())
