"""The interface of plyvel, over a store on disk: `import forrest.plyvel as plyvel` in a program that was written for it.

>>> import tempfile
>>> import forrest.plyvel as plyvel
>>> path = tempfile.mkdtemp() + "/trees"
>>> with plyvel.DB(path, create_if_missing=True) as db:
...     db.put(b"oak", b"Quercus robur")
...     db.put(b"ash", b"Fraxinus excelsior")
...     list(db.iterator(stop=b"b"))
[(b'ash', b'Fraxinus excelsior')]

The files are Forrest's: a directory of LevelDB is refused. Keys are ordered by their bytes, so another comparator is refused too.
Sizes are those of Forrest: a key has at most 65,535 bytes. Options that only LevelDB has are ignored: `paranoid_checks`,
`verify_checksums` (checksums are always verified), `fill_cache`, `block_size`, `block_restart_interval`, `bloom_filter_bits`.
"""

from __future__ import annotations

import builtins
import functools
import os
from collections.abc import Callable, Iterator as _Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import forrest

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

__all__ = [
    "DB",
    "CorruptionError",
    "Error",
    "IOError",
    "Iterator",
    "IteratorInvalidError",
    "PrefixedDB",
    "RawIterator",
    "Snapshot",
    "WriteBatch",
    "__leveldb_version__",
    "__version__",
    "destroy_db",
    "repair_db",
]

__version__ = "1.5.1"
"""The version of plyvel whose interface this is."""
__leveldb_version__ = "1.23"
"""The version of LevelDB whose properties and errors these are."""

_Method = TypeVar("_Method", bound=Callable[..., Any])
_BYTEWISE = b"leveldb.BytewiseComparator"
# LevelDB's levels. All tables of Forrest count as those of level 0, because they may overlap.
_LEVELS = 7
_KEY_BYTES_MAX = 65_535
# LevelDB limits batches by their count, of 32 bits.
_BATCH_OPS_MAX = 2**32 - 1
_BATCH_BYTES_MAX = 1 << 40
# A batch of LevelDB begins with a sequence number and a count; each change has a kind and lengths.
_BATCH_HEAD_BYTES = 12
_CHANGE_HEAD_BYTES = 3


class Error(Exception):
    """Any failure of this module other than an argument of a wrong type or value, or the use of something closed. Its cause is
    the forrest.Error."""


class IOError(Error, builtins.IOError):
    """The system refused a call, or the database is open elsewhere."""


class CorruptionError(Error):
    """Stored bytes are damaged."""


class IteratorInvalidError(Error):
    """A raw iterator is at no pair."""


def _raised(cause: forrest.Error) -> Error:
    """The error of this module."""
    if isinstance(cause, forrest.CorruptError):
        return CorruptionError(str(cause))
    if isinstance(cause, forrest.IoError | forrest.OutOfSpaceError | forrest.BusyError | forrest.StoppedError):
        return IOError(str(cause))
    return Error(str(cause))


def _raising(method: _Method) -> _Method:
    """The method with errors of this module."""

    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except forrest.Error as cause:
            raise _raised(cause) from cause

    return cast("_Method", call)


def _bytes(item: Buffer) -> bytes:
    """A copy of bytes. Numbers and text are no bytes."""
    return item if isinstance(item, bytes) else bytes(memoryview(item))


def _key(key: bytes) -> bytes:
    if not isinstance(key, bytes):
        raise TypeError(f"a key is bytes, not {type(key).__name__}")
    return key


def _get(view: forrest.View, key: bytes, default: Any) -> Any:
    """The value of a key, or the default. A key that is longer than any that can be put is not there."""
    return view.get(key, default) if len(key) <= _KEY_BYTES_MAX else default


def _end(prefix: bytes) -> bytes | None:
    """The first key after all that begin with a prefix; None if there is no such key."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


class DB:
    """An open database, in the directory `name`. Any number of threads may use it.

    With `create_if_missing` a database that is missing is created, and with `error_if_exists` one that is there is an error.
    `write_buffer_size`, `max_open_files`, `lru_cache_size` and `max_file_size` are those of Forrest's memtable, open files, cache
    and tables; None is Forrest's default. `compression` is "snappy", which stands for LZ4, or None.
    """

    __slots__ = ("__weakref__", "_db", "_name")

    def __init__(
        self,
        name: str | bytes | os.PathLike[str],
        *,
        create_if_missing: bool = False,
        error_if_exists: bool = False,
        paranoid_checks: bool | None = None,
        write_buffer_size: int | None = None,
        max_open_files: int | None = None,
        lru_cache_size: int | None = None,
        block_size: int | None = None,
        block_restart_interval: int | None = None,
        max_file_size: int | None = None,
        compression: Literal["snappy"] | None = "snappy",
        bloom_filter_bits: int = 0,
        comparator: Callable[[bytes, bytes], int] | None = None,
        comparator_name: bytes | None = None,
    ) -> None:
        if compression not in (None, "snappy"):
            raise ValueError(f"compression is {compression!r}; it must be 'snappy' or None")
        _check_comparator(comparator, comparator_name)
        path = _path(name)
        memtable_bytes = _limited(write_buffer_size, 64 << 10, 1 << 30)
        open_files = _limited(max_open_files, 1, 50_000)
        cache_bytes = _limited(lru_cache_size, 1, None)
        table_bytes = _limited(max_file_size, 1 << 20, 1 << 30)
        try:
            _check(path, create_if_missing, error_if_exists)
            self._db = forrest.open(
                path,
                create=create_if_missing,
                durability="buffered",
                compression="lz4" if compression else "none",
                memtable_bytes=memtable_bytes,
                open_files=open_files,
                cache_bytes=cache_bytes,
                table_bytes=table_bytes,
                batch_ops_max=_BATCH_OPS_MAX,
                batch_bytes_max=_BATCH_BYTES_MAX,
            )
        except forrest.Error as cause:
            raise _raised(cause) from cause
        self._name = name

    @property
    def name(self) -> str | bytes | os.PathLike[str]:
        """The directory, as it was given."""
        return self._name

    @property
    def closed(self) -> bool:
        """Whether the database was closed."""
        return self._db.closed

    def close(self) -> None:
        """Closes the database, with its snapshots and iterators. A second call does nothing."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<forrest.plyvel.DB with name {self._name!r}>"

    def _open(self) -> forrest.Db:
        """The store, if it is open."""
        if self._db.closed:
            raise RuntimeError("the database is closed")
        return self._db

    @_raising
    def get(self, key: bytes, default: Any = None, *, verify_checksums: bool | None = None, fill_cache: bool = True) -> Any:
        """The value of a key, or the default."""
        return _get(self._open(), _key(key), default)

    @_raising
    def put(self, key: bytes, value: Buffer, *, sync: bool = False) -> None:
        """Sets the value of a key. With `sync` it survives a loss of power when the call returns, otherwise the end of the
        process."""
        db = self._open()
        if sync:
            self._write([(_key(key), _bytes(value))], sync)
        else:
            db[_key(key)] = value

    @_raising
    def delete(self, key: bytes, *, sync: bool = False) -> None:
        """Removes a key; nothing happens if it is missing."""
        self._write([(_key(key), None)], sync)

    def _write(self, changes: list[tuple[bytes, bytes | None]], sync: bool) -> None:
        batch = self._open().batch(durability="sync" if sync else "buffered")
        for key, value in changes:
            if value is None:
                batch.delete(key)
            else:
                batch.set(key, value)
        batch.write()

    def write_batch(self, *, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """Changes that are made together. As a context manager it is written at the end of the with block; with `transaction`,
        not after an exception."""
        return WriteBatch(self, b"", transaction, sync)

    def __iter__(self) -> Iterator:
        return self.iterator()

    @_raising
    def iterator(self, **options: Any) -> Iterator:
        """An iterator over the state at this moment. The options are those of Iterator."""
        return Iterator(self, forrest.Snapshot(self._open()), b"", **options)

    @_raising
    def raw_iterator(self, *, verify_checksums: bool = False, fill_cache: bool = True) -> RawIterator:
        """A raw iterator over the state at this moment."""
        return RawIterator(self, forrest.Snapshot(self._open()))

    @_raising
    def snapshot(self) -> Snapshot:
        """The state at this moment, to be read later."""
        return Snapshot(self, forrest.Snapshot(self._open()), b"")

    @_raising
    def get_property(self, name: bytes) -> bytes | None:
        """The value of "leveldb.stats", "leveldb.sstables", "leveldb.approximate-memory-usage" or "leveldb.num-files-at-levelN";
        None for another name."""
        if not isinstance(name, bytes):
            raise TypeError(f"the name of a property is bytes, not {type(name).__name__}")
        db = self._open()
        stats = db.stats()
        if name in (b"leveldb.num-files-at-level%d" % level for level in range(_LEVELS)):
            return b"%d" % stats["tables"] if name.endswith(b"0") else b"0"
        if name == b"leveldb.stats":
            figures = stats | db.metrics()
            return "".join(f"{figure}: {value}\n" for figure, value in figures.items()).encode()
        if name == b"leveldb.sstables":
            tables = sorted(_path(self._name).glob("*.table"))
            return "".join(["--- level 0 ---\n", *(f" {table.name}\n" for table in tables)]).encode()
        if name == b"leveldb.approximate-memory-usage":
            parts = ("node_bytes", "value_bytes_outside", "cache_bytes", "index_bytes", "kept_bytes")
            return b"%d" % sum(stats[part] for part in parts)
        return None

    @_raising
    def compact_range(self, *, start: bytes | None = None, stop: bytes | None = None) -> None:
        """Merges the tables that may have keys of a range, whose end is in it."""
        self._open().compact_range(start, None if stop is None else stop + b"\0")

    def approximate_size(self, start: bytes, stop: bytes) -> int:
        """The bytes of the keys and values of a range, about."""
        return self.approximate_sizes((start, stop))[0]

    @_raising
    def approximate_sizes(self, *ranges: tuple[bytes, bytes]) -> list[int]:
        """The same of several ranges."""
        db = self._open()
        return [db.approximate(_key(start), _key(stop))[1] for start, stop in ranges]

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        """The part of the database whose keys begin with a prefix, without the prefix."""
        return PrefixedDB(db=self, prefix=prefix)


def _check(path: Path, create_if_missing: bool, error_if_exists: bool) -> None:
    """Refuses what LevelDB refuses, and LevelDB's own files."""
    if (path / "CURRENT").exists():
        raise Error(f"{path}: has files of LevelDB itself, which this module does not read; copy its pairs with plyvel")
    if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
        raise IOError(f"{path}: this process may not write to the directory")
    exists = forrest.is_store(path)
    if exists and error_if_exists:
        raise Error(f"{path}: exists (error_if_exists is true)")
    if not exists and not create_if_missing:
        raise Error(f"{path}: does not exist (create_if_missing is false)")


def _check_comparator(comparator: Any, name: Any) -> None:
    if comparator is None and name is None:
        return
    if comparator is None or name is None:
        raise ValueError("comparator and comparator_name are given both or not at all")
    if not callable(comparator):
        raise TypeError("comparator is not callable")
    if not isinstance(name, bytes):
        raise TypeError(f"comparator_name is bytes, not {type(name).__name__}")
    if name != _BYTEWISE:
        raise Error(f"the comparator {name.decode(errors='replace')!r}: Forrest orders keys by their bytes only")


def _limited(value: int | None, least: int, most: int | None) -> int | None:
    """An option within LevelDB's limits."""
    if value is None:
        return None
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is no integer")
    return max(least, value if most is None else min(value, most))


def _path(name: str | bytes | os.PathLike[str]) -> Path:
    return Path(os.fsdecode(name))


@_raising
def repair_db(name: str | bytes | os.PathLike[str], **options: Any) -> None:
    """Repairs a database, which must be closed. If all of it verifies, nothing is changed. Otherwise what is intact takes its
    place, and the old directory is kept as NAME.damaged. The options are those of DB, and ignored."""
    forrest.repair(_path(name))


@_raising
def destroy_db(name: str | bytes | os.PathLike[str]) -> None:
    """Removes a database, which must be closed; nothing happens if there is none. The directory stays if it has other files."""
    path = _path(name)
    if forrest.is_store(path):
        forrest.destroy(path)


class WriteBatch:
    """Changes in their order. DB.write_batch() makes one."""

    __slots__ = ("_changes", "_db", "_prefix", "_sync", "_transaction")

    def __init__(self, db: DB, prefix: bytes, transaction: bool, sync: bool) -> None:
        db._open()
        self._db = db
        self._prefix = prefix
        self._transaction = transaction
        self._sync = sync
        self._changes: list[tuple[bytes, bytes | None]] = []

    def put(self, key: bytes, value: Buffer) -> None:
        """Adds a change that sets the value of a key."""
        self._db._open()
        self._changes.append((self._prefix + _key(key), _bytes(value)))

    def delete(self, key: bytes) -> None:
        """Adds a change that removes a key."""
        self._db._open()
        self._changes.append((self._prefix + _key(key), None))

    def clear(self) -> None:
        """Removes all changes."""
        self._db._open()
        self._changes.clear()

    @_raising
    def write(self) -> None:
        """Makes the changes, all at one instant or none. They stay in the batch."""
        self._db._write(self._changes, self._sync)

    def append(self, source: WriteBatch) -> None:
        """Adds the changes of another batch."""
        self._db._open()
        self._changes.extend(list(source._changes))

    def approximate_size(self) -> int:
        """The bytes of the changes, about."""
        self._db._open()
        heads = _BATCH_HEAD_BYTES + _CHANGE_HEAD_BYTES * len(self._changes)
        return heads + sum(len(key) + len(value or b"") for key, value in self._changes)

    def __enter__(self) -> Self:
        self._db._open()
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_exception: object) -> None:
        if self._transaction and exception_type is not None:
            self.clear()
        else:
            self.write()


class Snapshot:
    """One state of a database. DB.snapshot() makes one."""

    __slots__ = ("_db", "_prefix", "_state")

    def __init__(self, db: DB, state: forrest.Snapshot, prefix: bytes) -> None:
        self._db = db
        self._prefix = prefix
        self._state: forrest.Snapshot | None = state

    def _open(self) -> forrest.Snapshot:
        """The state, if it is open."""
        self._db._open()
        if self._state is None:
            raise RuntimeError("the snapshot is closed")
        return self._state

    def close(self) -> None:
        """Releases the state. Its iterators go on. A second call does nothing."""
        self._state = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @_raising
    def get(self, key: bytes, default: Any = None, *, verify_checksums: bool | None = None, fill_cache: bool = True) -> Any:
        """The value that a key had, or the default."""
        return _get(self._open(), self._prefix + _key(key), default)

    def __iter__(self) -> Iterator:
        return self.iterator()

    def iterator(self, **options: Any) -> Iterator:
        """An iterator over this state. The options are those of Iterator."""
        return Iterator(self._db, self._open(), self._prefix, **options)

    def raw_iterator(self, *, verify_checksums: bool = False, fill_cache: bool = True) -> RawIterator:
        """A raw iterator over this state. It shows whole keys, also if the snapshot is of a part."""
        return RawIterator(self._db, self._open())


class _BaseIterator:
    """What both kinds of iterators share: they end with their database, and can be closed."""

    __slots__ = ("_db", "_state")

    def __init__(self, db: DB, state: forrest.Snapshot) -> None:
        self._db = db
        self._state: forrest.Snapshot | None = state

    def _open(self) -> forrest.Snapshot:
        """The state, if the iterator is open."""
        if self._state is None:
            raise RuntimeError("the iterator is closed")
        self._db._open()
        return self._state

    def close(self) -> None:
        """Releases the state. A second call does nothing."""
        self._state = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class Iterator(_BaseIterator):
    """A position between two pairs of a range. next() returns the pair after it and passes it; prev() returns the pair before it
    and goes back. DB.iterator() makes one, with these options:

    reverse        whether next() goes from the greatest key to the least (False)
    start, stop    the range (all)
    include_start  whether `start` is in it (True)
    include_stop   whether `stop` is in it (False)
    prefix         instead of start and stop: the keys that begin with it
    include_key    whether keys are returned (True)
    include_value  whether values are returned (True); a key or a value alone is returned without a tuple
    """

    __slots__ = ("_ahead", "_at", "_forward", "_include_key", "_include_value", "_lower", "_prefix", "_reverse", "_upper")

    def __init__(
        self,
        db: DB,
        state: forrest.Snapshot,
        within: bytes,
        *,
        reverse: bool = False,
        start: bytes | None = None,
        stop: bytes | None = None,
        include_start: bool = True,
        include_stop: bool = False,
        prefix: bytes | None = None,
        include_key: bool = True,
        include_value: bool = True,
        verify_checksums: bool = False,
        fill_cache: bool = True,
    ) -> None:
        super().__init__(db, state)
        if prefix is not None:
            if start is not None or stop is not None:
                raise TypeError("prefix is given together with start or stop")
            start, stop, include_start, include_stop = within + _key(prefix), _end(within + prefix), True, False
        else:
            start = within + (b"" if start is None else _key(start) + b"\0" * (not include_start))
            stop = _end(within) if stop is None else within + _key(stop) + b"\0" * include_stop
        # The range has the keys from `_lower` to before `_upper`; None is its end after the last key. The position is before
        # the first key that is at or after `_at`.
        self._lower, self._upper = start, stop
        self._prefix = len(within)
        self._reverse = reverse
        self._include_key = include_key
        self._include_value = include_value
        self._go(stop if reverse else start)

    def _go(self, at: bytes | None) -> None:
        self._at = at
        self._ahead: _Iterator[Any] | None = None
        self._forward = True

    def _step(self, forward: bool) -> Any:
        """Passes a pair. Raises StopIteration if there is none."""
        state = self._open()
        if self._ahead is None or self._forward is not forward:
            start, stop = (self._at, self._upper) if forward else (self._lower, self._at)
            if start is None:
                raise StopIteration
            if self._include_value:
                self._ahead = state.range(start, stop, reverse=not forward)
            else:
                self._ahead = state.range(start, stop, reverse=not forward, keys_only=True)
            self._forward = forward
        try:
            item: Any = next(self._ahead)
        except StopIteration:
            self._ahead = None
            raise
        key = item[0] if self._include_value else item
        self._at = key + b"\0" if forward else key
        key = key[self._prefix :]
        if self._include_value:
            return (key, item[1]) if self._include_key else item[1]
        return key if self._include_key else None

    def __iter__(self) -> Self:
        return self

    @_raising
    def __next__(self) -> Any:
        return self._step(not self._reverse)

    @_raising
    def prev(self) -> Any:
        """Goes back over a pair and returns it. Raises StopIteration at the beginning."""
        return self._step(self._reverse)

    def seek(self, target: bytes) -> None:
        """Moves to before the first key at or after a key, or to an end of the range."""
        self._open()
        at: bytes = max(self._lower[: self._prefix] + _key(target), self._lower)
        self._go(at if self._upper is None else min(at, self._upper))

    def seek_to_start(self) -> None:
        """Moves to before the least key, also with `reverse`."""
        self._open()
        self._go(self._lower)

    def seek_to_stop(self) -> None:
        """Moves to after the greatest key, also with `reverse`."""
        self._open()
        self._go(self._upper)


class RawIterator(_BaseIterator):
    """A position at a pair, or at none, as LevelDB's own iterators have it. DB.raw_iterator() makes one."""

    __slots__ = ("_ahead", "_forward", "_pair")

    def __init__(self, db: DB, state: forrest.Snapshot) -> None:
        super().__init__(db, state)
        self._pair: tuple[bytes, bytes] | None = None
        self._ahead: _Iterator[tuple[bytes, bytes]] | None = None
        self._forward = True

    def _go(self, ahead: _Iterator[tuple[bytes, bytes]], forward: bool) -> None:
        """Moves to the first pair of a range."""
        self._ahead, self._forward = ahead, forward
        self._pair = next(ahead, None)

    def valid(self) -> bool:
        """Whether it is at a pair."""
        self._open()
        return self._pair is not None

    @_raising
    def seek_to_first(self) -> None:
        """Moves to the first key."""
        self._go(self._open().range(), True)

    @_raising
    def seek_to_last(self) -> None:
        """Moves to the last key."""
        self._go(self._open().range(reverse=True), False)

    @_raising
    def seek(self, target: bytes) -> None:
        """Moves to the first key at or after a key."""
        self._go(self._open().range(_key(target)), True)

    @_raising
    def next(self) -> None:
        """Moves to the next key, or to none after the last one. Raises IteratorInvalidError at none."""
        key = self.key()
        if self._ahead is None or not self._forward:
            self._go(self._open().range(key + b"\0"), True)
        else:
            self._pair = next(self._ahead, None)

    @_raising
    def prev(self) -> None:
        """Moves to the previous key, or to none before the first one. Raises IteratorInvalidError at none."""
        key = self.key()
        if self._ahead is None or self._forward:
            self._go(self._open().range(None, key, reverse=True), False)
        else:
            self._pair = next(self._ahead, None)

    def item(self) -> tuple[bytes, bytes]:
        """The key and the value. Raises IteratorInvalidError at none."""
        self._open()
        if self._pair is None:
            raise IteratorInvalidError("the iterator is at no pair")
        return self._pair

    def key(self) -> bytes:
        """The key. Raises IteratorInvalidError at none."""
        return self.item()[0]

    def value(self) -> bytes:
        """The value. Raises IteratorInvalidError at none."""
        return self.item()[1]


class PrefixedDB:
    """The part of a database whose keys begin with a prefix, without the prefix. DB.prefixed_db() makes one."""

    __slots__ = ("_db", "_prefix")

    def __init__(self, *, db: DB, prefix: bytes) -> None:
        self._db = db
        self._prefix = _key(prefix)

    @property
    def db(self) -> DB:
        """The whole database."""
        return self._db

    @property
    def prefix(self) -> bytes:
        """The prefix."""
        return self._prefix

    def __repr__(self) -> str:
        return f"<forrest.plyvel.PrefixedDB with prefix {self._prefix!r} of {self._db!r}>"

    def get(self, key: bytes, default: Any = None, *, verify_checksums: bool | None = None, fill_cache: bool = True) -> Any:
        """As DB.get."""
        return self._db.get(self._prefix + _key(key), default)

    def put(self, key: bytes, value: Buffer, *, sync: bool = False) -> None:
        """As DB.put."""
        self._db.put(self._prefix + _key(key), value, sync=sync)

    def delete(self, key: bytes, *, sync: bool = False) -> None:
        """As DB.delete."""
        self._db.delete(self._prefix + _key(key), sync=sync)

    def write_batch(self, *, transaction: bool = False, sync: bool = False) -> WriteBatch:
        """As DB.write_batch."""
        return WriteBatch(self._db, self._prefix, transaction, sync)

    def __iter__(self) -> Iterator:
        return self.iterator()

    @_raising
    def iterator(self, **options: Any) -> Iterator:
        """As DB.iterator."""
        return Iterator(self._db, forrest.Snapshot(self._db._open()), self._prefix, **options)

    @_raising
    def snapshot(self) -> Snapshot:
        """As DB.snapshot."""
        return Snapshot(self._db, forrest.Snapshot(self._db._open()), self._prefix)

    def prefixed_db(self, prefix: bytes) -> PrefixedDB:
        """A part of this part."""
        return PrefixedDB(db=self._db, prefix=self._prefix + _key(prefix))
