"""One-sided reads and writes of memory of other processes and hosts.

Addresses are integers in the address space of the process that they belong to; lengths are bytes. Functions return 0 or
a negative code unless they say otherwise; ``last_error()`` gives the reason in words.
"""

from collections.abc import Sequence
from enum import IntEnum

SUPPORT_CUDA: bool
SUPPORT_EFA: bool
SUPPORT_HIP: bool
SUPPORT_INTRA_NVLINK: bool
SUPPORT_MNNVL: bool
SUPPORT_MUSA: bool

class TransferOpcode(IntEnum):
    Read = 0
    Write = 1
    READ = 0
    WRITE = 1

Read = TransferOpcode.Read
Write = TransferOpcode.Write
READ = TransferOpcode.READ
WRITE = TransferOpcode.WRITE

_Opcode = TransferOpcode  # The class below has an attribute of the same name.

class TransferNotify:
    name: str
    msg: str
    def __init__(self, name: str = ..., msg: str = ...) -> None: ...

class InnerTransferEngine: ...

class TransferEngine:
    TransferOpcode: type[_Opcode]
    def __init__(self) -> None: ...
    def initialize(self, local_hostname: str, metadata_server: str, protocol: str, device_name: str) -> int: ...
    def initialize_ext(
        self, local_hostname: str, metadata_server: str, protocol: str, device_name: str, metadata_type: str
    ) -> int: ...
    def get_rpc_port(self) -> int: ...
    def get_local_topology(self, device_name: str | None = None) -> str: ...
    def get_engine(self) -> InnerTransferEngine: ...
    def get_engine_ptr(self) -> int: ...
    def last_error(self) -> tuple[int, str]: ...
    def allocate_managed_buffer(self, length: int, /) -> int: ...
    def free_managed_buffer(self, addr: int, length: int, /) -> int: ...
    def write_bytes_to_buffer(self, dest_addr: int, data: bytes, length: int) -> int: ...
    def read_bytes_from_buffer(self, addr: int, length: int) -> bytes: ...
    def register_memory(self, buffer_addr: int, capacity: int, location: str = "*") -> int: ...
    def unregister_memory(self, addr: int, /) -> int: ...
    def batch_register_memory(
        self, buffer_addresses: Sequence[int], capacities: Sequence[int], location: str = "*"
    ) -> int: ...
    def batch_unregister_memory(self, addrs: Sequence[int], /) -> int: ...
    def get_first_buffer_address(self, segment_name: str, /) -> int: ...
    def transfer_sync_write(
        self, target_hostname: str, buffer: int, peer_buffer_address: int, length: int, transport_hint: str = ""
    ) -> int: ...
    def transfer_sync_read(
        self, target_hostname: str, buffer: int, peer_buffer_address: int, length: int, transport_hint: str = ""
    ) -> int: ...
    def transfer_sync(
        self,
        target_hostname: str,
        buffer: int,
        peer_buffer_address: int,
        length: int,
        opcode: _Opcode,
        notify: TransferNotify | None = None,
        transport_hint: str = "",
    ) -> int: ...
    def batch_transfer_sync_write(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        transport_hint: str = "",
    ) -> int: ...
    def batch_transfer_sync_read(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        transport_hint: str = "",
    ) -> int: ...
    def batch_transfer_sync(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        opcode: _Opcode,
        notify: TransferNotify | None = None,
        transport_hint: str = "",
    ) -> int: ...
    def batch_transfer_async_write(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        transport_hint: str = "",
    ) -> int: ...
    def batch_transfer_async_read(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        transport_hint: str = "",
    ) -> int: ...
    def batch_transfer_async(
        self,
        target_hostname: str,
        buffers: Sequence[int],
        peer_buffer_addresses: Sequence[int],
        lengths: Sequence[int],
        opcode: _Opcode,
        transport_hint: str = "",
    ) -> int: ...
    def get_batch_transfer_status(self, batch_ids: Sequence[int], /) -> int: ...
    def transfer_submit_write(
        self, target_hostname: str, buffer: int, peer_buffer_address: int, length: int, transport_hint: str = ""
    ) -> int: ...
    def transfer_check_status(self, batch_id: int, /) -> int: ...
    def warmup_efa_segment(self, segment_name: str) -> int: ...
    def get_notifies(self) -> list[TransferNotify]: ...
    def send_probe(self, peer_server_name: str) -> int: ...

def environment_reference() -> str: ...
