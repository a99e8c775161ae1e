"""A store on an engine that is there already, as SGLang and vllm-ascend set it up: with its name, port and memory."""

import ctypes
import mmap

import pytest

from engine_peer import Peer
from fresh_python import run_python
from mooncake.engine import TransferEngine
from mooncake.store import MooncakeDistributedStore
from store_peer import value

SEGMENT, LOCAL = 32 << 20, 4 << 20
SIZE = 100_000


@pytest.fixture
def engine():
    """An engine of this process; ``.name`` is its session id, ``.address`` its registered megabyte."""
    peer = Peer()
    peer.name = peer.start("127.0.0.1", "P2PHANDSHAKE", 1 << 20)["name"]
    return peer


@pytest.fixture
def set_up(engine, master):
    """Sets stores up on ``engine``, with arguments as SGLang gives them; all are closed at the end."""
    stores = []

    def set_up(store: MooncakeDistributedStore | None = None) -> MooncakeDistributedStore:
        stores.append(store or MooncakeDistributedStore())
        holder = engine.engine.get_engine()
        arguments = (engine.name, "P2PHANDSHAKE", SEGMENT, LOCAL, "rdma", "", master.address, holder)
        assert stores[-1].setup(*arguments) == 0, stores[-1].last_error()
        return stores[-1]

    yield set_up
    for store in stores:
        store.close()


def test_a_store_is_known_by_the_name_and_port_of_its_engine(engine, set_up):
    ports = set(engine.listening_ports())
    store = set_up()
    assert store.get_hostname() == engine.name
    assert set(engine.listening_ports()) <= ports, "it listens where nobody asked it to"
    assert store.put("k", value("k", SIZE)) == 0
    (replica,) = store.get_replica_desc("k")
    assert replica.get_memory_descriptor().buffer_descriptor.transport_endpoint == engine.name


def test_a_name_without_a_port_gets_that_of_the_engine(engine, master):
    store = MooncakeDistributedStore()
    holder = engine.engine.get_engine()
    assert store.setup("127.0.0.1", "P2PHANDSHAKE", SEGMENT, 0, "tcp", "", master.address, engine=holder) == 0
    assert store.get_hostname() == engine.name
    assert store.close() == 0


def test_others_reach_the_objects_and_the_engine_outlives_the_store(
    engine, set_up, master, start_store, start_engine_process
):
    store = set_up()
    other = start_store(master.address, segment=0)
    keys = [f"ours/{i}" for i in range(10)]
    assert [store.put(key, value(key, SIZE)) for key in keys] == [0] * 10
    assert other.check_many(keys, SIZE) == [[], []]
    assert other.put_many(["theirs"], SIZE) == {}
    assert store.get("theirs") == value("theirs", SIZE)
    assert store.close() == 0

    peer = start_engine_process(1 << 20)
    sent = engine.fill(0, SIZE, "sent")
    assert engine.move(True, peer.info["name"], [engine.address], [peer.info["address"]], [SIZE]) == 0
    assert peer.checksum(0, SIZE) == sent
    sent = peer.fill(0, SIZE, "answered")
    assert peer.move(True, engine.name, [peer.info["address"]], [engine.address], [SIZE]) == 0
    assert engine.checksum(0, SIZE) == sent


def test_memory_registered_with_the_engine_needs_no_second_registration(engine, set_up):
    store = set_up()
    sums = [engine.fill(i * SIZE, SIZE, f"fill {i}") for i in range(2)]
    places = [engine.address, engine.address + SIZE]
    assert store.batch_put_from(["a", "b"], places, [SIZE] * 2) == [0, 0]
    assert store.batch_get_into(["b", "a"], places, [SIZE] * 2) == [SIZE] * 2
    assert [engine.checksum(i * SIZE, SIZE) for i in range(2)] == sums[::-1]
    assert store.put_from("c", engine.address + (1 << 20) - SIZE, SIZE + 1) == -600, "it ends beyond the memory"
    # Who registers it here as well may, and leaves it to the engine.
    assert store.register_buffer(engine.address, 1 << 20) == 0
    assert store.unregister_buffer(engine.address) == 0
    assert store.put_from("d", engine.address, SIZE) == 0
    assert engine.engine.unregister_memory(engine.address) == 0
    assert store.put_from("e", engine.address, SIZE) == -600


def test_close_takes_the_registered_memory_out_of_the_engine(engine, set_up):
    memory = mmap.mmap(-1, SIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    store = MooncakeDistributedStore()
    for _ in range(2):
        set_up(store)
        assert store.register_buffer(address, SIZE) == 0, store.last_error()
        assert engine.engine.register_memory(address, SIZE) == -7, "the store has told the engine of it"
        assert store.close() == 0
    assert engine.engine.register_memory(address, SIZE) == 0


def test_two_stores_share_an_engine(engine, set_up, master, start_store):
    first, second = set_up(), set_up()
    assert first.put("k", value("k", SIZE)) == 0
    assert second.get("k") == value("k", SIZE)
    assert first.close() == 0
    assert second.put("l", value("l", SIZE)) == 0
    assert start_store(master.address, segment=0).check_many(["l"], SIZE) == [[], []]


def test_an_engine_that_is_not_initialised_is_refused(master):
    store = MooncakeDistributedStore()
    holder = TransferEngine().get_engine()
    assert store.setup("127.0.0.1", "P2PHANDSHAKE", SEGMENT, LOCAL, "tcp", "", master.address, holder) == -600
    code, text = store.last_error()
    assert code == -600
    assert "initialize()" in text
    assert store.health_check() == 1


@pytest.mark.parametrize("last", ["del engine", "del store", "store.close(); del engine", "", "del engine; del store"])
def test_a_process_ends_whichever_goes_first(master, last):
    assert (
        run_python(f"""
from mooncake.engine import TransferEngine
from mooncake.store import MooncakeDistributedStore
engine, store = TransferEngine(), MooncakeDistributedStore()
assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0
name = f"127.0.0.1:{{engine.get_rpc_port()}}"
assert store.setup(name, "P2PHANDSHAKE", {SEGMENT}, {LOCAL}, "tcp", "", "{master.address}", engine.get_engine()) == 0
assert store.put("k", b"value") == 0
{last}
if "store" in globals() and store.health_check() == 0:
    assert store.get("k") == b"value"
print("done")
""")
        == "done\n"
    )
