"""Stores beside others: many processes of one host that start together, and other libraries in the same process."""

import itertools
import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import mooncake
from fresh_python import run_python
from remote import Remote
from waiting import wait_until

TESTS = Path(__file__).parent
SEGMENT = 16 << 20
PROCESSES = 32


def start_together(master, folder: Path, stack: ExitStack, **environment: str) -> list[Remote]:
    """Store clients that all set up at the same time; each has put the keys ``<its number>/0`` to ``/19``."""
    clients = []
    for number in range(PROCESSES):
        client = Remote(Path(sys.executable), TESTS / "store_peer.py", folder / f"client{number}.log", environment)
        stack.callback(client.kill)
        clients.append(client)
    for client in clients:
        client.send("setup", "127.0.0.1", "P2PHANDSHAKE", SEGMENT, 4 << 20, master.address)
    failed = [client for client in clients if client.receive() != 0]
    assert not failed, [client.last_error() for client in failed]
    for number, client in enumerate(clients):
        client.send("put_many", [f"{number}/{i}" for i in range(20)], 1000)
    assert [client.receive() for client in clients] == [{}] * PROCESSES
    return clients


def check_all(master, clients: list[Remote]) -> None:
    """Each client has a name of its own, and reads every object."""
    assert len(master.http("/get_all_segments")[1].split()) == PROCESSES
    assert len({client.hostname() for client in clients}) == PROCESSES
    keys = [f"{number}/{i}" for number in range(PROCESSES) for i in range(20)]
    for client in clients:
        client.send("check_many", keys, 1000)
    assert [client.receive() for client in clients] == [[[], []]] * PROCESSES


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.long_form)])
def test_clients_that_start_together_have_names_of_their_own(start_master, tmp_path, rounds):
    master = start_master("--client_ttl=60")
    for _ in range(rounds):
        with ExitStack() as stack:
            clients = start_together(master, tmp_path, stack)
            check_all(master, clients)
            assert clients[0].remove_all() == PROCESSES * 20
            for client in clients:
                client.send("close")
            assert [client.receive() for client in clients] == [0] * PROCESSES
        wait_until(lambda: master.http("/get_all_segments")[1] == "", "all segments are unmounted")


def test_clients_find_the_ports_that_others_leave_them(start_master, tmp_path):
    first, last = 21000, 21699
    with ExitStack() as stack:
        free = 0
        for port in range(first, last + 1):
            if port % 10 == 0:
                free += 1
                continue
            with suppress(OSError):  # Somebody else's, which is as good.
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        assert free >= 2 * PROCESSES  # One for the handshake and one for data each.
        ports = {"MC_MIN_PRC_PORT": str(first), "MC_MAX_PRC_PORT": str(last)}
        master = start_master("--client_ttl=60")
        check_all(master, start_together(master, tmp_path, stack, **ports))


MODULES = ["mooncake.engine", "grpc", "mooncake.store", "nixl_cu12", "numpy"]
#: Each module is the first of one of these, and of any two each is once before the other.
ROTATIONS = [MODULES[i:] + MODULES[:i] for i in range(len(MODULES))]
#: Has the other packages; ours is lent to it.
NEIGHBOURS = TESTS.parents[1] / "build" / "neighbours" / "bin" / "python"


@pytest.mark.parametrize(
    "orders",
    [*([order] for order in ROTATIONS), pytest.param(itertools.permutations(MODULES), marks=pytest.mark.long_form)],
    ids=[*(f"{order[0]}-first" for order in ROTATIONS), "all"],
)
def test_modules_are_imported_in_any_order_and_work_beside_others(master, tmp_path, orders):
    assert NEIGHBOURS.exists(), f"{NEIGHBOURS} is missing; ./test.sh makes it"
    (tmp_path / "mooncake").symlink_to(Path(mooncake.__file__).parent)
    for order in orders:
        run_python(all_at_work(order, master.address), NEIGHBOURS, PYTHONPATH=str(tmp_path))


def all_at_work(order: Iterable[str], master_address: str) -> str:
    """A program that imports in this order, and in which eight stores work while grpc and nixl do, too."""
    return f"""
import {", ".join(order)}
import threading
from concurrent.futures import ThreadPoolExecutor
from mooncake.store import MooncakeDistributedStore
from mooncake.engine import TransferEngine
from nixl_cu12._api import nixl_agent, nixl_agent_config
def work(number):
    engine = TransferEngine()
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0
    store = MooncakeDistributedStore()
    assert store.setup("127.0.0.1", "P2PHANDSHAKE", {SEGMENT}, 4 << 20, "tcp", "", "{master_address}") == 0
    start.wait()
    for i in range(100):
        assert store.put(f"{{number}}/{{i}}", bytes([i]) * 1000) == 0
        assert store.get(f"{{number}}/{{i}}") == bytes([i]) * 1000
    all_read.wait()
    assert store.close() == 0
    done.append(number)
done = []
server = grpc.server(ThreadPoolExecutor(1))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
grpc.channel_ready_future(grpc.insecure_channel(f"127.0.0.1:{{port}}")).result()
agent = nixl_agent("neighbour", nixl_agent_config(backends=["UCX"]))
start, all_read = threading.Barrier(8), threading.Barrier(8)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
server.stop(None).wait()
assert sorted(done) == list(range(8)), done
"""
