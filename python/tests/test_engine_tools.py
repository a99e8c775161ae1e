"""transfer_engine_bench and transfer_engine_validator, as two processes that find each other by P2P handshake."""

import re
import subprocess
from pathlib import Path

import pytest

import mooncake
from waiting import HANG_LIMIT_S, wait_until

TOOLS = Path(mooncake.__file__).parent
BUFFER = 4 << 20
SMALL = [f"--buffer_size={BUFFER}", "--block_size=4096", "--batch_size=16", "--threads=2", "--duration=1"]


def run(tool: str, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOLS / tool, *flags], check=False, capture_output=True, text=True, timeout=HANG_LIMIT_S)


@pytest.fixture
def start_target(tmp_path):
    """Starts a target of ``tool``; returns its process and its name."""
    targets = []

    def start(tool: str) -> tuple[subprocess.Popen[bytes], str]:
        log = tmp_path / f"target{len(targets)}.log"
        with log.open("wb") as errors:
            target = subprocess.Popen(
                [TOOLS / tool, "--mode=target", "--local_server_name=127.0.0.1", *SMALL], stderr=errors
            )
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
        "--local_server_name=127.0.0.1",
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
    ended = run("transfer_engine_validator", f"--segment_id={name}", "--local_server_name=127.0.0.1", *SMALL)
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"Test completed: [1-9]\d* rounds of 65536 bytes written, read back and equal", ended.stderr)


def test_a_target_that_is_killed_fails_the_bench_in_words(start_target):
    target, name = start_target("transfer_engine_bench")
    flags = ["--local_server_name=127.0.0.1", f"--segment_id={name}", *SMALL[:-1], "--duration=600"]
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
        (["--buffer_size=65536"], ["--segment_id"]),
        (["--buffer_size=65536", "--protocol=carrier"], ["carrier"]),
        (["--buffer_size=65536", "--segment_id=127.0.0.1:1"], ["127.0.0.1:1"]),
        (["--block_sise=1"], ["block_sise"]),
    ],
)
def test_wrong_flags_are_named_with_their_remedy(flags, words):
    ended = run("transfer_engine_bench", "--local_server_name=127.0.0.1", *flags)
    assert ended.returncode == 1
    for word in words:
        assert word in ended.stderr
