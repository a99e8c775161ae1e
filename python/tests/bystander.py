"""A Python thread beside the calls under test: whether they let it run."""

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
        self._thread = threading.Thread(target=self._run)
        self._interval_s = sys.getswitchinterval()

    def __enter__(self) -> "Bystander":
        self._thread.start()
        sys.setswitchinterval(1000)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.setswitchinterval(self._interval_s)
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            self._see()
            self.runs += 1
            select.select([], [], [], 0)  # Lets go of the interpreter, and takes it back.

    def _see(self) -> None:
        now_s = time.perf_counter()
        self._longest_s, self._last_s = max(self._longest_s, now_s - self._last_s), now_s

    def longest_wait(self, call: Callable[[], object]) -> tuple[float, float]:
        """(longest time without a run during ``call``, time that it took), in seconds."""
        begin_s = self._last_s = time.perf_counter()
        self._longest_s = 0.0
        result = call()
        self._see()
        del result
        return self._longest_s, self._last_s - begin_s

    def waits_little(self, call: Callable[[], object]) -> bool:
        """Whether no wait took half of ``call``: never so if that keeps the interpreter for most of its time.

        To be asked again if not: a busy machine lets threads wait, too.
        """
        wait_s, took_s = self.longest_wait(call)
        return wait_s < took_s / 2
