"""One node of the replay: a process with a store client that lends a segment and plays its share of the requests.

Talks with the coordinator in JSON lines: reads one line of settings from standard input, writes ``ready``, ``progress``
and ``done`` lines to standard output.
"""

import ctypes
import json
import mmap
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trace_replay import trace
from benchmarks.trace_replay.values import Values, Words

PROGRESS_INTERVAL_S = 0.2
PACE_WAIT_S = 50e-6


@dataclass
class Settings:
    """What the coordinator tells a node."""

    trace: str
    limit: int
    part: int  # This node plays the requests i with i % parts == part.
    parts: int
    master: str
    segment_bytes: int
    value_bytes: int
    pace: str  # The file of a Pace.
    ahead: int  # See Pace.allows().


@dataclass
class Totals:
    """What a node has done so far."""

    requests: int = 0
    blocks: int = 0
    prefix_hits: int = 0  # Leading present blocks that were read with right bytes.
    present: int = 0
    puts: int = 0
    puts_refused: int = 0
    reads_failed: int = 0
    wrong_values: int = 0
    bytes_written: int = 0
    bytes_verified: int = 0
    lookup_us: list[float] = field(default_factory=list)  # One entry a call.
    get_us: list[float] = field(default_factory=list)
    put_us: list[float] = field(default_factory=list)
    codes: dict[str, int] = field(default_factory=dict)  # Failures by what failed and its code.

    def count_failure(self, what: str, code: int) -> None:
        """Adds one failure of ``what`` ("get", "put", "exist") with the store's code."""
        key = f"{what} {code}"
        self.codes[key] = self.codes.get(key, 0) + 1


class Buffer:
    """Anonymous memory as rows of one value each, registered with the store."""

    def __init__(self, store: Any, rows: int, value_bytes: int):
        self._memory = mmap.mmap(-1, rows * value_bytes)
        self.words: Words = np.frombuffer(self._memory, dtype=np.uint64).reshape(rows, value_bytes // 8)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._value_bytes = value_bytes
        code = store.register_buffer(self.address, rows * value_bytes)
        if code:
            raise RuntimeError(f"register_buffer of {rows * value_bytes} bytes: {code}")

    def pointers(self, count: int) -> list[int]:
        """Addresses of the first ``count`` rows."""
        return [self.address + row * self._value_bytes for row in range(count)]


class Player:
    """Plays requests against a store that has been set up."""

    def __init__(self, store: Any, value_bytes: int, longest: int):
        self._store = store
        self._value_bytes = value_bytes
        self._values = Values(value_bytes)
        self._buffer = Buffer(store, longest, value_bytes)
        self.totals = Totals()

    def play(self, blocks: list[int]) -> None:
        """Looks ``blocks`` up, reads and checks the leading hits, writes the rest."""
        totals = self.totals
        totals.requests += 1
        totals.blocks += len(blocks)
        if not blocks:
            return
        keys = [f"block/{block}" for block in blocks]
        start = time.perf_counter()
        found = self._store.batch_is_exist(keys)
        totals.lookup_us.append((time.perf_counter() - start) * 1e6)
        for code in found:
            if code < 0:
                totals.count_failure("exist", code)
        totals.present += sum(code == 1 for code in found)
        hits = next((i for i, code in enumerate(found) if code != 1), len(found))
        if hits:
            self._read(keys[:hits], blocks[:hits])
        if hits < len(blocks):
            self._write(keys[hits:], blocks[hits:])

    def _read(self, keys: list[str], blocks: list[int]) -> None:
        totals = self.totals
        start = time.perf_counter()
        sizes = self._store.batch_get_into(keys, self._buffer.pointers(len(keys)), [self._value_bytes] * len(keys))
        totals.get_us.append((time.perf_counter() - start) * 1e6)
        leading = True
        for block, size, words in zip(blocks, sizes, self._buffer.words, strict=False):
            if size != self._value_bytes:
                totals.reads_failed += 1
                totals.count_failure("get", size)
                leading = False
                continue
            if not self._values.matches(block, words):
                totals.wrong_values += 1
                leading = False
                continue
            totals.bytes_verified += size
            totals.prefix_hits += leading

    def _write(self, keys: list[str], blocks: list[int]) -> None:
        totals = self.totals
        for block, words in zip(blocks, self._buffer.words, strict=False):
            self._values.write(block, words)
        start = time.perf_counter()
        codes = self._store.batch_put_from(keys, self._buffer.pointers(len(keys)), [self._value_bytes] * len(keys))
        totals.put_us.append((time.perf_counter() - start) * 1e6)
        for code in codes:
            if code == 0:
                totals.puts += 1
                totals.bytes_written += self._value_bytes
            else:
                totals.puts_refused += 1
                totals.count_failure("put", code)


class Pace:
    """Keeps the nodes together: the requests of a trace come in its order, whichever node is quicker.

    Args:
        path: A file that all nodes share.
        parts: How many nodes there are.
    """

    def __init__(self, path: Path, parts: int):
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), parts * 8)
        self._next: Words = np.frombuffer(memory, dtype=np.uint64)  # By node: the request that it plays next.

    @staticmethod
    def create(path: Path, parts: int) -> None:
        """Makes the file: all nodes stand before the first request."""
        path.write_bytes(bytes(parts * 8))

    def reach(self, part: int, request: int) -> None:
        """Node ``part`` has played all its requests before ``request``."""
        self._next[part] = request

    def allows(self, request: int, ahead: int) -> bool:
        """Whether all requests before number ``request - ahead`` have been played."""
        return bool(int(self._next.min()) + ahead >= request)


def _say(kind: str, **content: Any) -> None:
    print(json.dumps({"kind": kind, **content}), flush=True)


def _progress(totals: Totals, started: float) -> None:
    _say(
        "progress",
        seconds=time.perf_counter() - started,
        requests=totals.requests,
        blocks=totals.blocks,
        prefix_hits=totals.prefix_hits,
        bytes_moved=totals.bytes_written + totals.bytes_verified,
    )


def main() -> int:
    """Runs one node; the exit code is 0 unless set-up failed."""
    from mooncake.store import MooncakeDistributedStore  # noqa: PLC0415 (the coordinator imports this module without it)

    settings = Settings(**json.loads(sys.stdin.readline()))
    requests = trace.load(Path(settings.trace), settings.limit)
    store = MooncakeDistributedStore()
    code = store.setup("127.0.0.1", "P2PHANDSHAKE", settings.segment_bytes, 16 << 20, "tcp", "", settings.master)
    if code:
        print(f"node {settings.part}: setup with master {settings.master}: {code}", file=sys.stderr)
        return 1
    player = Player(store, settings.value_bytes, max((len(request.blocks) for request in requests), default=1))
    pace = Pace(Path(settings.pace), settings.parts)
    _say("ready")
    sys.stdin.readline()  # All nodes are ready: go.
    started = shown = time.perf_counter()
    for number in range(settings.part, len(requests), settings.parts):
        pace.reach(settings.part, number)
        while not pace.allows(number, settings.ahead):
            time.sleep(PACE_WAIT_S)
        player.play(requests[number].blocks)
        now = time.perf_counter()
        if now - shown > PROGRESS_INTERVAL_S:
            shown = now
            _progress(player.totals, started)
    pace.reach(settings.part, len(requests))
    seconds = time.perf_counter() - started
    _progress(player.totals, started)
    _say("done", seconds=seconds, totals=asdict(player.totals))
    sys.stdin.readline()  # Others may still read from our segment: stay until told to go.
    store.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
