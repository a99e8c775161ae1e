"""Code in a Python process of its own: for what may end in a crash, or is about how a process ends."""

import os
import subprocess
import sys
from pathlib import Path

from waiting import HANG_LIMIT_S


def run_python(code: str, python: Path = Path(sys.executable), **environment: str) -> str:
    """What ``code`` printed; AssertionError with its error stream unless it ended with 0, TimeoutExpired if it hung."""
    done = subprocess.run(
        [python, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
