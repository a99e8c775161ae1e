"""transfer_engine_bench and transfer_engine_validator, as two processes that find each other by P2P handshake."""

import re
import subprocess
from pathlib import Path

import pytest

import mooncake
from docs.build import read_flags
from waiting import HANG_LIMIT_S, wait_until

TOOLS = Path(mooncake.__file__).parent
BUFFER = 4 << 20
P2P = ["--metadata_server=P2PHANDSHAKE", "--local_server_name=127.0.0.1"]
SMALL = [*P2P, f"--buffer_size={BUFFER}", "--block_size=4096", "--batch_size=16", "--threads=2", "--duration=1"]


def run(tool: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOLS / tool, *flags], check=False, capture_output=True, text=True, timeout=HANG_LIMIT_S)


@pytest.fixture
def start_target(tmp_path):
    """Starts a target of ``tool``; returns its process and its name."""
    targets = []

    def start(tool: str) -> tuple[subprocess.Popen[bytes], str]:
        log = tmp_path / f"target{len(targets)}.log"
        with log.open("wb") as errors:
            target = subprocess.Popen([TOOLS / tool, "--mode=target", *SMALL], stderr=errors)
        targets.append(target)
        wait_until(lambda: "listening on" in log.read_text(), "the target says where it listens")
        return target, re.search(r"listening on (127\.0\.0\.1:\d+)$", log.read_text(), re.MULTILINE)[1]

    yield start
    for target in targets:
        target.kill()
        target.wait()


def _cpu_ticks(pid: int) -> int:
    return sum(int(field) for field in Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13])


@pytest.mark.parametrize("operation", ["read", "write"])
def test_the_bench_ends_with_the_published_line(start_target, operation):
    target, name = start_target("transfer_engine_bench")
    ended = run(
        "transfer_engine_bench",
        f"--segment_id={name}",
        f"--operation={operation}",
        "--report_unit=KiB",
        "--report_precision=3",
        *SMALL,
    )
    assert ended.returncode == 0, ended.stderr
    last = ended.stderr.splitlines()[-1]
    found = re.fullmatch(
        r"Test completed: duration (\d+\.\d\d), batch count (\d+), throughput (\d+\.\d{3}) KiB/s", last
    )
    assert found, last
    seconds, batches, throughput = (float(text) for text in found.groups())
    assert batches > 0
    assert throughput == pytest.approx(batches * 16 * 4096 / 1024 / seconds, rel=0.01)
    target.terminate()
    assert target.wait(HANG_LIMIT_S) == 0


def test_the_validator_compares_what_it_wrote(start_target):
    _, name = start_target("transfer_engine_validator")
    ended = run("transfer_engine_validator", f"--segment_id={name}", "--report_unit=MiB", *SMALL)
    assert ended.returncode == 0, ended.stderr
    assert re.search(
        r"^Test completed: [1-9]\d* batches of 65536 bytes written, read back and equal by 2 threads, "
        r"throughput \d+\.\d\d MiB/s$",
        ended.stderr,
        re.MULTILINE,
    )


def test_the_threads_of_the_validator_write_apart(start_target):
    """Each has two batches of the buffer, so 32 threads take all 4 MiB of it, and 33 do not fit."""
    _, name = start_target("transfer_engine_validator")
    flags = [f"--segment_id={name}", *SMALL]
    all_of_it = run("transfer_engine_validator", *flags, "--threads=32")
    assert all_of_it.returncode == 0, all_of_it.stderr
    assert "equal by 32 threads" in all_of_it.stderr
    too_many = run("transfer_engine_validator", *flags, "--threads=33")
    assert too_many.returncode == 1
    assert "--buffer_size=4194304" in too_many.stderr


def test_a_target_that_is_killed_fails_the_bench_in_words(start_target):
    target, name = start_target("transfer_engine_bench")
    flags = [f"--segment_id={name}", *SMALL[:-1], "--duration=600"]
    initiator = subprocess.Popen([TOOLS / "transfer_engine_bench", *flags], stderr=subprocess.PIPE, text=True)
    busy_ticks = 10  # Of CPU time: more than a start takes.
    wait_until(lambda: _cpu_ticks(initiator.pid) > busy_ticks, "the initiator moves bytes")
    target.kill()
    target.wait()
    _, errors = initiator.communicate(timeout=HANG_LIMIT_S)
    assert initiator.returncode == 1
    assert name in errors


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--mode=tarfet"], ["--mode=tarfet", "initiator or target"]),
        (["--operation=copy"], ["--operation=copy", "read or write"]),
        (["--report_unit=PB"], ["--report_unit=PB", "GiB"]),
        (["--block_size=0"], ["--block_size", "positive"]),
        (["--threads=0"], ["--threads", "positive"]),
        (["--buffer_size=100"], ["--buffer_size=100", "--block_size=65536"]),
        (["--buffer_size=65536", "--segment_id="], ["--segment_id"]),
        (["--backend=other"], ["--backend=other", "classic or tent"]),
        (["--buffer_size=65536", "--protocol=carrier"], ["carrier"]),
        (["--buffer_size=65536", "--segment_id=127.0.0.1:1"], ["127.0.0.1:1"]),
        (["--block_sise=1"], ["block_sise"]),
    ],
)
def test_wrong_flags_are_named_with_their_remedy(flags, words):
    ended = run("transfer_engine_bench", *P2P, *flags)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr


#: As their users know them.
DEFAULTS = {
    "metadata_server": "192.168.3.77:2379",
    "mode": "initiator",
    "protocol": "rdma",
    "device_name": "mlx5_2",
    "nic_priority_matrix": "",
    "segment_id": "192.168.3.76",
    "buffer_size": str(1 << 30),
    "batch_size": "128",
    "block_size": "65536",
    "duration": "10",
    "threads": "12",
    "auto_discovery": "false",
    "report_unit": "GB",
    "report_precision": "2",
    "use_vram": "true",
    "gpu_id": "0",
}
DEFAULTS_OF_BENCH = {"operation": "read", "backend": "classic", "init_mem": "true"}


@pytest.mark.parametrize(
    ("tool", "known"),
    [("transfer_engine_bench", DEFAULTS | DEFAULTS_OF_BENCH), ("transfer_engine_validator", DEFAULTS)],
)
def test_flags_have_the_known_defaults(tool, known):
    flags = {flag.name: flag.default for flag in read_flags(TOOLS / tool)}
    assert {name: flags.get(name) for name in known} == known
    assert "local_server_name" in flags, "its default is this host's name"


@pytest.mark.parametrize("tool", ["transfer_engine_bench", "transfer_engine_validator"])
def test_the_log_is_where_flags_say(start_target, tmp_path, tool):
    _, name = start_target(tool)
    ended = run(tool, f"--segment_id={name}", *SMALL, f"--log_dir={tmp_path / 'log'}", "--v=1", "--gpu_id=1")
    assert ended.returncode == 0, ended.stderr
    assert "--gpu_id is without effect" not in ended.stderr, "only errors"
    assert "--gpu_id is without effect" in (tmp_path / "log" / f"{tool}.INFO").read_text()
    shown = run(tool, f"--segment_id={name}", *SMALL, "--logtostderr", "--gpu_id=1", "--use_vram=false")
    assert shown.returncode == 0, shown.stderr
    assert "--gpu_id is without effect" in shown.stderr
    assert "--use_vram is without effect" in shown.stderr
    assert "--device_name is" not in shown.stderr, "it was not given"
