"""Damaged stores are salvaged, and the ranges that are lost are listed."""

from __future__ import annotations

from pathlib import Path

import pytest

import forrest

KEYS = [b"%06d" % number for number in range(5_000)]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store in tables."""
    with forrest.open(tmp_path / "old") as db:
        db.put_many((key, key * 5) for key in KEYS)
        db.keyspace("other")[b"oak"] = b"Quercus"
        db.compact()
    return tmp_path / "old"


def test_a_whole_store_is_copied(old: Path) -> None:
    copy = old.with_name("copy")
    assert forrest.salvage(old, copy) == forrest.Salvaged(keyspaces=2, pairs=5_001, lost=[])
    with forrest.open(copy) as db:
        assert list(db) == KEYS and db.keyspace("other")[b"oak"] == b"Quercus"
    with pytest.raises(forrest.InvalidArgumentError):
        forrest.salvage(str(old), str(copy))


def test_the_lost_ranges_of_a_damaged_table_are_listed(old: Path) -> None:
    table = max(old.glob("*.table"), key=lambda path: path.stat().st_size)
    damaged = bytearray(table.read_bytes())
    damaged[20_000] ^= 1
    table.write_bytes(damaged)
    copy = old.with_name("copy")
    salvaged = forrest.salvage(old, copy)
    assert salvaged.keyspaces == 2 and 0 < len(salvaged.lost) < 500
    assert table.read_bytes() == damaged
    for loss in salvaged.lost:
        assert (loss.keyspace, loss.file) == ("default", table.name) and loss.reason and loss.stop is not None
    with forrest.open(copy) as db:
        missing = [key for key in KEYS if key not in db]
        lost = [key for key in KEYS if any(loss.start <= key < (loss.stop or b"") for loss in salvaged.lost)]
        assert missing == lost and salvaged.pairs == 5_001 - len(missing)
        assert all(db[key] == key * 5 for key in db)


def test_a_store_that_cannot_be_opened_is_salvaged(tmp_path: Path) -> None:
    old, copy = tmp_path / "old", tmp_path / "copy"
    with forrest.open(old) as db:
        db[b"oak"] = b"Quercus"
    for log in old.glob("*.log"):
        log.unlink()
    with pytest.raises(forrest.CorruptError):
        forrest.open(old)
    salvaged = forrest.salvage(old, copy)
    assert salvaged.pairs == 0 and {(loss.start, loss.stop) for loss in salvaged.lost} == {(b"", None)}
    with forrest.open(copy) as db:
        assert not db


def test_a_salvage_that_fails_leaves_nothing(old: Path) -> None:
    copy = old.with_name("copy")
    for source, target in ((old, "memory:"), ("memory:", copy), ("llds:name", copy), (old, old / "copy")):
        with pytest.raises(forrest.InvalidArgumentError):
            forrest.salvage(source, target)
    with pytest.raises(forrest.IoError):
        forrest.salvage(old.with_name("missing"), copy)
    for wrong in (b"old", 1, None):
        with pytest.raises(TypeError):
            forrest.salvage(wrong, copy)  # type: ignore[arg-type]
    for manifest in old.glob("*.manifest"):
        manifest.unlink()
    with pytest.raises(forrest.CorruptError, match="no manifest can be read"):
        forrest.salvage(old, copy)
    assert [path.name for path in old.parent.iterdir()] == ["old"]


def test_a_salvage_is_watched_and_ended(old: Path) -> None:
    copy = old.with_name("copy")
    calls: list[tuple[int, int]] = []
    assert forrest.salvage(old, copy, progress=lambda done, whole: calls.append((done, whole))).pairs == 5_001
    assert calls and all(0 <= done <= 2 * whole for done, whole in calls)

    def refuse(done: int, whole: int) -> bool:
        raise LookupError(f"{done} of {whole}")

    with pytest.raises(forrest.BusyError):
        forrest.salvage(old, old.with_name("ended"), progress=lambda done, whole: False)
    with pytest.raises(LookupError):
        forrest.salvage(old, old.with_name("ended"), progress=refuse)
    with forrest.open(old), pytest.raises(forrest.BusyError, match="process"):
        forrest.salvage(old, old.with_name("ended"))
    assert sorted(path.name for path in old.parent.iterdir()) == ["copy", "old"]
