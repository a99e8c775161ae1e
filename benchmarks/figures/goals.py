"""What the project promises, row by row: where its figure is measured, beside which rival and limit, and the goal.

A row names the cases of the programs in ``benchmarks/side_by_side`` exactly as they print them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.figures.results import Results, Source

WHEEL, NIXL, OURS, MANAGED, TCP = "published", "nixl", "ours", "managed", "tcp"
ENGINE, BATCH, TOOL, STORE, MASTER, TRACE = "engine", "batch", "tool", "store", "master", "trace"


@dataclass(frozen=True)
class Bound:
    """Our figure against ``factor`` times a reference: "limit", a rival's label, "other" (a figure of ours), or 1."""

    at_least: bool
    factor: float
    reference: str = ""

    def text(self) -> str:
        """As it stands in the table: "≥ 80 % of the limit", "≤ 10", "≥ 1.2 × nixl"."""
        sign = "≥" if self.at_least else "≤"
        if not self.reference:
            return f"{sign} {self.factor:g}"
        if self.reference == "limit" and self.factor < 1:
            return f"{sign} {self.factor:.0%} of the limit".replace("%", " %")
        name = {"limit": "the limit", "other": "the figure beside it"}.get(self.reference, self.reference)
        return f"{sign} {name}" if self.factor == 1 else f"{sign} {self.factor:g} × {name}"


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


@dataclass(frozen=True)
class Verdict:
    """A row with its figures. ``met`` is None when ours, or all that a bound is held against, was not measured."""

    row: Row
    ours: float | None
    rivals: dict[str, float]
    limit: float | None
    met: bool | None


def judge(row: Row, results: Results) -> Verdict:
    """Holds the medians against the bounds; a bound whose reference was not measured is left out."""
    ours = results.median(row.ours)
    rivals = {name: value for name, source in row.rivals.items() if (value := results.median(source)) is not None}
    limit = results.median(row.limit)
    references = {"": 1.0, "limit": limit, "other": results.median(row.other), **rivals}
    held = []
    for bound in row.bounds:
        reference = references.get(bound.reference)
        if ours is not None and reference is not None:
            goal = bound.factor * reference
            held.append(ours >= goal if bound.at_least else ours <= goal)
    return Verdict(row, ours, rivals, limit, all(held) if held else None)


def at_least(factor: float, reference: str = "") -> Bound:
    """A figure that should be large."""
    return Bound(True, factor, reference)


def at_most(factor: float, reference: str = "") -> Bound:
    """A figure that should be small."""
    return Bound(False, factor, reference)


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
                Source(ENGINE, case_shape, f"cma{direction}", is_limit=True),
                "process_vm_*",
            )
            yield Row(
                section,
                f"{direction} {shape}, memory of the engine",
                "GB/s",
                Source(ENGINE, case, MANAGED),
                () if small else (at_least(0.8, "limit"),),
                rivals,
                Source(ENGINE, case_shape, "memcpy", is_limit=True),
                "memcpy",
            )
    for label, memory in ((OURS, "the caller"), (MANAGED, "the engine")):
        yield Row(
            section,
            f"four threads, write 64 KiB × 128, memory of {memory}",
            "GB/s",
            Source(ENGINE, "write 64K x128 4thr", label),
            (at_least(1, "other"),),
            _rivals(ENGINE, "write 64K x128 4thr", WHEEL, NIXL),
            other=Source(ENGINE, "write 64K x128", label),
        )
        # Together as many bytes a turn as one thread with 64 KiB × 128, so that caches do not make the difference.
        yield Row(
            section,
            f"sixteen threads, write 64 KiB × 8, memory of {memory}",
            "GB/s",
            Source(ENGINE, "write 64K x8 16thr", label),
            (at_least(1, "other"),),
            _rivals(ENGINE, "write 64K x8 16thr", WHEEL, NIXL),
            other=Source(ENGINE, "write 64K x128", label),
        )
    for work, work_text in (("read 4K", "read 4 KiB"), ("write 64B", "write 64 B")):
        for share, goal in (("p50", 1.5), ("p99", 5.0)):
            case = f"lat {work} {share} us"
            yield _simple(
                section, f"{work_text}, {share}", "µs", Source(ENGINE, case, OURS), (at_most(goal),), WHEEL, NIXL
            )


def _forced_tcp() -> Iterator[Row]:
    section = "Engine, TCP only"
    for shape, case_shape in SHAPES:
        share = 0.8 if case_shape == SHAPES[0][1] else 0.9
        for direction in ("write", "read"):
            case = f"{direction} {case_shape}"
            raw = f"tcp{direction}"
            yield Row(
                section,
                f"{direction} {shape}",
                "GB/s",
                Source(ENGINE, case, TCP),
                (at_least(share, "limit"),),
                _rivals(ENGINE, case, WHEEL),
                Source(ENGINE, case_shape, raw, is_limit=True),
                "one raw connection",
            )
            if share == 0.9:
                yield Row(
                    section,
                    f"CPU of both sides, {direction} {shape}",
                    "s/GB",
                    Source(ENGINE, case + " cpu", TCP),
                    (at_most(1.2, "limit"),),
                    _rivals(ENGINE, case + " cpu", WHEEL),
                    Source(ENGINE, case_shape + " cpu", raw, is_limit=True),
                    "one raw connection",
                )
    yield Row(
        section,
        "read 4 KiB, p50",
        "µs",
        Source(ENGINE, "lat read 4K p50 us", TCP),
        (at_most(10),),
        _rivals(ENGINE, "lat read 4K p50 us", WHEEL),
        Source(ENGINE, "pingpongs 24B/4096B us", "p50", is_limit=True),
        "two spinning sockets",
    )


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
    for work, case in (("start", "setup: init ms"), ("first read of a peer", "setup: first 4K read ms (connect)")):
        yield _simple(section, work, "ms", Source(ENGINE, case, OURS), (at_most(1, WHEEL),), WHEEL, NIXL)
    for work, unit, case, goal in (
        ("threads", "", "target threads", 4),
        ("resident with Python", "MiB", "target rss MiB", 60),
    ):
        yield _simple(section, work, unit, Source(ENGINE, case, OURS), (at_most(goal),), WHEEL, NIXL)
    for entries in (2048, 4096, 16384):
        case = f"s until a single write works after a batch of {entries}"
        work = f"a batch of {entries} entries, until a single write works after it"
        yield _simple(section, work, "s", Source(BATCH, case, OURS), (at_most(0.05),), WHEEL)


def _store() -> Iterator[Row]:
    section = "Store, objects of another process"
    for work, case, goal in (
        ("put 4 KiB, p50", "remote put 4K p50", 35),
        ("get 4 KiB, p50", "remote get 4K p50", 20),
        ("batch_put_from 4 KiB × 128, p50", "remote batch_put_from 4K x128 p50", 400),
        ("batch_get_into 4 KiB × 128, p50", "remote batch_get_into 4K x128 p50", 300),
    ):
        yield _simple(section, work, "µs", Source(STORE, case, OURS), (at_most(goal),), WHEEL)
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
        ("is_exist", "remote is_exist keys/s", "1/s", at_least(80_000)),
        ("batch_is_exist × 1024, keys", "remote batch_is_exist x1024 keys/s", "1/s", at_least(5_000_000)),
        ("batch_is_exist × 1024, master's CPU", "remote batch_is_exist x1024 master us/key", "µs/key", at_most(0.1)),
    ):
        yield _simple(section, work, unit, Source(STORE, case, OURS), (bound,), WHEEL)


def _master(objects: int) -> Iterator[Row]:
    section = "Master"
    memory = f"mem: master rss bytes/object at {objects}"
    for work, unit, case, bounds in (
        (f"memory of {objects} objects with keys of 42 bytes", "bytes an object", memory, (at_most(240),)),
        ("memory after remove_all", "MiB", "mem: master rss after remove_all MiB", ()),
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
    return [*_same_host(), *_forced_tcp(), *_tool(), *_rest(), *_store(), *_master(objects), *_trace()]
