"""The result of a replay as text and as one HTML file."""

import platform
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from benchmarks.trace_replay.plot import Line, plot
from benchmarks.trace_replay.policies import Ratios
from benchmarks.trace_replay.replay import Options, Outcome

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1340px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; } td, th { padding: .2em 1em .2em 0; text-align: left; vertical-align: top; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(480px, 1fr)); gap: 1em; }
svg { width: 100%; border: 1px solid #ddd; border-radius: 4px; }
svg text { font: 12px system-ui, sans-serif; fill: #444; } svg .title { font-weight: 600; font-size: 14px; }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; } svg .grid { stroke: #e6e6e6; }
"""


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0 to 1) of ``values`` lie; 0 if there are none."""
    if not values:
        return 0.0
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _latency(values: Sequence[float]) -> str:
    return (
        f"p50 {percentile(values, 0.5) / 1e3:.3f} ms, p99 {percentile(values, 0.99) / 1e3:.3f} ms ({len(values)} calls)"
    )


def rows(options: Options, outcome: Outcome, lru: Ratios, optimum: Ratios) -> list[tuple[str, str]]:
    """The summary: (what, figure) in the order in which it is shown."""
    totals = outcome.totals
    asked = max(1, totals.blocks)
    moved = totals.bytes_written + totals.bytes_verified
    refused = totals.puts_refused / max(1, totals.puts + totals.puts_refused)
    failures = ", ".join(f"{key}: {count}" for key, count in sorted(totals.codes.items())) or "none"
    return [
        ("trace", f"{options.trace.name}, {totals.requests} requests, {totals.blocks} blocks asked for"),
        (
            "cluster",
            f"one master, {options.nodes} nodes, {options.blocks} blocks of {options.value_bytes} bytes in all "
            f"({options.blocks * options.value_bytes / 1e6:.0f} MB), eviction by {options.eviction_policy}",
        ),
        ("prefix hit ratio", f"{totals.prefix_hits / asked:.4f}"),
        ("block hit ratio", f"{totals.present / asked:.4f}"),
        ("same capacity, LRU", f"prefix {lru.prefix:.4f}, block {lru.block:.4f}"),
        ("same capacity, offline optimum", f"prefix {optimum.prefix:.4f}, block {optimum.block:.4f}"),
        ("requests/s", f"{totals.requests / outcome.seconds:.0f}"),
        (
            "throughput",
            f"{moved / outcome.seconds / 1e9:.3f} GB/s ({totals.bytes_written / 1e9:.2f} GB written, "
            f"{totals.bytes_verified / 1e9:.2f} GB read)",
        ),
        ("lookup (batch)", _latency(totals.lookup_us)),
        ("get (batch)", _latency(totals.get_us)),
        ("put (batch)", _latency(totals.put_us)),
        ("bytes verified", f"{totals.bytes_verified} (every byte read; {totals.wrong_values} values were wrong)"),
        ("refused puts", f"{totals.puts_refused} ({refused:.2%}); failures by code: {failures}"),
        ("time", f"{outcome.seconds:.1f} s"),
    ]


def text(summary: list[tuple[str, str]]) -> str:
    """The summary as aligned lines."""
    width = max(len(name) for name, _ in summary)
    return "\n".join(f"{name:<{width}}  {figure}" for name, figure in summary) + "\n"


def _distribution(name: str, values: Sequence[float]) -> Line:
    ordered = sorted(values)
    return Line(name, [value / 1e3 for value in ordered], [(i + 1) / len(ordered) for i in range(len(ordered))])


def html(summary: list[tuple[str, str]], outcome: Outcome, lru: Ratios, optimum: Ratios) -> str:
    """The report: the summary and four plots, in one file."""
    samples = [sample for sample in outcome.samples if sample.blocks]
    seconds = [sample.seconds for sample in samples]
    ends = [seconds[0], seconds[-1]] if seconds else []
    pairs = [(a, b) for a, b in pairwise(samples) if b.seconds > a.seconds]
    speed = [(b.bytes_moved - a.bytes_moved) / (b.seconds - a.seconds) / 1e9 for a, b in pairs]
    totals = outcome.totals
    plots = [
        plot(
            "Prefix hit ratio so far",
            "seconds",
            "ratio",
            [
                Line("store", seconds, [sample.prefix_hits / sample.blocks for sample in samples]),
                Line("LRU, whole trace", ends, [lru.prefix] * len(ends), dashed=True),
                Line("offline optimum, whole trace", ends, [optimum.prefix] * len(ends), dashed=True),
            ],
        ),
        plot(
            "Latency of a batch call (share of calls that took at most so long)",
            "milliseconds",
            "share",
            [
                _distribution("lookup", totals.lookup_us),
                _distribution("get", totals.get_us),
                _distribution("put", totals.put_us),
            ],
            log_x=True,
        ),
        plot("Throughput", "seconds", "GB/s", [Line("reads and writes", [b.seconds for _, b in pairs], speed)]),
        plot(
            "Memory",
            "seconds",
            "MB",
            [
                Line("used of the pool", seconds, [sample.used_bytes / 1e6 for sample in samples]),
                Line("resident in the master", seconds, [sample.master_resident_bytes / 1e6 for sample in samples]),
            ],
        ),
    ]
    table = "".join(f"<tr><th>{escape(name)}</th><td>{escape(figure)}</td></tr>" for name, figure in summary)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Mooncake: trace replay</title>'
        f"<style>{_STYLE}</style></head><body><h1>Trace replay</h1>"
        f"<p>Made on {escape(platform.node())} ({escape(platform.machine())}, Linux {escape(platform.release())}).</p>"
        f'<table>{table}</table><div class="plots">{"".join(plots)}</div></body></html>\n'
    )


def write(folder: Path, summary: list[tuple[str, str]], page: str) -> Path:
    """Writes ``report.html`` and ``summary.txt``; returns the former's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.txt").write_text(text(summary), encoding="utf-8")
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path
