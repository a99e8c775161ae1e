"""The store's settings, from a JSON file or from environment variables."""

import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

logger = logging.getLogger(__name__)

DEFAULT_GLOBAL_SEGMENT_SIZE = 3355443200  # bytes: 3.125 GiB
DEFAULT_LOCAL_BUFFER_SIZE = 1 << 30  # bytes: 1 GiB
DEFAULT_CLIENT_HTTP_PORT = 9300

_KNOWN_PROTOCOLS = {
    "tcp",
    "rdma",
    "efa",
    "cxi",
    "cxl",
    "ub",
    "ascend",
    "nvlink",
    "nvlink_intra",
    "hip",
    "ubshmem",
}
_UNITS = {
    "tb": 1 << 40,
    "t": 1 << 40,
    "gb": 1 << 30,
    "g": 1 << 30,
    "mb": 1 << 20,
    "m": 1 << 20,
    "kb": 1 << 10,
    "k": 1 << 10,
    "b": 1,
}
_TRUE = {"1", "true", "yes", "on", "enable"}
_FALSE = {"0", "false", "no", "off", "disable", ""}


def parse_size(value: Any, field: str = "segment size") -> int:
    """Bytes from an int or a text such as ``"3.5gb"``, ``"16 MB"`` or ``"4096"`` (1024-based units).

    Raises:
        ValueError: the text is empty, negative or no size; the message names ``field``.
    """
    if isinstance(value, bool):
        raise ValueError(f"Invalid {field}: {value}. Give bytes or a text such as '4gb'.")
    if isinstance(value, int | float):
        number = int(value)
    else:
        text = str(value).strip().lower()
        if not text:
            raise ValueError(f"Invalid {field}: empty string")
        digits, factor = text, 1
        for unit, unit_factor in _UNITS.items():  # Longest suffix first.
            if text.endswith(unit):
                digits, factor = text[: -len(unit)].strip(), unit_factor
                break
        try:
            number = int(digits) * factor if digits.lstrip("+-").isdigit() else int(float(digits) * factor)
        except (ValueError, OverflowError):
            raise ValueError(f"Invalid {field}: {value!r}. Give bytes or a text such as '4gb'.") from None
    if number < 0:
        raise ValueError(f"Invalid {field}: {value}. Size must be non-negative.")
    return number


_parse_segment_size = parse_size  # The name under which connectors import it.


def _parse_bool(value: Any, field: str) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"Invalid {field}: {value!r}. Use true or false.")


def _parse_port(value: Any, field: str) -> int:
    try:
        port = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"Invalid {field}: {value!r}. Give a port number.") from None
    if not 0 <= port <= 65535:
        raise ValueError(f"Invalid {field}: {port}. Ports are 0 to 65535.")
    return port


class Variable(NamedTuple):
    """An environment variable that gives one field of a configuration."""

    name: str
    field: str
    default: str
    meaning: str
    parse: Callable[[Any, str], Any] | None = None  # None: the field's own reading is enough.


#: What ``MooncakeConfig.load_from_env`` reads besides ``MOONCAKE_CONFIG_PATH`` and ``MOONCAKE_MASTER``.
ENVIRONMENT = (
    Variable("MOONCAKE_LOCAL_HOSTNAME", "local_hostname", "localhost", "how others reach this host"),
    Variable("MOONCAKE_TE_META_DATA_SERVER", "metadata_server", "P2PHANDSHAKE", "or a metadata server's URL"),
    Variable(
        "MOONCAKE_GLOBAL_SEGMENT_SIZE", "global_segment_size", str(DEFAULT_GLOBAL_SEGMENT_SIZE), "bytes lent, or 4gb"
    ),
    Variable("MOONCAKE_LOCAL_BUFFER_SIZE", "local_buffer_size", str(DEFAULT_LOCAL_BUFFER_SIZE), "bytes kept, or 1gb"),
    Variable("MOONCAKE_PROTOCOL", "protocol", "tcp", "the transport's name"),
    Variable("MOONCAKE_DEVICE", "device_name", "", "NICs, by commas"),
    Variable("MOONCAKE_OFFLOAD_ENABLED", "enable_ssd_offload", "false", "for the SSD tier", _parse_bool),
    Variable("MOONCAKE_OFFLOAD_FILE_STORAGE_PATH", "ssd_offload_path", "", "the folder of the SSD tier"),
    Variable("MOONCAKE_TENANT_ID", "tenant_id", "default", "whose objects they are"),
    Variable(
        "MOONCAKE_ENABLE_CLIENT_HTTP_SERVER", "enable_client_http_server", "false", "serve health by HTTP", _parse_bool
    ),
    Variable("MOONCAKE_CLIENT_HTTP_PORT", "client_http_port", str(DEFAULT_CLIENT_HTTP_PORT), "its port", _parse_port),
)


@dataclass
class MooncakeConfig:
    """Settings of one store client.

    Sizes are in bytes; texts such as ``"4gb"`` are accepted where a configuration is read.

    Raises:
        ValueError: a required field is empty, a size negative, the protocol no text.
    """

    local_hostname: str
    metadata_server: str
    global_segment_size: int
    local_buffer_size: int
    protocol: str
    device_name: str
    master_server_address: str
    enable_ssd_offload: bool = False
    ssd_offload_path: str = ""
    tenant_id: str = "default"
    enable_client_http_server: bool = False
    client_http_port: int = DEFAULT_CLIENT_HTTP_PORT

    def __post_init__(self) -> None:
        for field in ("local_hostname", "metadata_server", "master_server_address"):
            if not getattr(self, field):
                raise ValueError(f"Missing required config field: {field}")
        self.global_segment_size = parse_size(self.global_segment_size, "global_segment_size")
        self.local_buffer_size = parse_size(self.local_buffer_size, "local_buffer_size")
        if not isinstance(self.protocol, str) or not self.protocol.strip():
            raise ValueError(f"Invalid protocol: {self.protocol!r}. Give a transport's name such as 'tcp'.")
        self.protocol = self.protocol.strip().lower()
        if self.protocol not in _KNOWN_PROTOCOLS:
            logger.warning("unknown protocol %r; known are %s", self.protocol, ", ".join(sorted(_KNOWN_PROTOCOLS)))
        self.enable_ssd_offload = _parse_bool(self.enable_ssd_offload, "enable_ssd_offload")
        self.enable_client_http_server = _parse_bool(self.enable_client_http_server, "enable_client_http_server")
        self.client_http_port = _parse_port(self.client_http_port, "client_http_port")

    @staticmethod
    def from_file(file_path: str) -> "MooncakeConfig":
        """Reads a JSON object whose keys are the fields' names; unknown keys are ignored.

        Raises:
            ValueError: a required field is missing (``local_hostname``, ``metadata_server``,
                ``master_server_address``) or a value is wrong.
            OSError, json.JSONDecodeError: the file cannot be read or is no JSON.
        """
        with Path(file_path).open(encoding="utf-8") as file:
            config = json.load(file)
        for field in ("local_hostname", "metadata_server", "master_server_address"):
            if field not in config:
                raise ValueError(f"Missing required config field: {field}")
        defaults = {
            "global_segment_size": DEFAULT_GLOBAL_SEGMENT_SIZE,
            "local_buffer_size": DEFAULT_LOCAL_BUFFER_SIZE,
            "protocol": "tcp",
            "device_name": "",
        }
        names = {field.name for field in fields(MooncakeConfig)}
        return MooncakeConfig(**(defaults | {key: value for key, value in config.items() if key in names}))

    @staticmethod
    def load_from_env() -> "MooncakeConfig":
        """Reads the file that ``MOONCAKE_CONFIG_PATH`` names, else the ``MOONCAKE_*`` variables.

        Raises:
            ValueError: neither ``MOONCAKE_CONFIG_PATH`` nor ``MOONCAKE_MASTER`` is set, or a value is wrong.
        """
        path = os.getenv("MOONCAKE_CONFIG_PATH")
        if path:
            return MooncakeConfig.from_file(path)
        master = os.getenv("MOONCAKE_MASTER")
        if not master:
            raise ValueError("Neither the environment variable 'MOONCAKE_CONFIG_PATH' nor 'MOONCAKE_MASTER' is set.")
        values: dict[str, Any] = {"master_server_address": master}
        for variable in ENVIRONMENT:
            text = os.environ.get(variable.name, variable.default)
            values[variable.field] = variable.parse(text, variable.name) if variable.parse else text
        return MooncakeConfig(**values)
