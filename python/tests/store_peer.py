"""A store client in a process of its own; see remote.py. Values are checked here, not sent."""

import random

from mooncake.store import MooncakeDistributedStore, ReplicateConfig
from remote import serve


def value(key, size):
    """The bytes that belong to a key: same key and size, same bytes in every process."""
    return random.Random(key).randbytes(size)


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

    def exist_many(self, keys):
        """batch_is_exist."""
        return self.store.batch_is_exist(keys)

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
