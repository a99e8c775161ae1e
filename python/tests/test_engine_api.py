"""The engine's Python interface, as its users rely on it: return codes, edge cases, shapes.

Everything here was also seen on the published package, except where a test says "ours".
"""

import ctypes
import json
import mmap
import os
import threading

import pytest

import mooncake.engine
from mooncake.engine import TransferEngine, TransferNotify, TransferOpcode
from waiting import wait_until

SIZE = 8 << 20


class Memory:
    """Anonymous memory whose address is known."""

    def __init__(self, size: int = SIZE):
        self.bytes = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes))
        self.size = size


@pytest.fixture
def start_engine():
    """Starts engines with the P2P handshake; each has its name as ``.name``."""
    engines = []

    def start(host: str = "127.0.0.1"):
        engine = TransferEngine()
        assert engine.initialize(host, "P2PHANDSHAKE", "tcp", "") == 0
        engines.append(engine)
        return engine, f"{host}:{engine.get_rpc_port()}"

    return start


@pytest.fixture
def pair(start_engine):
    """An initiator and a target in this process, each with registered memory."""
    initiator, _ = start_engine()
    target, name = start_engine()
    local, remote = Memory(), Memory()
    assert initiator.register_memory(local.address, local.size) == 0
    assert target.register_memory(remote.address, remote.size) == 0
    return initiator, target, name, local, remote


def test_registering_memory(start_engine):
    engine, _ = start_engine()
    memory = Memory()
    assert engine.register_memory(memory.address, 4096) == 0
    assert engine.register_memory(memory.address + 100, 4096) == -7
    assert engine.register_memory(memory.address + 8192, 0) == -1
    assert engine.unregister_memory(memory.address) == 0
    assert engine.unregister_memory(memory.address) == -3
    addresses = [memory.address, memory.address + 4096]
    assert engine.batch_register_memory(addresses, [4096, 4096]) == 0
    assert engine.batch_unregister_memory(addresses) == 0
    assert engine.register_memory(memory.address, 8192) == 0


def test_a_fresh_engine_has_no_first_buffer(start_engine):
    initiator, _ = start_engine()
    target, name = start_engine()
    assert initiator.get_first_buffer_address(name) == 0
    memory = Memory()
    target.register_memory(memory.address, memory.size)
    other, _ = start_engine()
    assert other.get_first_buffer_address(name) == memory.address


def test_single_transfers(pair):
    initiator, _, name, local, remote = pair
    local.bytes[:1000] = data = os.urandom(1000)
    assert initiator.transfer_sync_write(name, local.address, remote.address + 3, 1000) == 0
    assert remote.bytes[3:1003] == data
    assert initiator.transfer_sync_read(name, local.address + 5000, remote.address + 3, 1000) == 0
    assert local.bytes[5000:6000] == data
    remote.bytes[0] = 7
    assert initiator.transfer_sync(name, local.address, remote.address, 1, TransferOpcode.Read) == 0
    assert local.bytes[0] == 7


def test_batches_synchronous_and_not(pair):
    initiator, _, name, local, remote = pair
    count = 64
    local.bytes[: count * 4096] = data = os.urandom(count * 4096)
    sources = [local.address + i * 4096 for i in range(count)]
    sinks = [remote.address + i * 4096 for i in range(count)]
    lengths = [4096] * count
    assert initiator.batch_transfer_sync_write(name, sources, sinks, lengths) == 0
    assert remote.bytes[: count * 4096] == data
    remote.bytes[: count * 4096] = data[::-1]
    batch = initiator.batch_transfer_async_read(name, sources, sinks, lengths)
    assert batch != 0
    assert initiator.get_batch_transfer_status([batch]) == 0
    assert local.bytes[: count * 4096] == data[::-1]
    batch = initiator.batch_transfer_async(name, sources, sinks, lengths, TransferOpcode.Write)
    assert initiator.get_batch_transfer_status([batch]) == 0
    assert initiator.batch_transfer_sync(name, sources, sinks, lengths, TransferOpcode.Read) == 0
    assert initiator.get_batch_transfer_status([]) == 0
    assert initiator.batch_transfer_sync_write(name, sources, sinks[:1], lengths) == -1


def test_a_submitted_write_is_polled_until_it_is_done(pair):
    initiator, _, name, local, remote = pair
    local.bytes[:100] = data = os.urandom(100)
    batch = initiator.transfer_submit_write(name, local.address, remote.address, 100)
    assert batch != 0
    statuses = []
    wait_until(lambda: statuses.append(initiator.transfer_check_status(batch)) or statuses[-1] != 0, "the write ends")
    assert statuses[-1] == 1
    assert remote.bytes[:100] == data


def test_a_submitted_write_that_fails_frees_its_id(pair):
    initiator, _, name, local, remote = pair
    nowhere = 4096  # The kernel maps nothing there.
    batch = initiator.transfer_submit_write(name, nowhere, remote.address, 100)
    assert batch != 0
    statuses = []
    wait_until(lambda: statuses.append(initiator.transfer_check_status(batch)) or statuses[-1] != 0, "the write ends")
    assert statuses[-1] == -1
    assert initiator.transfer_check_status(batch) == -1
    assert "batch" in initiator.last_error()[1], "the id is known no more"
    assert initiator.transfer_sync_write(name, local.address, remote.address, 100) == 0


def test_waiting_for_batches_frees_all_when_one_has_failed(pair):
    initiator, _, name, local, remote = pair
    good = initiator.transfer_submit_write(name, local.address, remote.address, 100)
    bad = initiator.transfer_submit_write(name, 4096, remote.address, 100)
    assert initiator.get_batch_transfer_status([good, bad]) == -1
    for batch in (good, bad):
        assert initiator.transfer_check_status(batch) == -1
        assert initiator.get_batch_transfer_status([batch]) == -1


def test_what_cannot_work_is_an_error_and_the_next_call_works(pair):
    initiator, _, name, local, remote = pair
    assert initiator.transfer_sync_write(name, local.address, remote.address + remote.size - 10, 20) == -1
    assert initiator.transfer_sync_write("127.0.0.1:1", local.address, remote.address, 10) == -1
    assert initiator.transfer_sync_write(name, local.address, remote.address, 10) == 0


def test_a_write_from_an_address_that_is_not_mapped_fails(pair):
    initiator, _, name, _, remote = pair
    gone = mmap.mmap(-1, 4096, prot=mmap.PROT_NONE) if hasattr(mmap, "PROT_NONE") else None
    address = 4096 if gone is None else ctypes.addressof(ctypes.c_char.from_buffer(gone))
    assert initiator.transfer_sync_write(name, address, remote.address, 100) == -1


def test_probe(start_engine):
    initiator, _ = start_engine()
    _, name = start_engine()
    assert initiator.send_probe(name) == 0
    assert initiator.send_probe("127.0.0.1:1") != 0


def test_notifications_arrive_once_after_the_data(pair):
    initiator, target, name, local, remote = pair
    notify = TransferNotify("who", "what")
    assert (notify.name, notify.msg) == ("who", "what")
    assert initiator.transfer_sync(name, local.address, remote.address, 8, TransferOpcode.Write, notify) == 0
    assert [(n.name, n.msg) for n in target.get_notifies()] == [("who", "what")]
    assert target.get_notifies() == []


def test_managed_buffers(start_engine):
    initiator, _ = start_engine()
    target, name = start_engine()
    here, there = initiator.allocate_managed_buffer(1 << 20), target.allocate_managed_buffer(1 << 20)
    assert here and there
    assert initiator.write_bytes_to_buffer(here, b"hello", 5) == 0
    assert initiator.read_bytes_from_buffer(here, 5) == b"hello"
    assert initiator.transfer_sync_write(name, here, there, 5) == 0
    assert target.read_bytes_from_buffer(there, 5) == b"hello"
    assert initiator.free_managed_buffer(here, 1 << 20) == 0
    assert target.free_managed_buffer(there, 1 << 20) == 0


def test_bytes_of_memory_that_is_not_there_are_an_error(start_engine):
    """Ours: not the end of the process."""
    engine, _ = start_engine()
    assert engine.write_bytes_to_buffer(8, b"x", 1) == -1
    with pytest.raises(ValueError, match="not mapped"):
        engine.read_bytes_from_buffer(8, 1)
    assert engine.read_bytes_from_buffer(0, 0) == b""


def test_the_topology_is_json(start_engine):
    engine, _ = start_engine()
    assert isinstance(json.loads(engine.get_local_topology()), dict)
    assert isinstance(json.loads(engine.get_local_topology("mlx5_0")), dict)
    assert isinstance(json.loads(TransferEngine().get_local_topology()), dict), "also before it is initialised"


def test_the_other_way_to_initialise():
    engine = TransferEngine()
    assert engine.initialize_ext("127.0.0.1", "P2PHANDSHAKE", "tcp", "", "") == 0
    assert engine.send_probe(f"127.0.0.1:{engine.get_rpc_port()}") == 0
    assert TransferEngine().initialize_ext("127.0.0.1", "nonsense://", "tcp", "", "") == -1


def test_an_efa_segment_needs_no_warming(start_engine):
    engine, _ = start_engine()
    _, name = start_engine()
    assert engine.warmup_efa_segment(name) == 0


def test_initialising_twice_is_allowed(start_engine):
    engine, _ = start_engine()
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "[::1]:0", "127.0.0.1:0"])
def test_names_of_hosts(host):
    """Ours: IPv6 without a variable that switches it on."""
    initiator, target = TransferEngine(), TransferEngine()
    assert initiator.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0
    assert target.initialize(host, "P2PHANDSHAKE", "tcp", "") == 0
    shown = "[::1]" if "::1" in host else host.removesuffix(":0")
    memory, local = Memory(4096), Memory(4096)
    target.register_memory(memory.address, 4096)
    initiator.register_memory(local.address, 4096)
    local.bytes[:4] = b"data"
    name = f"{shown}:{target.get_rpc_port()}"
    assert initiator.transfer_sync_write(name, local.address, memory.address, 4) == 0
    assert memory.bytes[:4] == b"data"


def test_four_threads_share_an_engine(pair):
    initiator, _, name, local, remote = pair
    part = SIZE // 4
    data = os.urandom(SIZE)
    local.bytes[:] = data
    codes = []

    def move(thread: int) -> None:
        for start in range(thread * part, (thread + 1) * part, 65536):
            codes.append(initiator.transfer_sync_write(name, local.address + start, remote.address + start, 65536))

    threads = [threading.Thread(target=move, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) == {0}
    assert remote.bytes[:] == data


def test_no_call_that_takes_time_holds_the_interpreter(start_engine, bystander):
    size, count = 32 << 20, 8192
    initiator, _ = start_engine()
    target, name = start_engine()
    here, there = initiator.allocate_managed_buffer(size), target.allocate_managed_buffer(size)
    length = size // count
    sources, sinks = ([begin + i * length for i in range(count)] for begin in (here, there))
    many = (name, sources, sinks, [length] * count)
    data = bytes(size)
    calls = {
        "initialize and drop": lambda: TransferEngine().initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", ""),
        "transfer_sync_write": lambda: initiator.transfer_sync_write(name, here, there, size),
        "batch_transfer_sync_read": lambda: initiator.batch_transfer_sync_read(*many),
        "wait": lambda: initiator.get_batch_transfer_status([initiator.batch_transfer_async_write(*many)]),
        "write_bytes_to_buffer": lambda: initiator.write_bytes_to_buffer(here, data, size),
        "read_bytes_from_buffer": lambda: initiator.read_bytes_from_buffer(here, size),
    }
    for call_name, call in calls.items():
        wait_until(lambda call=call: bystander.waits_little(call), f"other threads run during most of {call_name}")


def test_the_module_tells_what_it_supports():
    for name in ("EFA", "HIP", "MNNVL", "MUSA", "INTRA_NVLINK", "CUDA"):
        assert getattr(mooncake.engine, f"SUPPORT_{name}") in (True, False)
    assert int(TransferOpcode.Read) == 0
    assert int(TransferOpcode.Write) == 1
    assert TransferEngine.TransferOpcode is TransferOpcode


def test_the_holder_for_the_store(start_engine):
    engine, _ = start_engine()
    assert engine.get_engine() is not None
    assert engine.get_engine_ptr() != 0
