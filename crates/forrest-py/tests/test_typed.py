"""Typed views and their codecs: round trips, the order of keys, ranges of values, and errors."""

from __future__ import annotations

import math
import pickle
import random
import struct
from collections.abc import Mapping, MutableMapping
from typing import Any

import pytest

import forrest
from forrest import codecs
from forrest.codecs import Codec

PAIRS = codecs.tuple_of(codecs.text, codecs.int64)
EDGES: list[tuple[Codec[Any], list[Any]]] = [
    (codecs.raw, [b"", b"\0", b"\0\0", b"\0\1", b"a", b"a\0", b"a\0b", b"ab", b"\xff"]),
    (codecs.text, ["", "\0", "a", "a\0", "ab", "\xe9", "\uffff", "\U0001f333"]),
    (codecs.int64, [-(1 << 63), -(1 << 32), -256, -255, -1, 0, 1, 255, 256, (1 << 63) - 1]),
    (codecs.uint64, [0, 1, 255, 256, 1 << 63, (1 << 64) - 1]),
    (codecs.float64, [-math.inf, -1e300, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1e300, math.inf]),
    (PAIRS, [("", -1), ("", 1), ("\0", 0), ("\0\0", 0), ("a", -5), ("a", 5), ("a\0", -9), ("b", -(1 << 63))]),
    (codecs.tuple_of(codecs.raw, codecs.raw), [(b"", b"\1"), (b"\0", b""), (b"a", b""), (b"a", b"\0"), (b"a\0", b"")]),
    (codecs.tuple_of(PAIRS, codecs.text), [(("", 0), "z"), (("", 1), ""), (("a", 0), "a"), (("b", 0), "")]),
]


@pytest.mark.parametrize("codec, values", EDGES, ids=[codec.name for codec, _ in EDGES])
def test_keys_come_back_in_the_order_of_values(codec: Codec[Any], values: list[Any], db: forrest.Db) -> None:
    view = db.view(codec, codecs.json)
    shuffled = values[:]
    random.Random(7).shuffle(shuffled)
    view.put_many((value, None) for value in shuffled)
    assert list(view) == values and list(reversed(view)) == values[::-1]
    for at, value in enumerate(values):
        assert [key for key, _ in view.range(value)] == values[at:]
        assert list(view.range(stop=value, keys_only=True, reverse=True)) == values[:at][::-1]
        assert view.count(values[0], value) == at
    ranges = [(value, None) for value in values] + [(None, values[1]), (values[-1], values[0])]
    assert view.multi_scan(ranges, 2, keys_only=True) == [values[at : at + 2] for at in range(len(values))] + [values[:1], []]
    assert view.multi_scan(iter(ranges[:1]), 1) == [[(values[0], None)]] and view.multi_scan([], 1) == []
    assert view.prefixes_exist(values) == [True] * len(values)
    assert math.copysign(1, codecs.float64.decode(codecs.float64.encode(-0.0))) == -1


def test_random_numbers_sort(chance: random.Random) -> None:
    floats = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(2_000)]
    numbers: list[tuple[Codec[Any], list[Any]]] = [
        (codecs.float64, [one for one in floats if not math.isnan(one)]),
        (codecs.int64, [chance.randrange(-(1 << 63), 1 << 63) >> chance.randrange(64) for _ in range(2_000)]),
        (codecs.uint64, [chance.randrange(1 << 64) >> chance.randrange(64) for _ in range(2_000)]),
    ]
    for codec, values in numbers:
        assert [codec.decode(codec.encode(value)) for value in values] == values
        assert [codec.decode(one) for one in sorted(map(codec.encode, values))] == sorted(values)


def test_it_is_a_mapping(db: forrest.Db) -> None:
    view = db.view(codecs.text, codecs.json)
    assert isinstance(view, MutableMapping) and not view
    view.update({"b": [1, {"c": None}], "a": "é"})
    assert dict(view) == {"a": "é", "b": [1, {"c": None}]} and len(view) == 2 and "a" in view and "c" not in view
    assert db[b"a"] == '"é"'.encode() and db[b"b"] == b'[1,{"c":null}]'
    assert list(reversed(view.items())) == [("b", [1, {"c": None}]), ("a", "é")] and list(reversed(view.keys())) == ["b", "a"]
    assert next(reversed(view.values())) == [1, {"c": None}] and "é" in view.values()
    assert view.get("c") is None and view.get("c", 5) == 5 and view.get_many(["c", "a"]) == [None, "é"]
    assert view.setdefault("a", 1) == "é" and view.setdefault("d") is None and view.pop("d") is None
    assert view.compare_and_swap("a", "é", 2) and not view.compare_and_swap("a", 3, 4)
    assert view.compare_and_swap("e", None, 1) and view.compare_and_swap("e", 1, None) and "e" not in view
    assert view.popitem() == ("a", 2)
    del view["b"]
    for call in (lambda: view["b"], lambda: view.pop("b"), lambda: view.__delitem__("b"), view.popitem):
        with pytest.raises(KeyError):
            call()
    assert view.pop("b", 7) == 7


def test_what_cannot_be_decoded_stays(db: forrest.Db) -> None:
    view = db.view(codecs.text, codecs.json)
    db[b"a"] = b"no JSON"
    for call in (lambda: view.pop("a"), view.popitem):
        with pytest.raises(forrest.DecodeError):
            call()
    assert dict(db) == {b"a": b"no JSON"}


def test_ranges_take_parts_of_keys(db: forrest.Db) -> None:
    names = db.view(codecs.text, codecs.raw)
    names.update({"/usr/lib": b"", "/usr/bin": b"", "/var": b""})
    assert list(names.range(prefix="/usr/", keys_only=True)) == ["/usr/bin", "/usr/lib"]
    names.delete_range(prefix="/usr")
    assert list(names) == ["/var"]
    names.clear()
    visits = db.view(PAIRS, codecs.counter)
    visits.update({("ada", -1): 1, ("ada", 5): 2, ("alan", 0): 3})
    assert visits.count(prefix=("ada",)) == 2 and list(visits.range(("alan",), keys_only=True)) == [("alan", 0)]
    assert list(visits.range(("ada", 0), ("alan",))) == [(("ada", 5), 2)]
    assert db.add(PAIRS.encode(("alan", 0)), -4) == -1 and visits["alan", 0] == -1
    with pytest.raises(TypeError, match="stores tuples of 2"):
        visits["ada",]
    with pytest.raises(TypeError, match="stores tuples of 2"):
        visits.count(prefix=("ada", 1, 2))


def test_wrong_values_are_refused(db: forrest.Db) -> None:
    wrong: list[tuple[Codec[Any], Any, type[Exception]]] = [
        (codecs.text, b"a", TypeError),
        (codecs.text, "\ud800", ValueError),
        (codecs.raw, "a", TypeError),
        (codecs.json, {1, 2}, TypeError),
        (codecs.json, math.nan, ValueError),
        (codecs.int64, 1.0, TypeError),
        (codecs.int64, 1 << 63, OverflowError),
        (codecs.uint64, -1, OverflowError),
        (codecs.float64, "1", (struct.error, TypeError)),  # type: ignore[list-item]
        (PAIRS, "ab", TypeError),
    ]
    for codec, value, kind in wrong:
        with pytest.raises(kind):
            db.view(codec, codecs.raw)[value] = b""
        with pytest.raises(kind):
            db.view(codecs.raw, codec)[b"a"] = value
    assert not db


def test_bytes_of_another_codec_are_an_error(db: forrest.Db) -> None:
    db[b"\xff"] = b"{"
    with pytest.raises(forrest.DecodeError, match=r"the key b'\\xff' was not written by the codec text"):
        list(db.view(codecs.text, codecs.raw))
    for codec in (codecs.json, codecs.int64, codecs.float64, PAIRS, codecs.tuple_of(codecs.int64)):
        with pytest.raises(forrest.DecodeError, match="the value b'{' was not written by"):
            db.view(codecs.raw, codec)[b"\xff"]
    db[b"long"] = bytes(1_000)
    with pytest.raises(forrest.DecodeError, match="and more was not written by the codec uint64") as error:
        list(db.view(codecs.raw, codecs.uint64).range(b"a", b"z"))
    assert len(str(error.value)) < 300 and isinstance(error.value, ValueError)


def test_other_views_and_codecs(db: forrest.Db) -> None:
    objects = db.view(codecs.text, Codec("pickle", pickle.dumps, pickle.loads))
    objects["a"] = {1, 2}
    assert "from text to pickle" in repr(objects) and repr(codecs.text) == "<Codec text>"
    if db.capabilities()["snapshots"]:
        with db.snapshot() as snapshot:
            objects["a"] = None
            then = snapshot.view(codecs.text, Codec("pickle", pickle.dumps, pickle.loads))
            assert then["a"] == {1, 2} and isinstance(then, Mapping) and not isinstance(then, MutableMapping)
