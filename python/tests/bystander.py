"""A Python thread beside the calls under test: whether they let it run."""

import os
import select
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType


class Bystander:
    """Runs whenever it gets the interpreter, which nobody has to give up except by a call that lets go of it.

    Attributes:
        runs: How often it ran.
    """

    def __init__(self) -> None:
        self.runs = 0
        self._last_s = self._longest_s = 0.0
        self._end = threading.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._interval_s = sys.getswitchinterval()

    def __enter__(self) -> "Bystander":
        self._thread.start()
        self._started.wait()
        sys.setswitchinterval(1000)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.setswitchinterval(self._interval_s)
        self._end.set()
        self._thread.join()
        os.close(self._schedule)

    def _run(self) -> None:
        self._schedule = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self._started.set()
        while not self._end.is_set():
            self._see()
            self.runs += 1
            select.select([], [], [], 0)  # Lets go of the interpreter, and takes it back.

    def _now_s(self) -> float:
        """A clock that stands still while the thread could run, but has no core."""
        return time.perf_counter() - int(os.pread(self._schedule, 64, 0).split()[1]) / 1e9

    def _see(self) -> None:
        now_s = self._now_s()
        self._longest_s, self._last_s = max(self._longest_s, now_s - self._last_s), now_s

    def longest_wait(self, call: Callable[[], object]) -> tuple[float, float]:
        """(longest time without a run during ``call``, time that it took), in seconds.

        What the thread waited for a core, and not for the interpreter, is left out.
        """
        begin_s = time.perf_counter()
        self._last_s, self._longest_s = self._now_s(), 0.0
        result = call()
        self._see()
        took_s = time.perf_counter() - begin_s
        del result
        return self._longest_s, took_s

    def waits_little(self, call: Callable[[], object]) -> bool:
        """Whether no wait took half of ``call``: never so if that keeps the interpreter for most of its time.

        To be asked again if not: on a busy machine who has the interpreter waits for a core, too.
        """
        wait_s, took_s = self.longest_wait(call)
        return wait_s < took_s / 2
