"""What outlives what: values a store handed out, calls under way while it closes, stores that nobody closes.

What may end in a crash runs in a process of its own.
"""

import signal
import threading

import pytest

from fresh_python import run_python
from mooncake.store import MooncakeDistributedStore
from test_engine_faults import port_to_come_back_to
from waiting import HANG_LIMIT_S, stop

SEGMENT = 64 << 20
LOCAL = 16 << 20


def set_up(master) -> MooncakeDistributedStore:
    store = MooncakeDistributedStore()
    assert store.setup("127.0.0.1", "P2PHANDSHAKE", SEGMENT, LOCAL, "tcp", "", master.address) == 0
    return store


def run_script(master, body: str) -> str:
    """Runs ``body`` with a store ``s`` that is set up; returns its output once it has ended well."""
    return run_python(f"""
import threading
from mooncake.store import MooncakeDistributedStore as S
def set_up(s=None):
    s = s or S()
    assert s.setup("127.0.0.1", "P2PHANDSHAKE", {SEGMENT}, {LOCAL}, "tcp", "", "{master.address}") == 0
    return s
s = set_up()
{body}
""")


@pytest.fixture
def stoppable_master(start_master):
    """A master that the test may ``stop()``."""
    master = start_master("--default_kv_lease_ttl=200")
    yield master
    master.process.send_signal(signal.SIGCONT)


def test_a_buffer_handle_keeps_its_bytes_after_close_and_another_setup(master):
    assert (
        run_script(
            master,
            """
import ctypes
value = bytes(range(256)) * 400
assert s.put("k", value) == 0
handles = [s.get_buffer("k"), memoryview(s.get_buffer("k"))]
assert s.close() == 0
assert bytes(handles[0]) == bytes(handles[1]) == value
set_up(s)
for i in range(200):
    assert s.put(f"other/{i}", b"x" * 100_000) == 0
    assert s.get(f"other/{i}") == b"x" * 100_000
assert bytes(handles[0]) == bytes(handles[1]) == value
ctypes.memset(handles[0].ptr(), 0, 3)
del s
assert bytes(handles[0])[3:] == value[3:]
print("kept")
""",
        )
        == "kept\n"
    )


def test_close_ends_the_calls_of_other_threads(stoppable_master):
    store = set_up(stoppable_master)
    stop(stoppable_master.process)
    codes = []
    calling = threading.Barrier(5)

    def call() -> None:
        calling.wait()
        while True:
            codes.append(store.put("k", b"x"))
            if codes[-1] == -600:
                return  # Not set up any more.

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    calling.wait()
    assert store.close() == 0
    for thread in threads:
        thread.join(HANG_LIMIT_S)
        assert not thread.is_alive()
    # Ended, not timed out (-901): nobody waited for the master's time to be over.
    assert set(codes) <= {-600, -900}


def test_dropping_a_store_lets_other_threads_run(stoppable_master, bystander):
    store = set_up(stoppable_master)
    stop(stoppable_master.process)
    before = bystander.runs
    del store  # Waits for the master, which does not answer.
    during = bystander.runs - before
    assert during > 0


def test_a_process_ends_while_daemon_threads_use_the_store(master):
    for _ in range(3):
        run_script(
            master,
            """
go = threading.Barrier(9)
def work(thread):
    go.wait()
    i = 0
    while True:
        s.put(f"{thread}/{i}", b"x" * 10_000)
        s.get(f"{thread}/{i}")
        s.batch_is_exist([f"{thread}/{i}"] * 10)
        i += 1
for thread in range(8):
    threading.Thread(target=work, args=(thread,), daemon=True).start()
go.wait()
s.put("last", b"x")
""",
        )


def test_a_process_ends_with_stores_in_cycles_and_globals(master):
    run_script(
        master,
        """
import atexit
cycle = [set_up()]
cycle.append(cycle)
del cycle
class Holder:
    pass
Holder.store = set_up()
handle = (s.put("k", b"x"), s.get_buffer("k"))
atexit.register(lambda: s.put("late", b"x"))
""",
    )


def test_a_forked_process_leaves_the_store_of_its_parent_alone(master):
    printed = run_script(
        master,
        """
import os, sys
value = b"v" * 100_000
assert s.put("k", value) == 0
def ended_well(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
child = os.fork()
if child == 0:
    assert s.put("of the child", b"x") < 0
    assert s.close() == 0
    set_up(s)
    assert s.get("k") == value
    sys.exit(0)
assert ended_well(child)
child = os.fork()
if child == 0:
    del s
    sys.exit(0)
assert ended_well(child)
assert s.get("k") == value
assert s.put("of the parent", b"x") == 0
print("alone")
""",
    )
    assert printed == "alone\n"


def test_a_client_has_few_threads(master):
    threads = run_script(
        master,
        """
import os
before = len(os.listdir("/proc/self/task"))
t = set_up()
for i in range(20):
    assert t.put(f"k{i}", bytes(1 << 20)) == 0
    assert len(s.get(f"k{i}")) == 1 << 20
print(len(os.listdir("/proc/self/task")) - before)
""",
    )
    assert int(threads) <= 6


def test_closing_at_once_frees_the_name_for_the_next(master):
    first = set_up(master)
    name = first.get_hostname()
    assert first.close() == 0
    second = MooncakeDistributedStore()
    assert second.setup(name, "P2PHANDSHAKE", SEGMENT, LOCAL, "tcp", "", master.address) == 0
    assert second.put("k", b"x") == 0 and second.get("k") == b"x"
    second.close()


def test_a_name_is_set_up_again_with_a_metadata_server_unless_its_owner_lives(start_master, start_store):
    master = start_master("--enable_http_metadata_server=true", "--client_ttl=600")
    url = master.metadata_url
    name = f"127.0.0.1:{port_to_come_back_to()}"
    first = start_store(master.address, metadata=url, host=name)
    reader = start_store(master.address, segment=0, metadata=url)
    keys = [f"key/{i}" for i in range(20)]
    for _ in range(2):
        assert first.setup(name, url, SEGMENT, LOCAL, master.address) == 0, first.last_error()  # Not closed before.
        assert first.hostname() == name
        assert first.put_many(keys, 1000) == {}
        assert reader.check_many(keys, 1000) == [[], []]
    rival = start_store(master.address, metadata=url, host=name)
    assert rival.code != 0 and name in rival.last_error()[1]
    first.kill()
    again = start_store(master.address, metadata=url, host=name)
    assert again.code == 0, again.last_error()
    assert again.hostname() == name
    fresh = [f"fresh/{i}" for i in range(20)]
    assert again.put_many(fresh, 1000) == {}
    assert reader.check_many(fresh, 1000) == [[], []]
