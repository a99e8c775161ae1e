"""What goes wrong in production: processes killed, masters restarted, stores full, peers silent, settings wrong.

Each ends in a clear error or heals by itself; nothing is lost that need not be, nobody else is harmed.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from remote import Remote

TESTS = Path(__file__).parent
SEGMENT = 64 << 20
HEAL_LIMIT_S = 60


def wait_until(condition, what):
    """Polls ``condition`` until it holds; fails after HEAL_LIMIT_S."""
    deadline = time.monotonic() + HEAL_LIMIT_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {HEAL_LIMIT_S} s: {what}"
        pause.wait(0.02)


@pytest.fixture
def start_engine(tmp_path):
    peers = []

    def start(size=256 << 20, host="127.0.0.1", **environment):
        log = tmp_path / f"engine{len(peers)}.log"
        peer = Remote(Path(sys.executable), TESTS / "engine_peer.py", log, environment)
        peers.append(peer)
        peer.info = peer.start(host, "P2PHANDSHAKE", size)
        return peer

    yield start
    for peer in peers:
        peer.kill()


@pytest.fixture
def start_store(tmp_path):
    peers = []

    def start(master_address, segment=SEGMENT, local=16 << 20, metadata="P2PHANDSHAKE", **environment):
        log = tmp_path / f"store{len(peers)}.log"
        peer = Remote(Path(sys.executable), TESTS / "store_peer.py", log, environment)
        peers.append(peer)
        peer.code = peer.setup("127.0.0.1", metadata, segment, local, master_address)
        return peer

    yield start
    for peer in peers:
        peer.kill()


KEYS = [f"key/{i}" for i in range(50)]


# ---- The engine


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_target_killed_in_the_middle_fails_the_transfer_and_nothing_else(start_engine, forced_tcp):
    initiator, victim, other = (start_engine(MC_FORCE_TCP=forced_tcp) for _ in range(3))
    initiator.send("move_until_it_fails", victim.info["name"], victim.info["address"], 128 << 20)
    wait_until(lambda: victim.checksum(0, 1 << 20) != 0, "the first bytes arrive")
    victim.kill()
    _, code = initiator.receive()
    assert code == -1
    code, text = initiator.last_error()
    assert code == -1 and victim.info["name"] in text
    wanted = initiator.fill(0, 1 << 20, "next")
    here, there = initiator.info["address"], other.info["address"]
    assert initiator.move(True, other.info["name"], [here], [there], [1 << 20]) == 0
    assert other.checksum(0, 1 << 20) == wanted


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_an_initiator_killed_in_the_middle_does_not_harm_the_target(start_engine, forced_tcp):
    target, victim, other = (start_engine(MC_FORCE_TCP=forced_tcp) for _ in range(3))
    name, address = target.info["name"], target.info["address"]
    victim.fill(0, 1 << 20, "victim")
    victim.send("move_until_it_fails", name, address, 128 << 20)
    wait_until(lambda: target.checksum(0, 1 << 20) != target.checksum(200 << 20, 1 << 20), "bytes arrive")
    victim.kill()
    wanted = other.fill(0, 1 << 20, "other")
    assert other.move(True, name, [other.info["address"]], [address + (192 << 20)], [1 << 20]) == 0
    assert target.checksum(192 << 20, 1 << 20) == wanted


def test_a_target_that_comes_back_elsewhere_is_found_by_its_new_name(start_engine):
    initiator = start_engine()
    for _ in range(3):
        target = start_engine(size=1 << 20)
        wanted = initiator.fill(0, 4096, "round")
        name, here, there = target.info["name"], initiator.info["address"], target.info["address"]
        assert initiator.move(True, name, [here], [there], [4096]) == 0
        assert target.checksum(0, 4096) == wanted
        target.kill()
        assert initiator.move(True, name, [here], [there], [4096]) == -1


def test_rubbish_on_the_engine_ports_harms_nobody(start_engine):
    target, initiator = start_engine(size=1 << 20), start_engine(size=1 << 20)
    port = int(target.info["name"].rpartition(":")[2])
    for rubbish in (b"", b"\0" * 8, b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(rubbish)
            connection.shutdown(socket.SHUT_WR)
            try:
                while connection.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    silent = socket.create_connection(("127.0.0.1", port))
    assert initiator.probe(target.info["name"]) == 0
    silent.close()


@pytest.mark.parametrize(
    ("name", "value"), [("MC_FORCE_TCP", "maybe"), ("MC_TRANSFER_TIMEOUT", "soon"), ("MC_TCP_LANES_PER_PEER", "0x")]
)
def test_a_malformed_variable_fails_the_start_and_is_named(start_engine, name, value):
    peer = start_engine(size=1 << 20, **{name: value})
    assert peer.info["code"] == -1
    code, text = peer.last_error()
    assert code == -1
    assert name in text and value in text


def test_a_host_that_cannot_be_parsed_is_quoted(start_engine):
    for host in ("[::1", "::1]:x", "1:2:3:x"):
        peer = start_engine(size=1 << 20, host=host)
        assert peer.info["code"] == -1
        assert host in peer.last_error()[1]


# ---- The store


def test_clients_outlive_their_master(start_master, start_store):
    master = start_master("--default_kv_lease_ttl=200")
    a, b = start_store(master.address), start_store(master.address)
    assert a.put_many(KEYS, 1000) == {}
    assert b.check_many(KEYS, 1000) == [[], []]
    master.kill()
    assert a.put_many(["while it is away"], 10) != {}
    assert a.last_error()[0] != 0 and master.address in a.last_error()[1]
    master.start()
    wait_until(lambda: len(master.http("/get_all_segments")[1].split()) == 2, "both segments are mounted again")
    # Readers of before the restart may still hold leases: for so long nothing is placed on what was mounted again.
    wait_until(lambda: a.put_many(["probe"], 10) == {}, "memory that may still be read has rested for one lease")
    fresh = [f"fresh/{i}" for i in range(50)]
    assert a.put_many(fresh, 2000) == {}
    assert b.check_many(fresh, 2000) == [[], []]
    listed = master.http("/get_all_keys")[1].split("\n")[:-1]
    newcomer = start_store(master.address)
    assert newcomer.code == 0
    kept = [key for key in listed if key.startswith("key/")]
    assert newcomer.check_many(kept, 1000) == [[], []]


def test_the_objects_of_a_killed_client_are_gone_after_its_time_and_replicas_are_read(start_master, start_store):
    master = start_master("--default_kv_lease_ttl=200", "--client_ttl=2")
    a, b = start_store(master.address), start_store(master.address)
    twice, once = [f"twice/{i}" for i in range(20)], [f"once/{i}" for i in range(40)]
    assert a.put_many(twice, 1000, 2) == {}
    assert a.put_many(once, 1000) == {}
    a.kill()
    assert b.check_many(twice, 1000) == [[], []]  # At once: the other replica is taken.
    wait_until(lambda: len(master.http("/get_all_segments")[1].split()) == 1, "the dead client's segment is unmounted")
    missing, wrong = b.check_many(once, 1000)
    assert wrong == []
    assert b.exist_many(missing) == [0] * len(missing)
    assert b.put_many(once, 1000) == {}
    assert b.check_many(once, 1000) == [[], []]


def test_a_full_store_makes_room_and_refuses_only_what_is_pinned(start_master, start_store):
    master = start_master("--default_kv_lease_ttl=1")
    store = start_store(master.address)
    many = [f"many/{i}" for i in range(256)]
    assert store.put_many(many, 1 << 20) == {}  # Four times what fits.
    missing, wrong = store.check_many(many, 1 << 20)
    assert wrong == []
    assert not set(missing) & set(many[-38:])  # The newest 60 per cent of the capacity.
    store.remove_all()
    pinned = [f"pinned/{i}" for i in range(100)]
    refused = store.put_many(pinned, 1 << 20, 1, True)
    assert refused and set(refused.values()) == {-200}
    code, text = store.last_error()
    assert code == -200
    assert "pinned" in text
    assert store.check_many([key for key in pinned if key not in refused], 1 << 20) == [[], []]


def test_a_value_larger_than_the_local_buffer_is_moved_piece_by_piece(start_master, start_store):
    store = start_store(start_master().address, local=4 << 20)
    assert store.put_many(["large"], 16 << 20) == {}
    assert store.check_many(["large"], 16 << 20) == [[], []]


def test_an_absent_master_is_an_error_in_words(start_store):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    store = start_store(f"127.0.0.1:{port}")
    assert store.code == -1
    assert f"127.0.0.1:{port}" in store.last_error()[1]


def test_a_master_that_is_something_else_is_an_error_in_words(start_store):
    with socket.create_server(("127.0.0.1", 0)) as other:
        store = start_store(f"127.0.0.1:{other.getsockname()[1]}")
        assert store.code == -1
        assert store.last_error()[1]


def test_rubbish_on_the_master_ports_harms_nobody(master, start_store):
    store = start_store(master.address)
    for port in (master.rpc_port, master.metrics_port):
        for rubbish in (b"", b"\0" * 64, b"\xff" * 4096, os.urandom(10_000)):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                try:
                    connection.sendall(rubbish)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):
                        pass
                except (ConnectionResetError, BrokenPipeError, OSError):
                    pass
    assert store.put_many(KEYS, 100) == {}
    assert store.check_many(KEYS, 100) == [[], []]
    assert master.process.poll() is None


def test_a_stopped_client_does_not_stall_the_others(start_master, start_store):
    master = start_master("--default_kv_lease_ttl=200", "--client_ttl=2")
    a, b = start_store(master.address), start_store(master.address)
    a.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: len(master.http("/get_all_segments")[1].split()) == 1, "the silent client's segment is gone")
        assert b.put_many(KEYS, 1000) == {}
        assert b.check_many(KEYS, 1000) == [[], []]
    finally:
        a.process.send_signal(signal.SIGCONT)
    wait_until(lambda: len(master.http("/get_all_segments")[1].split()) == 2, "it is back")
    assert a.check_many(KEYS, 1000) == [[], []]
    assert a.put_many(["back"], 1000) == {}


def test_a_process_that_never_closes_ends_cleanly(master):
    code = (
        "from mooncake.store import MooncakeDistributedStore as S\n"
        "s = S()\n"
        f"assert s.setup('127.0.0.1', 'P2PHANDSHAKE', {SEGMENT}, 1 << 20, 'tcp', '', '{master.address}') == 0\n"
        "assert s.put('k', b'x') == 0\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_closing_without_a_master_ends_soon(start_master, start_store):
    master = start_master()
    store = start_store(master.address)
    master.kill()
    store.send("close")
    assert store.receive(30) == 0


def test_the_embedded_metadata_server_may_be_lost_and_come_back(start_master, start_store):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    master = start_master(
        "--default_kv_lease_ttl=200",
        "--enable_http_metadata_server=true",
        f"--http_metadata_server_port={port}",
    )
    url = f"http://127.0.0.1:{port}/metadata"
    a, b = start_store(master.address, metadata=url), start_store(master.address, metadata=url)
    assert a.put_many(KEYS, 1000) == {}
    assert b.check_many(KEYS, 1000) == [[], []]
    master.kill()
    master.start()
    wait_until(lambda: len(master.http("/get_all_segments")[1].split()) == 2, "both segments are mounted again")
    newcomer = start_store(master.address, metadata=url)
    assert newcomer.code == 0
    fresh = [f"fresh/{i}" for i in range(50)]
    wait_until(lambda: newcomer.put_many(fresh, 1000) == {}, "a newcomer reaches both by their published descriptors")
    assert a.check_many(fresh, 1000) == [[], []]
    assert b.check_many(fresh, 1000) == [[], []]
