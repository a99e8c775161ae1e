"""Engines in processes of their own: ours, and the published package's as a black box."""

import itertools
import json
import os
import selectors
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PUBLISHED = HERE.parents[2] / "build" / "published" / "bin" / "python"
ANSWER_LIMIT_S = 120


class RemotePeer:
    """A process that runs peer.py; its methods are those of ``Peer``."""

    def __init__(self, python: Path, log: Path, environment: dict[str, str]):
        self._log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [python, HERE / "peer.py"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | environment,
            )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.process.stdout, selectors.EVENT_READ)

    def __getattr__(self, method):
        def call(*arguments):
            self.process.stdin.write(json.dumps([method, arguments]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline() if self._selector.select(ANSWER_LIMIT_S) else ""
            if not line:
                pytest.fail(f"{method} got no answer; the end of its log:\n{self._log.read_text()[-3000:]}")
            return json.loads(line)

        return call

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def start_peer(tmp_path):
    """Starts engines: ``start_peer("ours" | "published", host, metadata, size)``; all are stopped at the end."""
    peers = []
    numbers = itertools.count()

    def start(kind, host, metadata, size, **environment):
        python = Path(sys.executable) if kind == "ours" else PUBLISHED
        assert python.exists(), f"{python} is missing; ./test.sh makes it"
        peer = RemotePeer(python, tmp_path / f"{kind}{next(numbers)}.log", environment)
        peers.append(peer)
        peer.info = peer.start(host, metadata, size)
        assert peer.info["code"] == 0, f"{kind} engine did not start: {peer.info}"
        return peer

    yield start
    for peer in peers:
        peer.stop()
