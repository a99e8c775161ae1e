import http.client
import re
import signal
import socket
import subprocess
import sys
import urllib.parse

import pytest

from benchmarks.trace_replay.cluster import own_loopback_host
from mooncake.http_metadata_server import KVBootstrapServer, KVPoll
from waiting import HANG_LIMIT_S


@pytest.fixture
def server():
    server = KVBootstrapServer(0, "127.0.0.1")
    server.run()
    yield server
    server.close()


def ask(port: int, method: str, key: str | None, body: bytes | None = None, path: str = "/metadata"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_LIMIT_S)
    query = "" if key is None else "?key=" + urllib.parse.quote(key, safe="")
    connection.request(method, path + query, body)
    reply = connection.getresponse()
    result = reply.status, reply.read(), reply.getheader("Content-Type")
    connection.close()
    return result


TEXT = "application/json; charset=utf-8"


def test_a_value_is_kept_given_back_and_deleted(server):
    key = "mooncake/ram/127.0.0.1:12345"
    assert ask(server.port, "GET", key) == (404, b"metadata not found", TEXT)
    assert ask(server.port, "PUT", key, b'{"a":1}') == (200, b"metadata updated", TEXT)
    assert ask(server.port, "PUT", key, b'{"a":2}') == (200, b"metadata updated", TEXT)
    assert ask(server.port, "GET", key) == (200, b'{"a":2}', "application/json")
    assert ask(server.port, "DELETE", key) == (200, b"metadata deleted", TEXT)
    assert ask(server.port, "DELETE", key) == (404, b"metadata not found", TEXT)


def test_an_rpc_meta_key_is_put_once_until_it_is_deleted(server):
    key = "mooncake/rpc_meta/a:1"
    assert ask(server.port, "PUT", key, b"{}")[0] == 200
    assert ask(server.port, "PUT", key, b"{}") == (400, b"Duplicate rpc_meta key not allowed", TEXT)
    assert ask(server.port, "DELETE", key)[0] == 200
    assert ask(server.port, "PUT", key, b"{}")[0] == 200


@pytest.mark.parametrize("key", [None, "", "  "])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_missing_key_is_said(server, method, key):
    assert ask(server.port, method, key, b"x") == (400, b"metadata key is required", TEXT)


def test_keys_are_trimmed(server):
    ask(server.port, "PUT", " k ", b"1")
    assert ask(server.port, "GET", "k")[1] == b"1"
    assert set(server.store) == {"k"}


def test_other_methods_and_paths_are_refused(server):
    assert ask(server.port, "POST", "k", b"x") == (405, b"Method not allowed", TEXT)
    assert ask(server.port, "GET", None, path="/health")[0] == 404


def test_a_value_that_is_too_large_is_refused_and_the_server_goes_on(server):
    assert ask(server.port, "PUT", "k", b"x" * ((16 << 20) + 1))[0] == 413
    assert ask(server.port, "PUT", "k", b"x")[0] == 200


def test_a_silent_client_stalls_nobody(server):
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        silent.sendall(b"GET /metadata?key=k HTTP/1.1\r\n")
        assert ask(server.port, "PUT", "k", b"1")[0] == 200


def test_closing_frees_the_port_and_may_be_repeated():
    host = own_loopback_host()
    server = KVBootstrapServer(0, host)
    server.run()
    assert server.poll() == KVPoll.Success
    server.close()
    server.close()
    assert server.poll() == KVPoll.Failed
    again = KVBootstrapServer(server.port, host)
    again.run()
    again.close()


def test_a_taken_port_is_an_error_of_run(server):
    other = KVBootstrapServer(server.port, "127.0.0.1")
    with pytest.raises(OSError, match="address already in use"):
        other.run()


def test_the_script_serves_and_ends_on_sigterm(scripts):
    process = subprocess.Popen(
        [scripts / "mooncake_http_metadata_server", "--port=0", "--host=127.0.0.1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        listens = next(line for line in process.stderr if "listens on" in line)
        port = int(re.search(r"listens on 127\.0\.0\.1:(\d+)", listens)[1])
        assert ask(port, "PUT", "k", b"1")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_LIMIT_S) == 0
    finally:
        process.kill()
        process.stderr.close()


def test_the_script_says_which_port_is_taken(server):
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "mooncake.http_metadata_server",
            "--port",
            str(server.port),
            "--host",
            "127.0.0.1",
        ],
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert run.returncode == 1
    assert f"127.0.0.1:{server.port}" in run.stderr
