"""Waiting for what another process does, without sleeping and without guessing how long it takes."""

import threading
import time
from collections.abc import Callable

LIMIT_S = 60  # Only to end a test that would hang.


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Polls ``condition`` until it holds; fails after LIMIT_S, naming ``what`` did not come about."""
    deadline = time.monotonic() + LIMIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {LIMIT_S} s: {what}"
        pause.wait(0.02)
