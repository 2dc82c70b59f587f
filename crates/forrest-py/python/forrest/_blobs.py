"""Blobs, which are values of any length, and large values, as files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from . import _forrest

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Buffer

    from . import Snapshot

_BUFFER_BYTES = 256 << 10
_Native = TypeVar("_Native")


class BlobWriter(io.RawIOBase):
    """A blob that is being written, as a file. It becomes visible when it is closed, whole, in place of the blob that its key
    had. A with block that ends with an exception discards it, and so does a writer that is never closed. If another file
    is put around it, such as io.TextIOWrapper, closing that shows the blob, also after an exception: discard() it first."""

    def __init__(self, native: _forrest.BlobWriter) -> None:
        super().__init__()
        self._native = native

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        """Writes bytes, all of them. After an exception the blob is discarded."""
        if self.closed:
            raise ValueError("write to a blob that is closed")
        return self._native.write(data)

    def close(self) -> None:
        """Makes the blob visible. A second call does nothing."""
        if not self.closed:
            super().close()
            self._native.finish()

    def discard(self) -> None:
        """Closes the writer without a blob."""
        if not self.closed:
            super().close()
            self._native.discard()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        # io.RawIOBase would close it, and so show a blob that is not complete.
        try:
            self.discard()
        except Exception:  # noqa: BLE001 - the store is closed, which has discarded it
            pass


class _Pieces(io.RawIOBase, Generic[_Native]):
    """What is read in pieces of the buffer's length, without a buffer."""

    def __init__(self, native: _Native) -> None:
        super().__init__()
        self._native: _Native | None = native

    def _read_native(self, native: _Native, count: int) -> bytes:
        """The next bytes, at most `count`; none at the end."""
        raise NotImplementedError

    def _next(self, count: int) -> bytes:
        if self._native is None:
            raise ValueError("read of a file that is closed")
        return self._read_native(self._native, count)

    def close(self) -> None:
        # The store need not keep the bytes any longer.
        self._native = None
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        # No more at once, so that a large buffer does not need twice its memory.
        data = self._next(min(len(view), _BUFFER_BYTES))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """The rest. The pieces of io.RawIOBase are smaller."""
        rest = io.BytesIO()
        while piece := self._next(_BUFFER_BYTES):
            rest.write(piece)
        return rest.getvalue()


class _ValueReader(_Pieces[_forrest.ValueReader]):
    """A value that is read from its beginning on."""

    def _read_native(self, native: _forrest.ValueReader, count: int) -> bytes:
        return native.read(count)


def value_file(native: _forrest.ValueReader) -> io.BufferedReader:
    """The value as a file."""
    return io.BufferedReader(_ValueReader(native), _BUFFER_BYTES)


class _Reader(_Pieces[_forrest.BlobReader]):
    """A blob that is read, at any offset."""

    def __init__(self, native: _forrest.BlobReader) -> None:
        super().__init__(native)
        self._size = native.size
        self._position = 0

    def _read_native(self, native: _forrest.BlobReader, count: int) -> bytes:
        data = native.read_at(self._position, count)
        self._position += len(data)
        return data

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        bases = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}
        if whence not in bases:
            raise ValueError(f"whence is {whence}; choose 0, 1 or 2")
        position = bases[whence] + offset
        if position < 0:
            raise ValueError(f"seek to {position}, which is before the blob")
        self._position = position
        return position

    def tell(self) -> int:
        return self._position


def blob_file(native: _forrest.BlobReader) -> io.BufferedReader:
    """The blob as a file."""
    return io.BufferedReader(_Reader(native), _BUFFER_BYTES)


class Blobs(_forrest.Blobs):
    """Values of any length, in a keyspace of their own, each written and read as a file. db.blobs() returns it.

    >>> import forrest
    >>> db = forrest.open("memory:")
    >>> photos = db.blobs("photos")
    >>> with photos.create(b"oak") as file:
    ...     for _ in range(1_000):
    ...         file.write(b"bark") and None
    >>> with photos.open(b"oak") as file:
    ...     file.seek(3_998)
    ...     file.read()
    3998
    b'rk'
    >>> list(photos), photos.size(b"oak"), b"elm" in photos
    ([b'oak'], 4000, False)
    """

    __slots__ = ()

    def create(self, key: Buffer, /) -> BlobWriter:
        """Begins to write a blob. It is visible when the file is closed; a with block that raises discards it."""
        return BlobWriter(self._writer(key))

    def open(self, key: Buffer, /, *, snapshot: Snapshot | None = None) -> io.BufferedReader:
        """The blob as it is now, or as it was in a snapshot, as a file to be read, at any offset. Raises KeyError if there is
        none. The file reads this blob also if the key gets another one; close it soon, because the store keeps what has
        been replaced since."""
        native = self._reader(key, snapshot)
        if native is None:
            raise KeyError(key)
        return blob_file(native)

    def __contains__(self, key: Buffer, /) -> bool:
        return self.size(key) is not None

    def __iter__(self) -> Iterator[bytes]:
        return iter([key for key, _ in self.items()])

    def __delitem__(self, key: Buffer, /) -> None:
        if not self.delete(key):
            raise KeyError(key)
