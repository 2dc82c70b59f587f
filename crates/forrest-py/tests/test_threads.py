"""Threads: no change is lost, and a call that waits does not stop other threads."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count
from pathlib import Path
from typing import TypeVar

import pytest

import forrest
from conftest import needs
from forrest import _forrest

THREADS = 4
T = TypeVar("T")


def together(work: Callable[[int], T]) -> list[T]:
    """The results of a function that several threads call at once."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


def test_no_addition_is_lost(db: forrest.Db) -> None:
    def work(_: int) -> None:
        for _ in range(1_000):
            db.add(b"visits", 1)

    together(work)
    assert db.add(b"visits", 0) == THREADS * 1_000


def test_each_pair_is_popped_once(db: forrest.Db) -> None:
    keys = [b"%06d" % number for number in range(2_000)]
    db.put_many((key, key) for key in keys)

    def by_item(_: int) -> list[bytes]:
        popped: list[bytes] = []
        while True:
            try:
                key, value = db.popitem()
            except KeyError:
                return popped
            assert key == value
            popped.append(key)

    assert sorted(chain(*together(by_item))) == keys
    db.put_many((key, key) for key in keys)
    by_key = together(lambda _: [key for key in keys if db.pop(key, None)])
    assert sorted(chain(*by_key)) == keys


def test_all_get_the_same_default(db: forrest.Db) -> None:
    for round in range(200):
        key = b"%d" % round
        assert len(set(together(lambda thread: db.setdefault(key, b"%d" % thread)))) == 1


def test_threads_share_an_iteration(db: forrest.Db) -> None:
    keys = [b"%06d" % number for number in range(20_000)]
    db.put_many((key, b"") for key in keys)
    rows = db.range(keys_only=True)
    seen = together(lambda _: list(rows))
    assert sorted(chain(*seen)) == keys


def test_threads_share_a_batch(db: forrest.Db) -> None:
    with db.batch() as batch:

        def work(thread: int) -> None:
            for at in range(500):
                batch[b"%d %d" % (thread, at)] = b""

        together(work)
    assert len(db) == THREADS * 500


def test_no_transaction_is_lost(db: forrest.Db) -> None:
    def count(transaction: forrest.Transaction) -> int:
        number = int(transaction.get(b"number", b"0")) + 1
        transaction[b"number"] = b"%d" % number
        return number

    numbers = together(lambda _: [db.transact(count) for _ in range(200)])
    assert sorted(chain(*numbers)) == list(range(1, THREADS * 200 + 1))


def test_threads_share_a_transaction(db: forrest.Db) -> None:
    with db.transaction() as transaction:

        def work(thread: int) -> None:
            for at in range(300):
                assert transaction.get(b"%d %d" % (thread, at)) is None
                transaction[b"%d %d" % (thread, at)] = b""

        together(work)
    assert len(db) == THREADS * 300


def test_a_wait_for_a_lock_stops_no_other_thread(db: forrest.Db) -> None:
    owner, shared = db.transaction(), db.transaction()
    owner.lock(b"k")
    shared.set_lock_wait(60)
    entered = threading.Event()

    def use() -> None:
        entered.set()
        assert shared.get(b"x") is None

    def end() -> None:
        entered.wait()
        time.sleep(0.2)
        owner.commit()

    with ThreadPoolExecutor(3) as pool:
        waits = pool.submit(shared.lock, b"k")
        time.sleep(0.2)
        uses, ends = pool.submit(use), pool.submit(end)
        for call in (waits, uses, ends):
            call.result(timeout=30)
    shared.commit()


def test_closing_under_threads(url: str) -> None:
    for _ in range(10):
        db = forrest.open(url)
        db.put_many((b"%06d" % number, b"") for number in range(2_000))
        working = threading.Barrier(THREADS + 1)

        def work(thread: int, db: forrest.Db = db, working: threading.Barrier = working) -> str:
            working.wait()
            try:
                while True:
                    if thread == 0:
                        db.put_many((b"%06d" % number, b"") for number in range(2_000))
                    elif thread == 1:
                        list(db.range())
                    elif thread == 2:
                        with db.batch() as batch:
                            batch[b"a"] = b"1"
                    else:
                        db.get_many([b"a", b"b"])
            except forrest.InvalidArgumentError as error:
                return str(error)

        with ThreadPoolExecutor(THREADS) as pool:
            ends = [pool.submit(work, thread) for thread in range(THREADS)]
            working.wait()
            db.close()
            assert {end.result() for end in ends} == {"invalid argument: the store is closed"}


def lets_others_on(call: Callable[[], object], times: int = 5_000_000) -> bool:
    """Whether another thread runs while one thread calls something. It calls up to `times` times, because the other thread
    has to be ready at the right moment. The switch interval is so long that Python itself does not switch threads, so
    another thread runs only if the call releases the interpreter."""
    before = sys.getswitchinterval()
    gate, went_on = threading.Lock(), []
    gate.acquire()

    def other() -> None:
        with gate:
            went_on.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    sys.setswitchinterval(1_000)
    try:
        gate.release()
        for _ in range(times):
            call()
            if went_on:
                return True
        return False
    finally:
        sys.setswitchinterval(before)
        thread.join()


def test_that_others_go_on_can_be_told() -> None:
    assert not lets_others_on(lambda: None, 1_000_000)


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.get(b"a"),
        lambda db: b"a" in db,
        lambda db: db.__setitem__(b"a", b"1"),
        lambda db: db.pop(b"b", None),
        lambda db: db.add(b"n", 1),
        lambda db: db.compare_and_swap(b"a", None, b""),
        lambda db: db.setdefault(b"a", b""),
        lambda db: db.delete_range(b"x"),
        lambda db: db.put_many([(b"a", b"1")]),
        lambda db: db.get_many([b"a"]),
        lambda db: _forrest.put_rows(db, b"a", b"1", 1, 0),
        lambda db: _forrest.get_rows(db, b"a", 1, 1),
        lambda db: _forrest.scan_rows(db, None, None, None, 1, 1, 1),
        lambda db: len(db),
        lambda db: bool(db),
        lambda db: list(db),
        lambda db: db.keyspace("default"),
        lambda db: db.stats(),
        lambda db: db.sync(),
        lambda db: db.verify(),
        lambda db: db.compact(),
        lambda db: db.compact_range(b"a", b"b"),
        lambda db: db.set_compression("lz4"),
        lambda db: db.flush(),
        lambda db: db.trim(),
        lambda db: db.settle(),
        lambda db: db.resume(),
        lambda db: db.set_options(batch_ops_max=1 << 20),
        lambda db: db.snapshot(),
        lambda db: db.batch().write(),
        lambda db: db.transaction().get(b"a"),
        lambda db: db.transaction().commit(),
        lambda db: db.drop_keyspace("nothing"),
    ],
)
def test_others_go_on(disk: forrest.Db, call: Callable[[forrest.Db], object]) -> None:
    disk[b"a"] = b"1"
    assert lets_others_on(lambda: call(disk))


def test_others_go_on_during_a_salvage(tmp_path: Path) -> None:
    with forrest.open(tmp_path / "store") as db:
        db[b"a"] = b"1"
    numbers = count()
    assert lets_others_on(lambda: forrest.salvage(tmp_path / "store", tmp_path / f"copy {next(numbers)}"), 1_000)


def test_others_go_on_while_memory_is_written() -> None:
    with forrest.open("memory:") as db:
        db[b"a"] = b"1"
        assert lets_others_on(lambda: db.__setitem__(b"a", b"2"))
        # A call that never waits keeps the interpreter.
        assert not lets_others_on(lambda: db.get(b"a"), 100_000)


def test_a_snapshot_stays_as_it_is_under_threads(db: forrest.Db) -> None:
    needs(db, "snapshots")
    db.put_many((b"%06d" % number, b"old") for number in range(2_000))
    with db.snapshot() as snapshot:
        before = dict(snapshot)

        def work(thread: int) -> bool:
            if thread % 2:
                db.put_many((b"%06d" % number, b"new") for number in range(3_000))
                return True
            return all(dict(snapshot) == before for _ in range(5))

        assert all(together(work))
