"""What users of such stores have suffered from, each as a test that the kind is gone here.

The forms here are short; the long ones, with the sizes and times of a production, run with --long.
"""

import contextlib
import ctypes
import itertools
import mmap
import os
import signal
import subprocess
import threading
import time

import pytest

from benchmarks.trace_replay.cluster import METADATA_PORT, own_loopback_host
from forms import FORMS
from mooncake.http_metadata_server import KVBootstrapServer
from mooncake.store import MooncakeDistributedStore, ReplicateConfig
from waiting import stop, wait_until

SEGMENT = 64 << 20


def sizes_of(long: bool) -> tuple[int, int]:
    """(how many keys, the largest value in bytes) of writers in contention."""
    return (1000, 4 << 20) if long else (60, 256 << 10)


# ---- Writers that share keys


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("long", FORMS)
def test_of_many_writers_of_a_key_one_wins_and_the_others_are_told(start_master, start_store, long, batch):
    count, largest = sizes_of(long)
    master = start_master()
    stores = [start_store(master.address, segment=(2 << 30) if long else (64 << 20)) for _ in range(2)]
    keys = [f"key/{i}" for i in range(count)]
    sizes = [1024 + i * (largest - 1024) // count for i in range(count)]
    for number, store in enumerate(stores):
        store.send("put_contended", keys, sizes, number, 8, batch)
    outcomes = [store.receive() for store in stores]
    assert sum(outcome["failed"] for outcome in outcomes) == 0
    assert sum(outcome["wrote"] for outcome in outcomes) == count
    assert sum(outcome["existed"] for outcome in outcomes) == 15 * count
    assert stores[0].not_one_writers(keys, sizes) == []
    for log in (master.log.read_text(), *(store.log() for store in stores)):
        assert not [line for line in log.splitlines() if line.startswith("E")]


def test_batches_that_share_keys_keep_whole_values_of_the_first(start_master, start_local):
    store = start_local(start_master().address)
    keys = [f"key/{i}" for i in range(50)]
    results: list[int] = []

    def work(thread: int) -> None:
        for _ in range(3):
            results.append(store.put_batch(keys, [bytes([thread]) * 5000] * len(keys)))
            results.append(min(store.batch_remove(keys[:10])))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A put is 0 whether or not it wrote; who removes meets a missing key, or one that is being written.
    assert set(results) <= {0, -704, -703}
    for _ in range(2):
        assert store.put_batch(keys, [b"last"] * len(keys)) == 0
    code, text = store.last_error()
    assert code == -705 and "49 more keys existed" in text
    for got in store.get_batch(keys):
        assert got == b"last" or (len(got) == 5000 and got == got[:1] * 5000)


# ---- Large reads


@contextlib.contextmanager
def half_stopped(process: subprocess.Popen):
    """The process stands still for 50 of every 100 ms."""
    over = threading.Event()

    def throttle() -> None:
        while not over.wait(0.05):
            process.send_signal(signal.SIGSTOP)
            over.wait(0.05)
            process.send_signal(signal.SIGCONT)

    thread = threading.Thread(target=throttle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("long", FORMS)
def test_a_read_of_many_from_a_throttled_owner_outlasts_its_leases(start_master, start_store, long):
    count, size = (5000, 64 << 10) if long else (1500, 64 << 10)
    master = start_master("--default_kv_lease_ttl=500", "--client_ttl=600")
    owner = start_store(master.address, segment=512 << 20)
    reader = start_store(master.address, segment=0, MC_FORCE_TCP="1")
    keys = [f"key/{i}" for i in range(count)]
    assert owner.put_many(keys, size) == {}
    gone = keys[5:15]
    assert owner.remove_many(gone) == [0] * len(gone)
    with half_stopped(owner.process):
        assert reader.read_batch(keys, size) == [{"-704": gone}, []]


@pytest.mark.parametrize("long", FORMS)
def test_leases_are_renewed_while_a_read_waits_for_its_owner(start_master, start_store, long):
    count, size = (5000, 64 << 10) if long else (300, 64 << 10)
    master = start_master("--default_kv_lease_ttl=500", "--client_ttl=60")
    owner = start_store(master.address, segment=512 << 20)
    reader = start_store(master.address, segment=0, MC_FORCE_TCP="1")
    keys = [f"key/{i}" for i in range(count)]
    assert owner.put_many(keys, size) == {}
    assert reader.read_batch(keys[:1], size) == [{}, []]  # Now it knows the way.
    gone = keys[5:15]
    assert owner.remove_many(gone) == [0] * len(gone)

    def lookups() -> float:
        return master.metrics().get("master_batch_get_replica_list_requests_total", 0)

    stop(owner.process)
    try:
        before = lookups()
        reader.send("read_batch", keys, size)
        # The lookups, and then one renewal after another: the leases would have ended several times.
        wait_until(lambda: lookups() >= before + (20 if long else 8), "leases are renewed")
    finally:
        owner.process.send_signal(signal.SIGCONT)
    failed, wrong = reader.receive()
    assert failed == {"-704": gone}
    assert wrong == []


# ---- Lookup before load


@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("long", FORMS)
def test_a_failed_read_hides_what_cannot_be_read(start_master, start_store, long, fate):
    count = 500 if long else 60
    master = start_master("--default_kv_lease_ttl=200", "--client_ttl=600")
    # A stopped process may be read like a living one, but for its sockets.
    reader = start_store(master.address, segment=0, MC_FORCE_TCP="1", MC_TRANSFER_TIMEOUT="5")
    owner = start_store(master.address)
    keys = [f"key/{i}" for i in range(count)]
    assert owner.put_many(keys, 1000) == {}
    assert reader.exist_then_get(keys, 1000) == [keys, []]
    third = start_store(master.address)
    both = [f"both/{i}" for i in range(count)]
    assert third.put_many(both, 1000, 2) == {}
    owner.process.send_signal(fate)
    begin = time.monotonic()
    there, failed = reader.exist_then_get(keys, 1000)
    # One failed, and hid the others; a report is forgotten after five seconds, and then made anew.
    assert failed == there and 1 <= len(there) <= 3 + (time.monotonic() - begin) // 5
    assert reader.check_many(both, 1000) == [[], []]  # The other replica.


@pytest.mark.parametrize("long", FORMS)
def test_clients_are_answered_while_the_objects_of_lost_ones_go(start_master, start_store, start_local, long):
    count, lost_count = (300_000, 3) if long else (10_000, 1)
    master = start_master("--default_kv_lease_ttl=200", "--client_ttl=10")
    lost = [start_store(master.address) for _ in range(lost_count)]
    others = [start_local(master.address) for _ in range(8 - lost_count)]
    writer, config = others[0], ReplicateConfig()

    def fill(segment: str, part: int) -> list[str]:
        config.preferred_segment = segment
        keys = [f"{segment}/{i}" for i in range(part)]
        for start in range(0, part, 10_000):
            some = keys[start : start + 10_000]
            assert writer.put_batch(some, [b"x" * 64] * len(some), config) == 0
        return keys

    going = [key for store in lost for key in fill(store.hostname(), count * 8 // 10 // lost_count)]
    staying = [key for store in others for key in fill(store.get_hostname(), count * 2 // 10 // len(others))]
    assert writer.batch_is_exist(going) == [1] * len(going)
    names = [store.hostname() for store in lost]
    for store in lost:
        store.kill()
    waits = []

    def gone() -> bool:
        before = time.monotonic()
        assert writer.is_exist(staying[len(waits) % len(staying)]) == 1
        assert writer.put(f"meanwhile/{len(waits)}", b"x", config) == 0
        waits.append(time.monotonic() - before)
        return not set(names) & set(master.http("/get_all_segments")[1].split())

    wait_until(gone, "the segments of the lost are gone, others being answered all the time")
    assert writer.batch_is_exist(going) == [0] * len(going)
    assert writer.batch_is_exist(staying) == [1] * len(staying)
    assert master.metrics()["master_clients_expired_total"] == lost_count
    assert [store.health_check() for store in others] == [0] * len(others)
    if long:
        assert max(waits) < 0.2 and sorted(waits)[len(waits) * 99 // 100] < 0.02


@pytest.mark.parametrize("long", FORMS)
def test_what_exists_can_be_got_within_its_lease_under_pressure(start_master, start_store, long):
    master = start_master("--default_kv_lease_ttl=600000")  # No lease of the test ends.
    writer, reader = start_store(master.address, segment=128 << 20), start_store(master.address, segment=0)
    size, count = 400, 100_000 if long else 2000

    def write(round_number: int) -> None:
        writer.send("put_many", [f"pressure/{round_number}/{i}" for i in range(300)], 200_000)

    def evicted() -> float:
        return master.metrics()["master_evicted_key_count"]

    for round_number in range(-3, 0):
        write(round_number)
        assert writer.receive() == {}
    promised: list[str] = []
    for round_number in itertools.count():
        before = evicted()
        write(round_number)
        keys = [f"{round_number}/{i}" for i in range(500)]
        assert reader.put_many(keys, size) == {}
        there, failed = reader.exist_then_get(keys, size)
        assert there and failed == []
        assert writer.receive() == {}
        assert evicted() > before
        promised += there
        if len(promised) >= count:
            break
    assert reader.check_many(promised, size) == [[], []]  # All the leases still hold.


# ---- Errors that say what is wrong


def test_each_failure_names_its_code_and_what_it_is_about(start_master, start_local, start_store, tmp_path):
    master = start_master("--default_kv_lease_ttl=60000")
    store = start_local(master.address)
    memory = mmap.mmap(-1, 1 << 20)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert store.register_buffer(address, 4096) == 0
    assert store.put("leased", b"x" * 100) == 0 and store.is_exist("leased") == 1
    pinned = ReplicateConfig()
    pinned.with_hard_pin = True
    none, flash, shared = (ReplicateConfig() for _ in range(3))
    none.replica_num, flash.nof_replica_num, shared.dfs_replica_num = 0, 1, 1
    dead = start_store(master.address, segment=SEGMENT)
    to_dead = ReplicateConfig()
    to_dead.preferred_segment = dead.hostname()
    assert store.put("on the dead", b"x" * 100, to_dead) == 0
    dead.kill()
    unset = MooncakeDistributedStore()
    nobody = f"{own_loopback_host()}:{METADATA_PORT}"

    def set_up(host="127.0.0.1", metadata="P2PHANDSHAKE", size=SEGMENT, protocol="tcp", address=master.address):
        return MooncakeDistributedStore().setup(host, metadata, size, 1 << 20, protocol, "", address)

    big = b"x" * (60 << 20)
    provoked = [
        (lambda: store.get_into("on the dead", address, 4096), "TRANSFER_FAIL (-800)", "on the dead"),
        (lambda: store.get_size("missing"), "OBJECT_NOT_FOUND (-704)", "missing"),
        (lambda: store.get("missing") or -704, "OBJECT_NOT_FOUND (-704)", "missing"),
        (lambda: store.remove("missing"), "OBJECT_NOT_FOUND (-704)", "missing"),
        (lambda: store.remove("leased"), "OBJECT_HAS_LEASE (-706)", "leased"),
        (lambda: store.put("", b"x"), "INVALID_PARAMS (-600)", "key"),
        (lambda: store.put("empty", b""), "INVALID_PARAMS (-600)", "empty"),
        (lambda: store.put("none", b"x", none), "INVALID_PARAMS (-600)", "none"),
        (lambda: store.put("flash", b"x", flash), "INVALID_PARAMS (-600)", "flash"),
        (lambda: store.put("dfs", b"x", shared), "DFS_SERVICE_UNAVAILABLE (-1601)", "dfs"),
        (lambda: store.put_from("wild", address + 8192, 10), "INVALID_PARAMS (-600)", "wild"),
        (lambda: store.get_into("leased", address + 8192, 200), "INVALID_PARAMS (-600)", "leased"),
        (lambda: store.get_into("leased", address, 99), "INVALID_PARAMS (-600)", "leased"),
        (lambda: store.register_buffer(16, 4096), "INVALID_PARAMS (-600)", "0x10"),
        (lambda: store.unregister_buffer(address + 1), "INVALID_PARAMS (-600)", f"{address + 1:#x}"),
        (lambda: store.remove_by_regex("["), "INVALID_PARAMS (-600)", "["),
        (lambda: store.put_batch(["a", "b"], [b"x"]), "INVALID_PARAMS (-600)", "keys and values"),
        (lambda: store.put_batch(["p1", "p2"], [big, big], pinned), "NO_AVAILABLE_HANDLE (-200)", "pinned"),
        (lambda: store.unmount_segment(["no id"]), "INVALID_PARAMS (-600)", "no id"),
        (lambda: unset.put("k", b"x"), "INVALID_PARAMS (-600)", "setup()"),
        (lambda: set_up(address=nobody), "INTERNAL_ERROR (-1)", nobody),
        (lambda: set_up(address="127.0.0.1"), "INVALID_PARAMS (-600)", "127.0.0.1"),
        (lambda: set_up(protocol="pigeon"), "INVALID_PARAMS (-600)", "pigeon"),
        (lambda: set_up(metadata=f"http://{nobody}/metadata"), "INTERNAL_ERROR (-1)", nobody),
        (lambda: set_up(metadata="ftp://nowhere"), "INVALID_PARAMS (-600)", "ftp://nowhere"),
        (lambda: set_up(host=""), "INVALID_PARAMS (-600)", "local_hostname"),
    ]
    for call, code, about in provoked:
        assert call() < 0, (code, about)
        number, text = store.last_error()
        assert f"({number})" in code, (code, about, text)
        assert text.startswith(code) and about in text, text


# ---- Python's other threads


def calls_that_take_time(store: MooncakeDistributedStore, master_address: str, size: int, count: int, segment: int):
    """Each kind of call that may take time, by name, in an order in which they can be made again and again.

    Values have ``size`` bytes, batches ``count`` keys.
    """
    value, keys = bytes(size), [f"key/{i}" for i in range(count)]
    memory = mmap.mmap(-1, size)
    at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    store.register_buffer(at, size)

    def set_up_and_drop() -> None:
        other = MooncakeDistributedStore()
        assert other.setup("127.0.0.1", "P2PHANDSHAKE", segment, 16 << 20, "tcp", "", master_address) == 0

    def done(code: int) -> None:
        assert code >= 0, store.last_error()

    def got(value: bytes) -> bytes:
        assert len(value) == size, store.last_error()
        return value  # Kept for the caller: to free so much takes Python time, and the interpreter.

    return {
        "put": lambda: done(store.upsert("large", value)),
        "get": lambda: got(store.get("large")),
        "get_buffer": lambda: done(store.get_buffer("large").size() - size),
        "put_from": lambda: done(store.upsert_from("large", at, len(memory))),
        "get_into": lambda: done(store.get_into("large", at, len(memory)) - size),
        "put_batch": lambda: done(store.upsert_batch(keys, [b"x"] * count)),
        "get_batch": lambda: done(len(store.get_batch(keys)) - count),
        "batch_is_exist": lambda: done(sum(store.batch_is_exist(keys)) - count),
        "remove and put": lambda: (store.batch_remove(keys, True), store.upsert_batch(keys, [b"x"] * count)),
        "remove_all and put": lambda: (store.remove_all(True), store.upsert_batch(keys, [b"x"] * count)),
        "set-up and drop": set_up_and_drop,
    }


def test_no_call_that_takes_time_holds_the_interpreter(start_master, start_local, bystander):
    address = start_master().address
    store = start_local(address, segment=512 << 20)
    for name, call in calls_that_take_time(store, address, 32 << 20, 10_000, SEGMENT).items():
        wait_until(lambda call=call: bystander.waits_little(call), f"other threads run during most of {name}")


@pytest.mark.long_form
def test_no_large_call_keeps_other_threads_waiting(start_master, start_local, bystander):
    address = start_master().address
    store = start_local(address, segment=2 << 30, local=512 << 20)
    calls = calls_that_take_time(store, address, 256 << 20, 10_000, 2 << 30)
    nobody = f"{own_loopback_host()}:1"
    absent, other = MooncakeDistributedStore(), MooncakeDistributedStore()
    calls["set-up without a master"] = lambda: absent.setup("127.0.0.1", "P2PHANDSHAKE", 0, 0, "tcp", "", nobody)
    calls["set-up and close"] = lambda: (
        other.setup("127.0.0.1", "P2PHANDSHAKE", 2 << 30, 0, "tcp", "", address),
        other.close(),
    )
    # The least of a few: what else runs on the machine lets threads wait now and then, a held lock does so each time.
    waits_s = {name: min(bystander.longest_wait(call)[0] for _ in range(5)) for name, call in calls.items()}
    assert {name: wait_s for name, wait_s in waits_s.items() if wait_s >= 0.05} == {}


def test_a_put_goes_on_while_another_thread_holds_the_interpreter(start_master, start_store, tmp_path):
    master = start_master()
    holder, other = start_store(master.address), start_store(master.address)
    release = tmp_path / "release"
    os.mkfifo(release)
    holder.send("put_while_the_interpreter_is_held", "k", 8 << 20, str(release))
    try:
        wait_until(lambda: other.exist_many(["k"]) == [1], "the put ends, though Python stands still")
    finally:
        os.close(os.open(release, os.O_WRONLY))
    holder.receive()
    assert other.check_many(["k"], 8 << 20) == [[], []]


# ---- Two stores of truth


def test_an_external_metadata_server_may_be_lost_and_come_back(start_master, start_store):
    host = own_loopback_host()
    url = f"http://{host}:{METADATA_PORT}/metadata"
    server = KVBootstrapServer(METADATA_PORT, host)
    server.run()
    master = start_master("--default_kv_lease_ttl=200")
    a, b = (start_store(master.address, metadata=url) for _ in range(2))
    keys = [f"key/{i}" for i in range(20)]
    assert a.put_many(keys, 1000) == {}
    assert b.check_many(keys, 1000) == [[], []]
    server.close()
    server = KVBootstrapServer(METADATA_PORT, host)
    server.run()
    assert b.check_many(keys, 1000) == [[], []]
    newcomer = start_store(master.address, metadata=url)
    assert newcomer.code == 0
    wait_until(lambda: newcomer.check_many(keys, 1000) == [[], []], "a newcomer finds both by what they publish again")
    fresh = [f"fresh/{i}" for i in range(20)]
    assert newcomer.put_many(fresh, 1000) == {}
    assert a.check_many(fresh, 1000) == [[], []] and b.check_many(fresh, 1000) == [[], []]
    server.close()
