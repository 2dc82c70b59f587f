"""Changes of a store on disk, as a stream."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

import pytest

import forrest


def test_changes_come_in_order(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with forrest.open(path, history=True) as db:
        db[b"oak"] = b"Quercus"
        with db.snapshot() as snapshot:
            since = snapshot.sequence
        with forrest.Batch(db) as batch:
            batch.set(b"elm", b"Ulmus")
            batch.delete(b"oak")
        db.keyspace("people").delete_range(b"a", b"b")
        db.drop_keyspace("people")
        changes = db.changes(since)
        found = [(c.sequence, c.keyspace, c.what, c.key, c.value, c.end, c.ends_batch) for c in changes]
        assert found == [
            (2, "default", "set", b"elm", b"Ulmus", None, False),
            (3, "default", "delete", b"oak", None, None, True),
            (4, "people", "create-keyspace", None, None, None, True),
            (5, "people", "delete-range", b"a", None, b"b", True),
            (6, "people", "drop-keyspace", None, None, None, True),
        ]
        assert changes.sequence == 6 and list(changes) == []
        assert changes.wait(timedelta(milliseconds=1)) is None
        thread = threading.Thread(target=lambda: db.ingest([(b"a", b"1"), (b"b", b"2")]))
        thread.start()
        ingested = changes.wait()
        thread.join()
        assert ingested is not None and "ingest" in repr(ingested)
        assert (ingested.what, ingested.key, ingested.end) == ("ingest", b"a", b"b")
    with pytest.raises(forrest.InvalidArgumentError):
        changes.wait()
    with forrest.open(path, read_only=True) as db:
        assert [c.sequence for c in db.changes(5)] == [6, ingested.sequence]
        with pytest.raises(forrest.GoneError):
            db.changes(1000)


def test_changes_need_history(tmp_path: Path) -> None:
    with forrest.open(tmp_path / "store") as db, pytest.raises(forrest.InvalidArgumentError):
        db.changes()
    with forrest.open("memory:") as db, pytest.raises(forrest.UnsupportedError):
        db.changes()
