"""The master's admin HTTP and its command line, as tools scrape them."""

import json
import re
import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from waiting import HANG_LIMIT_S

SEGMENT = 64 << 20


def body(reply):
    return json.loads(reply[1])


JSON = "application/json; charset=utf-8"


def test_health_role_and_leader(master):
    status, text, kind = master.http("/health")
    assert (status, kind) == (200, JSON)
    assert json.loads(text) == {
        "status": "ok",
        "role": "leader",
        "ha_state": "serving",
        "service_ready": True,
        "leader_address": None,
        "view_version": None,
    }
    assert master.http("/role") == (200, "leader", "text/plain; charset=utf-8")
    assert master.http("/ha_status") == (200, "serving", "text/plain; charset=utf-8")
    assert body(master.http("/leader")) == {"present": False, "leader_address": None, "view_version": None}
    assert body(master.http("/kv_events/status"))["enabled"] is False
    assert master.http("/no/such/path")[0] == 404


def test_keys_are_found(master, store):
    assert store.put("a", b"x" * 100) == 0
    assert store.put("b/ü", b"y") == 0
    [replica] = body(master.http("/query_key?key=a"))["data"]
    assert (replica["size_"], replica["protocol_"]) == (100, "tcp")
    assert replica["buffer_address_"] > 0 and ":" in replica["transport_endpoint_"]
    for path in ("/query_key?key=none", "/query_key"):
        reply = master.http(path)
        assert reply[0] == 404
        assert body(reply) == {"success": False, "error_code": -704, "error_message": "OBJECT_NOT_FOUND"}
    found = body(master.http("/batch_query_keys?keys=a,b%2F%C3%BC,none"))
    assert found["success"] is True
    assert found["data"]["a"]["ok"] is True and found["data"]["a"]["values"][0]["size_"] == 100
    assert found["data"]["b/ü"]["ok"] is True
    assert found["data"]["none"] == {
        "ok": False,
        "error": "OBJECT_NOT_FOUND",
        "values": None,
        "disk_values": None,
        "local_disk_values": None,
        "nof_values": None,
    }
    assert master.http("/batch_query_keys")[0] == 400
    assert sorted(master.http("/get_all_keys")[1].splitlines()) == ["a", "b/ü"]
    assert master.http("/get_all_keys")[1].endswith("\n")


def test_segments_are_shown(master, store):
    name = store.get_hostname()
    assert master.http("/get_all_segments")[1] == f"{name}\n"
    detail = body(master.http("/get_segments_detail"))
    assert detail["total_segments"] == 1
    [segment] = detail["segments"]
    assert segment["segment_name"] == name
    assert segment["size_bytes"] == segment["allocator_capacity_bytes"] == SEGMENT
    assert segment["size_human"] == "0.0625 GiB"
    assert (segment["status"], segment["protocol"]) == ("OK", "tcp")
    assert re.fullmatch(r"\d+-\d+", segment["segment_id"]) and re.fullmatch(r"0x[0-9a-f]+", segment["base_address"])
    assert segment["allocator_used_bytes"] == 0
    status, text, _ = master.http(f"/query_segment?segment={name}")
    assert (status, text) == (200, f"{name}\nUsed(bytes): 0\nCapacity(bytes) : {SEGMENT}\n")
    for path in ("/query_segment?segment=none", "/query_segment"):
        assert master.http(path)[:2] == (500, "Failed to query segment")


def test_metrics_count_what_happens(master, store):
    before = master.metrics()
    assert before["master_total_capacity_bytes"] == SEGMENT
    store.put("a", b"x" * 4096)
    store.get("a")
    store.is_exist("a")
    after = master.metrics()
    assert after["master_key_count"] == 1
    assert after["master_allocated_bytes"] >= 4096
    assert after["master_active_clients"] == 1
    for name in ("master_put_start_requests_total", "mem_cache_hit_nums_"):
        assert name in before
    assert master.http("/metrics")[2].startswith("text/plain; version=0.0.4")


def run(scripts, *arguments):
    return subprocess.run(
        [scripts / "mooncake_master", *arguments], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )


OPERATIONS = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def test_the_metrics_are_what_prometheus_reads(master, store):
    assert store.put("k", b"x" * 100) == 0
    families = list(text_string_to_metric_families(master.http("/metrics")[1]))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        assert family.type in ("counter", "gauge", "histogram") and family.documentation, family
        assert family.samples, family
    shown = {sample.partition("{")[0] for sample in master.metrics()}  # The parser renames counters.
    section = OPERATIONS.read_text().partition("## Metrics")[2].partition("\n## ")[0]
    documented = re.findall(r"`([a-z]+_\w+)`", section.replace("`no_common_version`", ""))  # A reason, not a name.
    assert len(documented) >= 16
    assert set(documented) <= shown


def test_every_documented_request_has_an_answer(master, store):
    assert store.put("a", b"x") == store.put("k", b"x") == 0
    requests = re.findall(r"\| `(GET|POST) (/\S*)` \| ([^\n]*) \|\n", OPERATIONS.read_text())
    assert len(requests) >= 15
    for method, path, answer in requests:
        status, text, _ = master.http(path.replace("segment=s", f"segment={store.get_hostname()}"), method)
        assert status == 200, path
        exact = re.fullmatch(r"`([^`…]*)`", answer)
        if exact and "segment" not in path:
            assert text == exact[1]


def test_flags_that_are_wrong(scripts):
    version = run(scripts, "--version")
    assert version.returncode == 0 and version.stdout.startswith("mooncake_master version ")
    unknown = run(scripts, "--nosuch=1")
    assert unknown.returncode == 1
    assert "unknown command line flag 'nosuch'" in unknown.stderr
    assert run(scripts, "--rpc_port=x").returncode == 1


def test_ports_that_are_taken(master, scripts, start_master):
    rpc = run(scripts, f"--rpc_port={master.rpc_port}", "--metrics_port=0")
    assert rpc.returncode == 1
    admin = run(scripts, "--rpc_port=0", f"--metrics_port={master.metrics_port}")
    assert admin.returncode == 1


def test_sigterm_ends_it_with_success(start_master):
    assert start_master().stop() == 0
