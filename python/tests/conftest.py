"""What tests of the Python package share."""

import contextlib
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.lab.hosts import Host, NoHostsError
from benchmarks.trace_replay.cluster import METADATA_PORT, METRICS_PORT, RPC_PORT, own_loopback_host
from bystander import Bystander
from mooncake.store import MooncakeDistributedStore
from remote import Remote
from waiting import HANG_LIMIT_S, wait_until


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
    """A ``mooncake_master`` at a loopback address of its own, so that nobody takes its ports while it is away.

    Or at ``address`` of the host ``on``, where its admin server only answers GET.

    Attributes:
        host: Where all its servers listen.
        address: ``host:port`` of its RPC server.
        metadata_url: Of its metadata server, when it has one.
    """

    rpc_port, metrics_port = RPC_PORT, METRICS_PORT

    def __init__(self, binary: Path, log: Path, flags: list[str], on: Host | None = None, address: str = ""):
        self.binary, self.log, self.flags, self.on = binary, log, flags, on
        self.host = address or own_loopback_host()
        self.address = f"{self.host}:{RPC_PORT}"
        self.metadata_url = f"http://{self.host}:{METADATA_PORT}/metadata"
        self.start()

    def start(self) -> None:
        """Starts it (again, on the same ports) and returns once it answers."""
        command = [
            *(self.on.enter if self.on else []),
            self.binary,
            f"--rpc_address={self.host}",
            f"--rpc_port={RPC_PORT}",
            f"--metrics_host={self.host}",
            f"--metrics_port={METRICS_PORT}",
            f"--http_metadata_server_host={self.host}",
            f"--http_metadata_server_port={METADATA_PORT}",
            *self.flags,
        ]
        with self.log.open("ab") as errors:
            self.process = subprocess.Popen(command, stdout=errors, stderr=errors)
        wait_until(self.answers, f"the master answers; see {self.log}")

    def answers(self) -> bool:
        """Whether its admin server does; AssertionError if it has ended."""
        try:
            return self.http("/health")[0] == 200
        except OSError:
            assert self.process.poll() is None, f"master ended: {self.tail()}"
            return False

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]

    def http(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, str, str]:
        """(status, body, content type) of an admin request."""
        url = f"http://{self.host}:{METRICS_PORT}{path}"
        if self.on:
            return self.on.get(url)
        request = urllib.request.Request(url, data=body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=HANG_LIMIT_S) as reply:
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
            return self.process.wait(HANG_LIMIT_S)
        finally:
            self.process.kill()


@pytest.fixture
def start_master(scripts, tmp_path):
    """Starts masters: ``start_master("--flag=value", ...)``; all are stopped at the end."""
    masters = []

    def start(*flags: str, on: Host | None = None, address: str = "") -> Master:
        log = tmp_path / f"master{len(masters)}.log"
        masters.append(Master(scripts / "mooncake_master", log, list(flags), on, address))
        return masters[-1]

    yield start
    for master in masters:
        master.stop()


@pytest.fixture
def master(start_master) -> Master:
    """A master whose leases outlast any test, and whose clients may be silent as long."""
    return start_master("--default_kv_lease_ttl=600000", "--client_ttl=600")


@pytest.fixture
def start_store(tmp_path):
    """Starts stores in processes of their own (see store_peer.py): ``start_store(master.address, ...)``."""
    peers = []

    def start(
        master_address: str,
        segment: int = 64 << 20,
        local: int = 16 << 20,
        metadata: str = "P2PHANDSHAKE",
        *,
        host: str = "127.0.0.1",
        on: Host | None = None,
        **environment: str,
    ):
        log = tmp_path / f"store{len(peers)}.log"
        peer = Remote(
            Path(sys.executable), Path(__file__).parent / "store_peer.py", log, environment, on.enter if on else ()
        )
        peers.append(peer)
        peer.code = peer.setup(host, metadata, segment, local, master_address)
        return peer

    yield start
    for peer in peers:
        peer.kill()


@pytest.fixture
def start_local():
    """Starts stores in this process: ``start_local(master.address, ...)``; all are closed at the end."""
    stores = []

    def start(master_address: str, segment: int = 64 << 20, local: int = 16 << 20) -> MooncakeDistributedStore:
        store = MooncakeDistributedStore()
        assert store.setup("127.0.0.1", "P2PHANDSHAKE", segment, local, "tcp", "", master_address) == 0
        stores.append(store)
        return store

    yield start
    for store in stores:
        store.close()


@pytest.fixture
def store(master, start_local) -> MooncakeDistributedStore:
    """A store of this process, with ``master``."""
    return start_local(master.address)


@pytest.fixture
def bystander():
    """Another Python thread; see bystander.py."""
    with Bystander() as thread:
        yield thread


@pytest.fixture
def new_host():
    """Makes hosts that can be linked by cables (see hosts.py); skips the test where that is not possible."""
    with contextlib.ExitStack() as open_hosts:
        hosts: list[Host] = []

        def make() -> Host:
            try:
                hosts.append(open_hosts.enter_context(Host(hosts[0] if hosts else None)))
            except NoHostsError as error:
                pytest.skip(str(error))
            return hosts[-1]

        yield make


@pytest.fixture
def start_engine_process(tmp_path):
    """Starts engines in processes of their own (see engine_peer.py); ``.info`` says how others reach one."""
    peers = []

    def start(
        size: int = 256 << 20,
        host: str = "127.0.0.1",
        metadata: str = "P2PHANDSHAKE",
        on: Host | None = None,
        **environment: str,
    ):
        log = tmp_path / f"engine{len(peers)}.log"
        peer = Remote(
            Path(sys.executable), Path(__file__).parent / "engine_peer.py", log, environment, on.enter if on else ()
        )
        peers.append(peer)
        peer.info = peer.start(host, metadata, size)
        return peer

    yield start
    for peer in peers:
        peer.kill()
