"""The C interface of ``libmooncake.so`` as the package installs it, and what its libraries leave visible."""

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

import mooncake
from mooncake.http_metadata_server import KVBootstrapServer
from waiting import HANG_LIMIT_S, wait_until

PACKAGE = Path(mooncake.__file__).parent
SIZE = 1 << 20
READ, WRITE = 0, 1
WAITING, PENDING, COMPLETED = 0, 1, 4

#: The functions that programs in C, Go and Rust link against.
FUNCTIONS = set(
    """
    createTransferEngine discoverTopology getLocalIpAndPort installTransport uninstallTransport openSegment
    openSegmentNoCache closeSegment warmupEfaSegment removeLocalSegment destroyTransferEngine registerLocalMemory
    unregisterLocalMemory registerLocalMemoryBatch unregisterLocalMemoryBatch allocateBatchID submitTransfer
    submitTransferWithNotify getNotifsFromEngine freeNotifsMsgBuf genNotifyInEngine getTransferStatus freeBatchID
    syncSegmentCache getNicLoadStats enableGracefulShutdown showLinks
    """.split()
)


class TransferRequest(ctypes.Structure):
    _fields_ = (
        ("opcode", ctypes.c_int),
        ("source", ctypes.c_void_p),
        ("target_id", ctypes.c_int32),
        ("target_offset", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
    )


class TransferStatus(ctypes.Structure):
    _fields_ = (("status", ctypes.c_int), ("transferred_bytes", ctypes.c_uint64))


class NotifyMessage(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("msg", ctypes.c_char_p))


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    """``libmooncake.so`` with the signatures of ``transfer_engine_c.h``, as far as used here."""
    lib = ctypes.CDLL(str(PACKAGE / "libmooncake.so"))
    handle, text, size, batch = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
    signatures = {
        "createTransferEngine": (handle, [text, text, text, ctypes.c_uint64, ctypes.c_int]),
        "destroyTransferEngine": (None, [handle]),
        "getLocalIpAndPort": (ctypes.c_int, [handle, text, size]),
        "registerLocalMemory": (ctypes.c_int, [handle, ctypes.c_void_p, size, text, ctypes.c_int]),
        "unregisterLocalMemory": (ctypes.c_int, [handle, ctypes.c_void_p]),
        "openSegment": (ctypes.c_int32, [handle, text]),
        "allocateBatchID": (batch, [handle, size]),
        "submitTransfer": (ctypes.c_int, [handle, batch, ctypes.POINTER(TransferRequest), size]),
        "submitTransferWithNotify": (
            ctypes.c_int,
            [handle, batch, ctypes.POINTER(TransferRequest), size, NotifyMessage],
        ),
        "getTransferStatus": (ctypes.c_int, [handle, batch, size, ctypes.POINTER(TransferStatus)]),
        "freeBatchID": (ctypes.c_int, [handle, batch]),
        "getNotifsFromEngine": (ctypes.POINTER(NotifyMessage), [handle, ctypes.POINTER(ctypes.c_int)]),
        "freeNotifsMsgBuf": (ctypes.c_int, [ctypes.POINTER(NotifyMessage), ctypes.c_int]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


@pytest.fixture
def engines(library):
    """An engine and its peer, each with registered memory, as (handle, memory)."""
    made = []
    for fill in (b"a", b"b"):
        handle = library.createTransferEngine(b"P2PHANDSHAKE", b"127.0.0.1", b"", 0, 1)
        assert handle
        memory = ctypes.create_string_buffer(fill * SIZE, SIZE)
        assert library.registerLocalMemory(handle, memory, SIZE, b"cpu:0", 1) == 0
        made.append((handle, memory))
    yield made
    for handle, _ in made:
        library.destroyTransferEngine(handle)


def finish(library, engine, batch, task) -> TransferStatus:
    """The task's final status."""
    status = TransferStatus(WAITING, 0)

    def ended() -> bool:
        assert library.getTransferStatus(engine, batch, task, ctypes.byref(status)) == 0
        return status.status not in (WAITING, PENDING)

    wait_until(ended, "the task ends")
    return status


def open_peer(library, engine, peer) -> int:
    name = ctypes.create_string_buffer(128)
    assert library.getLocalIpAndPort(peer, name, len(name)) == 0
    segment = library.openSegment(engine, name.value)
    assert segment > 0
    return segment


def test_moves_bytes_between_two_engines(library, engines):
    (engine, ours), (peer, theirs) = engines
    segment = open_peer(library, engine, peer)
    half = SIZE // 2
    requests = (TransferRequest * 2)(
        TransferRequest(WRITE, ctypes.addressof(ours), segment, ctypes.addressof(theirs), half),
        TransferRequest(READ, ctypes.addressof(ours) + half, segment, ctypes.addressof(theirs) + half, half),
    )
    batch = library.allocateBatchID(engine, 2)
    assert library.submitTransfer(engine, batch, requests, 2) == 0
    for task in range(2):
        status = finish(library, engine, batch, task)
        assert (status.status, status.transferred_bytes) == (COMPLETED, half)
    assert library.freeBatchID(engine, batch) == 0
    assert ours.raw == theirs.raw == b"a" * half + b"b" * half


def test_a_notify_follows_the_data(library, engines):
    (engine, ours), (peer, theirs) = engines
    request = TransferRequest(
        WRITE, ctypes.addressof(ours), open_peer(library, engine, peer), ctypes.addressof(theirs), 10
    )
    batch = library.allocateBatchID(engine, 1)
    notify = NotifyMessage(b"kv", b"block 7")
    assert library.submitTransferWithNotify(engine, batch, ctypes.byref(request), 1, notify) == 0
    assert finish(library, engine, batch, 0).status == COMPLETED
    assert library.freeBatchID(engine, batch) == 0
    count = ctypes.c_int()
    messages = library.getNotifsFromEngine(peer, ctypes.byref(count))
    assert [(messages[i].name, messages[i].msg) for i in range(count.value)] == [(b"kv", b"block 7")]
    assert library.freeNotifsMsgBuf(messages, count) == 0


def test_a_metadata_server_lets_names_be_labels(library):
    server = KVBootstrapServer(0, "127.0.0.1")
    server.run()
    url = f"http://127.0.0.1:{server.port}/metadata".encode()
    engines = [library.createTransferEngine(url, name, b"", 0, 1) for name in (b"node-a", b"node-b")]
    try:
        assert all(engines)
        assert library.openSegment(engines[0], b"node-b") > 0
        address = ctypes.create_string_buffer(128)
        assert library.getLocalIpAndPort(engines[0], address, len(address)) == 0
        assert re.fullmatch(rb"[\d.]+:\d+", address.value), "where it is reached, not its label"
    finally:
        for engine in engines:
            library.destroyTransferEngine(engine)
        server.close()


def test_create_returns_null_and_says_why(library, capfd):
    assert library.createTransferEngine(b"nonsense://", b"127.0.0.1", b"", 0, 1) is None
    assert "nonsense://" in capfd.readouterr().err


def visible(library: str) -> set[str]:
    """The names that a library of the package defines for others."""
    path = PACKAGE / library
    done = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines()}


def test_the_library_shows_the_documented_names_and_its_namespace_only():
    names = visible("libmooncake.so")
    ours = re.compile(r"_ZNK?8mooncake|_ZT[VIS]N8mooncake|mooncake_store_")
    assert {name for name in names if not ours.match(name)} == FUNCTIONS


@pytest.mark.parametrize("module", ["engine", "store"])
def test_a_module_shows_its_entry_only(module):
    assert visible(f"{module}.so") == {f"PyInit_{module}"}


def test_headers_are_installed():
    text = (PACKAGE / "include" / "transfer_engine_c.h").read_text()
    assert {name for name in FUNCTIONS if re.search(rf"\b{name}\(", text)} == FUNCTIONS
    assert "class TransferEngine" in (PACKAGE / "include" / "transfer_engine.h").read_text()


def documented(page: str, language: str) -> str:
    """The program in a page of the documentation."""
    text = (Path(__file__).resolve().parents[2] / "docs" / page).read_text()
    return re.search(rf"<!-- example: {language} -->\n```{language}\n(.*?)```", text, re.DOTALL)[1]


def build(source: str, compiler: list[str], folder: Path, libraries: list[str | Path]) -> Path:
    """Compiles and links against nothing but the package."""
    program = folder / "program"
    language = "c" if compiler[0] == "gcc" else "c++"
    command = [*compiler, f"-I{PACKAGE / 'include'}", "-x", language, "-", "-x", "none", *libraries]
    subprocess.run([*command, f"-Wl,-rpath,{PACKAGE}", "-o", program], input=source, text=True, check=True, cwd=folder)
    return program


def output(program: Path, *arguments: str) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=False)
    return done.stdout or done.stderr


CPP20, CPP23 = ["g++", "-std=c++20"], ["g++", "-std=c++23"]
C99 = ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]


@pytest.mark.parametrize(("language", "compiler"), [("cpp", CPP20), ("c", C99)])
@pytest.mark.parametrize(
    "libraries",
    [[f"-L{PACKAGE}", "-lmooncake"], [f"-L{PACKAGE}", "-ltransfer_engine"], [PACKAGE / "libtransfer_engine.so"]],
    ids=["its own name", "the known name", "the known name's path"],
)
def test_the_documented_program_runs(language, compiler, libraries, tmp_path):
    program = build(documented("engine.md", language), compiler, tmp_path, libraries)
    assert output(program) == "moved\n"


@pytest.mark.parametrize("name", ["mooncake", "mooncake_store"])
def test_the_documented_store_client_runs(master, name, tmp_path):
    program = build(documented("store.md", "cpp"), CPP23, tmp_path, [f"-L{PACKAGE}", f"-l{name}"])
    assert output(program, master.address) == "value\n"


@pytest.mark.parametrize("header", ["mooncake/store/client.h", "mooncake/transfer/engine.h"])
def test_each_installed_interface_compiles_alone(header, tmp_path):
    build(f"#include <{header}>\nint main() {{}}\n", [*CPP23, "-Wall", "-Wextra", "-Werror"], tmp_path, [])


def test_the_engine_of_the_new_interface_starts(tmp_path):
    source = """
        #include <mooncake/transfer/factory.h>
        #include <cstdio>
        int main() {
          auto engine = mooncake::transfer::CreateEngine({.local_name = "127.0.0.1", .metadata = "P2PHANDSHAKE"});
          std::puts(engine ? (*engine)->name().c_str() : engine.error().message.c_str());
        }
    """
    program = build(source, CPP23, tmp_path, [f"-L{PACKAGE}", "-ltransfer_engine"])
    assert re.fullmatch(r"127\.0\.0\.1:\d+\n", output(program))
