"""What goes wrong with a store in production: processes killed, masters restarted, stores full, peers silent.

Each ends in a clear error or heals by itself; nothing is lost that need not be, nobody else is harmed.
"""

import os
import signal
import socket
from pathlib import Path

import pytest

from fresh_python import run_python
from waiting import HANG_LIMIT_S, stop, wait_until

TESTS = Path(__file__).parent
SEGMENT = 64 << 20


KEYS = [f"key/{i}" for i in range(50)]


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
    master = start_master("--default_kv_lease_ttl=200", "--client_ttl=10")
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


@pytest.mark.parametrize("policy", ["hdi", "lru"])
def test_a_full_store_makes_room_and_refuses_only_what_is_pinned(start_master, start_store, policy):
    master = start_master("--default_kv_lease_ttl=1", f"--eviction_policy={policy}")
    store = start_store(master.address)
    many = [f"many/{i}" for i in range(256)]
    assert store.put_many(many, 1 << 20) == {}  # Four times what fits.
    missing, wrong = store.check_many(many, 1 << 20)
    assert wrong == []
    assert len(many) - len(missing) >= 38  # 60 per cent of the capacity are in use.
    if policy == "lru":
        assert not set(missing) & set(many[-38:])  # They are the newest.
    store.remove_all()
    pinned = [f"pinned/{i}" for i in range(100)]
    refused = store.put_many(pinned, 1 << 20, 1, True)
    assert refused and set(refused.values()) == {-200}
    code, text = store.last_error()
    assert code == -200
    assert "pinned" in text
    assert store.check_many([key for key in pinned if key not in refused], 1 << 20) == [[], []]


def test_an_absent_master_is_an_error_in_words(start_store):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # Nobody listens there, and nobody else can.
        address = f"127.0.0.1:{probe.getsockname()[1]}"
        store = start_store(address)
        assert store.code == -1
        assert address in store.last_error()[1]


def test_a_master_that_is_something_else_is_an_error_in_words(start_store):
    with socket.create_server(("127.0.0.1", 0)) as other:
        store = start_store(f"127.0.0.1:{other.getsockname()[1]}")
        assert store.code == -1
        assert store.last_error()[1]


def test_rubbish_on_the_master_ports_harms_nobody(master, start_store):
    store = start_store(master.address)
    for port in (master.rpc_port, master.metrics_port):
        for rubbish in (b"", b"\0" * 64, b"\xff" * 4096, os.urandom(10_000)):
            with socket.create_connection((master.host, port), timeout=HANG_LIMIT_S) as connection:
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
    master = start_master("--default_kv_lease_ttl=200", "--client_ttl=10")
    a, b = start_store(master.address), start_store(master.address)
    stop(a.process)
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
    run_python(code)


def test_closing_without_a_master_ends_soon(start_master, start_store):
    master = start_master()
    store = start_store(master.address)
    master.kill()
    store.send("close")
    assert store.receive(HANG_LIMIT_S) == 0


def test_the_embedded_metadata_server_may_be_lost_and_come_back(start_master, start_store):
    master = start_master("--default_kv_lease_ttl=200", "--enable_http_metadata_server=true")
    url = master.metadata_url
    a, b = start_store(master.address, metadata=url), start_store(master.address, metadata=url)
    assert a.put_many(KEYS, 1000) == {}
    assert b.check_many(KEYS, 1000) == [[], []]
    master.kill()
    master.start()
    wait_until(lambda: len(master.http("/get_all_segments")[1].split()) == 2, "both segments are mounted again")
    segments = master.http("/get_all_segments")[1].split()

    def used() -> list[float]:
        samples = master.metrics()
        return [samples.get(f'segment_allocated_bytes{{segment="{name}"}}', 0) for name in segments]

    listed = [f"listed/{i}" for i in range(100)]
    wait_until(lambda: a.put_many(listed, 1000) == {}, "a writes again")
    assert set(master.http("/get_all_keys")[1].split()) == set(listed)
    before = used()
    newcomer = start_store(master.address, segment=0, metadata=url)  # What it writes goes to a and b.
    assert newcomer.code == 0
    fresh = [f"fresh/{i}" for i in range(100)]
    wait_until(lambda: newcomer.put_many(fresh, 1000) == {}, "a newcomer reaches both by their published descriptors")
    assert newcomer.check_many(listed, 1000) == [[], []]
    assert all(now > then for now, then in zip(used(), before, strict=True)), "both took some"
    assert a.check_many(fresh, 1000) == [[], []]
    assert b.check_many(fresh, 1000) == [[], []]
