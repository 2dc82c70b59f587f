"""Closing stores, also while objects that came from them are in use."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

import forrest


def refused() -> pytest.RaisesExc[forrest.InvalidArgumentError]:
    return pytest.raises(forrest.InvalidArgumentError, match="is closed")


def test_closing_takes_everything_along(db: forrest.Db, tmp_path: Path) -> None:
    db.put_many((b"%06d" % number, b"") for number in range(5_000))
    rows, batch, transaction = db.range(), db.batch(), db.transaction()
    db[b"large"] = bytes(5_000)
    reader = db.reader(b"large")
    next(rows)
    batch[b"a"] = b""
    views: list[forrest.View] = [db]
    if db.capabilities()["snapshots"]:
        people, snapshot = db.keyspace("people"), db.snapshot()
        views += [people, snapshot, snapshot.keyspace("people")]
        past = snapshot.range()
        next(past)
        db.close()
        with refused():
            people[b"a"] = b""
        with refused():
            next(past)
        snapshot.close()
    assert db.closed == bool(len(views) > 1)
    db.close()
    db.close()
    assert db.closed
    for view in views:
        reading: list[Callable[[], object]] = [
            lambda: view.get(b"a"),
            lambda: view.get_cached(b"a"),
            lambda: view.reader(b"large"),
            lambda: b"a" in view,
            lambda: len(view),
            lambda: bool(view),
            lambda: next(view.range()),
            lambda: list(view),
            lambda: view.get_many([b"a"]),
            lambda: view.count(),
        ]
        for call in reading:
            with refused():
                call()
    calls: list[Callable[[], object]] = [
        lambda: next(rows),
        lambda: reader.read(1),
        lambda: batch.write(),
        lambda: batch.set(b"a", b""),
        lambda: len(batch),
        lambda: transaction.get(b"a"),
        lambda: transaction.set(b"a", b""),
        lambda: transaction.commit(),
        lambda: transaction.rollback(),
        lambda: db.transaction(),
        lambda: db.batch(),
        lambda: db.snapshot(),
        lambda: db.keyspace("people"),
        lambda: db.keyspaces(),
        lambda: db.drop_keyspace("people"),
        lambda: db.sync(),
        lambda: db.verify(),
        lambda: db.compact(),
        lambda: db.compact_range(b"a", b"b"),
        lambda: db.set_compression("none"),
        lambda: db.compression,
        lambda: db.flush(),
        lambda: db.trim(),
        lambda: db.settle(),
        lambda: db.resume(),
        lambda: db.set_options(batch_ops_max=10),
        lambda: db.refresh(),
        lambda: db.checkpoint(tmp_path / "copy"),
        lambda: db.stats(),
        lambda: db.metrics(),
        lambda: db.capabilities(),
        lambda: db.put_many([(b"a", b"")]),
        lambda: db.ingest([(b"a", b"")]),
        lambda: db.add(b"a", 1),
        lambda: db.compare_and_swap(b"a", None, b""),
        lambda: db.delete_range(prefix=b"a"),
        lambda: db.pop(b"a", None),
        lambda: db.popitem(),
        lambda: db.setdefault(b"a", b""),
        lambda: db.clear(),
        lambda: db.name,
        lambda: db.__delitem__(b"a"),
    ]
    for call in calls:
        with refused():
            call()


def test_a_closed_path_can_be_opened_although_things_are_held(tmp_path: Path) -> None:
    path = tmp_path / "store"
    db = forrest.open(path)
    db[b"a"] = b"1"
    people, transaction = db.keyspace("people"), db.transaction()
    people[b"a"], db[b"large"] = b"1", bytes(5_000)
    rows = [transaction.range(), transaction.range(keyspace=people)]
    assert [next(pairs) for pairs in rows] == 2 * [(b"a", b"1")]
    held = [db, people, db.reader(b"large"), db.snapshot(), db.range(), db.batch(), db.snapshot().range(), transaction, *rows]
    with pytest.raises(forrest.BusyError):
        forrest.open(path)
    db.close()
    with forrest.open(path) as again:
        assert again[b"a"] == b"1"
    assert held


def test_a_store_is_closed_with_the_last_that_is_held(tmp_path: Path) -> None:
    path = tmp_path / "store"
    rows = forrest.open(path).range()
    with pytest.raises(forrest.BusyError):
        forrest.open(path)
    del rows
    gc.collect()
    forrest.open(path).close()


def test_a_snapshot_is_given_back(disk: forrest.Db) -> None:
    disk.put_many((b"%06d" % number, b"") for number in range(5_000))
    with disk.snapshot() as snapshot:
        rows, people = snapshot.range(), snapshot.keyspace("people")
        next(rows)
    for call in (lambda: next(rows), lambda: len(people), lambda: snapshot.keyspaces()):
        with pytest.raises(forrest.InvalidArgumentError, match="the snapshot is closed"):
            call()
    assert disk.stats()["snapshots"] == 0
    # The store lives exactly as long as any of its objects.
    rows = disk.snapshot().range()
    assert disk.stats()["snapshots"] == 1 and len(list(rows)) == 5_000
    del rows
    gc.collect()
    assert disk.stats()["snapshots"] == 0


def test_a_with_block_closes(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with forrest.open(tmp_path / "store") as db:
            raise ZeroDivisionError
    assert db.closed
