"""An object in a process of its own, driven in JSON lines over its standard input and output.

The script run in the other process calls ``serve(object)``; here ``Remote`` has the object's methods.
"""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ANSWER_LIMIT_S = 120


class Remote:
    """The object that ``script`` serves, in a process started with ``python``, behind ``enter`` (a ``Host.enter``)."""

    def __init__(
        self,
        python: Path,
        script: Path,
        log: Path,
        environment: dict[str, str] | None = None,
        enter: Sequence[str] = (),
    ):
        self._log = log
        inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [*enter, python, script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=inherited | {"PYTHONPATH": str(Path(__file__).parent)} | (environment or {}),
            )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.process.stdout, selectors.EVENT_READ)

    def send(self, method: str, *arguments: Any) -> None:
        """Starts a call; its result is that of ``receive()``."""
        self.process.stdin.write(json.dumps([method, arguments]) + "\n")
        self.process.stdin.flush()

    def receive(self, limit_s: float = ANSWER_LIMIT_S) -> Any:
        """The result of the oldest call; AssertionError with the end of the log if none comes."""
        line = self.process.stdout.readline() if self._selector.select(limit_s) else ""
        assert line, f"no answer; the end of its log:\n{self._log.read_text(errors='replace')[-3000:]}"
        return json.loads(line)

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any) -> Any:
            self.send(method, *arguments)
            return self.receive()

        return call

    def log(self) -> str:
        """What it wrote to its error stream."""
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def serve(served: object) -> None:
    """Answers each line ``[method, arguments]`` with a line ``result`` until the input ends."""
    replies = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        method, arguments = json.loads(line)
        print(json.dumps(getattr(served, method)(*arguments)), file=replies, flush=True)
