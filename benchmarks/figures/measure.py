"""Runs the programs of ``benchmarks/side_by_side`` over the implementations, one after the other."""

import gzip
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.goals import BATCH, ENGINE, MANAGED, MASTER, NIXL, OURS, STORE, TCP, TOOL, TRACE, WHEEL

PROGRAMS = (ENGINE, BATCH, TOOL, STORE, MASTER, TRACE)
_FOLDER = Path(__file__).resolve().parents[1]
TRACES = ("conversation_trace", "synthetic_trace")


@dataclass(frozen=True)
class Plan:
    """Whom to measure and how long. ``published`` and ``nixl`` are virtual environments, or None to leave them out."""

    ours: Path
    published: Path | None
    nixl: Path | None
    quick: bool
    out: Path

    @property
    def objects(self) -> int:
        """How many objects the master's memory is taken with."""
        return 100_000 if self.quick else 1_000_000


def command(program: str, plan: Plan) -> list[str]:
    """The command line of one program; it writes ``<program>.json`` into the plan's folder."""
    venvs = [] if program == TOOL else [f"{OURS}={plan.ours}"]
    if program == ENGINE:
        venvs.append(f"{MANAGED}={plan.ours},BENCH_MANAGED=1")
    if program in (ENGINE, TOOL, STORE):
        venvs.append(f"{TCP}={plan.ours},MC_FORCE_TCP=1")
    if plan.published:
        venvs.append(f"{WHEEL}={plan.published}")
    arguments = [argument for venv in venvs for argument in ("--venv", venv)]
    rounds = 1 if plan.quick else 3
    seconds = 0.2 if plan.quick else 0.6
    if program == ENGINE:
        nixl = ["--nixl", f"{NIXL}={plan.nixl}"] if plan.nixl else []
        arguments += [*nixl, "--rounds", str(rounds), "--secs", str(seconds)]
    elif program == BATCH:
        arguments += ["--stress", "--only", "s until", "--rounds", "1", "--no-limits"]
    elif program == TOOL:
        arguments += ["--rounds", str(rounds)]
    elif program == STORE:
        arguments += ["--places", "remote", "--rounds", str(rounds), "--secs", str(seconds)]
    elif program == MASTER:
        arguments += ["--parts", "mem,ops,pressure", "--counts", str(plan.objects), "--secs", str(seconds)]
    elif program == TRACE:
        arguments += ["--config", "default:", "--rounds", str(rounds)]
        for name in TRACES:
            arguments += ["--trace", str(plan.out / f"{name}.jsonl")]
        if plan.quick:
            arguments += ["--limit", "1000"]
    script = {BATCH: "te", ENGINE: "te"}.get(program, program)
    path = _FOLDER / "side_by_side" / f"bench_{script}.py"
    return [sys.executable, str(path), *arguments, "--json", str(plan.out / f"{program}.json")]


def run(program: str, plan: Plan) -> None:
    """Runs one program; its own output goes to ``<program>.txt`` beside its JSON.

    Raises subprocess.CalledProcessError if it fails.
    """
    plan.out.mkdir(parents=True, exist_ok=True)
    if program == TRACE:
        for name in TRACES:
            packed = (_FOLDER / "traces" / f"{name}.jsonl.gz").read_bytes()
            (plan.out / f"{name}.jsonl").write_bytes(gzip.decompress(packed))
    with (plan.out / f"{program}.txt").open("w", encoding="utf-8") as log:
        subprocess.run(command(program, plan), check=True, stdout=log, stderr=subprocess.STDOUT)
