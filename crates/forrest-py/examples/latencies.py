"""How long single calls take, as a table, and as a picture if there is matplotlib.

    python latencies.py [URL [KEYS]]

The default URL is "memory:", and the default of KEYS 100,000. The example overwrites and deletes keys of eight bytes in the
store, so name a new one.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from time import perf_counter_ns

import forrest

PICTURE = "latencies.svg"


def timed(call: Callable[[bytes], object], keys: list[bytes]) -> list[int]:
    """The time of each call in nanoseconds, sorted. It includes reading the clock, about 50 ns."""
    took = []
    for key in keys:
        before = perf_counter_ns()
        call(key)
        took.append(perf_counter_ns() - before)
    return sorted(took)


def measure(db: forrest.Db, keys: list[bytes]) -> dict[str, list[int]]:
    """The times of each kind of call."""
    value = bytes(100)
    calls: dict[str, Callable[[bytes], object]] = {
        "set": lambda key: db.__setitem__(key, value),
        "get": lambda key: db[key],
        "get, missing": lambda key: db.get(key + b"?"),
        "first of a range": lambda key: next(db.range(key)),
        "add": lambda key: db.add(b"counter", 1),
        "delete": lambda key: db.pop(key),
    }
    latencies = {}
    for name, call in calls.items():
        random.shuffle(keys)
        latencies[name] = timed(call, keys)
    del db[b"counter"]
    return latencies


def draw(latencies: dict[str, list[int]]) -> None:
    """The share of calls that took at most this time, for each kind."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("there is no matplotlib, so nothing is drawn; pip install matplotlib gets it")
        return
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for name, took in latencies.items():
        axes.plot([ns / 1000 for ns in took], [100 * (at + 1) / len(took) for at in range(len(took))], label=name)
    axes.set(xscale="log", xlabel="microseconds", ylabel="% of calls that took at most so long")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(PICTURE)
    print(f"drawn in {PICTURE}")


def main(url: str = "memory:", count: str = "100000") -> None:
    """Measures, prints and draws."""
    keys = [number.to_bytes(8) for number in range(int(count))]
    with forrest.open(url) as db:
        latencies = measure(db, keys)
    print(f"{'microseconds':<18} {'half':>9} {'99 %':>9} {'99.9 %':>9} {'most':>9}")
    for name, took in latencies.items():
        shares = (took[min(int(len(took) * share), len(took) - 1)] / 1000 for share in (0.5, 0.99, 0.999, 1))
        print(f"{name:<18} " + " ".join(f"{share:9.2f}" for share in shares))
    draw(latencies)


if __name__ == "__main__":
    main(*sys.argv[1:])
