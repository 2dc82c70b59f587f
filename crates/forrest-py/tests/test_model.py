"""Random calls, against a dict whose keys are sorted."""

from __future__ import annotations

import array
import random
from pathlib import Path

import pytest

import forrest
from conftest import needs

CALLS = 3000


def bytes_like(chance: random.Random, data: bytes) -> bytes | bytearray | memoryview | array.array[int]:
    """The same bytes in some form."""
    forms = (bytes, bytearray, memoryview, lambda data: array.array("B", data))
    return chance.choice(forms)(data)


def key(chance: random.Random) -> bytes:
    """One of few keys, some of which are prefixes of others; now and then a long one."""
    if chance.random() < 0.02:
        return b"\xff" * chance.randrange(1, 300)
    return bytes(chance.choice(b"\x00ab\xff") for _ in range(chance.randrange(5)))


def value(chance: random.Random) -> bytes:
    """Mostly a short value, sometimes one that is stored outside of the node."""
    return chance.randbytes(chance.choice((0, 3, 8, 20, 239, 240, 5000)))


Bounds = tuple[bytes | None, bytes | None, bytes | None]


def bounds(chance: random.Random) -> Bounds:
    """A start, an end and a prefix, each present or not."""
    start, stop, prefix = (key(chance) if chance.random() < 0.5 else None for _ in range(3))
    return start, stop, prefix


def select(model: dict[bytes, bytes], within: Bounds) -> list[bytes]:
    """The oracle: the keys of a range, by one comparison for each argument."""
    start, stop, prefix = within
    return sorted(
        key
        for key in model
        if (start is None or key >= start)
        and (stop is None or key < stop)
        and (prefix is None or key.startswith(prefix))
    )


def check_reading(chance: random.Random, view: forrest.View, model: dict[bytes, bytes]) -> None:
    """One kind of read, and its expected result."""
    which = chance.randrange(7)
    if which == 0:
        wanted = [key(chance) for _ in range(chance.randrange(5))]
        assert view.get_many(bytes_like(chance, one) for one in wanted) == [model.get(one) for one in wanted]
    elif which == 1:
        one = key(chance)
        assert view.get(bytes_like(chance, one), b"none") == model.get(one, b"none")
        assert (bytes_like(chance, one) in view) == (one in model)
    elif which == 2:
        within = bounds(chance)
        start, stop, prefix = within
        keys = select(model, within)
        assert view.count(start, stop, prefix=prefix) == len(keys)
        pairs = [(key, model[key]) for key in keys]
        assert list(view.range(start, stop, prefix=prefix)) == pairs
        assert list(view.range(start, stop, prefix=prefix, reverse=True)) == pairs[::-1]
        assert list(view.range(start, stop, prefix=prefix, keys_only=True)) == keys
    elif which == 3:
        assert len(view) == len(model) and bool(view) == bool(model)
    elif which == 4:
        keys = sorted(model)
        assert list(view) == list(view.keys()) == keys and list(reversed(view)) == keys[::-1]
    elif which == 5:
        assert list(view.items()) == sorted(model.items())
        assert list(view.values()) == [model[key] for key in sorted(model)]
    else:
        assert view == model and not view != model


def change(chance: random.Random, space: forrest.Keyspace, model: dict[bytes, bytes]) -> None:
    """One kind of change, and its expected result."""
    one, new = key(chance), value(chance)
    which = chance.randrange(11)
    if which < 3:
        space[bytes_like(chance, one)] = bytes_like(chance, new)
        model[one] = new
    elif which == 3:
        if one in model:
            del space[one]
            del model[one]
        else:
            with pytest.raises(KeyError) as error:
                del space[one]
            assert error.value.args == (one,)
    elif which == 4:
        assert space.pop(bytes_like(chance, one), None) == model.pop(one, None)
    elif which == 5:
        assert space.setdefault(one, new) == model.setdefault(one, new)
    elif which == 6:
        pairs = [(key(chance), value(chance)) for _ in range(chance.randrange(20))]
        space.put_many((bytes_like(chance, one), bytes_like(chance, new)) for one, new in pairs)
        model.update(pairs)
    elif which == 7:
        within = bounds(chance)
        start, stop, prefix = within
        gone = select(model, within)
        # Rarely, because it removes all keys.
        if len(gone) > 4 and chance.random() < 0.8:
            return
        assert space.count(start, stop, prefix=prefix) == len(gone)
        space.delete_range(start, stop, prefix=prefix)
        for one in gone:
            del model[one]
    elif which == 8:
        expected = chance.choice((model.get(one), value(chance), None))
        wanted = chance.choice((new, None))
        if space.compare_and_swap(one, expected, wanted):
            assert model.get(one) == expected
            if wanted is None:
                model.pop(one, None)
            else:
                model[one] = wanted
        else:
            assert model.get(one) != expected
    elif which == 9:
        if model:
            first = min(model)
            assert space.popitem() == (first, model.pop(first))
        else:
            with pytest.raises(KeyError):
                space.popitem()
    else:
        old = model.get(one, bytes(8))
        if len(old) != 8:
            with pytest.raises(forrest.InvalidArgumentError):
                space.add(one, 1)
        else:
            delta = chance.randrange(-1000, 1000)
            try:
                sum = (int.from_bytes(old, signed=True) + delta).to_bytes(8, signed=True)
            except OverflowError:
                with pytest.raises(forrest.InvalidArgumentError):
                    space.add(one, delta)
            else:
                assert space.add(one, delta) == int.from_bytes(sum, signed=True)
                model[one] = sum


def test_a_store_is_a_sorted_dict(db: forrest.Db, chance: random.Random) -> None:
    model: dict[bytes, bytes] = {}
    for _ in range(CALLS):
        change(chance, db, model)
        check_reading(chance, db, model)


def test_a_snapshot_is_a_copy(db: forrest.Db, chance: random.Random) -> None:
    needs(db, "snapshots", "several keyspaces")
    spaces: list[forrest.Keyspace] = [db, db.keyspace("other")]
    models: list[dict[bytes, bytes]] = [{}, {}]
    for _ in range(CALLS // 100):
        for _ in range(50):
            for space, model in zip(spaces, models):
                change(chance, space, model)
        with db.snapshot() as snapshot:
            copies = [dict(model) for model in models]
            for _ in range(25):
                for space, model in zip(spaces, models):
                    change(chance, space, model)
                check_reading(chance, snapshot, copies[0])
                check_reading(chance, snapshot.keyspace("other"), copies[1])


def test_a_batch_is_all_of_it(db: forrest.Db, chance: random.Random) -> None:
    model: dict[bytes, bytes] = {}
    for _ in range(CALLS // 20):
        with db.batch() as batch:
            for _ in range(chance.randrange(30)):
                one, new = key(chance), value(chance)
                which = chance.randrange(4)
                if which == 0:
                    batch[bytes_like(chance, one)] = bytes_like(chance, new)
                    model[one] = new
                elif which == 1:
                    del batch[one]
                    model.pop(one, None)
                elif which == 2:
                    within = start, stop, prefix = bounds(chance)
                    batch.delete_range(start, stop, prefix=prefix)
                    for gone in select(model, within):
                        del model[gone]
                else:
                    batch.compare_and_swap(one, model.get(one), new)
                    model[one] = new
        assert db == model


def test_what_was_put_is_there_again(tmp_path: Path, chance: random.Random) -> None:
    model: dict[bytes, bytes] = {}
    for _ in range(10):
        with forrest.open(tmp_path / "store", memtable_bytes=100_000) as db:
            for _ in range(CALLS // 10):
                change(chance, db, model)
            if chance.random() < 0.5:
                db.compact()
                db.verify()
            assert db == model
