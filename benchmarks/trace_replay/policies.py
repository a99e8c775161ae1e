"""What other policies would reach with the same capacity, computed without a store.

The protocol is that of the replay: a request looks all its blocks up, the leading present ones are its prefix hit, and
afterwards all its blocks are put in order. A ratio is blocks over blocks asked for.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.trace_replay.trace import Request


class Ratios(NamedTuple):
    """Hit ratios of one policy, 0 to 1."""

    prefix: float  # Leading present blocks.
    block: float  # All present blocks.


def _leading(blocks: list[int], present: Iterable[int]) -> int:
    count = 0
    for block in blocks:
        if block not in present:  # type: ignore[operator]
            break
        count += 1
    return count


def lru(requests: list[Request], capacity: int) -> Ratios:
    """Least recently used, each block touched in its order in the request."""
    cache: OrderedDict[int, None] = OrderedDict()
    asked = prefix = present = 0
    for request in requests:
        asked += len(request.blocks)
        prefix += _leading(request.blocks, cache)
        present += sum(block in cache for block in request.blocks)
        for block in request.blocks:
            cache[block] = None
            cache.move_to_end(block)
            if len(cache) > capacity:
                cache.popitem(last=False)
    return Ratios(prefix / asked, present / asked) if asked else Ratios(0, 0)


def offline_optimum(requests: list[Request], capacity: int) -> Ratios:
    """Belady's policy: drop the block that is asked for again last, of equals the deepest.

    A block is asked for again no later than those behind it, so what this keeps is always whole prefixes, and no
    policy, even knowing the future, has more hits. A block that never returns may be passed over.
    """
    never = len(requests)
    next_use: list[list[int]] = []
    seen: dict[int, int] = {}
    for index in range(never - 1, -1, -1):
        blocks = requests[index].blocks
        next_use.append([seen.get(block, never) for block in blocks])
        for block in blocks:
            seen[block] = index
    next_use.reverse()

    cache: dict[int, tuple[int, int]] = {}
    victims: list[tuple[int, int, int]] = []  # (-next use, -depth, block): the first is dropped first.
    asked = prefix = present = 0
    for request, uses in zip(requests, next_use, strict=True):
        asked += len(request.blocks)
        prefix += _leading(request.blocks, cache)
        present += sum(block in cache for block in request.blocks)
        for depth, (block, use) in enumerate(zip(request.blocks, uses, strict=True)):
            key = (-use, -depth)
            cache[block] = key
            heapq.heappush(victims, (*key, block))
        while len(cache) > capacity:
            *key_parts, block = heapq.heappop(victims)
            if cache.get(block) == tuple(key_parts):
                del cache[block]
    return Ratios(prefix / asked, present / asked) if asked else Ratios(0, 0)
