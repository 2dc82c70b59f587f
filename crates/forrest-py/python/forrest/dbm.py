"""The interface of Python's dbm modules, over a store on disk.

>>> import tempfile
>>> import forrest.dbm
>>> path = tempfile.mkdtemp() + "/cache"
>>> with forrest.dbm.open(path, "c") as db:
...     db["key"] = "value"  # str is stored as UTF-8; results are bytes
...     db.keys()
[b'key']

A database is a directory. `dbm.open` does not recognise it, so programs call `forrest.dbm.open`, also for shelve:
`shelve.Shelf(forrest.dbm.open(path, "c"))`. Unlike the modules of the standard library, it keeps what was written when the
process is killed, sorts its keys, and lets one process write while others read.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import forrest

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

__all__ = ["error", "open"]

_Method = TypeVar("_Method", bound=Callable[..., Any])


class error(OSError):
    """Any failure of this module other than a missing key, which is a KeyError, or an argument of a wrong type. Its cause is the
    forrest.Error."""


def _raising(method: _Method) -> _Method:
    """The method with errors of this module."""

    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except forrest.Error as cause:
            raise error(str(cause)) from cause

    return cast("_Method", call)


def _bytes(item: str | Buffer) -> Buffer:
    return item.encode() if isinstance(item, str) else item


class _Database(MutableMapping[Any, bytes]):
    """An open database."""

    __slots__ = ("_db",)

    def __init__(self, db: forrest.Db) -> None:
        self._db = db

    @_raising
    def __getitem__(self, key: str | Buffer) -> bytes:
        return self._db[_bytes(key)]

    @_raising
    def __setitem__(self, key: str | Buffer, value: str | Buffer) -> None:
        self._db[_bytes(key)] = _bytes(value)

    @_raising
    def __delitem__(self, key: str | Buffer) -> None:
        del self._db[_bytes(key)]

    @_raising
    def __contains__(self, key: Any) -> bool:
        return _bytes(key) in self._db

    @_raising
    def __len__(self) -> int:
        return len(self._db)

    def __iter__(self) -> Iterator[bytes]:
        key = self.firstkey()
        while key is not None:
            yield key
            key = self.nextkey(key)

    @_raising
    def keys(self) -> list[bytes]:  # type: ignore[override]
        """All keys, in order, as a list, as in other modules of dbm."""
        return list(self._db)

    @_raising
    def get(self, key: str | Buffer, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self._db.get(_bytes(key), default)

    @_raising
    def setdefault(self, key: str | Buffer, default: str | Buffer = b"") -> bytes:
        """The value of a key, which is set to the default first if it is missing."""
        return self._db.setdefault(_bytes(key), _bytes(default))

    @_raising
    def clear(self) -> None:
        """Removes all keys."""
        self._db.clear()

    @_raising
    def firstkey(self) -> bytes | None:
        """The first key; None if there is none. As in dbm.gnu, but keys are sorted."""
        return next(self._db.range(keys_only=True), None)

    @_raising
    def nextkey(self, key: str | Buffer) -> bytes | None:
        """The first key after a key; None if there is none."""
        after = bytes(memoryview(_bytes(key))) + b"\0"
        return next(self._db.range(after, keys_only=True), None)

    @_raising
    def sync(self) -> None:
        """Makes everything written before survive a loss of power."""
        self._db.sync()

    @_raising
    def reorganize(self) -> None:
        """Makes the database take the least space."""
        self._db.compact()

    @_raising
    def close(self) -> None:
        """Closes the database. A second call does nothing."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<forrest.dbm database of {self._db!r}>"


def open(
    file: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    flag: Literal["r", "w", "c", "n"] = "r",
    mode: int = 0o666,
) -> _Database:
    """Opens the database in the directory `file`: "r" an existing one to read, also while another process writes to it; "w" an
    existing one to change; "c" one that is created if it is missing; "n" an empty one, whose old content is removed.

    `mode` holds for a new directory, with the right to search it wherever there is the right to read. Raises `error`, for example
    if another process has the database open to change it, and ValueError for another flag.
    """
    if flag not in ("r", "w", "c", "n"):
        raise ValueError(f"flag is {flag!r}; it must be one of 'r', 'w', 'c' and 'n'")
    path = Path(os.fsdecode(file))
    try:
        if flag in "cn" and not path.is_dir():
            if flag == "n":
                path.unlink(missing_ok=True)
            path.mkdir(mode | (mode & 0o444) >> 2)
        db = forrest.open(path, create=flag in "cn", read_only=flag == "r")
        if flag == "n":
            for name in db.keyspaces():
                db.keyspace(name).clear()
    except (forrest.Error, OSError) as cause:
        raise error(str(cause)) from cause
    return _Database(db)
