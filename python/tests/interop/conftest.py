"""Engines in processes of their own: ours, and the published package's as a black box."""

import itertools
import sys
from pathlib import Path

import pytest

from remote import Remote

TESTS = Path(__file__).resolve().parents[1]
PUBLISHED = TESTS.parents[1] / "build" / "published" / "bin" / "python"


@pytest.fixture
def start_peer(tmp_path):
    """Starts engines: ``start_peer("ours" | "published", host, metadata, size)``; all are stopped at the end."""
    peers = []
    numbers = itertools.count()

    def start(kind, host, metadata, size, **environment):
        python = Path(sys.executable) if kind == "ours" else PUBLISHED
        assert python.exists(), f"{python} is missing; ./test.sh makes it"
        log = tmp_path / f"{kind}{next(numbers)}.log"
        peer = Remote(python, TESTS / "engine_peer.py", log, environment)
        peers.append(peer)
        peer.info = peer.start(host, metadata, size)
        assert peer.info["code"] == 0, f"{kind} engine did not start: {peer.info}"
        return peer

    yield start
    for peer in peers:
        peer.kill()
