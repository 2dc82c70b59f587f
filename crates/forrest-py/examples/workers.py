"""Several processes that read one store.

    python workers.py [PATH]

Each worker opens the store for itself, for reading only, when it starts: no open store can be sent to another process, nor
used after a fork. Workers have a cache each, so its size is given.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile

import forrest

WORKERS = 4
KEYS = 10_000

store: forrest.Db


def start(path: str) -> None:
    """Runs in each worker, once."""
    global store
    store = forrest.open(path, read_only=True, cache_bytes=32 << 20)


def find(numbers: range) -> int:
    """How many of some keys there are."""
    return sum(value is not None for value in store.get_many(number.to_bytes(8) for number in numbers))


def main(path: str) -> None:
    """Writes a store, and lets workers read it."""
    with forrest.open(path) as db:
        db.put_many((number.to_bytes(8), b"value") for number in range(KEYS))
        tasks = [range(first, first + 1_000) for first in range(0, KEYS, 1_000)]
        # "spawn" and "forkserver" work beside threads; "fork" does too if the process has no other threads yet.
        with multiprocessing.get_context("spawn").Pool(WORKERS, start, (path,)) as pool:
            print(f"{WORKERS} workers found {sum(pool.map(find, tasks))} of {KEYS} keys")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as directory:
            main(f"{directory}/store")
