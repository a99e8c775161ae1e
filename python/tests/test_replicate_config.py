"""What each wish of a ReplicateConfig brings about, from Python to the master and back."""

import ctypes
import mmap

import pytest

from mooncake.store import ObjectDataType, ReplicateConfig, SoftPinAction
from waiting import wait_until


def config_with(**wishes) -> ReplicateConfig:
    config = ReplicateConfig()
    for name, wish in wishes.items():
        setattr(config, name, wish)
    return config


def endpoints_of(store, keys: list[str]) -> set[str]:
    """Where the replicas of the keys lie."""
    return {
        replica.get_memory_descriptor().buffer_descriptor.transport_endpoint
        for replicas in store.batch_get_replica_desc(keys).values()
        for replica in replicas
    }


@pytest.fixture
def memory():
    """An address of 4096 bytes."""
    mapping = mmap.mmap(-1, 4096)
    yield ctypes.addressof(ctypes.c_char.from_buffer(mapping))


def test_preferred_segments_are_tried_in_their_order(master, start_local):
    stores = [start_local(master.address) for _ in range(3)]
    keys = [str(i) for i in range(10)]
    names = ["unknown:1", stores[2].get_hostname(), stores[1].get_hostname()]
    assert stores[0].put_batch(keys, [b"x"] * 10, config_with(preferred_segments=names)) == 0
    assert stores[2].put("own", b"x", config_with(preferred_segment=stores[2].get_hostname())) == 0
    assert endpoints_of(stores[0], keys) == endpoints_of(stores[0], ["own"])


def test_objects_of_a_group_are_leased_together(store):
    assert store.put_batch(["a", "b"], [b"1", b"2"], config_with(group_ids=["g", "g"])) == 0
    assert store.put("c", b"3", config_with(group_ids=["other"])) == 0
    assert store.is_exist("a") == 1
    assert store.batch_remove(["b", "c"]) == [-706, 0], "the lease of a is that of its group"


def test_an_unregistered_buffer_fails_alone_also_in_groups(store, memory):
    assert store.register_buffer(memory, 4096) == 0
    groups = config_with(group_ids=["first", "second", "third", "first"])
    places = [memory, 4096, memory + 1000, memory + 2000]
    assert store.batch_put_from(["a", "b", "c", "d"], places, [100] * 4, groups) == [0, -600, 0, 0]
    assert '"b"' in store.last_error()[1]
    assert store.batch_is_exist(["a", "b"]) == [1, 0]
    assert store.batch_remove(["c", "d"]) == [0, -706], "the others are in the groups that they were given"
    assert store.batch_put_from(["e", "f"], [4096, 8192], [100] * 2, config_with(group_ids=["g", "h"])) == [-600] * 2


def test_a_soft_pin_is_set_kept_and_ended(master, store):
    def pins() -> int:
        return int(master.metrics()["master_soft_pin_key_count"])

    assert store.put("k", b"x", config_with(soft_pin_action=SoftPinAction.ENABLE)) == 0
    assert pins() == 1
    assert store.upsert("k", b"y", config_with(soft_pin_action=SoftPinAction.PRESERVE)) == 0
    assert pins() == 1
    assert store.upsert("k", b"z", config_with(soft_pin_action=SoftPinAction.DISABLE)) == 0
    assert pins() == 0
    soon = config_with(soft_pin_action=SoftPinAction.ENABLE, soft_pin_ttl_ms=1)
    assert store.put("l", b"x", soon) == 0
    wait_until(lambda: pins() == 0, "the pin has ended")


def test_the_kind_of_data_may_be_any(store):
    for kind in ObjectDataType.__members__.values():
        config = config_with(data_type=kind)
        assert config.data_type == kind
        assert f"data_type: {kind.name}" in str(config)
        assert store.put(kind.name, b"x", config) == 0


def test_objects_stay_on_the_writers_host_when_asked_to(master, start_local, start_store, memory, monkeypatch):
    start_store(master.address, MC_STORE_HOST_ID="east")
    monkeypatch.setenv("MC_STORE_HOST_ID", "west")
    neighbour = start_local(master.address)
    writer = start_local(master.address, segment=0)
    assert writer.register_buffer(memory, 4096) == 0
    keys = [str(i) for i in range(30)]
    same_node = config_with(prefer_alloc_in_same_node=True)
    assert writer.batch_put_from(keys, [memory] * 30, [100] * 30, same_node) == [0] * 30
    assert neighbour.put("own", b"x", config_with(preferred_segment=neighbour.get_hostname())) == 0
    assert endpoints_of(writer, keys) == endpoints_of(writer, ["own"])


def test_replicas_are_cleared_from_one_segment_or_all(start_master, start_local):
    master = start_master("--default_kv_lease_ttl=1", "--client_ttl=600")  # What was looked at is cleared soon.
    mine, other = start_local(master.address), start_local(master.address)
    for key in ("a", "b"):
        assert mine.put(key, b"value", config_with(replica_num=2)) == 0
    assert other.put("theirs", b"value") == 0
    name = other.get_hostname()
    assert mine.batch_replica_clear(["a", "theirs", "none"], "unknown:1") == []
    assert mine.batch_replica_clear(["a", "theirs", "none"], name) == ["a"]
    assert endpoints_of(mine, ["a", "b"]) - endpoints_of(mine, ["a"]), "b is still on both"
    assert len(mine.get_replica_desc("a")) == 1
    assert mine.get("a") == b"value"
    cleared: list[str] = []
    wait_until(lambda: cleared.extend(mine.batch_replica_clear(["a", "b"])) or len(cleared) == 2, "leases have ended")
    assert sorted(cleared) == ["a", "b"]
    assert mine.get("a") == b""
    assert other.get("theirs") == b"value"
