"""An engine in a process of its own; see remote.py.

Runs with any interpreter whose environment has ``mooncake.engine``, ours or the published package's.
"""

import ctypes
import mmap
import os
import random
import socket
import time
import zlib
from pathlib import Path

from mooncake.engine import TransferEngine, TransferNotify, TransferOpcode
from remote import serve


class Peer:
    """One engine with one registered buffer."""

    def __init__(self):
        self.engine = TransferEngine()

    def start(self, host, metadata, size):
        """Initialises the engine and registers ``size`` bytes; returns how others reach it."""
        code = self.engine.initialize(host, metadata, "tcp", "")
        if code:
            return {"code": code}
        self.memory = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        code = self.engine.register_memory(self.address, size)
        name = host
        if metadata == "P2PHANDSHAKE":
            name = f"{host.rsplit(':', 1)[0] if host.count(':') == 1 else host}:{self.engine.get_rpc_port()}"
        return {"code": code, "name": name, "address": self.address}

    def fill(self, offset, length, seed):
        """Writes bytes that follow from ``seed``; returns their checksum."""
        block = zlib.crc32(str(seed).encode()).to_bytes(4, "little") * 1024 + bytes(range(251)) * 17
        data = (block * (length // len(block) + 1))[:length]
        self.memory[offset : offset + length] = data
        return zlib.crc32(data)

    def checksum(self, offset, length):
        """Checksum of a range of the buffer."""
        return zlib.crc32(memoryview(self.memory)[offset : offset + length])

    def move(self, write, name, local, remote, lengths):
        """One transfer a range; ``local`` and ``remote`` are absolute addresses. A batch call if there are several."""
        engine = self.engine
        if len(lengths) == 1:
            call = engine.transfer_sync_write if write else engine.transfer_sync_read
            return call(name, local[0], remote[0], lengths[0])
        call = engine.batch_transfer_sync_write if write else engine.batch_transfer_sync_read
        return call(name, local, remote, lengths)

    def move_async(self, write, name, local, remote, lengths):
        """The same through the asynchronous calls."""
        engine = self.engine
        call = engine.batch_transfer_async_write if write else engine.batch_transfer_async_read
        batch = call(name, local, remote, lengths)
        return engine.get_batch_transfer_status([batch]) if batch else -1

    def move_blocks(self, write, name, remote, block, count):
        """One batch of ``count`` blocks that go round through the buffer; returns (code, growth of resident memory).

        The growth is that of the peak within the call, in bytes.
        """
        fit = len(self.memory) // block
        offsets = [i % fit * block for i in range(count)]
        here, there = [self.address + o for o in offsets], [remote + o for o in offsets]
        call = self.engine.batch_transfer_sync_write if write else self.engine.batch_transfer_sync_read
        Path("/proc/self/clear_refs").write_text("5")  # Sets the peak to what is resident now.
        before = self.footprint()["peak_bytes"]
        code = call(name, here, there, [block] * count)
        return code, self.footprint()["peak_bytes"] - before

    def move_random_blocks(self, name, remote, block, count):
        """One batch write of ``count`` blocks at random places, the same at both ends; returns (code, seconds)."""
        offsets = [random.randrange(len(self.memory) // block) * block for _ in range(count)]
        here, there = [self.address + o for o in offsets], [remote + o for o in offsets]
        begin = time.perf_counter()
        code = self.engine.batch_transfer_sync_write(name, here, there, [block] * count)
        return code, time.perf_counter() - begin

    def footprint(self):
        """What this process takes of the machine: open descriptors, threads, resident bytes and their peak."""
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return {
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "threads": int(status["Threads"]),
            "resident_bytes": int(status["VmRSS"].split()[0]) << 10,
            "peak_bytes": int(status["VmHWM"].split()[0]) << 10,
        }

    def _sockets(self):
        """Duplicates of the TCP sockets of this process."""
        for entry in list(Path("/proc/self/fd").iterdir()):
            if entry.is_symlink() and str(entry.readlink()).startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as duplicate:
                    if duplicate.family != socket.AF_UNIX:
                        yield duplicate

    def listening_ports(self):
        """The TCP ports on which this process takes connections."""
        listens = (socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        return [found.getsockname()[1] for found in self._sockets() if found.getsockopt(*listens)]

    def cut_connections(self):
        """Shuts every TCP connection of this process down under the engine; returns how many there were."""
        cut = 0
        for connection in self._sockets():
            try:
                if connection.getpeername():
                    connection.shutdown(socket.SHUT_RDWR)
                    cut += 1
            except OSError:
                pass  # It listens, or has ended already.
        return cut

    def submit_write(self, name, remote, length):
        """Starts a write from the begin of the buffer; returns its batch id."""
        return self.engine.transfer_submit_write(name, self.address, remote, length)

    def status(self, batch):
        """Of what submit_write() began: 0 = under way, 1 = done, negative = failed."""
        return self.engine.transfer_check_status(batch)

    def finish(self, batch):
        """Waits for what submit_write() began; 0 or -1."""
        return self.engine.get_batch_transfer_status([batch])

    def move_until_it_fails(self, name, remote, length):
        """Writes ``length`` bytes again and again; returns (writes that succeeded, code of the first that did not)."""
        count = 0
        while (code := self.engine.transfer_sync_write(name, self.address, remote, length)) == 0:
            count += 1
        return count, code

    def first_buffer(self, name):
        """Address of the peer's first buffer, 0 if it has none."""
        return self.engine.get_first_buffer_address(name)

    def probe(self, name):
        """0 if the peer answers."""
        return self.engine.send_probe(name)

    def notify(self, name, remote, message):
        """A write of one byte that carries a notification."""
        return self.engine.transfer_sync(
            name, self.address, remote, 1, TransferOpcode.Write, TransferNotify("from interop", message)
        )

    def notifies(self):
        """Notifications received since the last call."""
        return [[notify.name, notify.msg] for notify in self.engine.get_notifies()]

    def last_error(self):
        """(code, text) of the last failure; ours only."""
        return self.engine.last_error()


if __name__ == "__main__":
    serve(Peer())
