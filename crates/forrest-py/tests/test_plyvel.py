"""The interface of plyvel: what its own tests, which the step `leveldb` of `cargo xtask test` runs, leave out."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import forrest
import forrest.plyvel as plyvel


@pytest.fixture
def db(tmp_path: Path) -> plyvel.DB:
    return plyvel.DB(str(tmp_path / "db"), create_if_missing=True)


def test_errors_are_those_of_plyvel(tmp_path: Path, db: plyvel.DB) -> None:
    with pytest.raises(plyvel.IOError, match="open") as error:
        plyvel.DB(db.name)
    assert isinstance(error.value, OSError) and isinstance(error.value.__cause__, forrest.BusyError)
    with pytest.raises(plyvel.Error, match="at most 65535 bytes"):
        db.put(b"k" * 65_536, b"")
    with db.snapshot() as state:
        for reader in (db, state, db.prefixed_db(b"k")):
            assert reader.get(b"k" * 65_536) is None and reader.get(b"k" * 65_536, b"none") == b"none"
    with pytest.raises(plyvel.IOError):
        plyvel.destroy_db(db.name)
    with pytest.raises(plyvel.Error, match="orders keys by their bytes"):
        plyvel.DB(tmp_path / "other", comparator=lambda a, b: 0, comparator_name=b"none")
    plyvel.DB(tmp_path / "same", comparator=lambda a, b: 0, comparator_name=b"leveldb.BytewiseComparator", create_if_missing=True)
    with pytest.raises(TypeError):
        db.write_batch().put(b"key", 12)  # type: ignore[arg-type]
    (tmp_path / "level").mkdir()
    (tmp_path / "level/CURRENT").write_text("MANIFEST-000001\n")
    with pytest.raises(plyvel.Error, match="files of LevelDB itself"):
        plyvel.DB(tmp_path / "level", create_if_missing=True)


def test_damage_is_repaired(db: plyvel.DB, chance: random.Random) -> None:
    path = Path(str(db.name))
    for number in range(1_000):
        db.put(b"%04d" % number, chance.randbytes(100))
    db.compact_range()
    db.close()
    plyvel.repair_db(db.name)
    assert not path.with_name("db.damaged").exists()
    table = max(path.glob("*.table"), key=lambda path: path.stat().st_size)
    damaged = bytearray(table.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    table.write_bytes(damaged)
    repaired = forrest.repair(path)
    assert repaired is not None and len(repaired.lost) > 0
    with pytest.raises(forrest.IoError):
        forrest.repair(path.with_name("missing"))
    with plyvel.DB(path) as db:
        assert 0 < len(list(db)) <= 1_000
    assert path.with_name("db.damaged").exists() and forrest.is_store(path)
    forrest.destroy(path)
    assert not path.exists() and not forrest.is_store(path)
    plyvel.destroy_db(path)
    with pytest.raises(forrest.IoError):
        forrest.destroy(path)


class Model:
    """plyvel's iterator over a sorted list: a position between two items."""

    def __init__(self, keys: list[bytes], reverse: bool) -> None:
        self.keys, self.reverse = keys, reverse
        self.at = len(keys) if reverse else 0

    def step(self, forward: bool) -> bytes | None:
        if not (self.at < len(self.keys) if forward else self.at > 0):
            return None
        self.at += 1 if forward else -1
        return self.keys[self.at - forward]

    def seek(self, key: bytes) -> None:
        self.at = sum(other < key for other in self.keys)


def moved(move: Any) -> Any:
    try:
        return move()
    except StopIteration:
        return None


@pytest.mark.parametrize("prefix", [b"", b"in\xff"])
def test_iterators_move_as_a_model(db: plyvel.DB, chance: random.Random, prefix: bytes) -> None:
    everything = sorted({bytes(chance.choices(b"ab\x00\xff", k=chance.randrange(4))) for _ in range(40)})
    within: Any = db.prefixed_db(prefix) if prefix else db
    if prefix:
        db.put(b"before", b""), db.put(b"z", b"")
    for key in everything:
        within.put(key, key * 2)
    for _ in range(60):
        options: dict[str, Any] = {"reverse": chance.random() < 0.5}
        for bound in ("start", "stop"):
            if chance.random() < 0.5:
                options[bound] = bytes(chance.choices(b"ab\x00\xff", k=chance.randrange(3)))
                options["include_" + bound] = chance.random() < 0.5
        start, stop = options.get("start", b""), options.get("stop")
        keys = [key for key in everything if key > start or (key == start and options.get("include_start", True))]
        if stop is not None:
            keys = [key for key in keys if key < stop or (key == stop and options["include_stop"])]
        iterator, model = within.iterator(include_value=False, **options), Model(keys, options["reverse"])
        for _ in range(30):
            action = chance.choice(["next", "prev", "next", "prev", "seek", "start", "stop"])
            if action == "next":
                assert moved(lambda: next(iterator)) == model.step(not model.reverse), options
            elif action == "prev":
                assert moved(iterator.prev) == model.step(model.reverse), options
            elif action == "seek":
                key = chance.choice(everything)
                iterator.seek(key)
                model.seek(key)
            elif action == "start":
                iterator.seek_to_start()
                model.at = 0
            else:
                iterator.seek_to_stop()
                model.at = len(keys)


def test_raw_iterators_move_as_a_model(db: plyvel.DB, chance: random.Random) -> None:
    keys = sorted({bytes(chance.choices(b"ab\x00\xff", k=chance.randrange(4))) for _ in range(40)})
    for key in keys:
        db.put(key, key * 2)
    iterator, at = db.raw_iterator(), len(keys)
    for _ in range(500):
        action = chance.choice(["first", "last", "seek", "next", "prev", "next", "prev"])
        if action == "first":
            iterator.seek_to_first()
            at = 0
        elif action == "last":
            iterator.seek_to_last()
            at = len(keys) - 1
        elif action == "seek":
            target = bytes(chance.choices(b"ab\x00\xff", k=chance.randrange(4)))
            iterator.seek(target)
            at = sum(key < target for key in keys)
        elif 0 <= at < len(keys):
            iterator.next() if action == "next" else iterator.prev()
            at += 1 if action == "next" else -1
        else:
            with pytest.raises(plyvel.IteratorInvalidError):
                iterator.next() if action == "next" else iterator.prev()
        assert iterator.valid() == (0 <= at < len(keys))
        if iterator.valid():
            assert iterator.item() == (keys[at], keys[at] * 2)


def test_what_is_closed_is_refused(db: plyvel.DB) -> None:
    db.put(b"a", b"1")
    iterator, raw, snapshot, batch, part = db.iterator(), db.raw_iterator(), db.snapshot(), db.write_batch(), db.prefixed_db(b"a")
    assert part.get(b"") == b"1" and part.prefix == b"a" and part.db is db
    with snapshot as state:
        kept = state.iterator()
    assert next(kept) == (b"a", b"1")
    assert db.get_property(b"leveldb.num-files-at-level3") == b"0" and db.get_property(b"leveldb.num-files-at-level7") is None
    assert int(db.get_property(b"leveldb.approximate-memory-usage") or 0) > 0
    db.close()
    db.close()
    assert db.closed
    for call in (iterator.prev, raw.seek_to_first, snapshot.raw_iterator, batch.write, part.iterator, db.approximate_sizes):
        with pytest.raises(RuntimeError, match="closed"):
            call()
