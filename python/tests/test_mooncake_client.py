"""mooncake_client, which lends memory to the pool from a process without Python."""

import json
import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from waiting import HANG_LIMIT_S, wait_until


class LendingClient:
    """A ``mooncake_client`` that lends 32 MiB, with its health over HTTP.

    Args:
        binary: The console script.
        log: Where its lines go.
        flags: Besides those that every test needs.
    """

    def __init__(self, binary, log, *flags):
        self._log = log
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [
                    binary,
                    "--host=127.0.0.1",
                    "--port=0",
                    "--metadata_server=P2PHANDSHAKE",
                    "--global_segment_size=32 MB",
                    "--enable_http_server",
                    "--http_port=0",
                    *flags,
                ],
                stderr=errors,
            )

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def get(self, path: str) -> tuple[int, str, str] | None:
        """(status, body, content type) of what its HTTP server has at ``path``; None before it serves."""
        port = re.search(r"health on port (\d+)", self.log())
        if port is None:
            assert self.process.poll() is None, self.log()
            return None
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}{path}", timeout=HANG_LIMIT_S) as reply:
                return reply.status, reply.read().decode(), reply.headers["Content-Type"]
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers["Content-Type"]

    def health(self) -> tuple[int, dict, str] | None:
        """(status, body, content type) of /health; None before it is served."""
        answer = self.get("/health")
        return answer and (answer[0], json.loads(answer[1]), answer[2])


@pytest.fixture
def start_client(scripts, tmp_path):
    """Starts clients: ``start_client("--flag=value", ...)``; all are killed at the end."""
    clients = []

    def start(*flags):
        clients.append(LendingClient(scripts / "mooncake_client", tmp_path / f"client{len(clients)}.log", *flags))
        return clients[-1]

    yield start
    for client in clients:
        client.process.kill()
        client.process.wait()


def test_its_memory_holds_what_others_put_and_goes_with_it(master, start_client, start_local):
    client = start_client(f"--master_server_address={master.address}")
    wait_until(client.health, "its health is served")
    assert client.health() == (200, {"status": "healthy", "code": 0}, "application/json")
    for path in ("/metrics", "/metrics/summary"):
        assert client.get(path)[:2] == (503, "metrics not available")
    name = re.search(r"lends .* as (127\.0\.0\.1:\d+)", client.log())[1]
    assert name in master.http("/get_all_segments")[1]

    store = start_local(master.address, segment=0)
    value = bytes(range(256)) * 4096
    assert store.put("k", value) == 0
    assert store.get("k") == value
    assert json.loads(master.http("/query_key?key=k")[1])["data"][0]["transport_endpoint_"].startswith("127.0.0.1:")

    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(HANG_LIMIT_S) == 0
    wait_until(lambda: name not in master.http("/get_all_segments")[1], "its segment has gone")
    assert store.get("k") == b""


def test_its_health_tells_that_the_master_is_away_and_back(start_master, start_client):
    master = start_master("--client_ttl=600")
    client = start_client(f"--master_server_address={master.address}")
    wait_until(client.health, "its health is served")
    master.kill()
    wait_until(lambda: client.health()[0] == 503, "its health says so")
    assert client.health()[1]["status"] == "master_unreachable"
    assert client.health()[1]["code"] != 0
    master.start()
    wait_until(lambda: client.health()[0] == 200, "it has found the master again")
    # The ping that makes it healthy is also what tells it to mount again.
    wait_until(lambda: "127.0.0.1:" in master.http("/get_all_segments")[1], "its memory is offered again")


def test_it_waits_for_a_master_that_comes_later(start_master, start_client):
    master = start_master()
    master.kill()
    client = start_client(f"--master_server_address={master.address}")
    wait_until(lambda: "trying again" in client.log(), "it says that it waits")
    assert master.address in client.log()
    master.start()
    wait_until(client.health, "it has found the master")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--global_segment_size=4 bananas"], ["--global_segment_size", "4 bananas"]),
        (["--local_buffer_size=-1"], ["--local_buffer_size", "-1"]),
        (["--port=70000"], ["--port=70000", "65535"]),
        (["--http_port=-1"], ["--http_port=-1", "65535"]),
        (["--protocol=carrier"], ["carrier"]),
        (["--enable_offload"], ["--enable_offload", "leave it out"]),
        (["--no_such_flag=1"], ["no_such_flag"]),
    ],
)
def test_wrong_flags_end_it_with_their_name(master, start_client, flags, words):
    client = start_client(f"--master_server_address={master.address}", *flags)
    assert client.process.wait(HANG_LIMIT_S) == 1
    for word in words:
        assert word in client.log()


def test_a_port_that_is_taken_is_named(master, start_client):
    first = start_client(f"--master_server_address={master.address}")
    wait_until(first.health, "its health is served")
    port = re.search(r"health on port (\d+)", first.log())[1]
    second = start_client(f"--master_server_address={master.address}", f"--http_port={port}")
    assert second.process.wait(HANG_LIMIT_S) == 1
    assert f"--http_port={port}" in second.log()
