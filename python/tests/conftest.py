"""What tests of the Python package share."""

import selectors
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.trace_replay.cluster import free_ports
from remote import Remote

START_LIMIT_S = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--long`` runs the long forms, which measure durations or take minutes, too."""
    parser.addoption("--long", action="store_true", help="run the long forms too: minutes, on a machine left alone")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long_form: takes minutes, or bounds durations; runs with --long only")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        for item in items:
            if item.get_closest_marker("long_form"):
                item.add_marker(pytest.mark.skip(reason="a long form: needs --long"))


@pytest.fixture(scope="session")
def scripts() -> Path:
    """The folder of the console scripts of the environment under test."""
    return Path(sys.executable).parent


class Master:
    """A ``mooncake_master`` on ports of its own.

    Attributes:
        address: ``host:port`` of its RPC server.
        metrics_port: Port of its admin HTTP server.
    """

    def __init__(self, binary: Path, log: Path, flags: list[str], ports: list[int] | None = None):
        self.binary, self.log, self.flags = binary, log, flags
        self.rpc_port, self.metrics_port = ports or free_ports(2)
        self.address = f"127.0.0.1:{self.rpc_port}"
        self.start()

    def start(self) -> None:
        """Starts it (again, on the same ports) and returns once it answers."""
        command = [
            self.binary,
            f"--rpc_port={self.rpc_port}",
            f"--metrics_port={self.metrics_port}",
            *self.flags,
        ]
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors)
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                self.http("/health")
                return
            except OSError:
                assert self.process.poll() is None, f"master ended: {self.tail()}"
                assert time.monotonic() < deadline, f"master does not answer: {self.tail()}"
                selectors.DefaultSelector().select(0.01)

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]

    def http(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, str, str]:
        """(status, body, content type) of an admin request."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.metrics_port}{path}", data=body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.read().decode(), reply.headers.get("Content-Type", "")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers.get("Content-Type", "")

    def metrics(self) -> dict[str, float]:
        """All samples of /metrics by name with labels."""
        lines = self.http("/metrics")[1].splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line and line[0] != "#"}

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()


@pytest.fixture
def start_master(scripts, tmp_path):
    """Starts masters: ``start_master("--flag=value", ...)``; all are stopped at the end."""
    masters = []

    def start(*flags: str, ports: list[int] | None = None) -> Master:
        masters.append(Master(scripts / "mooncake_master", tmp_path / f"master{len(masters)}.log", list(flags), ports))
        return masters[-1]

    yield start
    for master in masters:
        master.stop()


@pytest.fixture
def master(start_master) -> Master:
    """A master with short leases."""
    return start_master("--default_kv_lease_ttl=200")


@pytest.fixture
def start_engine_process(tmp_path):
    """Starts engines in processes of their own (see engine_peer.py); ``.info`` says how others reach one."""
    peers = []

    def start(size: int = 256 << 20, host: str = "127.0.0.1", metadata: str = "P2PHANDSHAKE", **environment: str):
        log = tmp_path / f"engine{len(peers)}.log"
        peer = Remote(Path(sys.executable), Path(__file__).parent / "engine_peer.py", log, environment)
        peers.append(peer)
        peer.info = peer.start(host, metadata, size)
        return peer

    yield start
    for peer in peers:
        peer.kill()
