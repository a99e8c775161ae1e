"""Segments that a store lends besides its first one, and takes back."""

from pathlib import Path

from waiting import wait_until

SEGMENT = 24 << 20  # Unlike any other size, so that its memory can be told from others'.


def lent_segments() -> int:
    """How many of this size this process has mapped."""
    ranges = [
        line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines() if "memfd" in line
    ]
    return sum(int(end, 16) - int(begin, 16) == SEGMENT for begin, end in ranges)


def mount(store) -> str:
    mounted = store.allocate_and_mount_segment(SEGMENT)
    assert mounted["ret"] == 0
    assert mounted["allocated_size"] == SEGMENT
    (segment,) = mounted["segment_ids"]
    return segment


def test_a_segment_is_lent_used_and_taken_back(master, start_local):
    store = start_local(master.address, segment=0)
    for take_back in (store.unmount_segment, store.unmount_and_free_segment):
        segment = mount(store)
        assert lent_segments() == 1
        assert master.http("/get_all_segments")[1].split() == [store.get_hostname()]
        assert store.put("k", b"value") == 0
        assert store.get("k") == b"value"
        assert take_back([segment]) == 0
        assert lent_segments() == 0
        assert store.get("k") == b""
        wait_until(lambda: master.http("/get_all_segments")[1] == "", "the master has forgotten the segment")
        assert take_back([segment]) == -1, "it is gone"


def test_objects_of_a_leaving_segment_can_be_read_until_it_is_gone(master, start_local, start_store):
    store = start_local(master.address, segment=0)
    reader = start_store(master.address, segment=0)
    segments = [mount(store), mount(store)]
    assert reader.put_many(["k"], 1000) == {}
    assert store.unmount_segment(segments, grace_period_seconds=1 << 62) == 0
    assert reader.check_many(["k"], 1000) == [[], []]
    assert store.put("l", b"value") == -200
    assert lent_segments() == 2
    assert store.unmount_segment(segments, grace_period_seconds=1) == 0
    wait_until(lambda: lent_segments() == 0, "their memory is freed")
    assert reader.check_many(["k"], 1000) == [["k"], []]


def test_close_does_not_wait_for_a_leaving_segment(master, start_local):
    store = start_local(master.address, segment=0)
    assert store.unmount_and_free_segment([mount(store)], 3600) == 0
    assert store.close() == 0
    assert lent_segments() == 0
    wait_until(lambda: master.http("/get_all_segments")[1] == "", "the master has forgotten the segment")
