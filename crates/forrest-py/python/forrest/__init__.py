"""An ordered key-value store: a sorted mapping from bytes to bytes, in memory, in the kernel or on disk.

>>> import forrest
>>> with forrest.open("memory:") as db:  # or a path
...     db[b"oak"] = b"Quercus robur"
...     db[b"ash"] = b"Fraxinus excelsior"
...     list(db.range(b"a", b"n"))
[(b'ash', b'Fraxinus excelsior')]

A store is a MutableMapping whose keys are in the order of their bytes. Arguments are any bytes-like objects; results are
bytes. Any number of threads may use a store at once, and other Python threads run while a call waits. After a fork, the
child process must open stores itself.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, MutableMapping
from os import PathLike
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from . import _forrest, codecs
from ._blobs import Blobs, BlobWriter, value_file
from ._backup import Backup, Pruned, backups, made, prune, restore, verify_backup
from ._errors import (
    BusyError,
    ConditionFailedError,
    ConflictError,
    CorruptError,
    DecodeError,
    Error,
    GoneError,
    InvalidArgumentError,
    IoError,
    LimitError,
    OutOfSpaceError,
    StoppedError,
    UnsupportedError,
)
from ._forrest import Batch, Change, Changes, Event, Range, Transaction, TransactionRange, __version__
from ._mapping import SortedMapping
from ._syncer import Syncer
from ._typed import TypedKeyspace, TypedView
from .codecs import Codec

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "Backup",
    "Batch",
    "BlobWriter",
    "Blobs",
    "BusyError",
    "Change",
    "Changes",
    "ConditionFailedError",
    "ConflictError",
    "CorruptError",
    "Db",
    "DecodeError",
    "Error",
    "Event",
    "GoneError",
    "InvalidArgumentError",
    "IoError",
    "Keyspace",
    "LimitError",
    "Loss",
    "OutOfSpaceError",
    "Pruned",
    "Range",
    "Salvaged",
    "Snapshot",
    "StoppedError",
    "Syncer",
    "Transaction",
    "TransactionRange",
    "TypedKeyspace",
    "TypedView",
    "UnsupportedError",
    "View",
    "__version__",
    "backups",
    "codecs",
    "destroy",
    "is_store",
    "move_log",
    "open",
    "prune",
    "repair",
    "restore",
    "salvage",
    "verify_backup",
]

_K = TypeVar("_K")
_T = TypeVar("_T")
_V = TypeVar("_V")
_ATTEMPTS = 1_000


class View(_forrest.View, SortedMapping[bytes, bytes]):
    """The reads of one keyspace, in its newest state or a snapshot's. A Keyspace and a Snapshot are views, so a function that
    takes a View works on both."""

    __slots__ = ()

    def _pairs(self, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        return self.range(reverse=reverse)

    def reader(self, key: Buffer, /) -> io.BufferedReader:
        """The value of a key as a file, to be read from its beginning on. Raises KeyError if there is none. On disk a value of
        `large_values` bytes and more is read as the file is, so that one of gigabytes needs the memory of a piece. Such a
        value has one checksum, so all of it was right if the file came to its end; the last read raises CorruptError
        otherwise. The file reads this value also if the key gets another one; close it soon, because the store keeps what
        has been replaced since. A with block closes it.

        >>> import forrest
        >>> db = forrest.open("memory:")
        >>> db[b"oak"] = b"Quercus robur"
        >>> with db.reader(b"oak") as file:
        ...     file.read(7)
        b'Quercus'
        """
        native = self._reader(key)
        if native is None:
            raise KeyError(key)
        return value_file(native)

    def view(self, key: Codec[_K], value: Codec[_V]) -> TypedView[_K, _V]:
        """The same with keys and values of other types than bytes; forrest.codecs has the codecs. The view of a Keyspace is
        a MutableMapping."""
        return TypedView(self, key, value)


class Keyspace(_forrest.Keyspace, View, MutableMapping[bytes, bytes]):
    """One ordered map of a store. Each change is atomic, and every read that begins after it sees it."""

    __slots__ = ()

    def view(self, key: Codec[_K], value: Codec[_V]) -> TypedKeyspace[_K, _V]:
        """The same as a MutableMapping with keys and values of other types than bytes; forrest.codecs has the codecs.

        >>> import forrest
        >>> db = forrest.open("memory:")
        >>> trees = db.view(forrest.codecs.text, forrest.codecs.json)
        >>> trees["oak"] = {"name": "Quercus robur", "metres": 40}
        >>> trees["oak"]["metres"]
        40
        """
        return TypedKeyspace(self, key, value)

    def batch(self, *, durability: Literal["memory", "buffered", "sync"] | None = None) -> Batch:
        """Changes that are applied together or not at all, when the with block ends:

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
        """Reads and changes that happen at one instant, when the with block ends, if what was read is unchanged then.
        Otherwise nothing is changed, and ConflictError is raised:

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
        """Calls a function with a transaction, commits it, and returns the result of the function. After a conflict the function is
        called again; after 1,000 conflicts, ConflictError is raised.

        If the function raises an exception, nothing is changed. The exception is passed on if everything that the
        function had read existed at one instant; otherwise the function is called again.

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
            except BaseException:
                # An interrupt or a cancellation. Others do not wait for its locks.
                with contextlib.suppress(Error):  # the store may be closed
                    transaction.rollback()
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
    """One state of all keyspaces, with the view of one of them. While it is open, the store keeps the values that have been
    replaced since. A with block closes it."""

    __slots__ = ()

    def keyspace(self, name: str) -> Snapshot:
        """The view of another keyspace in this snapshot. A keyspace that did not exist then is empty."""
        return Snapshot(self, name)


class Db(_forrest.Db, Keyspace):
    """An open store, which is also its keyspace "default". forrest.open() makes one; a with block closes it.

    `url` selects the home. "memory:" is a new store that lives as long as it is open. A path is a store on disk, in the
    directory of that name, created if missing; a pathlib.Path is always a path, even if it begins like a URL. "llds:NAME" is a
    store in kernel memory, which all processes that open it share and which outlives them; it needs the kernel module.
    "llds:UID/NAME" is a store of another user, and "llds:shared/NAME" one of the first user who took the name.
    "llds-user:NAME" is the module's engine in this process, for tests, if it is compiled into the package.

    Options, with their defaults in parentheses:

    create            whether to create a store that does not exist (True)
    read_only         whether to open a store in the kernel or on disk for reading only, also while another process writes
                      to it; on disk, refresh() shows what that has changed (False)
    durability        durability of a change when its call returns: "memory", it is applied; "buffered", it outlives the
                      process; "sync", it survives power loss (the strongest that waits for no device)
    capacity_bytes    maximum memory of a store in memory, or of a new store in the kernel (memory of the machine)
    cache_bytes       size of the cache of a store on disk (256 MiB)
    memtable_bytes    size at which a store on disk writes a memtable to tables (64 MiB)
    table_bytes       size of these tables (80 MiB)
    tags              whether a store on disk keeps a hash tag, one byte, for each key, for faster gets (True)
    workers           maximum number of threads that write and merge tables (number of processors, at most 4)
    worker_cpus       processors that these threads may run on, by number (all)
    open_files        maximum number of open table files of a store on disk (4,096, or half of the process's limit)
    batch_ops_max     maximum number of operations in a batch (1,048,576)
    batch_bytes_max   maximum total length of the keys and values in a batch (1 GiB)
    pages             kind of pages for the memory: "auto", "1g", "2m", "transparent" or "plain" ("auto")
    numa              NUMA nodes of the memory: "local", "interleave", or the number of a node ("local")
    mode              mode of a new store in the kernel, as the bits of a file's mode (0o600)
    wait              maximum time that a change of a store on disk waits for memory, a timedelta (10 seconds)
    background_bytes_per_second
                      maximum rate at which a store on disk writes and merges tables; changes wait if they arrive faster
                      than that allows (no limit)
    memory_bytes      memory of a store on disk: memtables, cache and indexes; the cache takes what the others leave (a
                      quarter of the machine's, at most 512 MiB; no limit if memtable_bytes or cache_bytes is given)
    log_directory     directory for the log of a store on disk, usually on another device, created if missing; the store must
                      then always be opened with it (the directory of the store)
    compression       compression of the tables of a store on disk from now on, of all keyspaces for which
                      set_compression() chose nothing else: "none", "lz4", or "zstd" if it is compiled in; the store
                      remembers it (as it was chosen before; "none" in a new store)
    history           whether a store on disk keeps its changes for changes() (False)
    history_bytes     maximum size of the logs that are kept for that only (1 GiB)
    history_age       maximum age of the changes in them, a timedelta (7 days)
    latencies         whether a store on disk takes the time of its calls, for metrics(); each reads the clock twice,
                      which takes about 50 ns (False)
    metrics_file      file to which a store on disk writes its figures each second, in the text format of Prometheus; it
                      is removed when the store is closed; "forrest top" shows it (none)
    encryption_key    key of an encrypted store on disk, 32 random bytes; a new store with a key is encrypted, with its
                      checkpoints and backups, and opens only with its key; the command "forrest --key-file" restores such
                      backups (not encrypted)
    large_values      values of at least this many bytes stay in the log of a store on disk, so that they are written once:
                      64 or more, or 0 for none; not remembered; earlier releases cannot open a store that has such values
                      (4,096)
    listener          function that is called with an Event for each flush, merge, stall and failure of a store on disk; a
                      daemon thread of its own calls it, also a little after the store is closed (none)
    """

    __slots__ = ()

    def keyspace(self, name: str) -> Keyspace:
        """Opens a keyspace, and creates it if it is missing."""
        return Keyspace(self, name)

    def blobs(self, name: str, *, piece_bytes: int | None = None) -> Blobs:
        """Opens a keyspace of values of any length, which are written and read as files, and creates it if it is missing. Their
        pieces have 256 KiB, unless `piece_bytes` says otherwise: 1 KiB to 64 MiB. Raises InvalidArgumentError if the
        keyspace has pairs that are no blobs, and UnsupportedError in the kernel."""
        return Blobs(self, name, piece_bytes=piece_bytes)

    def snapshot(self) -> Snapshot:
        """Takes a snapshot: one state of all keyspaces, to read while the store changes. It copies nothing."""
        return Snapshot(self)

    def backup(
        self,
        directory: str | PathLike[str],
        /,
        *,
        other_store: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> Backup:
        """Adds a backup of the store, as it is at one moment of this call, to a directory of backups.

        The directory is made if it is missing; its parent must exist. Put it on another device. Only what no earlier backup
        there has is copied. Other threads do not wait meanwhile. If the newest backup there is of another directory, the
        call fails, unless `other_store` is true. `progress` is as for salvage(). It may close the store, as another thread
        may: the backup then ends with InvalidArgumentError. When this returns, the backup survives power loss. A call that
        fails leaves the earlier backups whole. It raises InvalidArgumentError also if the directory has other files, or
        backups of another store; BusyError if somebody else changes it, or if `progress` returned False; CorruptError if a
        table of the store is damaged; UnsupportedError if the home has no backups; OutOfSpaceError; IoError.
        """
        return made(self._backup(directory, other_store, progress))


class Loss(NamedTuple):
    """A range of keys of which salvage() lost something."""

    keyspace: str
    """The keyspace in the new store, called "keyspace-N" if its name is lost; "(unknown)" if nothing else shows it."""
    start: bytes
    """The first key of the range."""
    stop: bytes | None
    """The key before which the range ends; None if it goes up to the last key."""
    file: str
    """The name of the damaged or missing file in the directory of the old store."""
    reason: str
    """What is wrong with the file, and what that means."""


class Salvaged(NamedTuple):
    """What salvage() copied, and what it could not."""

    keyspaces: int
    """Number of keyspaces of the new store."""
    pairs: int
    """Number of pairs in the new store."""
    lost: list[Loss]
    """The ranges of which something was lost, in the order in which they were found; empty if the copy is complete."""


def salvage(
    source: str | PathLike[str],
    target: str | PathLike[str],
    /,
    *,
    progress: Callable[[int, int], object] | None = None,
    encryption_key: bytes | bytearray | None = None,
) -> Salvaged:
    """Copies what is intact of the damaged store on disk in the directory `source` to a new store at `target`.

    It also works if open() raises CorruptError. It writes nothing at `source`; close the store before. `progress` is called
    now and then with the number of bytes that were read, and of those that are to be read. If it returns False, the salvage
    ends with BusyError; if it raises, with that exception. A signal such as Ctrl-C ends it too. Outside of the ranges
    in the result, each key has exactly the value that it had. In a range that is lost, a key has a value that it once had, or
    none. An encrypted store needs its key, which the new store has too.

    `target` must not exist, or be an empty directory; its parent directory must exist. The call takes time proportional to
    the data, and other Python threads run meanwhile. When it returns, the new store survives power loss. A salvage that fails
    leaves nothing. It raises CorruptError if no part of the manifest can be read; InvalidArgumentError if `target` exists and
    is not an empty directory, or lies within `source`, or if one of them is a URL; BusyError if the store is open to be
    changed, or another salvage to `target` is in progress; UnsupportedError for files of another version; IoError; OutOfSpaceError.
    """
    keyspaces, pairs, lost = _forrest.salvage(source, encryption_key, target, progress)
    return Salvaged(keyspaces, pairs, [Loss(*loss) for loss in lost])


def repair(path: str | PathLike[str], /) -> Salvaged | None:
    """Repairs the store on disk in the directory `path`, which must be closed. If all of it verifies, nothing is changed, and
    the result is None. Otherwise what is intact is salvaged to a new store, which takes the name; the result says what was
    lost. The old directory is kept as PATH.damaged, for the user to remove. Encrypted stores are not repaired.

    It takes time and space in proportion to the data. A crash leaves the damaged store, or nothing at `path` and the complete
    copy as PATH.repaired; another call then finishes. It raises BusyError if the store is open; InvalidArgumentError if
    PATH.damaged exists; otherwise as salvage().
    """
    repaired = _forrest.repair(path)
    if repaired is None:
        return None
    keyspaces, pairs, lost = repaired
    return Salvaged(keyspaces, pairs, [Loss(*loss) for loss in lost])


def is_store(path: str | PathLike[str], /) -> bool:
    """Whether the directory `path` has files of a store on disk, or of backups of one. It opens nothing."""
    return _forrest.is_store(path)


def destroy(path: str | PathLike[str], /) -> None:
    """Removes the store on disk in the directory `path` with all its data. The directory goes too, unless it has other files.

    The store must be closed, and may be damaged. It raises IoError if there is no store, or a file cannot be removed; BusyError
    if the store is open, or another process reads it; InvalidArgumentError if its log has a directory of its own, or if there
    are backups in this one.
    """
    _forrest.destroy(path)


def move_log(store: str | PathLike[str], to: str | PathLike[str] | None = None, /) -> None:
    """Moves the log of the store on disk in the directory `store` to the directory `to`, or without it back into that of
    the store. From then on, open the store with log_directory=to, or without.

    The store must be closed. It knows where its log is. The call takes time proportional to the log, and other Python
    threads run meanwhile. A crash leaves the log in one of the two places, complete; another call with the same arguments
    finishes the move. It raises BusyError if the store is open, or another process reads it; InvalidArgumentError if `to`
    belongs to another store or has files of one, or if a path is a URL; UnsupportedError if one of the directories cannot
    be written to; IoError; OutOfSpaceError. The log is then where it was.
    """
    _forrest.move_log(store, to)


open = Db
