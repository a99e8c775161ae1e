"""``MooncakeDistributedStoreAsync``: each method ``m`` of the store also as the coroutine ``async_m``.

The call runs in the event loop's default executor; the store's methods let go of the interpreter lock, so other
coroutines go on meanwhile.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

from mooncake.store import MooncakeDistributedStore

_PREFIX = "async_"


class MooncakeDistributedStoreAsync(MooncakeDistributedStore):
    """The store with coroutines: ``await store.async_get(key)`` is ``store.get(key)`` in the executor."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method_name = name.removeprefix(_PREFIX)
        method = getattr(type(self), method_name, None) if name.startswith(_PREFIX) else None
        if not callable(method) or method_name.startswith("_"):
            also = f" (nor '{method_name}')" if name.startswith(_PREFIX) else ""
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'{also}")

        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(None, functools.partial(method, self, *args, **kwargs))

        return call
