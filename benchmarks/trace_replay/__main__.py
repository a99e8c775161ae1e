"""Replays a request trace against a master and some nodes on this machine, and writes a report.

python -m benchmarks.trace_replay [--trace FILE] [--blocks 10000] [--value 64kb] [--nodes 2] [--limit N]
"""

import argparse
import sys
from pathlib import Path

from benchmarks.trace_replay import policies, replay, report, trace
from benchmarks.trace_replay.cluster import ClusterError
from mooncake.mooncake_config import parse_size

TRACES = Path(__file__).resolve().parents[1] / "traces"


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="trace_replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace", type=Path, default=TRACES / "conversation_trace.jsonl.gz", help="the requests")
    parser.add_argument("--limit", type=int, default=0, help="only the first requests (0 = all)")
    parser.add_argument("--blocks", type=int, default=10000, help="capacity of all nodes together, in blocks")
    parser.add_argument("--value", type=parse_size, default=64 << 10, help="size of a block's value, such as 64kb")
    parser.add_argument("--nodes", type=int, default=2, help="processes that lend memory and play requests")
    parser.add_argument(
        "--lease-ms", type=int, default=100, help="read lease: 10 s of the trace's time, scaled to the replay's speed"
    )
    parser.add_argument(
        "--ahead", type=int, default=16, help="how many requests the quickest node may be ahead of the slowest"
    )
    parser.add_argument("--eviction-policy", choices=["hdi", "lru"], default="hdi", help="who goes from a full store")
    parser.add_argument("--out", type=Path, default=Path("build/report"), help="folder of the report")
    return parser.parse_args(argv)


class Progress:
    """One line that is written over, or a line every ten per cent where the output is no terminal."""

    def __init__(self, requests: int):
        self._requests = requests
        self._tenth = -1

    def __call__(self, sample: replay.Sample) -> None:
        share = sample.requests / max(1, self._requests)
        ratio = sample.prefix_hits / max(1, sample.blocks)
        line = f"{share:4.0%}  {sample.requests} requests, prefix hit ratio {ratio:.3f}, {sample.seconds:.0f} s"
        if sys.stderr.isatty():
            print(f"\r{line}   ", end="" if share < 1 else "\n", file=sys.stderr, flush=True)
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            print(line, file=sys.stderr, flush=True)


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code: 0, or 1 if the replay failed or read a wrong value."""
    args = _arguments(argv)
    try:
        requests = trace.load(args.trace, args.limit)
        options = replay.Options(
            trace=args.trace.resolve(),
            limit=args.limit,
            blocks=args.blocks,
            value_bytes=args.value,
            nodes=args.nodes,
            lease_ms=args.lease_ms,
            eviction_policy=args.eviction_policy,
            ahead=args.ahead,
            logs=args.out / "logs",
        )
        outcome = replay.run(options, Progress(len(requests)))
    except (OSError, ValueError, ClusterError) as error:
        print(f"trace_replay: {error}", file=sys.stderr)
        return 1
    lru, optimum = policies.lru(requests, args.blocks), policies.offline_optimum(requests, args.blocks)
    summary = report.rows(options, outcome, lru, optimum)
    path = report.write(args.out, summary, report.html(summary, outcome, lru, optimum))
    print(report.text(summary))
    print(f"report: {path}")
    if outcome.totals.wrong_values:
        print(f"trace_replay: {outcome.totals.wrong_values} reads returned wrong bytes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
