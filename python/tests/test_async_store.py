"""The store's coroutines, against a master."""

import asyncio
import signal

import pytest

from mooncake.async_store import MooncakeDistributedStoreAsync
from waiting import stop


@pytest.fixture
def store(master):
    store = MooncakeDistributedStoreAsync()
    assert store.setup("127.0.0.1", "P2PHANDSHAKE", 64 << 20, 16 << 20, "tcp", "", master.address) == 0
    yield store
    store.close()


def test_each_method_has_its_coroutine(store):
    async def use():
        assert await store.async_put("a", b"1") == 0
        assert await store.async_put_batch(["b", "c"], [b"2", b"3"]) == 0
        assert await store.async_get("a") == b"1"
        assert await store.async_get_batch(["c", "b"]) == [b"3", b"2"]
        assert await store.async_is_exist("a") == 1
        assert await store.async_batch_is_exist(["a", "no"]) == [1, 0]
        assert await store.async_get_size("a") == 1
        buffer = await store.async_get_buffer("a")
        assert bytes(memoryview(buffer)) == b"1"
        assert await store.async_upsert("a", b"22") == 0
        assert await store.async_get("a") == b"22"
        assert await store.async_remove("a", force=True) == 0
        assert await store.async_remove_by_regex("^b$", True) == 1
        assert await store.async_remove_all(True) == 1

    asyncio.run(use())


def test_the_calls_run_beside_the_event_loop(store):
    async def use():
        keys = [f"k{i}" for i in range(64)]
        assert await asyncio.gather(*(store.async_put(key, key.encode()) for key in keys)) == [0] * len(keys)
        assert await asyncio.gather(*(store.async_get(key) for key in keys)) == [key.encode() for key in keys]

    asyncio.run(use())


def test_a_call_that_waits_lets_the_event_loop_go_on(master, store):
    async def use():
        stop(master.process)
        try:
            waiting = asyncio.ensure_future(store.async_is_exist("a"))
            for _ in range(1000):
                await asyncio.sleep(0)
            assert not waiting.done()
        finally:
            master.process.send_signal(signal.SIGCONT)
        assert await waiting == 0

    asyncio.run(use())


def test_what_the_store_lacks_its_coroutines_lack():
    store = MooncakeDistributedStoreAsync()
    with pytest.raises(AttributeError, match=r"no attribute 'async_nosuch' \(nor 'nosuch'\)"):
        store.async_nosuch  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'nosuch'$"):
        store.nosuch  # noqa: B018
    with pytest.raises(AttributeError):
        store.async___init__  # noqa: B018
    assert "async_get" not in dir(store)


def test_an_error_of_the_call_comes_out_of_the_await(store):
    async def use():
        with pytest.raises(TypeError):
            await store.async_put(7)

    asyncio.run(use())
