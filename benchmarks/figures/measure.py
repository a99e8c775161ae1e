"""Runs the programs of ``benchmarks/side_by_side`` over the implementations, one after the other."""

import gzip
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.goals import (
    BATCH,
    ENGINE,
    IDLE,
    LANES,
    LATENCY,
    MANAGED,
    MASTER,
    NIXL,
    OURS,
    STORE,
    TCP,
    TOOL,
    TRACE,
    URING,
    WHEEL,
)

PROGRAMS = (ENGINE, LATENCY, LANES, URING, IDLE, BATCH, TOOL, STORE, MASTER, TRACE)
_FOLDER = Path(__file__).resolve().parents[1]
PATIENCE_S = 900.0  # For one program: far more than any takes.
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


def _venvs(program: str, plan: Plan) -> list[str]:
    """Whom the program measures, as it takes them."""
    ours, published = f"--venv={OURS}={plan.ours}", [f"--venv={WHEEL}={plan.published}"] if plan.published else []
    nixl = [f"--nixl={NIXL}={plan.nixl}"] if plan.nixl else []
    managed, tcp = f"--venv={MANAGED}={plan.ours},BENCH_MANAGED=1", f"--venv={TCP}={plan.ours},MC_FORCE_TCP=1"
    if program in (ENGINE, LATENCY):
        return [ours, managed, tcp, *published, *nixl]
    if program == LANES:
        return [f"--venv=lanes{lanes}={plan.ours},MC_FORCE_TCP=1,MC_TCP_LANES_PER_PEER={lanes}" for lanes in (1, 2, 4)]
    if program == URING:
        return []
    first = {TOOL: [tcp], IDLE: [ours], MASTER: [ours], TRACE: [ours]}.get(program, [ours, tcp])
    return [*first, *published, *(nixl if program == IDLE else [])]


def command(program: str, plan: Plan) -> list[str]:
    """The command line of one program; it writes ``<program>.json`` into the plan's folder."""
    rounds = "1" if plan.quick else "3"
    seconds = "0.2" if plan.quick else "0.4"
    of_traces = [f"--trace={plan.out / name}.jsonl" for name in TRACES]
    if plan.quick:
        of_traces += ["--limit", "1000"]
    binary = _FOLDER.parent / "build/release/mooncake-common/src/net/io_uring_bench"
    sides = f"--no-limits --beside {OURS},{MANAGED},{TCP},lanes1,lanes2,lanes4".split()
    few = "1" if plan.quick else "2"
    arguments = {
        ENGINE: [*sides, "--skip", "lat", "--rounds", few, "--secs", seconds],
        LATENCY: ["--rounds", few, "--chunks", "3" if plan.quick else "9"],
        LANES: [*sides, "--only", "64K x128,1M x16", "--skip", "4thr", "--rounds", "1", "--secs", seconds],
        URING: ["--binary", str(binary), "--rounds", rounds],
        IDLE: ["--secs", "1" if plan.quick else "3", "--starts", "2" if plan.quick else "7"],
        BATCH: ["--stress", "--only", "s until", "--rounds", "1", "--no-limits"],
        TOOL: ["--rounds", "1"],
        STORE: ["--places", "remote", "--sizes", "1M", "--batches", "--rounds", few, "--secs", seconds],
        MASTER: ["--parts", "mem,ops,pressure", "--no-reads", "--counts", str(plan.objects), "--secs", seconds],
        TRACE: ["--config", "default:", "--rounds", rounds, "--once", WHEEL, *of_traces],
    }[program]
    script = {BATCH: "te", ENGINE: "te", LANES: "te"}.get(program, program)
    path = _FOLDER / "side_by_side" / f"bench_{script}.py"
    out = ["--json", str(plan.out / f"{program}.json")]
    # No round is repeated on a noisy machine: the whole stays within ten minutes, and the table says how noisy it was.
    once = [] if program in (IDLE, URING) else ["--retries", "0"]
    return [sys.executable, str(path), *_venvs(program, plan), *arguments, *once, *out]


def run(program: str, plan: Plan) -> None:
    """Runs one program; its own output goes to ``<program>.txt`` beside its JSON.

    Raises subprocess.CalledProcessError if it fails, and subprocess.TimeoutExpired if it does not end.
    """
    plan.out.mkdir(parents=True, exist_ok=True)
    if program == TRACE:
        for name in TRACES:
            packed = (_FOLDER / "traces" / f"{name}.jsonl.gz").read_bytes()
            (plan.out / f"{name}.jsonl").write_bytes(gzip.decompress(packed))
    with (plan.out / f"{program}.txt").open("w", encoding="utf-8") as log:
        subprocess.run(command(program, plan), check=True, stdout=log, stderr=subprocess.STDOUT, timeout=PATIENCE_S)
