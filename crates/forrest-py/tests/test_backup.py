"""Backups are made, listed, verified, restored and removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

import forrest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of two backups, next to the store."""
    with forrest.open(tmp_path / "store") as db:
        db.put_many((b"%06d" % number, b"value" * 5) for number in range(5_000))
        db.compact()
        first = db.backup(tmp_path / "backups")
        db[b"oak"] = b"Quercus"
        second = db.backup(str(tmp_path / "backups"))
    assert first.id < second.id and second.new_bytes < first.bytes <= second.bytes and first.files > 0
    return tmp_path / "backups"


def test_backups_are_listed(place: Path) -> None:
    first, second = forrest.backups(place)
    now = datetime.now(timezone.utc)
    assert now - timedelta(hours=1) < first.time <= second.time <= now
    assert first.damage is None and forrest.verify_backup(place) == second
    assert forrest.verify_backup(str(place), id=first.id) == first


def test_backups_are_restored(place: Path, tmp_path: Path) -> None:
    first, second = forrest.backups(place)
    calls: list[tuple[int, int]] = []
    assert forrest.restore(place, tmp_path / "new", progress=lambda done, whole: calls.append((done, whole))) == second
    assert calls and all(0 < done <= whole for done, whole in calls)
    with forrest.open(tmp_path / "new") as db:
        assert len(db) == 5_001 and db[b"oak"] == b"Quercus"
        with pytest.raises(forrest.InvalidArgumentError, match="another store"):
            db.backup(place)
        assert db.backup(place, other_store=True).id > second.id
    assert forrest.restore(place, tmp_path / "old", id=first.id).id == first.id
    with forrest.open(tmp_path / "old") as db:
        assert len(db) == 5_000 and b"oak" not in db
    with pytest.raises(forrest.InvalidArgumentError):
        forrest.restore(place, tmp_path / "old")
    with pytest.raises(forrest.InvalidArgumentError, match="no backup 77"):
        forrest.restore(place, tmp_path / "other", id=77)
    with pytest.raises(forrest.BusyError):
        forrest.restore(place, tmp_path / "other", progress=lambda done, whole: False)
    with pytest.raises(ZeroDivisionError):
        forrest.restore(place, tmp_path / "other", progress=lambda done, whole: 1 // 0)
    assert not (tmp_path / "other").exists()


def test_damage_is_found(place: Path, tmp_path: Path) -> None:
    largest = max(place.glob("*.copy"), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[100] ^= 1
    largest.write_bytes(content)
    with pytest.raises(forrest.CorruptError, match=largest.name):
        forrest.verify_backup(place)
    with pytest.raises(forrest.CorruptError, match=largest.name):
        forrest.restore(place, tmp_path / "new")
    smallest = min(place.glob("*.copy"), key=lambda path: path.stat().st_size)
    smallest.write_bytes(b"")
    assert [backup.damage is None for backup in forrest.backups(place)].count(False) == 1


def test_old_backups_are_removed(place: Path) -> None:
    first, second = forrest.backups(place)
    assert forrest.prune(place, since=first.time) == forrest.Pruned([], 0)
    pruned = forrest.prune(place, keep=1)
    assert pruned.removed == [first.id] and pruned.bytes > 0
    assert forrest.prune(place, since=datetime(9999, 1, 1, tzinfo=timezone.utc)).removed == []
    assert forrest.prune(place, since=datetime(1900, 1, 1, tzinfo=timezone.utc)).removed == []
    assert forrest.backups(place) == [second]
    with pytest.raises(ValueError):
        forrest.prune(place)
    with pytest.raises(ValueError):
        forrest.prune(place, keep=1, since=first.time)
    with pytest.raises(ValueError):
        forrest.prune(place, since=datetime(2020, 1, 1))


def test_what_has_no_backups_is_refused(tmp_path: Path) -> None:
    with pytest.raises(forrest.IoError):
        forrest.backups(tmp_path / "none")
    with forrest.open("memory:") as db, pytest.raises(forrest.UnsupportedError):
        db.backup(tmp_path / "backups")
    with forrest.open(tmp_path / "store") as db:
        for wrong in (tmp_path / "store", tmp_path / "store" / "in"):
            with pytest.raises(forrest.InvalidArgumentError):
                db.backup(wrong)
        db[b"oak"] = b"Quercus"
        db.compact()
        with pytest.raises(forrest.BusyError):
            db.backup(tmp_path / "backups", progress=lambda done, whole: False)


def full(path: Path) -> forrest.Db:
    """A store with tables to back up."""
    db = forrest.open(path)
    db.put_many((b"%06d" % number, b"value" * 5) for number in range(5_000))
    db.compact()
    return db


@pytest.mark.parametrize("how", ["itself", "signal"])
def test_the_progress_of_a_backup_may_close_the_store(tmp_path: Path, how: str) -> None:
    # The backup held a lock for which close() waited, for ever.
    db = full(tmp_path / "store")
    before = signal.signal(signal.SIGUSR1, lambda number, frame: db.close())
    close: Callable[[], None] = db.close if how == "itself" else lambda: signal.raise_signal(signal.SIGUSR1)
    try:
        with pytest.raises(forrest.InvalidArgumentError, match="the store is closed"):
            db.backup(tmp_path / "backups", progress=lambda done, whole: close())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert db.closed
    with pytest.raises(forrest.InvalidArgumentError, match="the store is closed"):
        db.backup(tmp_path / "backups")
    with forrest.open(tmp_path / "store") as again:
        assert len(again) == 5_000 and again.backup(tmp_path / "backups").id > 0


def test_closing_in_another_thread_ends_a_backup_and_waits_for_it(tmp_path: Path) -> None:
    db = full(tmp_path / "store")
    lengths: list[int] = []

    def close() -> None:
        db.close()
        with forrest.open(tmp_path / "store") as again:
            lengths.append(len(again))

    closing = threading.Thread(target=close)

    def progress(done: int, whole: int) -> None:
        closing.start()
        while not db.closed:
            pass

    with pytest.raises(forrest.InvalidArgumentError, match="the store is closed"):
        db.backup(tmp_path / "backups", progress=progress)
    closing.join()
    assert lengths == [5_000]


def test_encrypted_backups_have_the_key_of_the_store(tmp_path: Path) -> None:
    key, place = bytes(range(32)), tmp_path / "backups"
    with forrest.open(tmp_path / "store", encryption_key=key) as db:
        db[b"oak"] = b"Quercus"
        made = db.backup(place)
    for wrong in (None, bytes(32)):
        calls: list[Callable[[], object]] = [
            lambda: forrest.backups(place, encryption_key=wrong),
            lambda: forrest.verify_backup(place, encryption_key=wrong),
            lambda: forrest.restore(place, tmp_path / "to", encryption_key=wrong),
            lambda: forrest.prune(place, keep=1, encryption_key=wrong),
            lambda: forrest.salvage(tmp_path / "store", tmp_path / "to", encryption_key=wrong),
        ]
        for call in calls:
            with pytest.raises(forrest.InvalidArgumentError):
                call()
    assert len(forrest.backups(place, encryption_key=key)) == 1
    assert forrest.verify_backup(place, encryption_key=key) == made
    assert forrest.prune(place, keep=1, encryption_key=key).removed == []
    forrest.restore(place, tmp_path / "restored", encryption_key=key)
    assert forrest.salvage(tmp_path / "store", tmp_path / "salvaged", encryption_key=key).pairs == 1
    for name in ("restored", "salvaged"):
        with forrest.open(tmp_path / name, encryption_key=key) as db:
            assert dict(db) == {b"oak": b"Quercus"}
