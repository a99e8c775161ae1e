"""Values whose bytes follow from the block's id, so that every read can be checked."""

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]


class Values:
    """Makes and checks values of one size.

    Args:
        value_bytes: Size of every value; a multiple of 8.
    """

    def __init__(self, value_bytes: int):
        if value_bytes <= 0 or value_bytes % 8:
            raise ValueError(f"values of {value_bytes} bytes: give a multiple of 8")
        self._pattern: Words = np.random.default_rng(seed=1).integers(
            0, 1 << 64, size=value_bytes // 8, dtype=np.uint64, endpoint=False
        )

    @staticmethod
    def _mask(block: int) -> np.uint64:
        # An odd factor spreads neighbouring ids over all bits.
        return np.uint64((block * 0x9E3779B97F4A7C15 + 1) & 0xFFFFFFFFFFFFFFFF)

    def write(self, block: int, into: Words) -> None:
        """Fills ``into``, shape (value_bytes / 8,), with the value of ``block``."""
        np.bitwise_xor(self._pattern, self._mask(block), out=into)

    def matches(self, block: int, words: Words) -> bool:
        """Whether ``words`` is the value of ``block``, every bit of it."""
        return bool(np.array_equal(np.bitwise_xor(words, self._mask(block)), self._pattern))
