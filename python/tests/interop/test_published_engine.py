"""Wire proof: the published package's engine and ours move bytes to and from each other, in both roles.

P2P handshake and an HTTP metadata server, 1 byte to 64 MiB, reads and writes, single, batch and asynchronous calls.
"""

import itertools
import random

import pytest

from mooncake.http_metadata_server import KVBootstrapServer

SIZE = 160 << 20
LENGTHS = [1, 7, 8, 4095, 4096, 65535, 65536, 65537, 1 << 20, (5 << 20) + 3, 64 << 20]
PAIRS = [("ours", "published"), ("published", "ours")]
# Everything over tcp on both sides; between two of ours the same-host path would be taken.
FORCED = {"MC_FORCE_TCP": "1"}


@pytest.fixture(params=["p2p", "http"])
def metadata(request):
    if request.param == "p2p":
        yield "P2PHANDSHAKE"
        return
    server = KVBootstrapServer(0, "127.0.0.1")
    server.run()
    yield f"http://127.0.0.1:{server.port}/metadata"
    server.close()


_labels = itertools.count(20000)


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]}-to-{pair[1]}")
def pair(request, metadata, start_peer):
    """(initiator, target), started on one metadata service."""
    names = [f"127.0.0.1:{next(_labels)}" for _ in range(2)]
    initiator, target = (
        start_peer(kind, name, metadata, SIZE, **FORCED) for kind, name in zip(request.param, names, strict=True)
    )
    return initiator, target


def test_bytes_arrive_whole_in_both_directions(pair):
    initiator, target = pair
    name, remote, local = target.info["name"], target.info["address"], initiator.info["address"]
    for seed, length in enumerate(LENGTHS):
        offset = 3 * seed  # Odd addresses too.
        wanted = initiator.fill(offset, length, f"write {seed}")
        assert initiator.move(True, name, [local + offset], [remote + offset + 1], [length]) == 0, length
        assert target.checksum(offset + 1, length) == wanted, length
        wanted = target.fill(offset, length, f"read {seed}")
        assert initiator.move(False, name, [local + offset + 5], [remote + offset], [length]) == 0, length
        assert initiator.checksum(offset + 5, length) == wanted, length


@pytest.mark.parametrize("call", ["move", "move_async"])
def test_a_batch_arrives_whole(pair, call):
    initiator, target = pair
    name, remote, local = target.info["name"], target.info["address"], initiator.info["address"]
    rng = random.Random(7)
    lengths = [rng.choice([1, 100, 4096, 70000, 1 << 20]) for _ in range(200)]
    offsets = [0, *itertools.accumulate(lengths)]
    total = offsets.pop()
    shuffled = offsets[:]
    for write, source, sink in ((True, initiator, target), (False, target, initiator)):
        wanted = source.fill(0, total, f"batch {write}")
        locals_, remotes = [local + o for o in shuffled], [remote + o for o in shuffled]
        assert getattr(initiator, call)(write, name, locals_, remotes, lengths) == 0
        assert sink.checksum(0, total) == wanted


def test_a_range_that_is_not_registered_is_refused_and_nothing_breaks(pair):
    initiator, target = pair
    name, remote, local = target.info["name"], target.info["address"], initiator.info["address"]
    before = target.checksum(0, 4096)
    assert initiator.move(True, name, [local], [remote + SIZE - 100], [200]) == -1
    assert initiator.move(False, name, [local], [remote - 4096], [10]) == -1
    assert target.checksum(0, 4096) == before
    wanted = initiator.fill(0, 1000, "after")
    assert initiator.move(True, name, [local], [remote], [1000]) == 0
    assert target.checksum(0, 1000) == wanted


def test_probe_first_buffer_and_notification(pair):
    initiator, target = pair
    name, remote = target.info["name"], target.info["address"]
    assert initiator.probe(name) == 0
    assert initiator.probe("127.0.0.1:1") != 0
    assert initiator.first_buffer(name) == remote
    assert target.notifies() == []
    assert initiator.notify(name, remote, "hello") == 0
    assert target.notifies() == [["from interop", "hello"]]
