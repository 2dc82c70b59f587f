"""What a get costs in a program with asyncio: called directly, in another thread, and many in one call there.

    python asyncio_gets.py [URL [GETS]]

A direct call stops all tasks of the loop until it returns. In another thread (asyncio.to_thread) other tasks run meanwhile, and
handing over takes longer than a get of what is in memory.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections.abc import Awaitable, Callable
from time import perf_counter

import forrest

MANY = 100


async def measure(name: str, gets: int, work: Callable[[], Awaitable[int]]) -> None:
    """Prints the time of each get."""
    before = perf_counter()
    found = await work()
    took = perf_counter() - before
    assert found == gets
    print(f"{name:<28} {took / gets * 1e6:8.2f} microseconds for each get")


async def main(url: str, gets: int) -> None:
    """Loads and measures."""
    with forrest.open(url) as db:
        keys = [number.to_bytes(8) for number in range(gets)]
        db.put_many((key, bytes(100)) for key in keys)
        random.shuffle(keys)

        async def direct() -> int:
            return sum(db.get(key) is not None for key in keys)

        async def each() -> int:
            return sum([await asyncio.to_thread(db.get, key) is not None for key in keys])

        async def many() -> int:
            pieces = [keys[start : start + MANY] for start in range(0, gets, MANY)]
            found = await asyncio.gather(*(asyncio.to_thread(db.get_many, piece) for piece in pieces))
            return sum(value is not None for values in found for value in values)

        await measure("get", gets, direct)
        await measure("to_thread(get)", gets, each)
        await measure(f"to_thread(get_many) of {MANY}", gets, many)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        arguments = dict(enumerate(sys.argv))
        asyncio.run(main(arguments.get(1, f"{directory}/store"), int(arguments.get(2, 20_000))))
