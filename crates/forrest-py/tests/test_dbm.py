"""The interface of dbm: CPython's own tests, pointed at the module, and what they leave out."""

from __future__ import annotations

import os
import shelve
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import forrest
import forrest.dbm

test_dbm = pytest.importorskip("test.test_dbm", reason="this Python has no package test")


class TestAnyDbm(test_dbm.AnyDBMTestCase, unittest.TestCase):  # type: ignore[misc, name-defined]
    """CPython's tests of all dbm modules, where `dbm` is ours: dbm.open() recognises no other module's files."""

    module = forrest.dbm

    @pytest.fixture(autouse=True)
    def ours(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        ours = SimpleNamespace(open=forrest.dbm.open, error=forrest.dbm.error, _defaultmod=None)
        monkeypatch.setattr(test_dbm, "dbm", ours)


def test_flags(tmp_path: Path) -> None:
    path = tmp_path / "db"
    for flag in ("r", "w"):
        with pytest.raises(forrest.dbm.error, match="db"):
            forrest.dbm.open(path, flag)
    with pytest.raises(ValueError, match="it must be one of"):
        forrest.dbm.open(path, "x")  # type: ignore[arg-type]
    with forrest.dbm.open(path, "c", 0o640) as db:
        umask = os.umask(0)
        os.umask(umask)
        assert path.stat().st_mode & 0o777 == 0o750 & ~umask
        db["a"] = "ä"
        with pytest.raises(forrest.dbm.error) as error:
            forrest.dbm.open(path, "w")
        assert isinstance(error.value.__cause__, forrest.BusyError) and isinstance(error.value, OSError)
        with forrest.dbm.open(path) as reader:
            assert reader["a"] == "ä".encode()
            changes: list[Any] = [lambda: reader.__setitem__("b", b""), lambda: reader.__delitem__("a"), reader.clear]
            for change in changes:
                with pytest.raises(forrest.dbm.error):
                    change()
    with pytest.raises(forrest.dbm.error, match="closed"):
        db["a"]
    db.close()
    with forrest.dbm.open(path, "w") as db:
        assert "a" in db and len(db) == 1
    with forrest.dbm.open(path, "n") as db:
        assert not db and db.firstkey() is None
    with pytest.raises(forrest.dbm.error):
        forrest.dbm.open(tmp_path / "missing" / "db", "c")


def test_keys_in_order(tmp_path: Path) -> None:
    with forrest.dbm.open(tmp_path / "db", "c") as db:
        db.update({"b": "2", b"a": bytearray(b"1"), "c\0": "3", "c": "4"})  # type: ignore[dict-item]
        keys, key = [], db.firstkey()
        while key is not None:
            keys.append(key)
            key = db.nextkey(key)
        assert keys == db.keys() == list(db) == [b"a", b"b", b"c", b"c\0"]
        assert db.get("d") is None and db.get("d", 7) == 7 and db.setdefault("d") == b"" and db.pop(b"d") == b""
        with pytest.raises(KeyError):
            del db["d"]
        wrongs: list[Any] = [1, None]
        for wrong in wrongs:
            with pytest.raises(TypeError):
                db[wrong] = b""
            with pytest.raises(TypeError):
                db["a"] = wrong
        db.sync()
        db.reorganize()
        for key in db:
            del db[key]
        assert list(db.items()) == []
        with pytest.raises(KeyError):
            db.popitem()


def test_a_shelf(tmp_path: Path) -> None:
    shelf: Any
    with shelve.Shelf(forrest.dbm.open(tmp_path / "db", "c")) as shelf:
        shelf["a"] = {1, 2}
    with shelve.Shelf(forrest.dbm.open(tmp_path / "db")) as shelf:
        assert dict(shelf) == {"a": {1, 2}}
