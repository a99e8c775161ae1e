"""What goes wrong between engines in production: peers killed, stopped and restarted, connections lost, settings wrong.

Each ends in a clear error or heals by itself, and harms no other transfer.
"""

import itertools
import os
import random
import re
import signal
import socket
import threading
import time
import zlib
from pathlib import Path

import pytest

from waiting import HANG_LIMIT_S, stop, wait_until


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_target_killed_in_the_middle_fails_the_transfer_and_nothing_else(start_engine_process, forced_tcp):
    initiator, victim, other = (start_engine_process(MC_FORCE_TCP=forced_tcp) for _ in range(3))
    first = initiator.fill(0, 1 << 20, "first")
    initiator.send("move_until_it_fails", victim.info["name"], victim.info["address"], 128 << 20)
    wait_until(lambda: victim.checksum(0, 1 << 20) == first, "the first bytes arrive")
    victim.kill()
    _, code = initiator.receive()
    assert code == -1
    code, text = initiator.last_error()
    assert code == -1 and victim.info["name"] in text
    wanted = initiator.fill(0, 1 << 20, "next")
    here, there = initiator.info["address"], other.info["address"]
    assert initiator.move(True, other.info["name"], [here], [there], [1 << 20]) == 0
    assert other.checksum(0, 1 << 20) == wanted


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_killed_target_fills_no_log(start_engine_process, forced_tcp):
    initiator, victim = (start_engine_process(MC_FORCE_TCP=forced_tcp) for _ in range(2))
    name, address = victim.info["name"], victim.info["address"]
    assert initiator.move_blocks(True, name, address, 4096, 1)[0] == 0
    victim.kill()
    assert initiator.move_blocks(True, name, address, 4096, 20_000)[0] == -1
    lines = [line for line in initiator.log().splitlines() if name in line]
    assert 0 < len(lines) < 20


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_target_killed_under_a_large_batch_is_told_in_few_lines_and_a_count(start_engine_process, forced_tcp):
    count = 20_000
    initiator, victim = (start_engine_process(MC_FORCE_TCP=forced_tcp) for _ in range(2))
    name, address = victim.info["name"], victim.info["address"]
    first = initiator.fill(0, 1 << 20, "first")
    # The buffer is gone through four times, so that there is much left to do when its begin has arrived.
    initiator.send("move_blocks", True, name, address, 64 << 10, count)
    wait_until(lambda: victim.checksum(0, 1 << 20) == first, "the first bytes arrive")
    victim.kill()
    assert initiator.receive()[0] == -1
    lines = [line for line in initiator.log().splitlines() if name in line]
    assert len(lines) <= 100
    (told,) = (found for line in lines if (found := re.search(r": (\d+) transfers of a batch fail at once", line)))
    assert 1 < int(told[1]) <= count


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_an_initiator_killed_in_the_middle_does_not_harm_the_target(start_engine_process, forced_tcp):
    target, victim, other = (start_engine_process(MC_FORCE_TCP=forced_tcp) for _ in range(3))
    name, address = target.info["name"], target.info["address"]
    victim.fill(0, 1 << 20, "victim")
    victim.send("move_until_it_fails", name, address, 128 << 20)
    wait_until(lambda: target.checksum(0, 1 << 20) != target.checksum(200 << 20, 1 << 20), "bytes arrive")
    victim.kill()
    wanted = other.fill(0, 1 << 20, "other")
    assert other.move(True, name, [other.info["address"]], [address + (192 << 20)], [1 << 20]) == 0
    assert target.checksum(192 << 20, 1 << 20) == wanted


def test_a_target_that_comes_back_elsewhere_is_found_by_its_new_name(start_engine_process):
    initiator = start_engine_process()
    for _ in range(3):
        target = start_engine_process(size=1 << 20)
        wanted = initiator.fill(0, 4096, "round")
        name, here, there = target.info["name"], initiator.info["address"], target.info["address"]
        assert initiator.move(True, name, [here], [there], [4096]) == 0
        assert target.checksum(0, 4096) == wanted
        target.kill()
        assert initiator.move(True, name, [here], [there], [4096]) == -1


def test_rubbish_on_the_engine_ports_harms_nobody(start_engine_process):
    target, initiator = start_engine_process(size=1 << 20), start_engine_process(size=1 << 20)
    port = int(target.info["name"].rpartition(":")[2])
    for rubbish in (b"", b"\0" * 8, b"\xff" * 100, b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)) * 20:
        with socket.create_connection(("127.0.0.1", port), timeout=HANG_LIMIT_S) as connection:
            connection.sendall(rubbish)
            connection.shutdown(socket.SHUT_WR)
            try:
                while connection.recv(4096):
                    pass
            except ConnectionResetError:
                pass
    silent = socket.create_connection(("127.0.0.1", port))
    assert initiator.probe(target.info["name"]) == 0
    silent.close()
    assert len(target.log().splitlines()) < 20  # Not a line for each.


@pytest.mark.parametrize(
    ("name", "value"), [("MC_FORCE_TCP", "maybe"), ("MC_TRANSFER_TIMEOUT", "soon"), ("MC_TCP_LANES_PER_PEER", "0x")]
)
def test_a_malformed_variable_fails_the_start_and_is_named(start_engine_process, name, value):
    peer = start_engine_process(size=1 << 20, **{name: value})
    assert peer.info["code"] == -1
    code, text = peer.last_error()
    assert code == -1
    assert name in text and value in text


def test_a_host_that_cannot_be_parsed_is_quoted(start_engine_process):
    for host in ("[::1", "::1]:x", "1:2:3:x"):
        peer = start_engine_process(size=1 << 20, host=host)
        assert peer.info["code"] == -1
        assert host in peer.last_error()[1]


def port_to_come_back_to():
    """A port of all addresses that nobody takes while its owner is away: neither the kernel nor an engine draws it."""
    for port in random.SystemRandom().sample(range(21000, 31000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                continue
    pytest.fail("a hundred ports are all taken")


def write_and_check(initiator, target):
    """One verified write of 1 MiB from ``initiator`` to ``target``, by the addresses that they have now."""
    wanted = initiator.fill(0, 1 << 20, os.urandom(4).hex())
    here, there = initiator.info["address"], target.info["address"]
    code = initiator.move(True, target.info["name"], [here], [there], [1 << 20])
    assert code == 0, initiator.last_error()
    assert target.checksum(0, 1 << 20) == wanted


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
@pytest.mark.parametrize("rounds", [6, pytest.param(50, marks=pytest.mark.long_form)])
def test_a_target_restarted_under_its_name_is_found_with_its_new_addresses(start_engine_process, forced_tcp, rounds):
    initiator = start_engine_process(size=8 << 20, MC_FORCE_TCP=forced_tcp)
    host = f"127.0.0.1:{port_to_come_back_to()}"
    footprints = []
    for number in range(rounds):
        # Other sizes, hence other addresses.
        target = start_engine_process(
            size=(number + 2) << 20, host=host, MC_FORCE_TCP=forced_tcp, MC_LEGACY_RPC_PORT_BINDING="1"
        )
        assert target.info["name"] == host
        write_and_check(initiator, target)
        target.kill()
        footprints.append(initiator.footprint())
    # That a peer has gone is noticed soon, not at once.
    most = footprints[1]["descriptors"]
    wait_until(lambda: initiator.footprint()["descriptors"] <= most, "the connections of the dead are closed")
    assert footprints[-1]["resident_bytes"] <= footprints[1]["resident_bytes"] + (4 << 20)


def checksum_from_outside(peer, length):
    """As ``peer.checksum(0, length)``, which it need not answer for."""
    with Path(f"/proc/{peer.process.pid}/mem").open("rb", buffering=0) as memory:
        memory.seek(peer.info["address"])
        return zlib.crc32(memory.read(length))


@pytest.mark.parametrize("side", ["initiator", "target"])
def test_connections_lost_while_idle_are_made_anew(start_engine_process, side):
    initiator, target = (start_engine_process(size=32 << 20, MC_FORCE_TCP="1") for _ in range(2))
    for _ in range(20):
        code, _ = initiator.move_blocks(True, target.info["name"], target.info["address"], 65536, 256)
        assert code == 0, initiator.last_error()
        assert {"initiator": initiator, "target": target}[side].cut_connections() > 0
    assert "refused" not in initiator.log() + target.log()


@pytest.mark.long_form
def test_connections_survive_long_idling(start_engine_process):
    initiator, target = (start_engine_process(size=32 << 20, MC_FORCE_TCP="1") for _ in range(2))
    for idle_s in (0.1, 6, 20, 70) * 3:
        threading.Event().wait(idle_s)
        code, _ = initiator.move_blocks(True, target.info["name"], target.info["address"], 65536, 256)
        assert code == 0, initiator.last_error()


@pytest.mark.parametrize("stop_s", [0, pytest.param(20, marks=pytest.mark.long_form)])
def test_a_target_that_stands_still_for_a_while_fails_nothing(start_engine_process, stop_s):
    initiator, target = (start_engine_process(MC_FORCE_TCP="1") for _ in range(2))
    length, seeds = 256 << 20, itertools.count()

    def stopped_in_the_middle():
        wanted, begin = initiator.fill(0, length, next(seeds)), initiator.checksum(0, 1 << 20)
        batch = initiator.submit_write(target.info["name"], target.info["address"], length)
        wait_until(lambda: checksum_from_outside(target, 1 << 20) == begin, "the first bytes arrive")
        stop(target.process)
        unfinished = checksum_from_outside(target, length) != wanted
        if unfinished:
            threading.Event().wait(stop_s)
            assert [initiator.status(batch) for _ in range(100)] == [0] * 100, initiator.last_error()
            assert checksum_from_outside(target, length) != wanted
        target.process.send_signal(signal.SIGCONT)
        assert initiator.finish(batch) == 0, initiator.last_error()
        assert target.checksum(0, length) == wanted
        return unfinished

    for _ in range(3):
        wait_until(stopped_in_the_middle, "a write is met before its end")


def test_a_target_that_stands_still_for_good_fails_the_transfer_in_words(start_engine_process):
    initiator = start_engine_process(MC_FORCE_TCP="1", MC_TRANSFER_TIMEOUT="5")
    target = start_engine_process(MC_FORCE_TCP="1")
    write_and_check(initiator, target)
    stop(target.process)
    here, there = initiator.info["address"], target.info["address"]
    assert initiator.move(True, target.info["name"], [here], [there], [256 << 20]) == -1
    code, text = initiator.last_error()
    assert code == -1 and target.info["name"] in text and "stopped or unreachable" in text
    target.process.send_signal(signal.SIGCONT)
    write_and_check(initiator, target)


def test_a_write_that_timed_out_is_told_apart_and_keeps_its_id(start_engine_process):
    initiator = start_engine_process(MC_FORCE_TCP="1", MC_TRANSFER_TIMEOUT="5")
    target = start_engine_process(MC_FORCE_TCP="1")
    write_and_check(initiator, target)
    stop(target.process)
    batch = initiator.submit_write(target.info["name"], target.info["address"], 256 << 20)
    wait_until(lambda: initiator.status(batch) != 0, "the write times out")
    assert initiator.status(batch) == -2
    assert initiator.finish(batch) == -1, "who waits learns it, too, and that frees the id"
    assert initiator.status(batch) == -1
    target.process.send_signal(signal.SIGCONT)
    write_and_check(initiator, target)


@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_a_batch_of_any_size_moves_in_bounded_memory(start_engine_process, forced_tcp):
    initiator, target = (start_engine_process(size=64 << 20, MC_FORCE_TCP=forced_tcp) for _ in range(2))
    name, there = target.info["name"], target.info["address"]
    wanted = initiator.fill(0, 64 << 20, "many")
    code, growth_bytes = initiator.move_blocks(True, name, there, 4096, 200_000)
    assert code == 0, initiator.last_error()
    assert growth_bytes < 200 << 20
    assert target.checksum(0, 64 << 20) == wanted


def waiting_to_be_forgotten(ports):
    """How many TCP connections of this host, to or from ``ports``, have ended and are in TIME_WAIT."""
    lines = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    ended = [fields[1:3] for fields in lines if fields[3] == "06"]
    return sum(any(int(end.rpartition(":")[2], 16) in ports for end in ends) for ends in ended)


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.long_form)])
def test_batch_after_batch_of_random_blocks_takes_no_new_connections(start_engine_process, long):
    initiator, target = (start_engine_process(size=64 << 20, MC_FORCE_TCP="1") for _ in range(2))
    ports = target.listening_ports()
    assert ports
    took_s = []
    begin = time.monotonic()
    for number in range(2400 if long else 100):
        if long:
            threading.Event().wait(max(0, begin + number / 4 - time.monotonic()))  # Four a second.
        code, seconds = initiator.move_random_blocks(target.info["name"], target.info["address"], 16384, 500)
        assert code == 0, initiator.last_error()
        took_s.append(seconds)
    assert waiting_to_be_forgotten(ports) < 10
    if long:
        first, last = (sorted(minute)[int(240 * 0.99)] for minute in (took_s[:240], took_s[-240:]))
        assert last <= 1.5 * first
