"""The replay's own parts: what it compares with and how it checks bytes. The replay itself runs in test_main_job.py."""

import ctypes
import gzip
import itertools
import random
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.trace_replay import policies, report, trace
from benchmarks.trace_replay.__main__ import Progress
from benchmarks.trace_replay.node import Pace, Player, Totals
from benchmarks.trace_replay.plot import BOTTOM, HEIGHT, Line, plot
from benchmarks.trace_replay.replay import Options, Outcome, Sample
from benchmarks.trace_replay.report import percentile
from benchmarks.trace_replay.trace import Request
from benchmarks.trace_replay.values import Values

CONVERSATION = trace.load(Path(__file__).resolve().parents[2] / "benchmarks/traces/conversation_trace.jsonl.gz")


def test_the_shipped_traces_are_whole():
    assert len(CONVERSATION) == 12031
    assert sum(len(request.blocks) for request in CONVERSATION) == 288500


@pytest.mark.parametrize(
    ("capacity", "lru", "optimum"), [(1000, 0.0445, 0.1907), (3000, 0.0650, 0.2945), (10000, 0.2112, 0.3664)]
)
def test_the_reference_policies_give_the_known_ratios(capacity, lru, optimum):
    assert policies.lru(CONVERSATION, capacity).prefix == pytest.approx(lru, abs=5e-5)
    assert policies.offline_optimum(CONVERSATION, capacity).prefix == pytest.approx(optimum, abs=5e-5)


def best_possible(requests: list[Request], capacity: int) -> int:
    """Most prefix hits of any choice of what to keep, by trying all of them."""
    states = {frozenset(): 0}
    for request in requests:
        following: dict[frozenset[int], int] = {}
        for kept, hits in states.items():
            gained = len(list(itertools.takewhile(kept.__contains__, request.blocks)))
            candidates = sorted(kept | set(request.blocks))
            size = min(capacity, len(candidates))
            for choice in itertools.combinations(candidates, size):
                state = frozenset(choice)
                following[state] = max(following.get(state, -1), hits + gained)
        states = following
    return max(states.values())


@pytest.mark.parametrize("seed", range(30))
def test_no_choice_of_blocks_beats_the_offline_optimum(seed):
    rng = random.Random(seed)
    parent = {block: rng.randrange(block) if block and rng.random() < 0.7 else None for block in range(8)}

    def chain(block: int | None) -> list[int]:
        return [] if block is None else [*chain(parent[block]), block]

    requests = [Request(0, chain(rng.randrange(8))) for _ in range(8)]
    asked = sum(len(request.blocks) for request in requests)
    for capacity in (1, 2, 3):
        optimum = round(policies.offline_optimum(requests, capacity).prefix * asked)
        assert optimum == best_possible(requests, capacity), requests


def test_a_line_that_is_no_request_is_named(tmp_path):
    path = tmp_path / "bad.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write('{"timestamp": 1, "hash_ids": [1]}\n{"timestamp": 1}\n')
    with pytest.raises(ValueError, match=r"bad.jsonl.gz:2: not a request"):
        trace.load(path)
    assert trace.load(path, limit=1) == [Request(1, [1])]


def test_values_of_different_blocks_differ_everywhere_and_a_flipped_bit_is_seen():
    values = Values(4096)
    rows = np.empty((50, 512), dtype=np.uint64)
    for block, row in enumerate(rows):
        values.write(block, row)
    for (a, row), (b, other) in itertools.product(enumerate(rows), repeat=2):
        assert values.matches(a, other) == (a == b), (a, b)
        assert a == b or not np.any(row == other)
    rows[7, 511] ^= np.uint64(1 << 63)
    assert not values.matches(7, rows[7])
    with pytest.raises(ValueError, match="multiple of 8"):
        Values(12)


def memory_at(pointer, size):
    return memoryview((ctypes.c_char * size).from_address(pointer)).cast("B")


class ForgetfulStore:
    """A store in a dict whose reads and writes go wrong on request."""

    def __init__(self):
        self.memory = {}
        self.spoil = set()
        self.refuse = set()

    def register_buffer(self, address, size):
        self._address = address
        return 0

    def batch_is_exist(self, keys):
        return [int(key in self.memory) for key in keys]

    def batch_get_into(self, keys, pointers, sizes):
        results = []
        for key, pointer, size in zip(keys, pointers, sizes, strict=True):
            data = self.memory[key]
            if key in self.spoil:
                data = bytes([data[0] ^ 1]) + data[1:]
            memory_at(pointer, size)[:] = data
            results.append(size)
        return results

    def batch_put_from(self, keys, pointers, sizes):
        results = []
        for key, pointer, size in zip(keys, pointers, sizes, strict=True):
            if key in self.refuse:
                results.append(-200)
                continue
            self.memory[key] = bytes(memory_at(pointer, size))
            results.append(0)
        return results


def test_a_player_counts_what_it_reads_writes_and_what_goes_wrong():
    store = ForgetfulStore()
    player = Player(store, 64, 4)
    store.refuse.add("block/3")
    player.play([1, 2, 3])
    player.play([1, 2, 3, 4])
    totals = player.totals
    assert (totals.requests, totals.blocks, totals.present) == (2, 7, 2)
    assert (totals.puts, totals.puts_refused, totals.codes) == (3, 2, {"put -200": 2})
    assert (totals.prefix_hits, totals.bytes_verified, totals.wrong_values) == (2, 128, 0)
    store.spoil.add("block/1")
    player.play([1, 2])
    assert (totals.prefix_hits, totals.wrong_values) == (2, 1)  # What follows a wrong block is no prefix hit.


def test_no_node_runs_ahead_of_the_slowest_by_more_than_allowed(tmp_path):
    Pace.create(tmp_path / "pace", 2)
    quick, slow = Pace(tmp_path / "pace", 2), Pace(tmp_path / "pace", 2)
    played = []
    for number in range(0, 20, 2):
        quick.reach(0, number)
        if quick.allows(number, 4):
            played.append(number)
    assert played == [0, 2, 4]
    slow.reach(1, 7)
    assert [number for number in range(6, 20, 2) if quick.allows(number, 4)] == [6, 8, 10]
    slow.reach(1, 20)
    quick.reach(0, 20)
    assert quick.allows(19, 0)


def test_a_plot_holds_its_curves_and_survives_having_none():
    svg = plot("t", "x", "y", [Line("a & b", [0, 1], [0, 2])])
    assert svg.startswith("<svg") and "a &amp; b" in svg and "polyline" in svg
    assert "nothing was measured" in plot("t", "x", "y", [Line("a", [], [])])
    assert "polyline" in plot("t", "x", "y", [Line("a", [0.5], [1])], log_x=True)


def test_percentiles():
    assert percentile([], 0.5) == 0
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile(range(100), 0.99) == 99


OPTIONS = Options(Path("a/t.jsonl"), 0, 100, 1000, 2, 100, "hdi", 16, Path("logs"))
TOTALS = Totals(
    requests=30,
    blocks=200,
    prefix_hits=50,
    present=80,
    puts=90,
    puts_refused=10,
    wrong_values=0,
    bytes_written=6_000_000_000,
    bytes_verified=2_000_000_000,
    lookup_us=[100.0],
    get_us=[float(us) for us in range(1000)],
    put_us=[float(2 * us) for us in range(1000)],
    codes={"put -200": 10},
)
SAMPLES = [
    Sample(1.0, 10, 100, 10, 1_000_000_000, 50e6, 10_000_000),
    Sample(2.0, 30, 200, 50, 8_000_000_000, 90e6, 12_000_000),
]
OUTCOME = Outcome(2.0, TOTALS, SAMPLES)
LRU, OPTIMUM = policies.Ratios(0.2, 0.35), policies.Ratios(0.3, 0.45)


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("prefix hit ratio", "0.2500"),
        ("block hit ratio", "0.4000"),
        ("same capacity, LRU", "prefix 0.2000, block 0.3500"),
        ("same capacity, offline optimum", "prefix 0.3000, block 0.4500"),
        ("requests/s", "15"),
        ("throughput", "4.000 GB/s (6.00 GB written, 2.00 GB read)"),
        ("get (batch)", "p50 0.500 ms, p99 0.990 ms (1000 calls)"),
        ("put (batch)", "p50 1.000 ms, p99 1.980 ms (1000 calls)"),
        ("bytes verified", "2000000000 (every byte read; 0 values were wrong)"),
        ("refused puts", "10 (10.00%); failures by code: put -200: 10"),
    ],
)
def test_the_summary_says_all_that_was_found(name, figure):
    summary = report.rows(OPTIONS, OUTCOME, LRU, OPTIMUM)
    assert dict(summary)[name] == figure
    assert re.search(rf"^{re.escape(name)}  +{re.escape(figure)}$", report.text(summary), re.MULTILINE)


def curves(page: str, title: str) -> dict[str, list[tuple[float, float]]]:
    """The points of the curves of one plot, in pixels, by the curve's name."""
    svg = next(svg for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if f">{title}" in svg)
    lines = re.findall(r'<polyline points="([^"]*)".*?/><text [^>]*fill[^>]*>([^<]*)</text>', svg)
    return {name: [tuple(map(float, point.split(","))) for point in points.split()] for points, name in lines}


def test_the_report_plots_ratio_latency_throughput_and_memory():
    page = report.html(report.rows(OPTIONS, OUTCOME, LRU, OPTIMUM), OUTCOME, LRU, OPTIMUM)
    ratio = curves(page, "Prefix hit ratio")
    assert set(ratio) == {"store", "LRU, whole trace", "offline optimum, whole trace"}
    (_, first), (_, last) = ratio["store"]
    bottom = HEIGHT - BOTTOM
    assert (bottom - last) / (bottom - first) == pytest.approx(2.5, rel=0.01)  # 50 / 200 beside 10 / 100.
    latency = curves(page, "Latency")
    assert set(latency) == {"lookup", "get", "put"}
    heights = [bottom - y for _, y in latency["get"]]
    assert heights == sorted(heights)  # A distribution.
    assert [len(points) for points in curves(page, "Throughput").values()] == [1]  # Between two samples.
    memory = curves(page, "Memory")
    assert {name: len(points) for name, points in memory.items()} == {
        "used of the pool": 2,
        "resident in the master": 2,
    }
    assert not re.search(r"(src|href)=|https?:|@import|url\(", page), "the file needs nothing else"


def test_progress_is_a_line_every_ten_per_cent_where_there_is_no_terminal(capsys):
    show = Progress(30)
    for requests in range(31):
        show(Sample(1.0, requests, 2 * requests, requests, 0, 0.0, 0))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("  0%")
    assert lines[5].split() == "50% 15 requests, prefix hit ratio 0.500, 1 s".split()
    assert lines[-1].startswith("100%")
