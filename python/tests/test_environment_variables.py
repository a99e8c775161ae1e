"""The product obeys its environment variables: each is read, and what it asks for happens.

Those of the log are in test_process_environment.py; MC_FORCE_TCP, MC_TRANSFER_TIMEOUT, MC_LEGACY_RPC_PORT_BINDING,
MC_STORE_HOST_ID and MC_TCP_PROTO are used by the tests of what they change.
"""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from mooncake import engine
from waiting import HANG_LIMIT_S

ROWS = re.findall(
    r"^\| `(MC_\w+)`(?: \(or `(MC_\w+)`\))? \| [^|]* \| ([^|]*)", engine.environment_reference(), re.MULTILINE
)
#: All that cannot hold any text, other names of the same value too.
CHECKED = sorted({name for *names, allowed in ROWS if "any text" not in allowed for name in names if name})
OF_STORES = {name for name in CHECKED if name.startswith(("MC_STORE_", "MC_RPC_TIMEOUT"))}

TRY_EACH = """
import json, os, sys
from mooncake.engine import TransferEngine
from mooncake.store import MooncakeDistributedStore

def start(kind):
    if kind == "engine":
        made = TransferEngine()
        code = made.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "")
        return code, made.last_error()[1]
    made = MooncakeDistributedStore()
    code = made.setup("127.0.0.1", "P2PHANDSHAKE", 1 << 20, 1 << 20, "tcp", "", sys.argv[2])
    text = made.last_error()[1]
    made.close()
    return code, text

answers = {"": start(sys.argv[1])}
for name in json.loads(sys.argv[3]):
    os.environ[name] = "junk!"
    answers[name] = start(sys.argv[1])
    del os.environ[name]
print(json.dumps(answers))
"""


@pytest.mark.parametrize(("kind", "names"), [("engine", set(CHECKED) - OF_STORES), ("store", set(CHECKED))])
def test_each_is_read_and_a_malformed_value_is_named(master, kind, names):
    assert len(names) >= 15
    arguments = [sys.executable, "-c", TRY_EACH, kind, master.address, json.dumps(sorted(names))]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=HANG_LIMIT_S, check=True)
    answers = json.loads(ended.stdout)
    assert answers.pop("")[0] == 0
    assert answers.keys() == names
    for name, (code, text) in answers.items():
        assert code < 0, name
        assert f'{name}="junk!"' in text


@pytest.mark.parametrize("program", ["mooncake_master", "mooncake_client"])
def test_a_malformed_value_ends_a_program(scripts, program):
    ended = subprocess.run(
        [scripts / program],
        env=os.environ | {"MC_LOG_LEVEL": "loud"},
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert ended.returncode == 1
    assert 'MC_LOG_LEVEL="loud"' in ended.stderr


@pytest.mark.parametrize(
    ("low", "high"), [("MC_MIN_RPC_PORT", "MC_MAX_RPC_PORT"), ("MC_MIN_PRC_PORT", "MC_MAX_PRC_PORT")]
)
def test_an_engine_draws_its_port_from_the_range(start_engine_process, low, high):
    peer = start_engine_process(1 << 20, **{low: "21000", high: "21999"})
    assert 21000 <= int(peer.info["name"].rpartition(":")[2]) <= 21999


def test_a_store_draws_its_port_from_the_range(master, start_store):
    store = start_store(master.address, MC_STORE_CLIENT_MIN_PORT="22000", MC_STORE_CLIENT_MAX_PORT="22999")
    assert 22000 <= int(store.hostname().rpartition(":")[2]) <= 22999


def test_a_name_without_a_port_is_dialled_at_the_handshake_port(start_engine_process):
    peer = start_engine_process(1 << 20)
    host, _, port = peer.info["name"].rpartition(":")
    other = start_engine_process(1 << 20, MC_HANDSHAKE_PORT=port)
    checksum = peer.fill(0, 4096, "seed")
    assert other.move(False, host, [other.info["address"]], [peer.info["address"]], [4096]) == 0
    assert other.checksum(0, 4096) == checksum


def published(master, key: str) -> dict | None:
    """What the metadata server of ``master`` holds under a key."""
    try:
        with urllib.request.urlopen(f"{master.metadata_url}?key={key}", timeout=HANG_LIMIT_S) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        assert error.code == 404
        return None


def test_a_cluster_id_keeps_keys_apart(start_master, start_engine_process):
    master = start_master("--enable_http_metadata_server")
    in_blue = start_engine_process(1 << 20, "127.0.0.1:1", master.metadata_url, MC_METADATA_CLUSTER_ID="blue")
    in_none = start_engine_process(1 << 20, "127.0.0.1:2", master.metadata_url)
    assert in_blue.info["code"] == in_none.info["code"] == 0
    assert published(master, "mooncake/blue/ram/127.0.0.1:1") and not published(master, "mooncake/ram/127.0.0.1:1")
    assert published(master, "mooncake/ram/127.0.0.1:2")


def test_the_bind_address_is_what_peers_are_told(start_master, start_engine_process):
    master = start_master("--enable_http_metadata_server")
    start_engine_process(1 << 20, "node-a", master.metadata_url, MC_TCP_BIND_ADDRESS="127.0.0.9")
    assert published(master, "mooncake/rpc_meta/node-a")["ip_or_host_name"] == "127.0.0.9"


def requests(master, operation: str) -> float:
    """How often an operation was asked for, alone or in a batch."""
    names = [f"master_{operation}_requests_total", f"master_batch_{operation}_requests_total"]
    return sum(master.metrics()[name] for name in names)


def test_without_the_descriptor_cache_the_master_is_asked_each_time(master, start_store):
    gets = 50
    asked = {}
    for cache in ("1", "0"):
        store = start_store(master.address, MC_STORE_DESCRIPTOR_CACHE=cache)
        assert store.put_many([cache], 100) == {}
        before = requests(master, "get_replica_list")
        assert store.check_many([cache] * gets, 100) == [[], []]
        asked[cache] = requests(master, "get_replica_list") - before
    assert asked["0"] == gets
    assert asked["1"] < gets


def test_without_a_wait_a_full_store_is_asked_once(master, start_store):
    asked = {}
    for wait in ("0", "100"):
        store = start_store(master.address, 16 << 20, MC_STORE_PUT_WAIT_MS=wait)
        full = store.put_many([f"{wait}/{i}" for i in range(17)], 1 << 20, 1, True)
        assert set(full.values()) == {-200}
        before = requests(master, "put_start")
        assert store.put_many(["one more"], 1 << 20) == {"one more": -200}
        asked[wait] = requests(master, "put_start") - before
        store.kill()
    assert asked["0"] == 1
    assert asked["100"] > 1
