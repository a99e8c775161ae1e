"""Engines on hosts of their own: other interfaces, other addresses, links that fail."""

import time

import pytest

from hosts import Cable
from test_engine_faults import write_and_check
from waiting import wait_until

ADDRESSES = ("10.9.1.1", "10.9.1.2")


@pytest.fixture
def linked(new_host, start_engine_process):
    """Two engines on two hosts, and the cable between them."""
    ends = {address: new_host() for address in ADDRESSES}
    cable = Cable("data", ends)

    def start(**environment):
        return [start_engine_process(host=a, on=host, MC_FORCE_TCP="1", **environment) for a, host in ends.items()]

    return cable, start


def test_a_transfer_outlives_packets_lost_for_a_while(linked):
    cable, start = linked
    initiator, target = start()
    write_and_check(initiator, target)
    wanted = initiator.fill(0, 256 << 20, "patience")
    cable.lose_packets()
    batch = initiator.submit_write(target.info["name"], target.info["address"], 256 << 20)
    assert initiator.status(batch) == 0
    cable.mend()
    assert initiator.finish(batch) == 0, initiator.last_error()
    assert target.checksum(0, 256 << 20) == wanted


def write(initiator, target):
    """The code of a write of 1 MiB."""
    here, there = initiator.info["address"], target.info["address"]
    return initiator.move(True, target.info["name"], [here], [there], [1 << 20])


@pytest.mark.parametrize("lost_s", [0, pytest.param(30, marks=pytest.mark.long_form)])
def test_engines_find_each_other_again_after_a_blackhole(linked, lost_s):
    cable, start = linked
    peers = start(MC_TRANSFER_TIMEOUT="5")
    for one, other in (peers, peers[::-1]):
        write_and_check(one, other)
    one, other = peers
    cable.lose_packets()
    begin = time.monotonic()
    while True:
        assert write(one, other) == -1
        if time.monotonic() >= begin + lost_s:
            break
    assert other.info["name"] in one.last_error()[1]
    cable.mend()
    healed = time.monotonic()
    for one, other in (peers, peers[::-1]):
        wait_until(lambda one=one, other=other: write(one, other) == 0, "bytes move again")
        write_and_check(one, other)
    if lost_s:
        assert time.monotonic() < healed + 3
