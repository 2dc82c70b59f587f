"""put_many beside batches, and the same puts from Rust, on the same home with the same durability.

    python put_many.py [URL [PAIRS [ROUNDS]]] [--no-native]

All sides put the same random pairs of 16 + 100 bytes, which are there before the clock starts, in the same order into a new store,
and take turns; the rates are medians. Batches have 1,000 pairs. URL is "memory:" or a path, whose stores go afterwards. The native
side is crates/forrest/examples/sets.rs, which sets one pair at a time, built by cargo; --no-native leaves it out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import forrest

ROOT = Path(__file__).resolve().parents[3]
MASK = (1 << 64) - 1


def mixed(number: int) -> int:
    """The next number of SplitMix64."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def by_put_many(db: forrest.Db, pairs: list[tuple[bytes, bytes]]) -> None:
    """Puts the pairs in one call."""
    db.put_many(pairs)


def by_batches(db: forrest.Db, pairs: list[tuple[bytes, bytes]]) -> None:
    """Puts the pairs in batches."""
    for start in range(0, len(pairs), 1_000):
        with db.batch() as batch:
            for key, value in pairs[start : start + 1_000]:
                batch[key] = value


def here(
    put: Callable[[forrest.Db, list[tuple[bytes, bytes]]], None], url: str, pairs: list[tuple[bytes, bytes]]
) -> float:
    """Pairs per second from Python."""
    with forrest.open(url) as db:
        before = perf_counter()
        put(db, pairs)
        took = perf_counter() - before
        assert len(db) == len(pairs)
    return len(pairs) / took


def native(url: str, count: int) -> float:
    """Pairs per second from Rust."""
    cargo = ["cargo", "run", "--quiet", "--release", "--locked", "--package", "forrest-db", "--example", "sets", "--"]
    told = subprocess.run([*cargo, url, str(count)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(told.stdout)["pairs_per_second"])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="put_many beside batches, and the same puts from Rust")
    parser.add_argument("url", nargs="?", default="memory:")
    parser.add_argument("pairs", nargs="?", type=int, default=1_000_000)
    parser.add_argument("rounds", nargs="?", type=int, default=5)
    parser.add_argument("--no-native", action="store_true", help="leave the native side out")
    asked = parser.parse_args()
    pairs = [(b"%016x" % mixed(number), mixed(~number & MASK).to_bytes(8) + bytes(92)) for number in range(asked.pairs)]
    sides: dict[str, Callable[[str], float]] = {
        "put_many": lambda url: here(by_put_many, url, pairs),
        "batches": lambda url: here(by_batches, url, pairs),
    }
    if not asked.no_native:
        sides["Rust"] = lambda url: native(url, asked.pairs)
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(asked.rounds):
        for side, measure in sides.items():
            url = asked.url if asked.url == "memory:" else f"{asked.url}-{side}-{number}"
            rates[side].append(measure(url))
            if url != "memory:":
                shutil.rmtree(url)
    for side, each in rates.items():
        print(f"{side:<9} {median(each):12,.0f} pairs/s  ({', '.join(f'{rate:,.0f}' for rate in each)})")
    for side in list(sides)[1:]:
        ratio = median(ours / theirs for ours, theirs in zip(rates["put_many"], rates[side]))
        print(f"put_many has {ratio:.0%} of the rate of {side}")


if __name__ == "__main__":
    main()
