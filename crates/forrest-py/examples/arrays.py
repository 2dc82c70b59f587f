"""NumPy's arrays beside the calls with a Python object for each pair.

    python arrays.py [URL [PAIRS [ROUNDS]]]

Both sides put, get and read the same random pairs of 8 + 8 bytes, and take turns; the other side's objects exist before the
clock starts. URL is "memory:" or a path, whose stores go afterwards. Rates are medians, and ratios are medians of the rounds'.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np

import forrest
from forrest import arrays, codecs


def main(url: str, count: int, rounds: int) -> None:
    """Measures and prints."""
    random = np.random.default_rng(1)
    keys, values = random.integers(-(1 << 62), 1 << 62, count), random.integers(0, 1 << 62, count)
    pairs = [(codecs.int64.encode(key), value.tobytes()) for key, value in zip(keys.tolist(), values)]
    single = [key for key, _ in pairs]
    sides: list[list[tuple[str, Callable[[forrest.Db], object]]]] = [
        [
            ("arrays.put", lambda db: arrays.put(db, keys, values)),
            ("arrays.get", lambda db: arrays.get(db, keys, "i8")),
            ("arrays.read", lambda db: arrays.read(db, "i8", "i8")),
            ("arrays.scan", lambda db: [None for _ in arrays.scan(db, "i8", "i8")]),
        ],
        [
            ("put_many", lambda db: db.put_many(pairs)),
            ("get_many", lambda db: db.get_many(single)),
            ("list(range)", lambda db: list(db.range())),
            ("each of range", lambda db: [None for _ in db.range()]),
        ],
    ]
    rates: dict[str, list[float]] = {name: [] for side in sides for name, _ in side}
    for number in range(rounds):
        for place, side in enumerate(sides):
            store = url if url == "memory:" else f"{url}-{number}-{place}"
            with forrest.open(store) as db:
                for name, call in side:
                    before = perf_counter()
                    call(db)
                    rates[name].append(count / (perf_counter() - before) / 1e6)
            if store != "memory:":
                shutil.rmtree(store)
    for (ours, _), (theirs, _) in zip(*sides):
        ratio = median(one / other for one, other in zip(rates[ours], rates[theirs]))
        print(
            f"{ours:<12} {median(rates[ours]):7.2f} M pairs/s, {theirs:<14} {median(rates[theirs]):6.2f} M pairs/s: {ratio:.1f} times"
        )


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    main(arguments.get(1, "memory:"), int(arguments.get(2, 1_000_000)), int(arguments.get(3, 5)))
