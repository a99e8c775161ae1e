"""A store client in a process of its own; see remote.py. Values are checked here, not sent."""

import collections
import ctypes
import itertools
import mmap
import os
import random
import re
import sys
import threading

from mooncake.store import MooncakeDistributedStore, ReplicateConfig
from remote import serve


def value(key, size):
    """The bytes that belong to a key: same key and size, same bytes in every process."""
    return random.Random(key).randbytes(size)


def signed(writer, size):
    """Bytes that say throughout who wrote them."""
    return (f"{writer}|".encode() * (size // 4 + 1))[:size]


class Peer:
    """One store; values derive from their keys."""

    def __init__(self):
        self.store = MooncakeDistributedStore()

    def setup(self, host, metadata, segment, local, master):
        """As the store's setup; returns its code."""
        return self.store.setup(host, metadata, segment, local, "tcp", "", master)

    def hostname(self):
        """The segment's name."""
        return self.store.get_hostname()

    def put_many(self, keys, size, replicas=1, pinned=False):
        """Puts each key; returns the codes that are not 0, by key."""
        config = ReplicateConfig()
        config.replica_num = replicas
        config.with_hard_pin = pinned
        codes = {key: self.store.put(key, value(key, size), config) for key in keys}
        return {key: code for key, code in codes.items() if code}

    def check_many(self, keys, size):
        """Gets each key; returns (missing keys, keys with wrong bytes)."""
        missing, wrong = [], []
        for key in keys:
            got = self.store.get(key)
            if got == b"":
                missing.append(key)
            elif got != value(key, size):
                wrong.append(key)
        return missing, wrong

    def put_contended(self, keys, sizes, writer, threads, batch):
        """Each thread puts each key with bytes of its own; how often that wrote, found the key there, or failed.

        By one batch_put_from a thread if ``batch``, else by a put a key.
        """
        outcomes = {"wrote": 0, "existed": 0, "failed": 0}
        lock = threading.Lock()

        def work(thread):
            order = list(zip(keys, sizes, strict=True))
            random.Random(f"{writer}/{thread}").shuffle(order)
            told = (self._put_in_one_batch if batch else self._put_one_by_one)(order, f"{writer}/{thread}")
            with lock:
                for outcome, count in told.items():
                    outcomes[outcome] += count

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return outcomes

    def _put_one_by_one(self, order, writer):
        outcomes = collections.Counter()
        for key, size in order:
            code = self.store.put(key, signed(writer, size))
            error, text = self.store.last_error()
            existed = code == 0 and error == -705 and f'"{key}"' in text
            outcomes["failed" if code else "existed" if existed else "wrote"] += 1
        return outcomes

    def _put_in_one_batch(self, order, writer):
        keys, sizes = (list(column) for column in zip(*order, strict=True))
        memory = mmap.mmap(-1, sum(sizes))
        for size in sizes:
            memory.write(signed(writer, size))
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert self.store.register_buffer(address, len(memory)) == 0
        places = itertools.accumulate(sizes[:-1], initial=address)
        failed = sum(code != 0 for code in self.store.batch_put_from(keys, list(places), sizes))
        error, text = self.store.last_error()
        more = re.search(r"and (\d+) more keys existed", text)
        existed = (1 + int(more[1] if more else 0)) if error == -705 else 0
        assert self.store.unregister_buffer(address) == 0
        return {"failed": failed, "existed": existed, "wrote": len(keys) - failed - existed}

    def not_one_writers(self, keys, sizes):
        """The keys whose value is not, whole, what one writer of put_contended() wrote."""
        values = zip(keys, sizes, map(self.store.get, keys), strict=True)
        return [key for key, size, got in values if got != signed(got.partition(b"|")[0].decode(), size)]

    def read_batch(self, keys, size):
        """One batch_get_into of all keys; (keys by code for those that failed, keys with wrong bytes)."""
        memory = mmap.mmap(-1, len(keys) * size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert self.store.register_buffer(address, len(memory)) == 0
        places = range(address, address + len(memory), size)
        codes = self.store.batch_get_into(keys, list(places), [size] * len(keys))
        failed, wrong = {}, []
        for i, (key, code) in enumerate(zip(keys, codes, strict=True)):
            if code != size:
                failed.setdefault(str(code), []).append(key)
            elif memory[i * size : (i + 1) * size] != value(key, size):
                wrong.append(key)
        assert self.store.unregister_buffer(address) == 0
        return failed, wrong

    def exist_then_get(self, keys, size):
        """For each key is_exist, and get if it is there; (keys that were there, those of them whose get failed)."""
        there, failed = [], []
        for key in keys:
            if self.store.is_exist(key) == 1:
                there.append(key)
                if self.store.get(key) != value(key, size):
                    failed.append(key)
        return there, failed

    def put_while_the_interpreter_is_held(self, key, size, release):
        """A put on a thread, while this one holds the interpreter until ``release`` (a FIFO) has a writer."""
        data = value(key, size)
        started = threading.Event()

        def work():
            started.set()
            assert self.store.put(key, data) == 0

        thread = threading.Thread(target=work)
        sys.setswitchinterval(1000)  # The thread runs until the put lets go of the interpreter.
        thread.start()
        started.wait()
        opened = ctypes.PyDLL(None).open(release.encode(), os.O_RDONLY)
        sys.setswitchinterval(0.005)
        os.close(opened)
        thread.join()

    def exist_many(self, keys):
        """batch_is_exist."""
        return self.store.batch_is_exist(keys)

    def remove_many(self, keys):
        """batch_remove, forced."""
        return self.store.batch_remove(keys, True)

    def remove_all(self):
        """Forced; the count."""
        return self.store.remove_all(True)

    def health(self):
        """health_check."""
        return self.store.health_check()

    def last_error(self):
        """(code, text) of the last failure; ours only."""
        return self.store.last_error()

    def close(self):
        """close; its code."""
        return self.store.close()


if __name__ == "__main__":
    serve(Peer())
