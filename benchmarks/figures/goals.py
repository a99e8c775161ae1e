"""What the project promises, row by row: where its figure is measured, beside which rival and limit, and the goal.

A row names the cases of the programs in ``benchmarks/side_by_side`` exactly as they print them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.figures.results import Results, Source

WHEEL, NIXL, OURS, MANAGED, TCP = "published", "nixl", "ours", "managed", "tcp"
ENGINE, BATCH, TOOL, STORE, MASTER, TRACE = "engine", "batch", "tool", "store", "master", "trace"
LATENCY, IDLE, LANES, URING = "latency", "idle", "lanes", "uring"


@dataclass(frozen=True)
class Bound:
    """Our figure against ``factor`` times a reference: "limit", a rival's label, "other" (a figure of ours), or 1."""

    at_least: bool
    factor: float
    reference: str = ""
    said: str = ""  # Where the factor comes from, for the table.

    def text(self) -> str:
        """As it stands in the table: "≥ 80 % of the limit", "≤ 10", "≥ 1.2 × nixl"."""
        sign = "≥" if self.at_least else "≤"
        if not self.reference:
            return f"{sign} {self.factor:g}"
        if self.reference == "limit" and self.factor < 1:
            return f"{sign} {self.factor:.0%} of the limit".replace("%", " %")
        name = {"limit": "the limit", "other": "the figure beside it"}.get(self.reference, self.reference)
        text = f"{sign} {name}" if self.factor == 1 else f"{sign} {self.factor:g} × {name}"
        return f"{text} ({self.said})" if self.said else text


@dataclass(frozen=True)
class Row:
    """One line of the table; all its figures have the same unit."""

    section: str
    work: str
    unit: str
    ours: Source
    bounds: tuple[Bound, ...] = ()
    rivals: dict[str, Source] = field(default_factory=dict)
    limit: Source | None = None
    limit_name: str = ""
    other: Source | None = None  # A figure of ours that this one is held against.
    ratio: Source | None = None  # Ours by a limit that was taken in the same moments; judged instead of the medians.


@dataclass(frozen=True)
class Verdict:
    """A row with its figures. ``met`` is None when ours, or all that a bound is held against, was not measured."""

    row: Row
    ours: float | None
    rivals: dict[str, float]
    limit: float | None
    met: bool | None
    of_limit: float | None = None  # Ours by the limit.


def judge(row: Row, results: Results) -> Verdict:
    """Holds the medians against the bounds; a bound whose reference was not measured is left out."""
    ours = results.median(row.ours)
    rivals = {name: value for name, source in row.rivals.items() if (value := results.median(source)) is not None}
    limit = results.median(row.limit)
    of_limit = results.median(row.ratio)
    if of_limit is None and ours is not None and limit:
        of_limit = ours / limit
    beside = ours / of_limit if ours is not None and of_limit else limit  # The limit of the same moments.
    references = {"": 1.0, "limit": beside, "other": results.median(row.other), **rivals}
    held = []
    for bound in row.bounds:
        reference = references.get(bound.reference)
        if ours is not None and reference is not None:
            goal = bound.factor * reference
            held.append(ours >= goal if bound.at_least else ours <= goal)
    return Verdict(row, ours, rivals, limit, all(held) if held else None, of_limit)


def at_least(factor: float, reference: str = "") -> Bound:
    """A figure that should be large."""
    return Bound(True, factor, reference)


def at_most(factor: float, reference: str = "") -> Bound:
    """A figure that should be small."""
    return Bound(False, factor, reference)


def by_ratio(goal_us: float, limit_us: float) -> Bound:
    """A latency that the design wants on a machine whose limit it names: judged by the ratio of the two."""
    return Bound(False, round(goal_us / limit_us, 2), "limit", f"{goal_us:g} µs where the limit is {limit_us:g}")


BIG = (3000, 10000, 100000)  # Entries of a batch.
SHAPES = (("4 KiB × 128", "4K x128"), ("64 KiB × 128", "64K x128"), ("1 MiB × 16", "1M x16"), ("16 MiB × 4", "16M x4"))


def _rivals(program: str, case: str, *names: str) -> dict[str, Source]:
    return {name: Source(program, case, name) for name in names}


def _simple(section: str, work: str, unit: str, ours: Source, bounds: tuple[Bound, ...], *rivals: str) -> Row:
    """A row without a limit: our figure of a case beside the rivals' of the same."""
    return Row(section, work, unit, ours, bounds, _rivals(ours.program, ours.case, *rivals))


def _same_host() -> Iterator[Row]:
    section = "Engine, same host"
    for shape, case_shape in SHAPES:
        small = case_shape == SHAPES[0][1]
        for direction in ("write", "read"):
            case = f"{direction} {case_shape}"
            rivals = _rivals(ENGINE, case, WHEEL, NIXL)
            yield Row(
                section,
                f"{direction} {shape}, memory of the caller",
                "GB/s",
                Source(ENGINE, case, OURS),
                (at_least(0.8, "limit"), at_least(1.2, NIXL)) if small else (at_least(0.8, "limit"),),
                rivals,
                Source(ENGINE, case, OURS, is_limit=True),
                "process_vm_*",
                ratio=Source(ENGINE, case + " of limit", OURS),
            )
            yield Row(
                section,
                f"{direction} {shape}, memory of the engine",
                "GB/s",
                Source(ENGINE, case, MANAGED),
                () if small else (at_least(0.8, "limit"),),
                rivals,
                Source(ENGINE, case, MANAGED, is_limit=True),
                "memcpy",
                ratio=Source(ENGINE, case + " of limit", MANAGED),
            )
    for label, memory in ((OURS, "the caller"), (MANAGED, "the engine")):
        for work, case in (
            ("four threads, write 64 KiB × 128", "write 64K x128 4thr"),
            ("sixteen threads, write 64 KiB × 8", "write 64K x8 16thr"),
        ):
            yield Row(
                section,
                f"{work}, memory of {memory}",
                "GB/s",
                Source(ENGINE, case, label),
                (at_least(0.95, "limit"),),  # No less than one thread, and what chunks of a second differ by.
                _rivals(ENGINE, case, WHEEL, NIXL),
                Source(ENGINE, case, label, is_limit=True),
                "one thread, as many bytes",
                ratio=Source(ENGINE, case + " of limit", label),
            )


def _latency(
    section: str, work: str, measured: Source, bounds: dict[str, tuple[Bound, ...]], limit_name: str, *rivals: str
) -> Iterator[Row]:
    """Rows of one latency, a row for each share ("p50", "p99") that ``bounds`` has: each beside its own limit."""
    case, label = measured.case, measured.label
    for share, held in bounds.items():
        yield Row(
            section,
            f"{work}, {share}",
            "µs",
            Source(measured.program, f"{case} {share} us", label),
            held,
            _rivals(measured.program, f"{case} {share} us", *rivals),
            Source(measured.program, f"{case} us", label, is_limit=True),
            limit_name,
            ratio=Source(measured.program, f"{case} of limit" if share == "p50" else f"{case} p99 of limit", label),
        )


def _short_calls() -> Iterator[Row]:
    section = "Engine, same host, one call after the other"
    # The design's machine reads a page by process_vm_readv in 0.8 µs. Memory of the engine needs no kernel.
    own = {"p50": (by_ratio(1.5, 0.8),), "p99": (by_ratio(5, 0.8),)}
    shared = {"p50": (at_most(1.5),), "p99": (at_most(5),)}
    for work, case in (("read 4 KiB", "lat read 4K"), ("write 64 B", "lat write 64B")):
        for label, memory, bounds, limit_name in (
            (OURS, "the caller", own, "one process_vm_* call"),
            (MANAGED, "the engine", shared, "a turn through shared memory"),
        ):
            measured = Source(LATENCY, case, label)
            yield from _latency(section, f"{work}, memory of {memory}", measured, bounds, limit_name, WHEEL, NIXL)


def _forced_tcp() -> Iterator[Row]:
    section = "Engine, TCP only"
    for shape, case_shape in SHAPES:
        share = 0.8 if case_shape == SHAPES[0][1] else 0.9
        for direction in ("write", "read"):
            case = f"{direction} {case_shape}"
            yield Row(
                section,
                f"{direction} {shape}",
                "GB/s",
                Source(ENGINE, case, TCP),
                (at_least(share, "limit"),),
                _rivals(ENGINE, case, WHEEL),
                Source(ENGINE, case, TCP, is_limit=True),
                "one raw connection",
                ratio=Source(ENGINE, case + " of limit", TCP),
            )
            if share == 0.9:
                yield Row(
                    section,
                    f"CPU of both sides, {direction} {shape}",
                    "s/GB",
                    Source(ENGINE, case + " cpu", TCP),
                    (at_most(1.2, "limit"),),
                    _rivals(ENGINE, case + " cpu", WHEEL),
                    Source(ENGINE, case + " cpu", TCP, is_limit=True),
                    "one raw connection",
                    ratio=Source(ENGINE, case + " cpu of limit", TCP),
                )
    bounds = {"p50": (by_ratio(10, 6.8),), "p99": ()}
    yield from _latency(
        section, "read 4 KiB", Source(LATENCY, "lat read 4K", TCP), bounds, "two spinning sockets", WHEEL
    )
    yield from _latency(
        section, "write 4 KiB", Source(LATENCY, "lat write 4K", TCP), {"p50": ()}, "two spinning sockets", WHEEL
    )
    for shape, case_shape in SHAPES[1:3]:
        for direction in ("write", "read"):
            case = f"{direction} {case_shape}"
            for lanes in (1, 2, 4):
                yield Row(
                    section,
                    f"{direction} {shape}, lanes: {lanes}",
                    "GB/s",
                    Source(LANES, case, f"lanes{lanes}"),
                    limit=Source(LANES, case, f"lanes{lanes}", is_limit=True),
                    limit_name="one raw connection",
                    ratio=Source(LANES, f"{case} of limit", f"lanes{lanes}"),
                )
    for work, unit, case, bound in (
        ("ask 8 bytes and spin for the answer, plain calls", "µs", "ask 8 bytes us", at_most(1, "limit")),
        ("send 64 KiB pieces, plain calls", "GB/s", "send GB/s", at_least(1, "limit")),
    ):
        limit = Source(URING, case, "io_uring", is_limit=True)
        yield Row(section, work, unit, Source(URING, case, "calls"), (bound,), limit=limit, limit_name="io_uring")


def _tool() -> Iterator[Row]:
    section = "transfer_engine_bench, two threads, TCP only"
    shapes = (("4 KiB × 128", "4K x128", 0.35), ("64 KiB × 32", "64K x32", 0.35), ("1 MiB × 32", "1M x32", 0.6))
    for place, where in (("tool", "loopback"), ("cable", "another address")):
        for shape, case_shape, share in shapes:
            for direction in ("write", "read"):
                case = f"{place} {direction} {case_shape}"
                yield Row(
                    section,
                    f"{where}, {direction} {shape}",
                    "GB/s",
                    Source(TOOL, case, TCP),
                    (at_least(share, "limit"),),
                    _rivals(TOOL, case, WHEEL),
                    Source(TOOL, case, "tcp", is_limit=True),
                    "one raw connection",
                )


def _rest() -> Iterator[Row]:
    section = "Engine, start and rest"
    for work, case in (("start", "start: init ms"), ("first read of a peer", "start: first 4K read ms")):
        yield _simple(section, work, "ms", Source(IDLE, case, OURS), (at_most(1, WHEEL),), WHEEL, NIXL)
    for work, unit, case, goal in (
        ("CPU of an idle engine", "% of a core", "idle engine: CPU %", 0.1),
        ("threads of an idle engine", "", "idle engine: threads", 4),
        ("resident, with Python and 64 KiB registered", "MiB", "idle engine: rss MiB with Python", 60),
        ("CPU of an idle store client", "% of a core", "idle store client: CPU %", 0.1),
        ("CPU of an idle master", "% of a core", "idle master: CPU %", 0.1),
    ):
        rivals = (WHEEL, NIXL) if "engine" in case else (WHEEL,)
        yield _simple(section, work, unit, Source(IDLE, case, OURS), (at_most(goal),), *rivals)
    for entries in BIG:
        for label, way in ((OURS, ""), (TCP, ", TCP only")):
            work = f"a batch of {entries} entries of 512 B{way}"
            works = Source(BATCH, f"a batch of {entries} works", label)
            yield Row(section, f"{work}: works", "1 = yes", works, (at_least(1),), _rivals(BATCH, works.case, WHEEL))
            until = Source(BATCH, f"s until a single write works after a batch of {entries}", label)
            yield Row(
                section,
                f"{work}: the peer answers again after",
                "s",
                until,
                (at_most(0.05),),
                _rivals(BATCH, until.case, WHEEL),
            )
            grown = Source(BATCH, f"MiB that both processes grow by, a batch of {entries}", label)
            # Above what is there for any size, as much as the three lists of the caller take in Python.
            yield Row(section, f"{work}: both processes grow by", "MiB", grown, (at_most(1 + entries * 120 / 2**20),))


def _store() -> Iterator[Row]:
    section = "Store, objects of another process"
    turn, two = "a turn between spinning sockets", "two turns between spinning sockets"
    for work, case, bound, limit_name in (
        ("put 4 KiB", "put 4K", by_ratio(35, 14), two),
        ("get 4 KiB, one round trip", "get 4K, one round trip", by_ratio(20, 7), turn),
        ("get 4 KiB, under lease", "get 4K, under lease", at_most(4), "a turn through shared memory"),
        ("is_exist (80 000/s are 12.5 µs)", "is_exist", by_ratio(12.5, 7), turn),
        ("batch_put_from 4 KiB × 128", "batch_put_from 4K x128", at_most(400), two),
        ("batch_get_into 4 KiB × 128", "batch_get_into 4K x128", at_most(300), turn),
    ):
        yield from _latency(section, work, Source(LATENCY, case, OURS), {"p50": (bound,)}, limit_name, WHEEL)
    for call, direction in (("batch_put_from", "write"), ("batch_get_into", "read")):
        case = f"remote {call} 1M x16"
        yield Row(
            section,
            f"{call} 1 MiB × 16",
            "GB/s",
            Source(STORE, case, OURS),
            (at_least(8),),
            _rivals(STORE, case, WHEEL),
            Source(STORE, "1M x16", "memcpy", is_limit=True),
            "memcpy",
        )
        yield Row(
            section,
            f"{call} 1 MiB × 16, TCP only",
            "GB/s",
            Source(STORE, case, TCP),
            (at_least(0.9, "limit"),),
            _rivals(STORE, case, WHEEL),
            Source(STORE, "1M x16", f"tcp{direction}", is_limit=True),
            "one raw connection",
        )
    for work, case, unit, bound in (
        ("batch_is_exist × 1024, keys", "remote batch_is_exist x1024 keys/s", "1/s", at_least(5_000_000)),
        ("batch_is_exist × 1024, master's CPU", "remote batch_is_exist x1024 master us/key", "µs/key", at_most(0.1)),
    ):
        yield _simple(section, work, unit, Source(STORE, case, OURS), (bound,), WHEEL)


def _master(objects: int) -> Iterator[Row]:
    section = "Master"
    memory = f"mem: master rss bytes/object at {objects}"
    for work, unit, case, bounds in (
        (f"memory of {objects} objects with keys of 42 bytes", "bytes an object", memory, (at_most(240),)),
        ("remove_all", "s", "mem: remove_all seconds", ()),
        ("longest is_exist of another client", "ms", "mem: longest is_exist in 1 s ms", ()),
        (
            "longest is_exist of another client beside remove_all",
            "ms",
            "mem: longest is_exist beside remove_all ms",
            (at_most(10),),
        ),
        ("puts refused while full", "%", "pressure (no reads) after full: failed %", (at_most(0),)),
        (
            "longest batch of 128 while full",
            "ms",
            "pressure (no reads) after full: max ms of a batch",
            (at_most(10),),
        ),
    ):
        yield _simple(section, work, unit, Source(MASTER, case, OURS), bounds, WHEEL)
    left = Source(MASTER, "mem: master rss after remove_all MiB", OURS)
    full = Source(MASTER, f"mem: master rss at {objects} MiB", OURS)
    rivals = _rivals(MASTER, left.case, WHEEL)
    yield Row(
        section,
        f"memory after remove_all, beside that of {objects} objects",
        "MiB",
        left,
        (at_most(0.25, "other"),),
        rivals,
        other=full,
    )
    for clients in (1, 2, 4, 8):
        case = f"ops: batch_put_from x128, {clients} clients: keys/s"
        two = Source(MASTER, "ops: batch_put_from x128, 2 clients: keys/s", OURS)
        bounds = {2: (at_least(3, WHEEL),), 4: (at_least(0.9, "other"),), 8: (at_least(0.9, "other"),)}.get(clients, ())
        yield Row(
            section,
            f"puts by {clients} clients" + (", beside those of 2" if clients > 2 else ""),
            "1/s",
            Source(MASTER, case, OURS),
            bounds,
            _rivals(MASTER, case, WHEEL),
            other=two if clients > 2 else None,
        )


def _trace() -> Iterator[Row]:
    goals = {
        "conversation": {1000: 0.081, 3000: 0.137, 10000: 0.243},
        "synthetic": {1000: 0.092, 3000: 0.198, 10000: 0.45},
    }
    for trace, by_blocks in goals.items():
        for blocks, goal in by_blocks.items():
            yield Row(
                "Prefix hit ratio in the real store",
                f"{trace}, {blocks} blocks",
                "",
                Source(TRACE, f"{trace} {blocks} prefix hit", f"{OURS}/default"),
                (at_least(goal),),
                {WHEEL: Source(TRACE, f"{trace} {blocks} prefix hit", f"{WHEEL}/default")},
            )


def rows(objects: int = 1_000_000) -> list[Row]:
    """All rows, in the order of the table. ``objects``: how many the master held when its memory was taken."""
    return [*_same_host(), *_short_calls(), *_forced_tcp(), *_tool(), *_rest(), *_store(), *_master(objects), *_trace()]
