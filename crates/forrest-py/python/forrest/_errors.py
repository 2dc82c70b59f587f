"""The errors of the package. Each class says what the caller should do.

Absence is not an error: it is None, or KeyError where Python's mappings raise it. An argument that is not bytes-like is a
TypeError.
"""


class Error(Exception):
    """The base class. Each error is of one of the classes below. Its text says what failed, with the limit and the length, or
    the file and the offset."""

    op: int | None = None
    """In a batch, the number of the operation that failed, from 0; nothing of the batch was applied. In put_many() and
    ingest(), the number of the pair that failed; put_many() has put those before it, and ingest() none."""


class IoError(Error, OSError):
    """A read, a write or another system call failed. The call changed nothing."""


class CorruptError(Error):
    """Stored bytes are damaged; the text names file and offset. Restore the data from a copy."""


class DecodeError(Error, ValueError):
    """A stored key or value was not written by the codec that reads it. Open the view with the codec that wrote it."""


class InvalidArgumentError(Error, ValueError):
    """An argument is invalid: for example a closed store, a value that is not a counter, or a dropped keyspace. Change the
    call."""


class LimitError(Error, ValueError):
    """A key, value, name or batch exceeds a limit. Make it smaller."""


class OutOfSpaceError(Error):
    """The store's capacity, memory, disk space or file descriptors are used up. Delete something, or provide more."""


class BusyError(Error):
    """The store is open elsewhere, or another checkpoint to the same path is in progress. Try again later."""


class ConflictError(Error):
    """A value that a transaction has read was changed before its commit. The transaction changed nothing. Run it again, as
    transact() of a keyspace does."""

    keyspace: str = "default"
    """The name of the key's keyspace."""

    key: bytes = b""
    """A key whose value was changed."""


class UnsupportedError(Error, NotImplementedError):
    """This home does not have this feature; capabilities() of the store lists its features. Use another home."""


class GoneError(Error):
    """Changes that are asked for are no longer kept. Start from a snapshot, and go on with the changes after it."""


class StoppedError(Error):
    """An earlier failure made the store refuse all writes. Open it again."""


class ConditionFailedError(Error):
    """A comparison in a batch found another value than the expected one. Nothing of the batch was applied. `op` is the number
    of the operation. Check `found`, and decide again."""

    found: bytes | None = None
    """The value that was found; None is absence."""


for _class in (Error, *Error.__subclasses__()):
    # Tracebacks and pickles name the class as programs do.
    _class.__module__ = "forrest"
