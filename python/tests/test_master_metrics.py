"""The master's metrics: the names and types that dashboards query, and that they count what happens.

Those of snapshots, tenants and the NVMe-oF pool are not there, as in earlier versions without these features.
"""

import itertools
import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mooncake.store import ReplicateConfig, SoftPinAction

MIB = 1 << 20


def names(pattern: str) -> list[str]:
    """All names of patterns, separated by spaces, whose braces hold alternatives as in a shell."""
    found = []
    for word in pattern.split():
        parts = [part.split(",") for part in word.replace("{", "\0").replace("}", "\0").split("\0")[1::2]]
        texts = word.replace("{", "\0").replace("}", "\0").split("\0")[0::2]
        for chosen in itertools.product(*parts):
            found.append("".join(itertools.chain(*itertools.zip_longest(texts, chosen, fillvalue=""))))
    return found


GAUGES = names("""
    master_{allocated,total_capacity}_bytes segment_{allocated,total_capacity}_bytes
    master_nof_allocated_bytes master_total_nof_capacity_bytes
    master_allocated_file_size_bytes master_total_file_capacity_bytes master_{key,soft_pin_key}_count
    master_active_clients {mem,file}_cache_nums_ master_put_start_discarded_staging_size master_promotion_in_flight
""")
HISTOGRAMS = {
    "master_value_size_bytes": [4096, 65536, 262144, 1048576, 4194304, 16777216, 67108864],
}
COUNTERS = names("""
    master_put_{start,end,revoke}_{requests,failures}_total
    master_get_replica_list{,_by_regex}_{requests,failures}_total
    master_exist_key_{requests,failures}_total master_remove{,_by_regex,_all}_{requests,failures}_total
    master_{mount,unmount,remount}_segment_{requests,failures}_total master_ping_{requests,failures}_total
    master_{copy,move}_{start,end,revoke}_{requests,failures}_total
    master_{evict_disk_replica,create_copy_task,create_move_task,query_task,fetch_tasks,update_task}_{requests,failures}_total
    master_put_start_{alloc_failures,partial_allocations}_total
    master_batch_{exist_key,query_ip,replica_clear}_{requests,failures,partial_successes,items,failed_items}_total
    master_batch_{get_replica_list,put_start}_{requests,failures,partial_successes,items,failed_items}_total
    master_batch_put_{end,revoke}_{requests,failures,partial_successes,items,failed_items}_total
    {mem,file}_cache_hit_nums_ {mem,file}_cache_hit_bytes_total {valid,total}_get_nums_
    master_{successful,attempted}_evictions_total master_evicted_{key_count,size_bytes}
    master_put_start_{discard,release}_cnt
    master_promotion_{admitted,completed,completed_bytes,expired,failed,cancelled}_total
    master_promotion_rejected_{frequency,watermark,cap}_total
    master_promotion_candidate_{recorded,admitted,admission_rejected}_total
    master_promotion_candidate_{expired_evaluated,expired_unevaluated,dropped_limit}_total
""")
#: Of high availability, which is not built: what counts is that queries find them.
OF_HA = names("""
    ha_oplog_{last_sequence_id,applied_sequence_id,standby_lag,pending_entries}
    ha_pending_mutation_queue_size ha_standby_state
""")


def types_of(text: str) -> dict[str, str]:
    return dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE "))


def test_all_families_are_there_from_the_start_with_their_types(master):
    text = master.http("/metrics")[1]
    types = types_of(text)
    known = dict.fromkeys(GAUGES, "gauge") | dict.fromkeys(HISTOGRAMS, "histogram") | dict.fromkeys(COUNTERS, "counter")
    assert len(known) > 120
    assert {name: types.get(name) for name in known} == known
    assert [name for name in OF_HA if name not in types] == []
    assert len(list(text_string_to_metric_families(text))) >= len(known)
    samples = master.metrics()
    for name, bounds in HISTOGRAMS.items():
        found = [float(line.split('"')[1]) for line in samples if line.startswith(f'{name}_bucket{{le="')]
        assert found == [*bounds, float("inf")]


@pytest.fixture
def grown(master):
    """By how much each sample has grown since the last call; those that have not are left out."""
    last = master.metrics()

    def grown() -> dict[str, float]:
        nonlocal last
        now = master.metrics()
        growth = {name: value - last.get(name, 0) for name, value in now.items() if value != last.get(name, 0)}
        last = now
        return growth

    return grown


def of_operations(growth: dict[str, float]) -> dict[str, float]:
    """What calls have caused: by operation, without what the client asks for by itself."""
    short = {
        match[1]: by
        for name, by in growth.items()
        if (match := re.fullmatch(r"master_(\w+(?:requests|failures|items|successes))_total", name))
    }
    return {name: by for name, by in short.items() if not name.startswith(("ping_", "query_segments_", "rpc_"))}


def test_memory_and_values_are_counted(master, grown, start_local):
    store = start_local(master.address)
    segment = f'{{segment="{store.get_hostname()}"}}'
    mounted = grown()
    assert mounted["master_active_clients"] == 1
    assert mounted["master_total_capacity_bytes"] == mounted[f"segment_total_capacity_bytes{segment}"] == 64 * MIB
    assert store.put("a", b"x" * 5000) == 0
    put = grown()
    assert put["master_key_count"] == put["mem_cache_nums_"] == put["master_value_size_bytes_count"] == 1
    assert put["master_value_size_bytes_sum"] == 5000
    assert put['master_value_size_bytes_bucket{le="65536"}'] == 1
    assert 'master_value_size_bytes_bucket{le="4096"}' not in put
    assert put["master_allocated_bytes"] == put[f"segment_allocated_bytes{segment}"] >= 5000
    assert store.get("a") == b"x" * 5000
    assert store.get("none") == b""
    got = grown()
    assert (got["total_get_nums_"], got["valid_get_nums_"], got["mem_cache_hit_nums_"]) == (2, 1, 1)
    assert got["mem_cache_hit_bytes_total"] == 5000
    assert store.upsert("pinned", b"x", soft_pinned()) == 0
    assert grown()["master_soft_pin_key_count"] == 1
    store.close()
    assert grown()["master_total_capacity_bytes"] == -64 * MIB


def soft_pinned() -> ReplicateConfig:
    config = ReplicateConfig()
    config.soft_pin_action = SoftPinAction.ENABLE
    return config


def test_operations_are_counted(master, grown, start_local):
    store = start_local(master.address)
    assert of_operations(grown()) == {"mount_segment_requests": 1}
    assert store.put("a", b"x") == 0
    assert of_operations(grown()) == {"put_start_requests": 1, "put_end_requests": 1}
    assert store.put("a", b"y") == 0, "a key that exists is kept"
    assert of_operations(grown()) == {"put_start_requests": 1, "put_start_failures": 1}
    assert store.put_batch(["b", "c"], [b"1", b"2"]) == 0
    assert of_operations(grown()) == {
        "batch_put_start_requests": 1,
        "batch_put_start_items": 2,
        "batch_put_end_requests": 1,
        "batch_put_end_items": 2,
    }
    assert store.get("a") == b"x" and store.get("none") == b""
    assert of_operations(grown()) == {"get_replica_list_requests": 2, "get_replica_list_failures": 1}
    assert store.get_batch(["b", "none"]) == [b"1", b""]
    assert of_operations(grown()) == {
        "batch_get_replica_list_requests": 1,
        "batch_get_replica_list_partial_successes": 1,
        "batch_get_replica_list_items": 2,
        "batch_get_replica_list_failed_items": 1,
    }
    assert store.is_exist("a") == 1 and store.is_exist("none") == 0
    assert of_operations(grown()) == {"exist_key_requests": 2}
    assert store.batch_is_exist(["a", "none", "b"]) == [1, 0, 1]
    assert of_operations(grown()) == {"batch_exist_key_requests": 1, "batch_exist_key_items": 3}
    assert (store.remove("a"), store.remove("none"), store.remove("a", True)) == (-706, -704, 0)
    assert of_operations(grown()) == {"remove_requests": 3, "remove_failures": 2}
    assert (store.remove_by_regex("^c$", True), store.remove_all(True)) == (1, 1)
    assert of_operations(grown()) == {"remove_by_regex_requests": 1, "remove_all_requests": 1}
    assert store.put("d", b"x") == 0
    grown()
    assert store.batch_replica_clear(["d", "none"], "") == ["d"]
    assert of_operations(grown()) == {
        "batch_replica_clear_requests": 1,
        "batch_replica_clear_partial_successes": 1,
        "batch_replica_clear_items": 2,
        "batch_replica_clear_failed_items": 1,
    }
    store.close()
    assert of_operations(grown()) == {"unmount_segment_requests": 1}


def test_puts_that_find_no_space_are_counted(grown, store):
    assert store.put("too large", bytes(65 * MIB)) == -200
    counted = grown()
    assert counted["master_put_start_failures_total"] == counted["master_put_start_requests_total"]
    assert counted["master_put_start_alloc_failures_total"] >= 1
    assert "master_key_count" not in counted


def test_evictions_are_counted(master, grown, start_local):
    store = start_local(master.address, segment=16 * MIB)
    grown()
    for i in range(40):
        assert store.put(str(i), bytes(MIB)) == 0
    full = grown()
    assert full["master_evicted_key_count"] == 40 - full["master_key_count"] >= 24
    assert full["master_evicted_size_bytes"] == full["master_evicted_key_count"] * MIB
    assert 1 <= full["master_successful_evictions_total"] <= full["master_attempted_evictions_total"]
