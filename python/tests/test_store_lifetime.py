"""What outlives what: values a store handed out, stores that nobody closes, calls under way while the process ends.

What may end in a crash runs in a process of its own.
"""

import subprocess
import sys

from waiting import HANG_LIMIT_S

SEGMENT = 64 << 20
LOCAL = 16 << 20


def run_script(master, body: str) -> str:
    """Runs ``body`` with a store ``s`` that is set up; returns its output once it has ended well."""
    code = f"""
import threading
from mooncake.store import MooncakeDistributedStore as S
def set_up(s=None):
    s = s or S()
    assert s.setup("127.0.0.1", "P2PHANDSHAKE", {SEGMENT}, {LOCAL}, "tcp", "", "{master.address}") == 0
    return s
s = set_up()
{body}
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_buffer_handle_keeps_its_bytes_after_close_and_another_setup(master):
    printed = run_script(
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
    assert printed == "kept\n"


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
