"""A pool under writers that want more than it holds: nobody is refused, segments fill alike, the master stays small."""

import itertools
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.trace_replay.cluster import resident_bytes
from forms import FORMS
from waiting import wait_until

KIB, MIB = 1 << 10, 1 << 20


def value(key: str, size: int) -> bytes:
    """The bytes that belong to a key."""
    return random.Random(key).randbytes(64) * (size // 64)


@pytest.mark.parametrize("policy", ["hdi", "lru"])
def test_writers_of_more_than_the_pool_holds_are_never_refused(start_master, start_local, policy):
    master = start_master("--default_kv_lease_ttl=1", f"--eviction_policy={policy}")
    stores = [start_local(master.address, 64 * MIB) for _ in range(2)]
    # Four times the capacity in pieces of 1 MiB, then as much from 64 KiB to 8 MiB.
    sizes = [MIB] * 512 + [64 * KIB << (i % 8) for i in range(250)]
    numbers = itertools.count()
    taken = threading.Lock()

    def write(store) -> list[int]:
        codes = []
        while True:
            with taken:
                number = next(numbers)
            if number >= len(sizes):
                return codes
            codes.append(store.put(f"many/{number}", value(f"many/{number}", sizes[number])))

    with ThreadPoolExecutor(8) as threads:
        codes = [code for part in threads.map(write, stores * 4) for code in part]
    assert len(codes) == len(sizes)
    assert set(codes) == {0}
    enough = 0.6 * 128 * MIB
    kept_bytes = written_bytes = 0
    for number, size in reversed(list(enumerate(sizes))):  # The newest first.
        got = stores[0].get(f"many/{number}")
        assert got in (b"", value(f"many/{number}", size))
        kept_bytes += len(got)
        written_bytes += size
        if policy == "lru" and written_bytes <= enough:  # The other policy keeps what it expects to be asked for.
            assert kept_bytes == written_bytes
    assert kept_bytes >= enough


def used_ratios(master) -> list[float]:
    """Of each segment, what is in use of what it has."""
    segments = json.loads(master.http("/get_segments_detail")[1])["segments"]
    return [segment["allocator_usage_percent"] / 100 for segment in segments]


def test_unequal_segments_fill_alike(start_master, start_local):
    master = start_master("--default_kv_lease_ttl=1")
    writer, *_ = (start_local(master.address, size * MIB) for size in (32, 32, 128))
    one = value("one", MIB)
    for number in range(4 * 192):
        assert writer.put(f"many/{number}", one) == 0
        if number >= 3 * 192:
            ratios = used_ratios(master)
            assert max(ratios) - min(ratios) <= 0.03, ratios


def test_a_large_object_finds_room_among_scattered_ones(start_master, start_local):
    master = start_master("--default_kv_lease_ttl=1")
    store = start_local(master.address, 64 * MIB)
    sizes = {}
    for number in itertools.count():
        size = MIB if number % 2 else 64 * KIB
        if sum(sizes.values()) + size > 0.95 * 64 * MIB:
            break
        sizes[f"old/{number}"] = size
        assert store.put(f"old/{number}", value(f"old/{number}", size)) == 0
    for key in random.Random(0).sample(sorted(sizes), len(sizes) // 2):
        assert store.remove(key, True) == 0
        del sizes[key]
    assert store.put("large", value("large", 8 * MIB)) == 0
    assert store.get("large") == value("large", 8 * MIB)
    for key, size in sizes.items():
        assert store.get(key) == value(key, size)


@pytest.mark.parametrize("long", FORMS)
def test_the_masters_memory_for_objects_is_bounded(start_master, start_local, long):
    limit, count = (64 * MIB, 1_000_000) if long else (4 * MIB, 60_000)
    master = start_master("--default_kv_lease_ttl=1", f"--metadata_memory_limit={limit}")
    store = start_local(master.address, 128 * MIB)
    for start in range(0, count, 1000):
        keys = [f"small/{number}" for number in range(start, start + 1000)]
        assert store.put_batch(keys, [b"x" * 64] * len(keys)) == 0
        assert master.metrics()["master_metadata_bytes"] <= limit + 1000
        assert resident(master) <= limit + 100 * MIB, "what is not counted is small"
    metrics = master.metrics()
    assert metrics["master_metadata_evictions_total"] > 0
    assert metrics["master_metadata_evictions_total"] == metrics["master_attempted_evictions_total"]
    assert store.is_exist(f"small/{count - 1}") == 1


def resident(master) -> int:
    """What a living master takes of the machine's memory."""
    taken = resident_bytes(master.process.pid)
    assert taken > 0
    return taken


@pytest.mark.parametrize("long", FORMS)
def test_the_masters_memory_is_given_back_after_removal(start_master, start_local, long):
    master = start_master("--default_kv_lease_ttl=1")
    store = start_local(master.address, 128 * MIB)
    count = 1_000_000 if long else 400_000

    def fill(round_: int) -> None:
        for start in range(0, count, 10_000):
            keys = [f"{round_}/small/{number}" for number in range(start, start + 10_000)]
            assert store.put_batch(keys, [b"x" * 64] * len(keys)) == 0

    idle = resident(master)
    fill(0)
    grown = resident(master) - idle
    assert grown / count <= 400
    assert store.remove_all(True) == count
    wait_until(lambda: resident(master) - idle <= 0.3 * grown, "most of it is given back")


def test_the_masters_memory_stays_where_it_is_while_objects_come_and_go(start_master, start_local):
    master = start_master("--default_kv_lease_ttl=1")
    store = start_local(master.address, 16 * MIB)
    sizes = []
    for cycle in range(20):
        for start in range(0, 16 * MIB // 256, 8192):
            keys = [f"{cycle}/small/{number}" for number in range(start, start + 8192)]
            assert store.put_batch(keys, [b"x" * 256] * len(keys)) == 0
        sizes.append(resident(master))
    assert sizes[-1] <= 1.15 * sizes[2], sizes


def test_objects_lie_near_their_writer_however_its_host_is_addressed(start_master, start_store):
    master = start_master("--allocation_strategy=local_first")
    # Two containers of a host have addresses of their own, and one of another host looks like the first.
    left = [start_store(master.address, host=host, MC_STORE_HOST_ID="left") for host in ("127.0.0.1", "127.0.0.2")]
    right = [start_store(master.address, MC_STORE_HOST_ID="right")]
    segments = json.loads(master.http("/get_segments_detail")[1])["segments"]
    endpoints = {segment["segment_name"]: segment["te_endpoint"] for segment in segments}

    def used_by(writer, prefix: str) -> set[str]:
        keys = [f"{prefix}/{number}" for number in range(50)]
        assert writer.put_many(keys, 1000) == {}
        found = json.loads(master.http(f"/batch_query_keys?keys={','.join(keys)}")[1])["data"]
        return {found[key]["values"][0]["transport_endpoint_"] for key in keys}

    for name, stores in (("left", left), ("right", right)):
        near = {endpoints[store.hostname()] for store in stores}
        assert used_by(start_store(master.address, segment=0, MC_STORE_HOST_ID=name), name) == near
    assert used_by(start_store(master.address, segment=0), "unknown") == set(endpoints.values())
