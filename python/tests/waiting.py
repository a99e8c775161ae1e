"""How tests wait: for a condition, however long that takes, and not for a time."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable

#: Only a hang lasts as long: no wait of a healthy test comes near, whatever else the machine does.
HANG_LIMIT_S = 60


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Asks ``condition`` until it holds; AssertionError with ``what`` when that takes longer than HANG_LIMIT_S."""
    deadline = time.monotonic() + HANG_LIMIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {HANG_LIMIT_S} s: {what}"
        pause.wait(0.01)


def stop(process: subprocess.Popen) -> None:
    """SIGSTOP; returns once each thread of this child stands still, which the signal does not wait for."""
    process.send_signal(signal.SIGSTOP)
    options = os.WSTOPPED | os.WNOWAIT | os.WNOHANG
    wait_until(lambda: os.waitid(os.P_PID, process.pid, options), "all of its threads are stopped")
