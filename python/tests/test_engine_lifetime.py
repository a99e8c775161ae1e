"""What outlives what: engines that nobody lets go of, calls under way while the process ends, forked processes.

What may end in a crash runs in a process of its own.
"""

import gc
import threading

import pytest

from fresh_python import run_python
from mooncake.engine import TransferEngine
from mooncake.http_metadata_server import KVBootstrapServer


def run_script(body: str, **environment: str) -> str:
    """Runs ``body`` with engines ``a``, ``b`` and ``move()`` between them; returns its output after it ended well."""
    code = f"""
import threading
from mooncake.engine import TransferEngine
SIZE = 1 << 20
def start(engine):
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0, engine.last_error()
    return engine
a, b = start(TransferEngine()), start(TransferEngine())
name = f"127.0.0.1:{{b.get_rpc_port()}}"
here, there = a.allocate_managed_buffer(SIZE), b.allocate_managed_buffer(SIZE)
def move():
    return a.transfer_sync_write(name, here, there, SIZE)
assert move() == 0, a.last_error()
{body}
"""
    return run_python(code, **environment)


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_process_ends_while_daemon_threads_use_an_engine(forced_tcp):
    for _ in range(3):
        run_script(
            """
go = threading.Barrier(9)
def work(i):
    go.wait()
    while True:
        move()
        a.get_batch_transfer_status([a.batch_transfer_async_write(name, [here] * 4, [there] * 4, [SIZE] * 4)])
        a.send_probe(name)
        a.get_notifies()
for i in range(8):
    threading.Thread(target=work, args=(i,), daemon=True).start()
go.wait()
move()
""",
            MC_FORCE_TCP=forced_tcp,
        )


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_process_ends_with_engines_leaked_and_bytes_in_flight(forced_tcp):
    run_script(
        """
import atexit, ctypes
leaked, inner = start(TransferEngine()), start(TransferEngine()).get_engine()
for kept in leaked, inner:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
atexit.register(move)
a.batch_transfer_async_write(name, [here] * 100, [there] * 100, [SIZE] * 100)
""",
        MC_FORCE_TCP=forced_tcp,
    )


def test_a_forked_process_leaves_the_engine_of_its_parent_alone():
    printed = run_script(
        """
import os, sys
port = a.get_rpc_port()
inner = a.get_engine()
def ended_well(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
child = os.fork()
if child == 0:
    assert move() == -1 and "not initialised in this process" in a.last_error()[1]
    assert a.get_rpc_port() == 0
    start(a)
    assert a.get_rpc_port() not in (0, port)
    here = a.allocate_managed_buffer(SIZE)
    assert move() == 0, a.last_error()
    sys.exit(0)
assert ended_well(child)
child = os.fork()
if child == 0:
    del a, b, inner
    sys.exit(0)
assert ended_well(child)
assert a.get_rpc_port() == port
assert move() == 0, a.last_error()
print("alone")
"""
    )
    assert printed == "alone\n"


# The metadata server runs in threads of this very interpreter: whoever kept the lock could not be answered.
def test_an_engine_begins_and_ends_without_the_interpreter_lock():
    server = KVBootstrapServer(0, "127.0.0.1")
    server.run()
    try:
        for _ in range(3):
            engine = TransferEngine()
            metadata = f"http://127.0.0.1:{server.port}/metadata"
            assert engine.initialize("one name", metadata, "tcp", "") == 0, engine.last_error()
            assert server.store
            del engine
            gc.collect()
            assert server.store == {}
    finally:
        server.close()


def test_threads_that_initialise_at_once_make_one_engine():
    engine = TransferEngine()
    together = threading.Barrier(4)
    results = []

    def initialise():
        together.wait()
        code = engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "")
        results.append((code, engine.get_rpc_port()))

    threads = [threading.Thread(target=initialise) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(0, engine.get_rpc_port())] * 4
