"""Mooncake: moves, keeps and finds the KV caches of large language models.

``mooncake.engine`` moves bytes between processes and hosts; ``mooncake.store`` keeps objects in a pool that its
clients lend. Everything else here is a thin layer over these two.
"""

from importlib import metadata as _metadata
from pkgutil import extend_path as _extend_path

__path__ = _extend_path(__path__, __name__)  # Parts that others install beside this one are found, too.

#: Packages with which this one cannot share an environment: all install the folder ``mooncake``.
_PUBLISHED = (
    "mooncake-transfer-engine-non-cuda",
    "mooncake-transfer-engine-cuda13",
    "mooncake-transfer-engine-npu",
    "mooncake-transfer-engine-efa",
    "mooncake-transfer-engine-efa-cuda13",
    "mooncake-transfer-engine-efa-non-cuda",
    "mooncake-transfer-engine-musa",
    "mooncake-transfer-engine-rocm",
)


def _refuse_mixture() -> None:
    for name in _PUBLISHED:
        try:
            version = _metadata.version(name)
        except _metadata.PackageNotFoundError:
            continue
        raise ImportError(
            f"mooncake-transfer-engine and {name} {version} are installed in the same environment and overwrite "
            f"each other's files; run: pip uninstall {name} mooncake-transfer-engine, then install the one you want"
        )


_refuse_mixture()

try:
    __version__ = _metadata.version("mooncake-transfer-engine")
except _metadata.PackageNotFoundError:  # Imported from a source tree.
    __version__ = "0+unknown"
