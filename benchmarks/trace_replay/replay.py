"""Replays a trace against a cluster and gathers what the report shows."""

import queue
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.trace_replay.cluster import Cluster, ClusterError
from benchmarks.trace_replay.node import Pace, Settings, Totals

#: A node that says nothing for so long is held for dead, in seconds.
SILENCE_LIMIT_S = 120.0


@dataclass
class Options:
    """What is replayed, and on what."""

    trace: Path
    limit: int  # First requests only; 0 = all.
    blocks: int  # Capacity of all nodes together, in blocks.
    value_bytes: int
    nodes: int
    lease_ms: int
    eviction_policy: str
    ahead: int  # A request waits until all those have been played that come so many or more before it.
    logs: Path


@dataclass
class Sample:
    """The state of the run at one moment."""

    seconds: float
    requests: int
    blocks: int
    prefix_hits: int
    bytes_moved: int
    used_bytes: float  # Of the pool, as the master says.
    master_resident_bytes: int


@dataclass
class Outcome:
    """What a replay has shown."""

    seconds: float
    totals: Totals
    samples: list[Sample] = field(default_factory=list)
    master_metrics: dict[str, float] = field(default_factory=dict)


def merge(parts: list[Totals]) -> Totals:
    """The sum of the nodes' totals; lists are joined."""
    merged = Totals()
    for part in parts:
        for name, value in vars(part).items():
            if isinstance(value, dict):
                for key, count in value.items():
                    merged.codes[key] = merged.codes.get(key, 0) + count
            else:
                setattr(merged, name, getattr(merged, name) + value)
    return merged


def find_binaries() -> Path:
    """The folder of the console scripts of this interpreter's environment.

    Raises:
        ClusterError: there is no ``mooncake_master``.
    """
    beside = Path(sys.executable).parent
    if (beside / "mooncake_master").exists():
        return beside
    found = shutil.which("mooncake_master")
    if found is None:
        raise ClusterError(f"no mooncake_master beside {sys.executable} nor on PATH; pip install . first")
    return Path(found).parent


def run(options: Options, show: Callable[[Sample], None]) -> Outcome:
    """Starts a cluster, replays, stops it. ``show`` is called with each new sample.

    Raises:
        ClusterError: a process did not start, died, or fell silent.
    """
    with Cluster(find_binaries(), options.logs, options.lease_ms, options.eviction_policy) as cluster:
        cluster.wait_for_master()
        pace = options.logs / "pace"
        Pace.create(pace, options.nodes)
        for part in range(options.nodes):
            share = options.blocks // options.nodes + (part < options.blocks % options.nodes)
            cluster.add_node(
                Settings(
                    trace=str(options.trace),
                    limit=options.limit,
                    part=part,
                    parts=options.nodes,
                    master=cluster.master_address,
                    segment_bytes=share * options.value_bytes,
                    value_bytes=options.value_bytes,
                    pace=str(pace),
                    ahead=options.ahead,
                )
            )
        _await_all(cluster, "ready")
        started = time.perf_counter()
        for node in cluster.nodes:
            node.say("go")
        outcome = _follow(cluster, started, show)
        outcome.master_metrics = cluster.metrics() or {}
        for node in cluster.nodes:
            node.say("leave")
        _await_all(cluster, "ended")
        return outcome


def _next(cluster: Cluster) -> tuple[int, dict[str, Any]]:
    try:
        return cluster.messages.get(timeout=SILENCE_LIMIT_S)
    except queue.Empty:
        raise ClusterError(f"no node has said anything for {SILENCE_LIMIT_S:.0f} s") from None


def _await_all(cluster: Cluster, kind: str) -> None:
    waiting = set(range(len(cluster.nodes)))
    while waiting:
        number, message = _next(cluster)
        if message["kind"] == kind:
            waiting.discard(number)
        elif message["kind"] == "ended":
            raise cluster.nodes[number].death()


def _follow(cluster: Cluster, started: float, show: Callable[[Sample], None]) -> Outcome:
    latest: list[dict[str, Any]] = [{} for _ in cluster.nodes]
    done: dict[int, Totals] = {}
    samples: list[Sample] = []
    while len(done) < len(cluster.nodes):
        number, message = _next(cluster)
        if message["kind"] == "ended":
            raise cluster.nodes[number].death()
        if message["kind"] == "done":
            done[number] = Totals(**message["totals"])
            continue
        latest[number] = message
        total = {
            key: sum(part.get(key, 0) for part in latest)
            for key in ("requests", "blocks", "prefix_hits", "bytes_moved")
        }
        used = (cluster.metrics() or {}).get("master_allocated_bytes", 0.0)
        samples.append(
            Sample(
                time.perf_counter() - started,
                **total,
                used_bytes=used,
                master_resident_bytes=cluster.master.resident_bytes(),
            )
        )
        show(samples[-1])
    return Outcome(time.perf_counter() - started, merge(list(done.values())), samples)
