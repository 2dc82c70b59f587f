"""An ordered key-value store: a sorted mapping from bytes to bytes, in memory, in the kernel or on disk.

>>> import forrest
>>> with forrest.open("memory:") as db:  # or a path
...     db[b"oak"] = b"Quercus robur"
...     db[b"ash"] = b"Fraxinus excelsior"
...     list(db.range(b"a", b"n"))
[(b'ash', b'Fraxinus excelsior')]

A store is a MutableMapping whose keys are in the order of their bytes. Keys and values go in as any bytes-like objects and
come out as bytes. Any number of threads may use a store at once; Python's other threads go on while a call waits. A process
made by fork opens a store of its own.
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Literal, TypeVar

from . import _forrest
from ._errors import (
    BusyError,
    ConflictError,
    CorruptError,
    Error,
    InvalidArgumentError,
    IoError,
    LimitError,
    MismatchError,
    OutOfSpaceError,
    StoppedError,
    UnsupportedError,
)
from ._forrest import Batch, Range, Transaction

__all__ = [
    "Batch",
    "BusyError",
    "ConflictError",
    "CorruptError",
    "Db",
    "Error",
    "InvalidArgumentError",
    "IoError",
    "Keyspace",
    "LimitError",
    "MismatchError",
    "OutOfSpaceError",
    "Range",
    "Snapshot",
    "StoppedError",
    "Transaction",
    "UnsupportedError",
    "View",
    "open",
]

_T = TypeVar("_T")
_ATTEMPTS = 1_000


class _Keys(KeysView[bytes]):
    __slots__ = ()
    _mapping: View

    def __reversed__(self) -> Iterator[bytes]:
        return reversed(self._mapping)


class _Items(ItemsView[bytes, bytes]):
    __slots__ = ()
    _mapping: View

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping.range()

    def __reversed__(self) -> Iterator[tuple[bytes, bytes]]:
        return self._mapping.range(reverse=True)


class _Values(ValuesView[bytes]):
    __slots__ = ()
    _mapping: View

    def __contains__(self, value: object) -> bool:
        return any(value == other for other in self)

    def __iter__(self) -> Iterator[bytes]:
        return (value for _, value in self._mapping.range())

    def __reversed__(self) -> Iterator[bytes]:
        return (value for _, value in self._mapping.range(reverse=True))


class View(_forrest.View, Mapping[bytes, bytes]):
    """One keyspace, to be read: in its newest state, or a snapshot's. A Keyspace and a Snapshot are views; what takes a View
    works on both."""

    __slots__ = ()

    def keys(self) -> _Keys:
        """The keys, in order."""
        return _Keys(self)

    def items(self) -> _Items:
        """The pairs, in the order of their keys."""
        return _Items(self)

    def values(self) -> _Values:
        """The values, in the order of their keys."""
        return _Values(self)


class Keyspace(_forrest.Keyspace, View, MutableMapping[bytes, bytes]):
    """One ordered map of a store. Each change is atomic by itself, and seen by every read that begins after it."""

    __slots__ = ()

    def batch(self, *, durability: Literal["memory", "buffered", "sync"] | None = None) -> Batch:
        """Changes that are made together or not at all, when the with block ends:

        >>> import forrest
        >>> db = forrest.open("memory:")
        >>> with db.batch() as batch:
        ...     batch[b"oak"] = b"Quercus robur"
        ...     del batch[b"ash"]
        >>> dict(db)
        {b'oak': b'Quercus robur'}
        """
        return Batch(self, durability=durability)

    def transaction(self, *, durability: Literal["memory", "buffered", "sync"] | None = None) -> Transaction:
        """Reads and changes that take place at one instant when the with block ends, if what was read is still so then; otherwise
        ConflictError, and nothing is changed:

        >>> import forrest
        >>> db = forrest.open("memory:")
        >>> with db.transaction() as transaction:
        ...     if b"oak" not in transaction:
        ...         transaction[b"oak"] = b"Quercus robur"
        >>> dict(db)
        {b'oak': b'Quercus robur'}
        """
        return Transaction(self, durability=durability)

    def transact(
        self,
        function: Callable[[Transaction], _T],
        /,
        *,
        durability: Literal["memory", "buffered", "sync"] | None = None,
    ) -> _T:
        """Calls a function with a transaction, commits that, and returns the function's answer. As long as changes by others come in
        between, the function is called again; after 1,000 times, ConflictError is raised.

        If the function raises an exception, nothing is changed, and the exception goes on, once it is known that what
        the function had read was all there at one instant; otherwise it is called again as well.

        >>> import forrest
        >>> db = forrest.open("memory:")
        >>> def number(transaction):
        ...     number = int(transaction.get(b"last number", b"0")) + 1
        ...     transaction[b"last number"] = str(number).encode()
        ...     return number
        >>> db.transact(number), db.transact(number)
        (1, 2)
        """
        transaction = self.transaction(durability=durability)
        for attempts_left in reversed(range(_ATTEMPTS)):
            try:
                answer = function(transaction)
            except Exception:
                try:
                    transaction.check()
                except ConflictError:
                    if attempts_left:
                        continue
                raise
            try:
                transaction.commit()
            except ConflictError:
                if attempts_left:
                    continue
                raise
            return answer
        raise AssertionError("the last attempt returns or raises")


class Snapshot(_forrest.Snapshot, View):
    """One state of all keyspaces, seen from one of them, while the store goes on. What has been replaced since is kept as long
    as it is open; the with block closes it."""

    __slots__ = ()

    def keyspace(self, name: str) -> Snapshot:
        """The same state, seen from another keyspace. One that did not exist then is empty."""
        return Snapshot(self, name)


class Db(_forrest.Db, Keyspace):
    """An open store, which is its keyspace "default" as well. forrest.open() makes one; a with block closes it.

    Where it is, by `url`: "memory:" is a new store that lives as long as it is open. A path is a store on disk, in a directory
    of its own, which is made if there is none; a pathlib.Path is a path whatever it begins with. "llds:NAME" is a store in the
    memory of the kernel, by its module, which all who open it share, and which outlives them. "llds-user:NAME" is that module's
    engine in this process, for tests, if it was built into the package.

    Options, each with a default that serves most:

    create            whether a store that is not there is made (yes)
    read_only         opens a store in the kernel to be read only; no other option counts then
    durability        what is promised of a change when its call returns: "memory", it is made; "buffered", it outlives the
                      process; "sync", it survives power loss (the strongest that needs no wait for a device)
    capacity_bytes    most memory of a store in memory, or of one in the kernel that is made (what there is)
    cache_bytes       memory for what a store on disk has read (256 MiB)
    memtable_bytes    size at which a store on disk writes its newest changes out as tables (64 MiB)
    table_bytes       size of these tables (80 MiB)
    tags              whether a store on disk keeps a byte of hash for each key, for single gets (yes)
    workers           most threads that write and merge tables (as many as processors, 4 at most)
    worker_cpus       processors that these threads may run on, by number (all)
    open_files        most files that a store on disk has open to be read (4,096, or half of what the process may)
    batch_ops_max     most operations in one batch (1,048,576)
    batch_bytes_max   most bytes of keys and values in one batch (1 GiB)
    pages             on which pages memory lies: "auto", "1g", "2m", "transparent" or "plain" ("auto")
    numa              from which nodes: "local" or "interleave" ("local")
    mode              who may use a store in the kernel that is made, by the bits of a file's mode (0o600)
    """

    __slots__ = ()

    def keyspace(self, name: str) -> Keyspace:
        """Opens a keyspace, and makes it if there is none of that name."""
        return Keyspace(self, name)

    def snapshot(self) -> Snapshot:
        """The state of all keyspaces at this moment, to be read while the store goes on. Taking it copies nothing."""
        return Snapshot(self)


open = Db
