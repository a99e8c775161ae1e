"""Arguments that nobody means: each call answers with its documented code or a clean exception, and the store goes on.

What might end in a crash runs in a process of its own.
"""

import contextlib
import ctypes
import mmap
import sys

import pytest

from fresh_python import run_python
from mooncake.store import MooncakeDistributedStore, ReplicateConfig

SETUP = "127.0.0.1", "P2PHANDSHAKE", 16 << 20, 4 << 20, "tcp", ""
TOO_LONG = "x" * 100_000
U64 = (1 << 64) - 1
MEMORY = mmap.mmap(-1, 1 << 20)
ADDRESS = ctypes.addressof(ctypes.c_char.from_buffer(MEMORY))


def valid_arguments(address: int) -> dict[str, tuple]:
    """Arguments that are right, of every method but setup and close."""
    config = ReplicateConfig()
    keys, segments = ["k"], ["1-2"]
    one, many, nested = ("k", address, 100), (keys, [address], [100]), (keys, [[address]], [[100]])
    return {
        "put": ("k", b"v", config),
        "upsert": ("k", b"v", config),
        "put_parts": ("k", b"v", b"w"),
        "upsert_parts": ("k", b"v", b"w"),
        "put_batch": (keys, [b"v"], config),
        "upsert_batch": (keys, [b"v"], config),
        "put_from": (*one, config),
        "upsert_from": (*one, config),
        "put_from_with_metadata": ("k", address, address, 100, 100, config),
        "batch_put_from": (*many, config),
        "batch_upsert_from": (*many, config),
        "batch_put_from_multi_buffers": (*nested, config),
        "get": ("k",),
        "get_batch": (keys,),
        "get_buffer": ("k",),
        "batch_get_buffer": (keys,),
        "get_into": one,
        "batch_get_into": many,
        "batch_get_into_multi_buffers": (*nested, False),
        "get_into_ranges": ([address], [keys], [[[0]]], [[[0]]], [[[1]]]),
        "register_buffer": (address, 4096),
        "unregister_buffer": (address,),
        "is_exist": ("k",),
        "batch_is_exist": (keys,),
        "get_size": ("k",),
        "remove": ("k", True),
        "batch_remove": (keys, True),
        "remove_by_regex": ("^k$", True),
        "remove_all": (True,),
        "get_replica_desc": ("k",),
        "batch_get_replica_desc": (keys,),
        "batch_replica_clear": (keys, ""),
        "create_copy_task": ("k", ["x"]),
        "create_move_task": ("k", "a", "b"),
        "query_task": ((1, 2),),
        "allocate_and_mount_segment": (4096, "tcp", ""),
        "unmount_segment": (segments, 0),
        "unmount_and_free_segment": (segments, 0),
        "health_check": (),
        "get_hostname": (),
        "last_error": (),
    }


class ClearsItsList:
    """A number that empties the list that it is in when it is asked for its value."""

    def __init__(self, numbers: list):
        self.numbers = numbers

    def __index__(self) -> int:
        self.numbers.clear()
        return ADDRESS


def odd_values() -> list:
    """One of everything that comes to mind; made anew each time, for some are used up."""
    vanishing: list = []
    vanishing += [ClearsItsList(vanishing), ADDRESS, ADDRESS]
    numbers = [
        True,
        -1,
        0,
        1,
        16,
        1 << 63,
        U64,
        1 << 64,
        -(1 << 63),
        1 << 200,
        1.5,
        float("nan"),
        ADDRESS + len(MEMORY),
    ]
    texts = ["", "k", "\ud800", "k\0x", TOO_LONG, "[" * 50, "(a*)*b"]
    bytes_like = [b"", b"k", bytearray(b"x"), memoryview(b"abcdef")[::2], memoryview(b"abcd").cast("I")]
    lists = [[], (), [None], [""], [b"k"], [1], [-1], [U64], [1 << 64], [0], ["k", "k", "k"], [ADDRESS] * 3, range(3)]
    nested = [[[]], [["k"]], [[ADDRESS]], [[0]], [[-1]], [[U64]], [[[0]]], [[[-1]]], [[[U64]]], [[], []], [[[]]]]
    others = [None, {}, {"k": 1}, {1, 2}, object(), len, iter(["k"]), ReplicateConfig(), vanishing]
    return [*numbers, *texts, *bytes_like, *lists, *nested, *others]


def sweep(master: str, state: str) -> None:
    """Calls every method with each odd value in the place of each argument; fails at what is no clean exception."""
    store = MooncakeDistributedStore()
    if state != "never set up":
        assert store.setup(*SETUP, master) == 0
        assert store.register_buffer(ADDRESS, len(MEMORY)) == 0
        assert store.put("k", b"v" * 100) == 0
    if state == "closed":
        assert store.close() == 0
    clean = (TypeError, ValueError, OverflowError, BufferError, RuntimeError)
    for name, arguments in valid_arguments(ADDRESS).items():
        method = getattr(store, name)
        for place in range(len(arguments) + 1):
            for number in range(len(odd_values())):
                odd = [*arguments[:place], odd_values()[number], *arguments[place + 1 :]]
                print(name, place, number, flush=True)
                with contextlib.suppress(*clean):
                    method(*odd)
        for count in range(len(arguments)):
            with contextlib.suppress(*clean):
                method(*arguments[:count])
    if state == "set up":
        store.register_buffer(ADDRESS, len(MEMORY))
        assert store.health_check() == 0
        assert store.upsert_from("after", ADDRESS, 100) == 0
        assert store.get("after") == MEMORY[:100]


@pytest.mark.parametrize("state", ["set up", "closed", "never set up"])
def test_no_argument_of_any_call_ends_the_process(master, state):
    printed = run_python(
        f"import sys\nsys.path[:0] = {sys.path!r}\n"
        f"from test_store_odd_inputs import sweep\nsweep({master.address!r}, {state!r})\nprint('survived')"
    )
    assert printed.endswith("survived\n")


#: What each call answers with right arguments while the store is not set up.
WITHOUT_SETUP = {
    **dict.fromkeys(("put", "upsert", "put_parts", "upsert_parts", "put_batch", "upsert_batch"), -600),
    **dict.fromkeys(("put_from", "upsert_from", "put_from_with_metadata", "get_into"), -600),
    "batch_put_from": [-600],
    "batch_upsert_from": [-600],
    "batch_put_from_multi_buffers": [],
    "batch_get_into": [-600],
    "batch_get_into_multi_buffers": [-600],
    "batch_is_exist": [-600],
    "batch_remove": [-600],
    **dict.fromkeys(("register_buffer", "unregister_buffer", "is_exist", "get_size"), -600),
    **dict.fromkeys(("remove", "remove_by_regex", "remove_all"), -600),
    **dict.fromkeys(("create_copy_task", "create_move_task"), ((0, 0), -600)),
    **dict.fromkeys(("unmount_segment", "unmount_and_free_segment"), -1),
    "get_replica_desc": [],
    "batch_replica_clear": [],
    "get": b"",
    "get_batch": [b""],
    "get_buffer": None,
    "batch_get_buffer": [None],
    "get_into_ranges": [[[-600]]],
    "batch_get_replica_desc": {},
    "query_task": (None, -1400),
    "allocate_and_mount_segment": {"ret": -1, "segment_ids": [], "allocated_size": 0},
    "health_check": 1,
    "get_hostname": "",
}


@pytest.mark.parametrize("closed", [False, True])
def test_without_a_setup_each_call_answers_with_its_code(request, closed):
    store = MooncakeDistributedStore()
    if closed:
        assert store.setup(*SETUP, request.getfixturevalue("master").address) == 0
        assert store.close() == 0
    for name, answer in WITHOUT_SETUP.items():
        assert getattr(store, name)(*valid_arguments(ADDRESS)[name]) == answer, name
    # Two calls that answer for all keys at once.
    assert store.get_batch(["k", "l"]) == [b""]
    assert "setup()" in store.last_error()[1]
    assert store.batch_put_from_multi_buffers(["k", "l"], [[ADDRESS]] * 2, [[1]] * 2) == []
    assert "setup()" in store.last_error()[1]


def test_every_call_is_tried():
    methods = {name for name in dir(MooncakeDistributedStore) if not name.startswith("_")}
    assert methods - set(valid_arguments(0)) == {"setup", "close"}
    assert set(valid_arguments(0)) - set(WITHOUT_SETUP) == {"last_error"}


CODES = [
    (lambda s: s.put("", b"x"), -600),
    (lambda s: s.put("new", b""), -600),
    (lambda s: s.put(TOO_LONG, b"x"), -600),
    (lambda s: s.put_parts("new"), 0),
    (lambda s: s.put_parts("", b"x"), -600),
    (lambda s: s.put_batch(["a", "b"], [b"x"]), -600),
    (lambda s: s.put_batch([], [b"x"]), -600),
    (lambda s: s.put_batch(["new", ""], [b"x", b"x"]), -600),
    (lambda s: s.put_batch(["new", TOO_LONG], [b"x", b"x"]), -600),
    (lambda s: s.put_from("new", 0, 10), -600),
    (lambda s: s.put_from("new", 0, 0), -600),
    (lambda s: s.put_from("new", ADDRESS, 0), -600),
    (lambda s: s.put_from("new", ADDRESS, U64), -600),
    (lambda s: s.put_from("new", ADDRESS + len(MEMORY), 1), -600),
    (lambda s: s.put_from("", ADDRESS, 1), -600),
    (lambda s: s.put_from_with_metadata("new", ADDRESS, 0, 10, 10), -600),
    (lambda s: s.put_from_with_metadata("new", ADDRESS, ADDRESS, 0, 0), -600),
    (lambda s: s.batch_put_from(["a", "b"], [ADDRESS], [1, 1]), [-600, -600]),
    (lambda s: s.batch_put_from(["a", "b", "c"], [ADDRESS, 0, ADDRESS], [1, 1, 0]), [0, -600, -600]),
    (lambda s: s.batch_put_from_multi_buffers(["a"], [[ADDRESS]], [[1, 2]]), [-600]),
    (lambda s: s.batch_put_from_multi_buffers(["a"], [[]], [[]]), [-600]),
    (lambda s: s.get(""), b""),
    (lambda s: s.get(TOO_LONG), b""),
    (lambda s: s.get_batch(["", TOO_LONG, "k"]), [b"", b"", b"value"]),
    (lambda s: s.get_buffer(TOO_LONG), None),
    (lambda s: s.get_into("k", 0, 100), -600),
    (lambda s: s.get_into("k", ADDRESS, 0), -600),
    (lambda s: s.get_into("k", ADDRESS, U64), -600),
    (lambda s: s.batch_get_into(["k", "none"], [ADDRESS], [9, 9]), [-600, -600]),
    (lambda s: s.batch_get_into(["k", TOO_LONG, ""], [ADDRESS] * 3, [9, 9, 9]), [5, -600, -600]),
    (lambda s: s.batch_get_into_multi_buffers(["k"], [[ADDRESS]], [[5], [5]]), [-600]),
    (lambda s: s.get_into_ranges([ADDRESS], [["k"]], [[[0, 1]]], [[[0]]], [[[1]]]), [[[-600, -600]]]),
    (lambda s: s.get_into_ranges([ADDRESS], [["k"]], [[[0]]], [[[0]]], [[[0]]]), [[[-600]]]),
    (lambda s: s.get_into_ranges([ADDRESS], [["k"]], [[[0]]], [[[U64]]], [[[1]]]), [[[-600]]]),
    (lambda s: s.get_into_ranges([], [], [[[0]]], [], []), [[[-600]]]),
    (lambda s: s.get_into_ranges([0], [["k"]], [[[0]]], [[[0]]], [[[1]]]), [[[-600]]]),
    (lambda s: s.is_exist(""), 0),
    (lambda s: s.is_exist(TOO_LONG), 0),
    (lambda s: s.batch_is_exist(["k", TOO_LONG, ""]), [1, 0, 0]),
    (lambda s: s.get_size(""), -704),
    (lambda s: s.get_size(TOO_LONG), -704),
    (lambda s: s.remove(""), -704),
    (lambda s: s.remove(TOO_LONG), -704),
    (lambda s: s.batch_remove([TOO_LONG, "k", ""], True), [-704, 0, -704]),
    (lambda s: s.remove_by_regex("["), -600),
    (lambda s: s.remove_by_regex(TOO_LONG), -600),
    (lambda s: s.get_replica_desc(TOO_LONG), []),
    (lambda s: list(s.batch_get_replica_desc(["k", TOO_LONG])), ["k"]),
    (lambda s: s.batch_replica_clear([TOO_LONG, "none"]), []),
    (lambda s: s.unregister_buffer(0), -600),
    (lambda s: s.create_copy_task("k", []), ((0, 0), -600)),
    (lambda s: s.create_copy_task(TOO_LONG, ["x"]), ((0, 0), -704)),
    (lambda s: s.create_move_task("k", "same", "same"), ((0, 0), -600)),
    (lambda s: s.allocate_and_mount_segment(0)["ret"], -1),
    (lambda s: s.allocate_and_mount_segment(4095)["ret"], -1),
    (lambda s: s.allocate_and_mount_segment(U64)["ret"], -1),
    (lambda s: s.unmount_segment(["no id"]), -1),
    (lambda s: s.unmount_segment(["1-2"]), -1),
    (lambda s: s.unmount_segment([]), 0),
]


def line_of(call) -> str:
    """Where a row of a table stands."""
    return f"line {call.__code__.co_firstlineno}"


@pytest.fixture
def filled(store):
    assert store.register_buffer(ADDRESS, len(MEMORY)) == 0
    return store


def test_what_is_wrong_has_its_code(filled):
    for call, expected in CODES:
        assert filled.upsert("k", b"value") == 0
        assert call(filled) == expected, line_of(call)


EXCEPTIONS = [
    (lambda s: s.put(None, b"x"), TypeError),
    (lambda s: s.put(b"k", b"x"), TypeError),
    (lambda s: s.put("\ud800", b"x"), UnicodeEncodeError),
    (lambda s: s.put("new", None), TypeError),
    (lambda s: s.put("new", "text"), TypeError),
    (lambda s: s.put("new", memoryview(b"abcd")[::2]), BufferError),
    (lambda s: s.put("new", b"x", None), TypeError),
    (lambda s: s.put_parts("new", None), TypeError),
    (lambda s: s.put_parts("new", memoryview(b"abcd").cast("I")), RuntimeError),
    (lambda s: s.put_batch("new", [b"x"] * 3), TypeError),
    (lambda s: s.put_batch(["new"], b"x"), TypeError),
    (lambda s: s.put_batch(["new"], [None]), TypeError),
    (lambda s: s.put_batch(None, None), TypeError),
    (lambda s: s.put_from("new", -1, 1), TypeError),
    (lambda s: s.put_from("new", ADDRESS, -1), TypeError),
    (lambda s: s.put_from("new", ADDRESS, 1 << 64), TypeError),
    (lambda s: s.put_from("new", None, 1), TypeError),
    (lambda s: s.batch_put_from(["new"], [ADDRESS], [-1]), OverflowError),
    (lambda s: s.batch_put_from(["new"], [1 << 64], [1]), OverflowError),
    (lambda s: s.batch_put_from(["new"], [1.5], [1]), TypeError),
    (lambda s: s.batch_put_from(["new"], ADDRESS, 1), TypeError),
    (lambda s: s.batch_put_from_multi_buffers(["new"], [ADDRESS], [1]), TypeError),
    (lambda s: s.get(None), TypeError),
    (lambda s: s.get_batch("keys"), TypeError),
    (lambda s: s.get_batch([b"k"]), TypeError),
    (lambda s: s.get_into("k", ADDRESS, -1), TypeError),
    (lambda s: s.batch_get_into([None], [ADDRESS], [1]), TypeError),
    (lambda s: s.get_into_ranges([ADDRESS], [["k"]], [[0]], [[0]], [[1]]), TypeError),
    (lambda s: s.get_into_ranges([ADDRESS], ["key"], [[[0]]], [[[0]]], [[[1]]]), TypeError),
    (lambda s: s.is_exist(7), TypeError),
    (lambda s: s.batch_is_exist(None), TypeError),
    (lambda s: s.batch_is_exist("keys"), TypeError),
    (lambda s: s.register_buffer(-1, 1), TypeError),
    (lambda s: s.register_buffer(ADDRESS, -1), TypeError),
    (lambda s: s.unmount_segment([7]), TypeError),
    (lambda s: s.query_task((1, -2)), TypeError),
]


def test_what_is_of_a_wrong_kind_is_a_clean_exception(filled):
    assert filled.put("k", b"value") == 0
    for call, expected in EXCEPTIONS:
        with pytest.raises(expected):
            pytest.fail(f"{line_of(call)} returned {call(filled)}")
    assert filled.get("k") == b"value"


SETUPS = [
    (lambda s: s.setup("", *SETUP[1:], "127.0.0.1:1"), -600),
    (lambda s: s.setup("[::1", *SETUP[1:], "127.0.0.1:1"), -600),
    (lambda s: s.setup(*SETUP, ""), -600),
    (lambda s: s.setup(*SETUP, "a:b:c"), -600),
    (lambda s: s.setup(*SETUP[:4], "pigeon", "", "127.0.0.1:1"), -600),
    (lambda s: s.setup({}), -600),
    (lambda s: s.setup({"local_hostname": "127.0.0.1"}), -600),
    (lambda s: s.setup({"local_hostname": None, "metadata_server": 7, "global_segment_size": None}), -600),
]

SETUP_EXCEPTIONS = [
    (lambda s: s.setup("127.0.0.1", "P2PHANDSHAKE", -1, 0, "tcp", "", "127.0.0.1:1"), TypeError),
    (lambda s: s.setup(*SETUP, "127.0.0.1:1", engine=object()), RuntimeError),
    (lambda s: s.setup(None), TypeError),
]


def test_a_wrong_setup_fails_without_asking_anybody():
    for call, expected in SETUPS:
        assert call(MooncakeDistributedStore()) == expected, line_of(call)
    for call, exception in SETUP_EXCEPTIONS:
        with pytest.raises(exception):
            pytest.fail(f"{line_of(call)} returned {call(MooncakeDistributedStore())}")


@pytest.mark.parametrize(("segment", "local"), [(1 << 62, 0), (U64, 0), (0, 1 << 62), (0, U64)])
def test_a_setup_with_more_memory_than_there_is_fails_in_words(master, segment, local):
    store = MooncakeDistributedStore()
    assert store.setup(*SETUP[:2], segment, local, *SETUP[4:], master.address) < 0
    assert str(max(segment, local)) in store.last_error()[1]
    assert store.setup(*SETUP, master.address) == 0
    store.close()
