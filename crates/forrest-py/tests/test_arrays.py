"""NumPy's arrays in and out."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest

import forrest
from conftest import starts_python
from forrest import _forrest, codecs

np = pytest.importorskip("numpy", reason="NumPy is not installed")
from forrest import arrays  # noqa: E402

KEYS: dict[str, Any] = {
    "i8": np.array([0, -1, 1, 5, -(1 << 63), (1 << 63) - 1]),
    ">i4": np.array([3, -3, 0, 1 << 30], ">i4"),
    "u2": np.array([65_535, 0, 256, 1], "u2"),
    "b1": np.array([True, False]),
    "f8": np.array([1.5, -1.5, np.inf, -np.inf, 0.0, 5e-324, -1e300]),
    "f4": np.array([2.0, -2.0, 0.5], "f4"),
    "M8[s]": np.array(["1999-12-31", "1815-12-10", "2026-01-01"], "M8[s]"),
    "S4": np.array([b"oak", b"ash", b"elms", b""]),
    "V3": np.array([b"abc", b"aaa"], "V3"),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_sort_as_the_array_does(kind: str, db: forrest.Db) -> None:
    keys, numbers = KEYS[kind], np.arange(len(KEYS[kind]), dtype="i8")
    arrays.put(db, keys, numbers)
    order = np.argsort(keys) if keys.dtype.kind != "V" else [1, 0]
    found, values = arrays.read(db, kind, "i8")
    assert found.dtype == keys.dtype.newbyteorder("=") and found.tolist() == keys[order].tolist()
    assert values.tolist() == numbers[order].tolist()
    got, exists = arrays.get(db, keys, "i8")
    assert got.tolist() == numbers.tolist() and exists.all()
    start = bytes(keys[order[1]]).ljust(keys.itemsize, b"\0") if keys.dtype.kind in "SV" else keys[order[1]]
    assert arrays.read(db, kind, None, start)[0].tolist() == keys[order[1:]].tolist()
    assert arrays.read(db, kind, None, stop=start)[0].tolist() == keys[order[:1]].tolist()


@pytest.mark.parametrize(
    ("kind", "exact", "others"),
    [
        ("i8", [1.0, np.int32(1), True], [1.5, "1", -1.5]),
        ("u1", [255, np.float64(7)], [0.1]),
        ("f4", [0.1, 7, float("inf")], [1e300]),
        ("M8[D]", ["2026-01-02", np.datetime64("NaT"), 7, np.datetime64("2026-01-02T00", "h")], [np.datetime64("2026-01-02T12", "h")]),
        ("m8[s]", [np.timedelta64(2, "m"), 7], [np.timedelta64(1500, "ms")]),
    ],
)
def test_bounds_are_keys(kind: str, exact: list[Any], others: list[Any], db: forrest.Db) -> None:
    for bound in exact:
        assert len(arrays.read(db, kind, None, bound, bound)[0]) == 0
    for bound in others:
        for bounds in ((bound, None), (None, bound)):
            with pytest.raises(forrest.InvalidArgumentError, match="is no key of"), np.errstate(all="ignore"):
                arrays.scan(db, kind, None, *bounds)


def test_rows_of_many_columns(db: forrest.Db) -> None:
    keys = np.frombuffer(b"bbbaaaccc", np.uint8).reshape(3, 3)
    values = np.arange(12, dtype="f4").reshape(3, 2, 2)
    arrays.put(db, keys, values)
    assert db[b"aaa"] == values[1].tobytes()
    found, read = arrays.read(db, ("u1", 3), ("f4", (2, 2)), b"aab")
    assert (found == keys[[0, 2]]).all() and (read == values[[0, 2]]).all()
    pairs = np.zeros(2, [("x", "i4"), ("y", "f8")])
    pairs["y"] = 7
    arrays.put(db, np.array([b"ddd", b"eee"]), pairs)
    got, exists = arrays.get(db, np.array([b"eee", b"fff"]), pairs.dtype)
    assert got["y"].tolist() == [7, 0] and exists.tolist() == [True, False]
    assert arrays.read(db, "S3", pairs.dtype, prefix=b"d")[0].tolist() == [b"ddd"]
    got[:] = pairs  # results can be changed


def test_the_codecs_store_the_same(db: forrest.Db) -> None:
    kinds: list[tuple[str, codecs.Codec[Any]]] = [
        ("i8", codecs.int64),
        ("u8", codecs.uint64),
        ("f8", codecs.float64),
    ]
    for dtype, codec in kinds:
        db.clear()
        keys = np.array([-7 if dtype != "u8" else 7, 0, 3], dtype)
        arrays.put(db, keys, np.zeros(3, "u1"))
        assert list(db.view(codec, codecs.raw)) == sorted(keys.tolist())


def test_many_rows(db: forrest.Db, chance: random.Random) -> None:
    count = 150_000
    keys = np.array(chance.sample(range(-(1 << 40), 1 << 40), count))
    arrays.put(db, keys[::-1], keys[::-1].astype("f8"))
    pieces = list(arrays.scan(db, "i8", "f8", rows=50_000))
    assert max(len(piece) for piece, _ in pieces) == 50_000
    found, values = (np.concatenate(one) for one in zip(*pieces))
    assert (found == np.sort(keys)).all() and (values == found).all()
    some = keys[::2] + (keys[::2] % 2)
    got, exists = arrays.get(db, some, "f8")
    assert (exists == np.isin(some, keys)).all() and (got == np.where(exists, some, 0)).all()
    assert db.count() == count


def test_keyspaces_and_snapshots_have_arrays(disk: forrest.Db) -> None:
    people, keys = disk.keyspace("people"), np.arange(5)
    arrays.put(people, keys, keys)
    with disk.snapshot() as snapshot:
        arrays.put(people, keys, keys + 1)
        assert arrays.read(snapshot.keyspace("people"), "i8", "i8")[1].tolist() == [0, 1, 2, 3, 4]
    assert arrays.get(people, keys, "i8")[0].tolist() == [1, 2, 3, 4, 5] and not disk


def test_nothing(db: forrest.Db) -> None:
    arrays.put(db, np.zeros(0, "i8"), np.zeros(0, "i8"))
    keys, values = arrays.read(db, "i8", ("f4", 3))
    assert keys.shape == (0,) and values.shape == (0, 3) and not list(arrays.scan(db, "i8", None))
    got, exists = arrays.get(db, np.zeros(0, "i8"), "f8")
    assert got.shape == exists.shape == (0,)
    assert arrays.read(db, "i8", None)[1].shape == (0, 0)


def test_wrong_arrays_are_refused(db: forrest.Db) -> None:
    wrong_types: list[Any] = [
        lambda: arrays.put(db, np.array([None]), np.zeros(1)),
        lambda: arrays.put(db, np.zeros(1), np.array([None])),
        lambda: arrays.put(db, np.array(1), np.zeros(1)),
        lambda: arrays.put(db, np.array(["text"]), np.zeros(1)),
        lambda: arrays.put(db, np.zeros((1, 2)), np.zeros(1)),
        lambda: arrays.put(db, np.zeros((1, 2, 2), "u1"), np.zeros(1)),
        lambda: arrays.put(db, np.zeros(1, np.longdouble), np.zeros(1)),
        lambda: arrays.put(db, np.zeros(1), np.zeros((1, 0))),
        lambda: arrays.scan(db, "c16", None),
        lambda: arrays.scan(db, "O", None),
        lambda: arrays.scan(db, "S", None),
        lambda: arrays.read(db, "i8", "O"),
        lambda: arrays.get(db, np.zeros(1), "V0"),
    ]
    for call in wrong_types:
        with pytest.raises(TypeError):
            call()
    for keys, values in ((np.zeros(2), np.zeros(3)), (np.zeros(1), np.array(1))):
        with pytest.raises(forrest.InvalidArgumentError, match="one row for each key"):
            arrays.put(db, keys, values)
    with pytest.raises(OverflowError):
        arrays.scan(db, "u1", None, 256)
    with pytest.raises(forrest.InvalidArgumentError, match="rows is 0"):
        arrays.scan(db, "u1", None, rows=0)
    assert not db
    with pytest.raises(forrest.LimitError, match="pair 0 of the call"):
        arrays.put(db, np.zeros((2, 70_000), "u1"), np.zeros(2))
    with pytest.raises((MemoryError, forrest.InvalidArgumentError)):
        arrays.get(db, np.zeros(1 << 20), f"V{(1 << 31) - 1}")


def test_pairs_of_another_length_are_an_error(db: forrest.Db) -> None:
    db[b"abcd"] = b"1"
    with pytest.raises(forrest.InvalidArgumentError, match='the key "abcd" has 4 bytes'):
        arrays.read(db, "i8", None)
    for call in (lambda: arrays.read(db, "S4", "i8"), lambda: arrays.get(db, np.array([b"abcd"]), "i8")):
        with pytest.raises(forrest.InvalidArgumentError, match='the value of key "abcd" has 1 bytes'):
            call()


def test_rows_that_do_not_fit_their_buffers_are_an_error(db: forrest.Db) -> None:
    calls: list[Any] = [
        lambda: _forrest.put_rows(db, b"abc", b"ab", 2, 0),
        lambda: _forrest.put_rows(db, b"ab", b"abc", 2, 0),
        lambda: _forrest.put_rows(db, b"", b"", 0, 0),
        lambda: _forrest.get_rows(db, b"abc", 2, 8),
        lambda: _forrest.get_rows(db, b"", 1 << 40, 1 << 40),
        lambda: _forrest.scan_rows(db, None, None, None, 1 << 40, 1 << 40, None),
    ]
    for call in calls:
        with pytest.raises((forrest.InvalidArgumentError, MemoryError)):
            call()
    with pytest.raises(OverflowError):
        _forrest.scan_rows(db, None, None, None, -1, 8, 8)
    assert not db


def test_a_closed_store_is_an_error(db: forrest.Db) -> None:
    keys = np.arange(3)
    arrays.put(db, keys, keys)
    pieces = arrays.scan(db, "i8", "i8", rows=2)
    next(pieces)
    db.close()
    calls: list[Any] = [
        lambda: arrays.put(db, keys, keys),
        lambda: arrays.get(db, keys, "i8"),
        lambda: next(pieces),
    ]
    for call in calls:
        with pytest.raises(forrest.InvalidArgumentError, match="the store is closed"):
            call()


@starts_python
def test_numpy_is_imported_only_when_used() -> None:
    program = "import sys, forrest; assert 'numpy' not in sys.modules; import forrest.arrays; assert 'numpy' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
