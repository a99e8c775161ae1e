"""Engines on hosts of their own: other interfaces, other addresses, links that fail."""

import itertools
import re
import time
import urllib.parse

import pytest

from benchmarks.lab.hosts import Cable
from test_engine_faults import write_and_check
from waiting import wait_until

ADDRESSES = ("10.9.1.1", "10.9.1.2")


def test_an_engine_that_named_a_loopback_address_says_so_and_so_do_its_readers(new_host, start_engine_process):
    here, elsewhere = new_host(), new_host()
    target = start_engine_process(2 << 20, host="localhost", on=here)
    name = printed_name(target)
    assert f"segment {name} can be reached from this host only" in target.log()
    reader = start_engine_process(2 << 20, host="localhost", on=elsewhere)
    assert reader.move(False, name, [reader.info["address"]], [target.info["address"]], [4096]) == -1
    text = reader.last_error()[1]
    assert name in text and "localhost is always this host" in text


@pytest.fixture
def two_homes(new_host):
    """A host, 10.9.1.1 and 10.9.2.1, and a peer, 10.9.2.2, that only reaches the latter."""
    host, peer, elsewhere = new_host(), new_host(), new_host()
    Cable("first", {"10.9.1.1": host, "10.9.1.2": elsewhere})
    Cable("second", {"10.9.2.1": host, "10.9.2.2": peer})
    return host, peer


def test_a_host_with_two_addresses_is_reached_at_the_one_it_named(two_homes, start_engine_process):
    host, peer = two_homes
    target = start_engine_process(2 << 20, host="10.9.2.1", on=host, MC_FORCE_TCP="1")
    reader = start_engine_process(2 << 20, host="10.9.2.2", on=peer, MC_FORCE_TCP="1")
    there_and_back(reader, target)
    there_and_back(target, reader)


@pytest.mark.parametrize("label", ["a label", "10.9.2.1"])
def test_a_host_with_two_addresses_publishes_the_one_that_its_metadata_server_sees(
    two_homes, start_engine_process, start_master, label
):
    host, peer = two_homes
    master = start_master("--enable_http_metadata_server=true", on=peer, address="10.9.2.2")
    target = start_engine_process(2 << 20, host=label, metadata=master.metadata_url, on=host, MC_FORCE_TCP="1")
    reader = start_engine_process(2 << 20, host="reader", metadata=master.metadata_url, on=peer, MC_FORCE_TCP="1")
    write_and_check(reader, target)
    write_and_check(target, reader)
    for key in (f"mooncake/ram/{label}", f"mooncake/rpc_meta/{label}"):
        _, published, _ = peer.get(f"{master.metadata_url}?{urllib.parse.urlencode({'key': key})}")
        assert "10.9.2.1" in published and "10.9.1.1" not in published


@pytest.fixture
def linked(new_host, start_engine_process):
    """Two engines on two hosts, and the cable between them."""
    ends = {address: new_host() for address in ADDRESSES}
    cable = Cable("data", ends)

    def start(**environment):
        return [start_engine_process(host=a, on=host, MC_FORCE_TCP="1", **environment) for a, host in ends.items()]

    return cable, start


@pytest.fixture
def loopback_only(new_host):
    """A host with no other interface."""
    host = new_host()
    host.ip("address", "add", "fd00::1/128", "dev", "lo", "nodad")
    return host


def printed_name(peer):
    """What it says in its log how others reach it."""
    return re.search(r"segment (\S+) is served", peer.log())[1]


def there_and_back(one, other):
    """Moves 1 MiB from ``one`` to ``other``, under the name that this printed, and back to another place."""
    size, name = 1 << 20, printed_name(other)
    here, there = one.info["address"], other.info["address"]
    wanted = one.fill(0, size, name)
    assert one.move(True, name, [here], [there], [size]) == 0, one.last_error()
    assert other.checksum(0, size) == wanted
    assert one.move(False, name, [here + size], [there], [size]) == 0, one.last_error()
    assert one.checksum(size, size) == wanted


@pytest.mark.parametrize("name", ["", "::1", "[::1]", "[::1]:0", "fd00::1", "localhost", "127.0.0.1", "127.0.0.1:0"])
@pytest.mark.parametrize("forced_tcp", ["0", "1"])
def test_engines_with_only_a_loopback_interface_reach_each_other(loopback_only, start_engine_process, name, forced_tcp):
    one, other = (start_engine_process(2 << 20, host=name, on=loopback_only, MC_FORCE_TCP=forced_tcp) for _ in range(2))
    there_and_back(one, other)
    there_and_back(other, one)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "fd00::1"])
def test_stores_with_only_a_loopback_interface_share_values(loopback_only, start_master, start_store, name):
    master = start_master(on=loopback_only, address="127.0.0.1")
    one, other = (start_store(master.address, host=name, on=loopback_only) for _ in range(2))
    keys = [f"key/{i}" for i in range(20)]
    assert one.put_many(keys, 100_000) == {}
    assert other.check_many(keys, 100_000) == [[], []]


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


def move(initiator, target, write):
    """The code of a write or read of 1 MiB."""
    here, there = initiator.info["address"], target.info["address"]
    return initiator.move(write, target.info["name"], [here], [there], [1 << 20])


@pytest.mark.parametrize("lost_s", [0, pytest.param(30, marks=pytest.mark.long_form)])
@pytest.mark.parametrize("writes", [True, False])
def test_engines_find_each_other_again_after_a_blackhole(linked, lost_s, writes):
    cable, start = linked
    peers = start()
    for one, other in (peers, peers[::-1]):
        write_and_check(one, other)
    one, other = peers
    cable.lose_packets()
    begin = time.monotonic()
    while True:
        assert move(one, other, writes) == -1
        # It was found out, not waited for as for a peer that is stopped.
        assert "its host does not answer" in one.last_error()[1]
        if time.monotonic() >= begin + lost_s:
            break
    assert other.info["name"] in one.last_error()[1]
    cable.mend()
    healed = time.monotonic()
    for one, other in (peers, peers[::-1]):
        wait_until(lambda one=one, other=other: move(one, other, writes) == 0, "bytes move again")
        write_and_check(one, other)
    if lost_s:
        assert time.monotonic() < healed + 3


def test_a_store_whose_data_path_is_broken_is_left_alone_until_it_works(new_host, start_master, start_store):
    host, rest = new_host(), new_host()
    Cable("control", {"10.9.1.1": host, "10.9.1.2": rest})
    data = Cable("data", {"10.9.2.1": host, "10.9.2.2": rest})
    master = start_master("--default_kv_lease_ttl=200", on=rest, address="10.9.1.2")
    settings = {"MC_FORCE_TCP": "1"}
    owner = start_store(master.address, host="10.9.2.1", on=host, **settings)
    keys = [f"key/{i}" for i in range(20)]
    assert owner.put_many(keys, 1000) == {}  # Nobody else has a segment yet.
    others = [start_store(master.address, host="10.9.2.2", on=rest, **settings) for _ in range(2)]
    numbers = itertools.count()

    def from_both(method, *arguments):
        for other in others:
            other.send(method, *arguments)
        return [other.receive() for other in others]

    def left_alone():
        """Asked as a whole: what was reported is forgotten after a while, and then reported anew."""
        assert from_both("check_many", keys[:1], 1000) == [[keys[:1], []]] * 2
        fresh = [f"{next(numbers)}/{i}" for i in range(20)]
        return (
            from_both("exist_many", keys) == [[0] * len(keys)] * 2
            and others[0].put_many(fresh, 1000) == {}
            and others[1].check_many(fresh, 1000) == [[], []]
            and master.metrics()["master_quarantined_segments"] == 1
            and '"quarantined":true' in master.http("/get_segments_detail")[1]
        )

    assert from_both("check_many", keys, 1000) == [[[], []]] * 2
    data.lose_packets()
    wait_until(left_alone, "the segment is quarantined, and all goes on without it")
    assert owner.hostname() in master.http("/get_all_segments")[1]  # Its owner's pings arrive.
    data.mend()
    wait_until(lambda: from_both("check_many", keys, 1000) == [[[], []]] * 2, "its values are readable again")
    wait_until(lambda: master.metrics()["master_quarantined_segments"] == 0, "it is a segment as any other")
