"""The arguments, results and errors of each call."""

from __future__ import annotations

import array
import copy
import datetime
import importlib.metadata
import inspect
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import forrest
from conftest import needs

if TYPE_CHECKING:
    from typing_extensions import Buffer


def test_it_is_a_mutable_mapping(db: forrest.Db) -> None:
    assert isinstance(db, MutableMapping) and issubclass(forrest.Keyspace, MutableMapping)
    assert issubclass(forrest.Snapshot, Mapping) and not issubclass(forrest.Snapshot, MutableMapping)
    db.update({b"b": b"2", b"a": b"1"})
    db.update([(b"c", b"3")])
    assert dict(db) == {b"a": b"1", b"b": b"2", b"c": b"3"}
    assert b"2" in db.values() and b"4" not in db.values()
    assert (b"a", b"1") in db.items() and (b"a", b"2") not in db.items()
    assert list(reversed(db.keys())) == [b"c", b"b", b"a"]
    assert list(reversed(db.items())) == [(b"c", b"3"), (b"b", b"2"), (b"a", b"1")]
    assert list(reversed(db.values())) == [b"3", b"2", b"1"]
    assert db.keys() & {b"a", b"x"} == {b"a"}
    match db:
        case {b"a": one}:
            assert one == b"1"
        case _:
            pytest.fail("it does not match as a mapping")
    db.clear()
    assert not db and len(db) == 0


def test_absence(db: forrest.Db) -> None:
    with pytest.raises(KeyError) as error:
        db[b"nothing"]
    assert error.value.args == (b"nothing",)
    assert db.get(b"nothing") is None and db.get(b"nothing", 7) == 7
    with pytest.raises(KeyError):
        db.pop(b"nothing")
    assert db.pop(b"nothing", None) is None and db.pop(b"nothing", default=b"x") == b"x"
    with pytest.raises(KeyError):
        del db[b"nothing"]
    db[b""] = b""
    assert db[b""] == b"" and b"" in db


def test_bytes_like_in_and_bytes_out(db: forrest.Db) -> None:
    class Subclass(bytes):
        pass

    strided = memoryview(b"a.b.c.")[::2]
    forms: list[Buffer] = [b"abc", bytearray(b"abc"), memoryview(b"abc"), array.array("B", b"abc")]
    for given in (*forms, strided, Subclass(b"abc")):
        db[given] = given
        assert db[given] == b"abc" and type(db[given]) is bytes
        assert list(db) == [b"abc"] and type(next(iter(db))) is bytes
        assert db.pop(given) == b"abc"
    numbers = array.array("H", [1, 2])
    db[b"numbers"] = numbers
    assert db[b"numbers"] == numbers.tobytes()


def test_what_is_put_is_copied(db: forrest.Db) -> None:
    key, value = bytearray(b"key"), bytearray(b"value")
    db[key] = value
    key[0], value[0] = 0, 0
    assert dict(db) == {b"key": b"value"}


@pytest.mark.parametrize("wrong", ["text", 7, None, [1, 2], 1.5, object()])
def test_what_is_no_bytes_is_a_type_error(db: forrest.Db, wrong: Any) -> None:
    space: forrest.Keyspace = db
    calls: list[Callable[[], object]] = [
        lambda: space[wrong],
        lambda: space.get(wrong),
        lambda: wrong in space,
        lambda: space.__setitem__(wrong, b""),
        lambda: space.__setitem__(b"", wrong),
        lambda: space.put_many([(b"", wrong)]),
        lambda: space.get_many([wrong]),
        lambda: space.pop(wrong, None),
        lambda: space.batch().set(wrong, b""),
    ]
    if wrong is not None:
        calls.append(lambda: space.range(wrong))
    for call in calls:
        with pytest.raises(TypeError, match="a bytes-like object is required"):
            call()
    assert not db


def test_text_is_told_how_it_becomes_bytes(db: forrest.Db) -> None:
    with pytest.raises(TypeError, match="not 'str'; use encode()"):
        db["oak"]  # type: ignore[index]


@pytest.mark.parametrize("wrong", [b"ab", (b"a",), (b"a", b"b", b"c"), [b"a", b"b"], None])
def test_what_is_no_pair_is_a_type_error(db: forrest.Db, wrong: Any) -> None:
    with pytest.raises(TypeError, match="a pair is a tuple of a key and a value"):
        db.put_many([(b"before", b""), wrong, (b"after", b"")])
    assert list(db) == [b"before"]
    with pytest.raises(TypeError):
        db.put_many(7)  # type: ignore[arg-type]


def test_sorted_pairs_are_ingested_at_one_instant(tmp_path: Path) -> None:
    wrong_ones: list[Any] = [(b"000003", b""), (b"", b""), (b"a",)]
    for url in ("memory:", str(tmp_path / "store")):
        with forrest.open(url) as db:
            db[b"000007"] = b"old"
            pairs = [(b"%06d" % number, b"new") for number in range(10_000)]
            for wrong in wrong_ones:
                with pytest.raises((forrest.InvalidArgumentError, TypeError)):
                    db.ingest([*pairs, wrong])
                assert list(db.items()) == [(b"000007", b"old")]
            assert db.ingest(iter(pairs)) == 10_000
            assert list(db.items()) == pairs
            with pytest.raises(forrest.InvalidArgumentError, match='key "a" is not greater than .* "b"'):
                db.ingest([(b"b", b""), (b"a", b"")])


def test_large_values_stay_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "store"
    value = bytes(range(256)) * 64
    with forrest.open(path, large_values=4096) as db:
        for number in range(100):
            db[b"%06d" % number] = value
        db.flush()
        stats, live = db.stats(), 100 * len(value)
        assert stats["value_log_live_bytes"] == live <= stats["value_log_bytes"] < live + 10_000, stats
        assert db[b"000007"] == value
        metrics = db.metrics()
        assert (metrics["value_reads"], metrics["value_read_bytes"]) == (1, len(value))
    with forrest.open(path) as db:
        assert db[b"000099"] == value


def test_what_is_cached_is_read_without_waiting(tmp_path: Path) -> None:
    with forrest.open(tmp_path / "store") as db:
        db[b"oak"] = b"Quercus"
        assert db.get_cached(b"oak") == (True, b"Quercus") and db.get_cached(b"ash") == (True, None)
        assert db.snapshot().get_cached(b"oak") == (True, b"Quercus")
        db.flush()
    with forrest.open(tmp_path / "store") as db:
        assert db.get_cached(b"oak") == (False, None)
        assert db.get(b"oak") == b"Quercus"
        assert db.get_cached(b"oak") == (True, b"Quercus")
        with pytest.raises(forrest.LimitError):
            db.get_cached(bytes(70_000))


def test_tables_are_compressed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with forrest.open(path, compression="lz4", log_directory=None) as db:
        people = db.keyspace("people")
        assert (db.compression, people.compression) == ("lz4", "lz4")
        people.set_compression("none")
        for keyspace in (db, people):
            keyspace.ingest((b"%06d" % number, b"value of a tree " * 8) for number in range(10_000))
        stats = db.stats()
        assert 1_300_000 < stats["table_bytes"] < 2_000_000 < stats["table_plain_bytes"], stats
    with forrest.open(path) as db:
        assert (db.compression, db.keyspace("people").compression) == ("lz4", "none")
        assert db[b"000007"] == b"value of a tree " * 8
        with pytest.raises(forrest.InvalidArgumentError, match='"none", "lz4", "zstd"'):
            db.set_compression("gzip")  # type: ignore[arg-type]
    with forrest.open("memory:") as db:
        db.set_compression("none")
        with pytest.raises(forrest.UnsupportedError, match="only stores on disk"):
            db.set_compression("lz4")
    with pytest.raises(forrest.UnsupportedError):
        forrest.open("memory:", compression="lz4")


def test_many_at_once(db: forrest.Db) -> None:
    # More than one chunk of the call, and not a whole number of chunks.
    keys = [b"%06d" % number for number in range(10_000)]
    db.put_many(zip(keys, keys))
    assert db.get_many(keys) == keys
    assert db.get_many(keys[:4096]) == keys[:4096]
    db.put_many({b"a": b"1"}.items())
    assert db.get_many([]) == [] and db.pop(b"a") == b"1"
    assert list(db.range(b"005000", b"005003")) == [(key, key) for key in keys[5000:5003]]
    assert len(db) == 10_000


def test_an_error_in_the_middle_says_where(db: forrest.Db) -> None:
    pairs = [(b"%06d" % number, b"") for number in range(5000)] + [(bytes(70_000), b"")]
    with pytest.raises(forrest.LimitError, match="pair 5000 of the call") as error:
        db.put_many(pairs)
    assert error.value.op == 5000 and len(db) == 5000

    def failing() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b""
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.put_many(failing())
    assert b"a" in db


def test_an_ingest_with_a_wrong_pair_sets_none(tmp_path: Path) -> None:
    with forrest.open(str(tmp_path / "store")) as db:
        with pytest.raises(forrest.InvalidArgumentError, match=r"\(pair 1 of the call; none was put\)") as error:
            db.ingest([(b"b", b""), (b"a", b"")])
        assert error.value.op == 1 and len(db) == 0


def test_many_ranges(db: forrest.Db) -> None:
    for key in (b"a1", b"a2", b"a3", b"b1"):
        db[key] = key[:1]
    ranges = [(b"a", b"b"), (b"b", None), (b"c", b"b"), (None, b"a2")]
    pairs = db.multi_scan(ranges, 2)
    assert pairs == [[(b"a1", b"a"), (b"a2", b"a")], [(b"b1", b"b")], [], [(b"a1", b"a")]]
    keys = db.multi_scan(ranges * 200, 2, keys_only=True)
    assert keys == [[key for key, _ in one] for one in pairs] * 200
    assert db.multi_scan([], 1) == [] and db.multi_scan(ranges, 0) == [[]] * 4
    assert db.prefixes_exist([b"a", b"x", b""]) == [True, False, True]
    assert list(db.range(keys_only=True, reverse=True)) == [b"b1", b"a3", b"a2", b"a1"]
    if db.capabilities()["approximate counts"]:
        assert db.approximate(b"a", b"b") == (3, 9) and db.approximate(prefix=b"x") == (0, 0)
    else:
        with pytest.raises(forrest.UnsupportedError):
            db.approximate(b"a", b"b")


def test_counters(db: forrest.Db) -> None:
    assert db.add(b"visits", 3) == 3 and db.add(b"visits", -5) == -2
    assert int.from_bytes(db[b"visits"], signed=True) == -2
    db[b"name"] = b"Ada"
    with pytest.raises(forrest.InvalidArgumentError):
        db.add(b"name", 1)
    with pytest.raises(OverflowError):
        db.add(b"visits", 1 << 70)


def test_errors_have_kinds(db: forrest.Db) -> None:
    with pytest.raises(forrest.LimitError) as error:
        db[bytes(65_536)] = b""
    assert isinstance(error.value, forrest.Error) and isinstance(error.value, ValueError)
    assert "65536" in str(error.value) and error.value.op is None
    kinds = [kind for _, kind in inspect.getmembers(forrest, inspect.isclass) if issubclass(kind, Exception)]
    assert len(kinds) == 13 and all(issubclass(kind, forrest.Error) for kind in kinds)
    assert issubclass(forrest.IoError, OSError) and issubclass(forrest.UnsupportedError, NotImplementedError)
    # Tracebacks name the classes as programs do, and another process can receive them.
    assert all(kind.__module__ == "forrest" for kind in kinds)
    copied = pickle.loads(pickle.dumps(error.value))
    assert type(copied) is forrest.LimitError and str(copied) == str(error.value)


def test_the_version_is_that_of_the_distribution() -> None:
    assert forrest.__version__ == importlib.metadata.version("forrest-db")


def test_put_many_fails_after_the_pairs_before_the_wrong_one(db: forrest.Db) -> None:
    # The wrong pair is in a group that the home refuses as a whole, and longer than a group.
    long = bytes(300 << 10)
    with pytest.raises(forrest.LimitError, match="pair 3 of the call") as error:
        db.put_many([(b"a", b"1"), (b"b", long), (b"a", b"2"), (bytes(70_000), b""), (b"c", b"")])
    assert error.value.op == 3 and dict(db) == {b"a": b"2", b"b": long}


def test_put_many_in_a_store_with_small_batches(tmp_path: Path) -> None:
    pairs = [(b"%04d" % number, b"") for number in range(1_000)]
    with forrest.open(tmp_path / "store", batch_ops_max=10) as db:
        db.put_many(pairs)
        assert list(db.items()) == pairs


def test_homes_are_named(tmp_path: Path) -> None:
    for wrong in ("", "mermory:", "memory:x", "llds-user:"):
        with pytest.raises(forrest.InvalidArgumentError):
            forrest.open(wrong)
    with pytest.raises(TypeError):
        forrest.open(b"memory:")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        forrest.open(7)  # type: ignore[arg-type]


def test_a_path_is_a_path_whatever_it_begins_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with forrest.open(Path("memory:")) as db:
        db[b"a"] = b"1"
    assert (tmp_path / "memory:").is_dir()


def test_options(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with pytest.raises(forrest.IoError):
        forrest.open(path, create=False)
    with pytest.raises(forrest.InvalidArgumentError, match="large_values is 63"):
        forrest.open(path, large_values=63)
    with forrest.open(
        path,
        durability="sync",
        large_values=4096,
        cache_bytes=1 << 20,
        memtable_bytes=1 << 20,
        table_bytes=1 << 20,
        tags=False,
        workers=1,
        worker_cpus=[],
        open_files=10,
        wait=datetime.timedelta(seconds=1),
        background_bytes_per_second=1 << 30,
        batch_ops_max=1,
        batch_bytes_max=100,
        pages="plain",
        numa=0,
        mode=0o600,
        capacity_bytes=1 << 30,
    ) as db:
        with pytest.raises(forrest.LimitError):
            with db.batch() as batch:
                batch[b"a"] = batch[b"b"] = b""
        db.set_options(
            cache_bytes=1 << 18,
            memtable_bytes=1 << 18,
            table_bytes=1 << 18,
            open_files=5,
            wait=datetime.timedelta(seconds=2),
            background_bytes_per_second=0,
            workers=2,
            batch_ops_max=2,
            batch_bytes_max=200,
        )
        with db.batch() as batch:
            batch[b"a"] = batch[b"b"] = b""
        with pytest.raises(forrest.InvalidArgumentError, match="cache_bytes"):
            db.set_options(cache_bytes=0)
        with pytest.raises(forrest.LimitError, match="cache_bytes"):
            db.set_options(cache_bytes=1 << 30)
        db.set_options(memory_bytes=1 << 24)
        with pytest.raises(forrest.InvalidArgumentError, match=r"memtable_bytes \(262144\) and cache_bytes"):
            db.set_options(memory_bytes=1 << 18)
        with pytest.raises(forrest.BusyError):
            forrest.open(path)
    with pytest.raises(forrest.InvalidArgumentError, match="this machine has the nodes 0"):
        forrest.open(path, numa=12345)
    for wrong in (-1, 1 << 40):
        with pytest.raises(forrest.InvalidArgumentError, match="no number of a memory node"):
            forrest.open(path, numa=wrong)
    with pytest.raises(TypeError):
        forrest.open(path, numa=True)
    with pytest.raises(forrest.InvalidArgumentError, match='numa is "near"'):
        forrest.open(path, numa="near")  # type: ignore[arg-type]
    with pytest.raises(forrest.InvalidArgumentError, match="log_directory"):
        forrest.open(path, log_directory=tmp_path / "log")
    apart = tmp_path / "apart"
    with forrest.open(apart, log_directory=tmp_path / "log") as db:
        db[b"oak"] = b"Quercus"
    with pytest.raises(forrest.InvalidArgumentError, match="log_directory"):
        forrest.open(apart)
    with forrest.open(apart, log_directory=str(tmp_path / "log"), read_only=True) as db:
        assert db[b"oak"] == b"Quercus"
    with forrest.open(apart, log_directory=tmp_path / "log"):
        with pytest.raises(forrest.BusyError):
            forrest.move_log(apart)
    forrest.move_log(apart, tmp_path / "elsewhere")
    with forrest.open(apart, log_directory=tmp_path / "elsewhere") as db:
        assert db[b"oak"] == b"Quercus"
    forrest.move_log(str(apart))
    with forrest.open(apart) as db:
        assert db[b"oak"] == b"Quercus"
    with pytest.raises(forrest.InvalidArgumentError, match="is not a path"):
        forrest.move_log("memory:")
    with pytest.raises(forrest.InvalidArgumentError, match='it must be one of "memory", "buffered", "sync"'):
        forrest.open(path, durability="never")  # type: ignore[arg-type]
    with pytest.raises(forrest.InvalidArgumentError, match="background_bytes_per_second"):
        forrest.open(path, background_bytes_per_second=0)
    with pytest.raises(forrest.InvalidArgumentError, match="workers"):
        forrest.open(path, workers=0)
    with pytest.raises(OverflowError):
        forrest.open(path, cache_bytes=-1)
    with pytest.raises(forrest.UnsupportedError):
        forrest.open("memory:", durability="sync")
    with forrest.open("memory:") as db, pytest.raises(forrest.UnsupportedError, match="wait"):
        db.set_options(wait=datetime.timedelta(seconds=1))
    with pytest.raises(forrest.UnsupportedError):
        forrest.open("memory:", read_only=True)
    with pytest.raises(forrest.OutOfSpaceError):
        small = forrest.open("memory:", capacity_bytes=4 << 20)
        small.put_many((b"%08d" % number, bytes(200)) for number in range(100_000))


def test_an_encrypted_store(tmp_path: Path) -> None:
    first, second = bytes(range(32)), bytearray(b"the second key, also of 32 bytes")
    path = tmp_path / "encrypted"
    with forrest.open(path, encryption_key=first) as db:
        db[b"oak"] = b"Quercus robur"
        db.rotate_data_key()
        db.compact()
        db.checkpoint(tmp_path / "copy")
        db.rotate_key(second)
        db[b"elm"] = b"Ulmus glabra"
        with pytest.raises(forrest.InvalidArgumentError, match="31 bytes"):
            db.rotate_key(bytes(31))
    for file in [*path.iterdir(), *(tmp_path / "copy").iterdir()]:
        assert not any(word in file.read_bytes() for word in (b"Quercus", b"oak", b"Ulmus"))
    for key, why in ((None, "encrypted"), (first, "wrong key"), (b"short", "5 bytes")):
        with pytest.raises(forrest.InvalidArgumentError, match=why):
            forrest.open(path, encryption_key=key)
    with forrest.open(path, encryption_key=second) as db:
        assert dict(db) == {b"elm": b"Ulmus glabra", b"oak": b"Quercus robur"}
    with forrest.open(tmp_path / "copy", encryption_key=first) as db:
        assert dict(db) == {b"oak": b"Quercus robur"}
    with pytest.raises(forrest.UnsupportedError):
        forrest.open("memory:", encryption_key=first)
    with pytest.raises(forrest.UnsupportedError):
        forrest.open("memory:").rotate_data_key()


def test_the_whole_store(db: forrest.Db, tmp_path: Path) -> None:
    db.put_many((b"%d" % number, b"") for number in range(100))
    db.sync()
    stats = db.stats()
    assert stats["keys"] == 100 and all(isinstance(figure, int) for figure in stats.values())
    able = db.capabilities()
    db.flush()
    db.trim()
    db.settle()
    db.resume()
    ranges = (lambda: db.compact_range(b"1", b"5"), lambda: db.compact_range(prefix=b"7"))
    for capability, call in (("verify", db.verify), ("compact", db.compact), ("metrics and events", db.metrics), *(("compact", one) for one in ranges)):
        if able[capability]:
            call()
        else:
            with pytest.raises(forrest.UnsupportedError):
                call()
    if able["metrics and events"]:
        metrics = db.metrics()
        assert "get_calls" not in metrics
        assert metrics["changes"] >= 100 and metrics["flushes"] >= 1 and metrics["flush_bytes"] > 0
        assert "\nforrest_changes_total " in db.prometheus()
    copy = tmp_path / "copy"
    if able["checkpoint"]:
        db.checkpoint(copy)
        db[b"later"] = b""
        with forrest.open(copy) as other:
            assert dict(other) == {b"%d" % number: b"" for number in range(100)}
        with pytest.raises(forrest.InvalidArgumentError, match="there already"):
            db.checkpoint(str(copy))
        with pytest.raises(forrest.IoError):
            db.checkpoint(tmp_path / "missing" / "copy")
        del db[b"later"]
    else:
        with pytest.raises(forrest.UnsupportedError):
            db.checkpoint(copy)
    assert len(db) == 100


def test_keyspaces(db: forrest.Db) -> None:
    needs(db, "several keyspaces")
    people = db.keyspace("people")
    people[b"ada"] = b"1815"
    assert b"ada" not in db and db.keyspace("people")[b"ada"] == b"1815"
    assert db.keyspaces() == ["default", "people"]
    assert people.name == "people" and db.name == "default"
    assert db.drop_keyspace("people") and not db.drop_keyspace("people")
    with pytest.raises(forrest.InvalidArgumentError):
        people[b"ada"]
    with pytest.raises(forrest.InvalidArgumentError):
        db.keyspace("")
    with pytest.raises(forrest.LimitError):
        db.keyspace("x" * 256)


def test_keyspaces_where_there_is_one(db: forrest.Db) -> None:
    if db.capabilities()["several keyspaces"]:
        pytest.skip(f"{db!r} has several")
    with pytest.raises(forrest.UnsupportedError):
        db.keyspace("people")


def test_batches(db: forrest.Db) -> None:
    with db.batch() as batch:
        batch[b"a"] = b"1"
        batch.set(b"b", b"2")
        del batch[b"c"]
        batch.add(b"n", 5)
        assert len(batch) == 4 and not db
    assert len(db) == 3 and db.add(b"n", 0) == 5 and len(batch) == 0
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch.delete(b"a")
            raise ZeroDivisionError
    assert db[b"a"] == b"1" and len(batch) == 0
    batch = db.batch()
    batch.delete_range()
    batch.clear()
    batch.write()
    assert len(db) == 3


def test_a_batch_that_fails_changes_nothing(db: forrest.Db) -> None:
    db[b"door"] = b"locked"
    with pytest.raises(forrest.ConditionFailedError) as mismatch:
        with db.batch() as batch:
            batch[b"visitors"] = b"one more"
            batch.compare_and_swap(b"door", b"open", b"open")
    assert mismatch.value.op == 1 and mismatch.value.found == b"locked" and b"visitors" not in db
    for expected, is_written in [(b"open", False), (b"locked", True)]:
        batch = db.batch()
        batch[b"visitors"] = b"one more"
        batch.compare_and_swap(b"door", expected, expected)
        assert batch.try_write() is is_written and len(batch) == 0
        assert (b"visitors" in db) is is_written
    del db[b"visitors"]
    batch = db.batch()
    batch.compare_range([(b"door", b"locked")], b"d", b"e")
    batch.compare_range([], prefix=b"seat ")
    batch.set(b"seat 1", b"ada")
    assert batch.try_write() and db[b"seat 1"] == b"ada"
    with pytest.raises(forrest.ConditionFailedError) as mismatch:
        with db.batch() as batch:
            batch.compare_range([], prefix=b"seat ")
            batch.set(b"seat 1", b"bob")
    assert mismatch.value.op == 0 and mismatch.value.found == b"seat 1" and db[b"seat 1"] == b"ada"
    with pytest.raises(forrest.InvalidArgumentError):
        with db.batch() as batch:
            batch.set(b"seat 2", b"bob")
            batch.compare_range([(b"seat 1", b"ada")], prefix=b"seat ")
    del db[b"seat 1"]
    with pytest.raises(forrest.InvalidArgumentError) as error:
        with db.batch() as batch:
            batch[b"name"] = b"not a counter"
            batch.add(b"name", 1)
    assert error.value.op == 1 and b"name" not in db
    with pytest.raises(forrest.LimitError) as limit:
        with db.batch() as batch:
            batch[b"fits"] = b""
            batch[bytes(70_000)] = b""
    assert limit.value.op == 1 and b"fits" not in db


def test_a_batch_spans_keyspaces(db: forrest.Db) -> None:
    needs(db, "several keyspaces")
    log = db.keyspace("log")
    with db.batch() as batch:
        batch[b"key"] = b"here"
        batch.set(b"key", b"there", keyspace=log)
    assert db[b"key"] == b"here" and log[b"key"] == b"there"
    with log.batch() as batch:
        del batch[b"key"]
    assert b"key" in db and b"key" not in log
    with forrest.open("memory:") as other:
        with pytest.raises(forrest.InvalidArgumentError, match="another store"):
            with other.batch() as batch:
                batch.set(b"key", b"", keyspace=log)


def test_durability_of_a_batch(disk: forrest.Db) -> None:
    with disk.batch(durability="sync") as batch:
        batch[b"a"] = b"1"
    with pytest.raises(forrest.InvalidArgumentError):
        disk.batch(durability="never")  # type: ignore[arg-type]
    with forrest.open("memory:") as memory, pytest.raises(forrest.UnsupportedError):
        with memory.batch(durability="sync") as batch:
            batch[b"a"] = b"1"


def test_transactions(db: forrest.Db) -> None:
    db[b"oak"] = b"Quercus"
    with db.transaction() as transaction:
        assert transaction[b"oak"] == b"Quercus" and b"oak" in transaction and b"ash" not in transaction
        assert transaction.get(b"ash") is None and transaction.get(b"ash", 7) == 7
        with pytest.raises(KeyError) as error:
            transaction[b"ash"]
        assert error.value.args == (b"ash",)
        transaction[bytearray(b"ash")] = memoryview(b"Fraxinus")
        transaction.set(b"elm", b"Ulmus")
        del transaction[b"oak"]
        transaction.delete(b"never there")
        transaction.add(b"n", 5)
        assert transaction[b"ash"] == b"Fraxinus" and b"oak" not in transaction
        assert transaction.get(b"n") == (5).to_bytes(8, "big")
        assert dict(db) == {b"oak": b"Quercus"}
    assert list(db) == [b"ash", b"elm", b"n"] and db.add(b"n", 0) == 5
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as transaction:
            transaction[b"oak"] = b"never"
            raise ZeroDivisionError
    transaction.commit()  # an empty transaction: a new one has begun
    transaction[b"oak"] = b"never"
    transaction.rollback()
    transaction.commit()
    transaction[b"oak"] = b"never"
    transaction.check()
    assert b"oak" not in db
    with pytest.raises(TypeError):
        transaction["oak"]  # type: ignore[index]
    with pytest.raises(forrest.LimitError):
        transaction[bytes(70_000)] = b""


def test_a_transaction_in_conflict_changes_nothing(db: forrest.Db) -> None:
    with pytest.raises(forrest.ConflictError, match='key "seats" of keyspace "default"') as conflict:
        with db.transaction() as transaction:
            assert transaction.get(b"seats") is None
            transaction[b"mine"] = b"1"
            db[b"seats"] = b"1"
    assert conflict.value.key == b"seats" and conflict.value.keyspace == "default" and b"mine" not in db
    assert transaction[b"seats"] == b"1"
    del db[b"seats"]
    with pytest.raises(forrest.ConflictError):
        transaction.check()
    transaction.add(b"name", 1)
    db[b"name"] = b"no counter"
    with pytest.raises(forrest.InvalidArgumentError, match='key "name"'):
        transaction.commit()


def test_an_interrupted_function_leaves_no_locks(db: forrest.Db) -> None:
    def interrupted(transaction: forrest.Transaction) -> None:
        transaction.lock(b"seats")
        transaction[b"seats"] = b"1"
        raise KeyboardInterrupt

    try:
        db.transact(interrupted)
    except KeyboardInterrupt:
        # The traceback still has the transaction.
        with db.transaction() as other:
            other.set_lock_wait(0)
            other.lock(b"seats")
    else:
        raise AssertionError("it was interrupted")
    assert b"seats" not in db


def test_a_function_runs_until_nobody_comes_in_between(db: forrest.Db) -> None:
    calls = 0

    def disturbed(transaction: forrest.Transaction) -> bytes | None:
        nonlocal calls
        calls += 1
        found = transaction.get(b"key")
        transaction.add(b"calls", 1)
        if calls < 3:
            db[b"key"] = b"%d" % calls
        if calls == 2:
            raise ZeroDivisionError("not to be believed")
        return found

    assert db.transact(disturbed) == b"2" and calls == 3 and db.add(b"calls", 0) == 1

    def failing(transaction: forrest.Transaction) -> None:
        transaction[b"never"] = transaction[b"key"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.transact(failing)
    assert b"never" not in db

    def always(transaction: forrest.Transaction) -> None:
        nonlocal calls
        calls += 1
        transaction.get(b"calls")
        db.add(b"calls", 1)

    calls = 0
    with pytest.raises(forrest.ConflictError) as conflict:
        db.transact(always)
    assert calls == 1_000 and conflict.value.key == b"calls"


def test_transactions_read_ranges(db: forrest.Db) -> None:
    for number in range(5):
        db[b"job %d" % number] = b"%d" % number
    transaction = db.transaction()
    transaction[b"job 25"] = b"mine"
    del transaction[b"job 3"]
    keys = [b"job 0", b"job 1", b"job 2", b"job 25", b"job 4"]
    assert [key for key, _ in transaction.range(prefix=b"job ")] == keys
    assert [key for key, _ in transaction.range(reverse=True)] == keys[::-1]
    assert list(transaction.range(b"job 2", b"job 3")) == [(b"job 2", b"2"), (b"job 25", b"mine")]
    db[b"job 11"] = b"in the range"
    with pytest.raises(forrest.ConflictError) as error:
        transaction.commit()
    assert error.value.key == b"job 11"
    ended = transaction.range()
    assert next(ended) == (b"job 0", b"0")
    del transaction[b"job 0"]
    db[b"job 5"] = b"beyond what was read"
    transaction.commit()
    assert b"job 0" not in db
    with pytest.raises(forrest.InvalidArgumentError):
        next(ended)
    transaction.delete_range(prefix=b"job ")
    transaction[b"job 7"] = b""
    db[b"job 6"] = b"not read, and deleted"
    transaction.commit()
    assert list(db) == [b"job 7"]


def test_savepoints(db: forrest.Db) -> None:
    transaction = db.transaction()
    transaction[b"a"] = b"1"
    savepoint = transaction.savepoint()
    transaction[b"a"] = b"2"
    later = transaction.savepoint()
    transaction.delete_range()
    transaction.rollback_to(savepoint)
    with pytest.raises(forrest.InvalidArgumentError):
        transaction.rollback_to(later)
    transaction.rollback_to(savepoint)
    transaction.commit()
    assert db[b"a"] == b"1"
    with pytest.raises(forrest.InvalidArgumentError):
        transaction.rollback_to(savepoint)


def test_locks(db: forrest.Db) -> None:
    one, two = db.transaction(), db.transaction()
    assert one.get_for_update(b"key") is None and one.get_for_update(b"key", b"") == b""
    two.set_lock_wait(0)
    with pytest.raises(forrest.BusyError, match="another transaction has held a lock"):
        two.lock(b"key")
    for wrong in (-1, float("nan")):
        with pytest.raises(forrest.InvalidArgumentError):
            two.set_lock_wait(wrong)
    one[b"key"] = b"mine"
    one.commit()
    assert two.get_for_update(b"key") == b"mine"
    two.rollback()

    calls = 0

    def increment(transaction: forrest.Transaction) -> None:
        nonlocal calls
        calls += 1
        transaction.set_lock_wait(600)
        number = int(transaction.get_for_update(b"n", b"0"))
        transaction[b"n"] = str(number + 1).encode()

    threads = [threading.Thread(target=lambda: [db.transact(increment) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"n"] == b"200" and calls == 200


def test_a_transaction_spans_keyspaces(db: forrest.Db) -> None:
    needs(db, "several keyspaces")
    log = db.keyspace("log")
    with log.transaction() as transaction:
        transaction[b"key"] = b"there"
        transaction.set(b"key", b"here", keyspace=db)
        assert transaction.get(b"key", keyspace=db) == b"here"
        transaction.add(b"n", 1, keyspace=db)
        transaction.delete(b"old", keyspace=db)
    assert db[b"key"] == b"here" and log[b"key"] == b"there"
    with pytest.raises(forrest.ConflictError) as conflict:
        with db.transaction() as transaction:
            transaction.get(b"key", keyspace=log)
            log[b"key"] = b""
    assert conflict.value.keyspace == "log"
    with forrest.open("memory:") as other:
        with pytest.raises(forrest.InvalidArgumentError, match="another store"):
            with other.transaction() as transaction:
                transaction.set(b"key", b"", keyspace=log)


def test_durability_of_a_transaction(disk: forrest.Db) -> None:
    with disk.transaction(durability="sync") as transaction:
        transaction[b"a"] = b"1"
    with pytest.raises(forrest.InvalidArgumentError):
        disk.transaction(durability="never")  # type: ignore[arg-type]
    with forrest.open("memory:") as memory, pytest.raises(forrest.UnsupportedError):
        memory.transact(lambda transaction: transaction.get(b"a"), durability="sync")


def test_snapshots(db: forrest.Db) -> None:
    if not db.capabilities()["snapshots"]:
        with pytest.raises(forrest.UnsupportedError):
            db.snapshot()
        return
    db[b"key"] = b"old"
    people = db.keyspace("people")
    with db.snapshot() as snapshot:
        db[b"key"] = b"new"
        people[b"ada"] = b"1815"
        assert snapshot[b"key"] == b"old" and db[b"key"] == b"new"
        assert not snapshot.keyspace("people") and snapshot.keyspaces() == ["default", "people"]
        assert not snapshot.keyspace("no such keyspace")
        assert db.stats()["snapshots"] == 1
    assert db.stats()["snapshots"] == 0
    with pytest.raises(TypeError):
        snapshot[b"key"] = b""  # type: ignore[index]
    with pytest.raises(TypeError):
        forrest.Snapshot(people)  # type: ignore[arg-type]


def test_a_range_is_lazy(db: forrest.Db) -> None:
    db.put_many((b"%06d" % number, b"") for number in range(10_000))
    rows = db.range()
    assert next(rows) == (b"000000", b"")
    # Far beyond the pairs that were fetched ahead.
    del db[b"009999"]
    assert sum(1 for _ in rows) == 9_998
    assert next(rows, None) is None


def test_a_range_may_be_deleted_from(db: forrest.Db) -> None:
    db.put_many((b"%06d" % number, b"") for number in range(5_000))
    for key in db:
        del db[key]
    assert not db


def test_nothing_is_pickled(db: forrest.Db) -> None:
    db[b"a"] = b"1"
    things: list[object] = [db, db.batch(), db.range()]
    if db.capabilities()["several keyspaces"]:
        things.append(db.keyspace("people"))
    if db.capabilities()["snapshots"]:
        things.append(db.snapshot())
    for thing in things:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="cannot be pickled"):
                attempt(thing)
    assert pickle.loads(pickle.dumps(dict(db))) == {b"a": b"1"}


def test_what_is_printed(db: forrest.Db, url: str) -> None:
    shown = url.replace("\\", "\\\\").replace('"', '\\"')
    assert repr(db) == f'<Db "{shown}">'
    if db.capabilities()["snapshots"]:
        assert repr(db.keyspace("people")) == '<Keyspace "people">'
        assert repr(db.snapshot()) == '<Snapshot "default">'
    db.close()
    assert repr(db) == f'<Db "{shown}", closed>'


def test_everything_has_a_text(db: forrest.Db) -> None:
    for kind in (forrest.Db, forrest.Keyspace, forrest.Snapshot, forrest.View, forrest.Batch, forrest.Transaction, forrest.Range):
        assert inspect.getdoc(kind)
        for name, member in inspect.getmembers(kind):
            if not name.startswith("_"):
                assert inspect.getdoc(member), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("home", ["memory:", "disk"])
def test_a_keyspace_merges_with_its_operator(home: str, tmp_path: Path) -> None:
    with forrest.open(str(tmp_path / "store") if home == "disk" else home) as db:
        tags = db.keyspace("tags")
        assert tags.merge_operator is None
        with pytest.raises(forrest.InvalidArgumentError, match="no merge operator"):
            tags.merge(b"oak", b"tree")
        tags.set_merge_operator("append")
        tags.merge(b"oak", b"tree")
        tags.merge(b"oak", b",wood")
        assert (db.keyspace("tags").merge_operator, tags[b"oak"]) == ("append", b"tree,wood")
        with db.batch() as batch:
            batch.merge(b"oak", b",leaf", keyspace=tags)
        with tags.batch() as batch:
            batch.merge(b"elm", b"tree")
        with pytest.raises(forrest.InvalidArgumentError, match="no merge operator"), db.batch() as batch:
            batch.merge(b"oak", b"tree")
        with db.transaction() as transaction:
            transaction.merge(b"oak", b",root", keyspace=tags)
            tags.merge(b"oak", b",bark")  # A merge is no read.
        assert (tags[b"oak"], tags[b"elm"]) == (b"tree,wood,leaf,bark,root", b"tree")
        with pytest.raises(forrest.InvalidArgumentError, match="append"):
            tags.set_merge_operator("sum")


@pytest.mark.parametrize("home", ["disk", "memory:"])
def test_values_expire(tmp_path: Path, home: str) -> None:
    with forrest.open(home if home == "memory:" else str(tmp_path / "store")) as db:
        db.set_with_ttl(b"seat", b"held", 600)
        db.set_with_ttl(b"gone", b"at once", 0)
        assert (db[b"seat"], b"gone" in db, db.expires(b"gone")) == (b"held", False, None)
        assert (db.expires(b"seat") or 0) > time.time()
        seconds = db.ttl
        assert seconds is None
        db.set_ttl(1.5)
        db[b"later"] = b"value"
        seconds = db.ttl
        assert (seconds, db.expires(b"later") is not None) == (1.5, True)
        db.set_ttl(None)
        with db.batch() as batch:
            batch.set_with_ttl(b"in a batch", b"value", 600)
        with db.transaction() as transaction:
            transaction.set_with_ttl(b"committed", b"value", 600)
        assert None not in (db.expires(b"in a batch"), db.expires(b"committed"))


def test_changes_have_the_time(tmp_path: Path) -> None:
    with forrest.open(str(tmp_path / "kept"), history=True) as db:
        db.set_with_ttl(b"seat", b"held", 600)
        change = next(iter(db.changes(0)))
        assert (change.what, change.key, change.value) == ("set-until", b"seat", b"held")
        assert change.expires == db.expires(b"seat")


def test_latencies_and_figures_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.prom"
    with forrest.open(tmp_path / "store", latencies=True, metrics_file=path) as db:
        db[b"oak"] = b"Quercus"
        assert db[b"oak"] == b"Quercus"
        metrics = db.metrics()
        assert metrics["get_calls"] == 1 and 0 < metrics["get_p99_ns"] <= metrics["get_longest_ns"]
        assert path.read_text().startswith("# HELP forrest_")
    assert not path.exists()
    with pytest.raises(forrest.IoError, match="metrics.prom"):
        forrest.open(tmp_path / "store", metrics_file=tmp_path / "none" / "metrics.prom")
