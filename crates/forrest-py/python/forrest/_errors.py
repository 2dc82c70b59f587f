"""The errors of the package, by what the caller should do.

Absence is no error: it is None, or KeyError where Python's mappings raise it. Something that is not bytes-like is a TypeError.
"""


class Error(Exception):
    """What went wrong. Each error is of one of the classes below, and its text names the thing, the limit and the length, or
    the file and the offset."""

    op: int | None = None
    """In a batch, which operation failed, counted from 0; nothing of it was applied. In put_many(), which pair; those
    before it were put."""


class IoError(Error):
    """The operating system refused a read, a write or another call. The store is as it was."""


class CorruptError(Error):
    """Stored bytes are damaged; the text names file and offset. Restore them from elsewhere."""


class InvalidArgumentError(Error, ValueError):
    """The call makes no sense: something is closed, or not a counter, or a keyspace was dropped. Change the call."""


class LimitError(Error, ValueError):
    """A key, value, name or batch is larger than can be stored. Make it smaller."""


class OutOfSpaceError(Error):
    """The capacity given, the memory, the disk or the file descriptors are used up. Delete something or give more."""


class BusyError(Error):
    """Somebody else holds what is needed. Try again later."""


class ConflictError(Error):
    """What a transaction has read was changed before its commit; nothing was changed by it. Run it again, as transact() of a keyspace
    does."""

    keyspace: str = "default"
    """The name of a keyspace where that is so."""

    key: bytes = b""
    """The key."""


class UnsupportedError(Error):
    """This home cannot do this; capabilities() of the store says what it can. Use another home."""


class StoppedError(Error):
    """An earlier failure made the store refuse all writes. Open it again."""


class MismatchError(Error):
    """A comparison in a batch found another value than it expected; nothing of the batch was applied. Look at `found`, and
    decide again."""

    found: bytes | None = None
    """The value that it found; None is absence."""
