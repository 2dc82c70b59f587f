"""NumPy's arrays in and out of a store, without a Python object for each pair. Needs NumPy.

>>> import numpy as np
>>> import forrest
>>> from forrest import arrays
>>> db = forrest.open("memory:")
>>> arrays.put(db, np.array([3, -1, 2]), np.array([0.3, -0.1, 0.2]))
>>> arrays.read(db, "i8", "f8")
(array([-1,  2,  3]), array([-0.1,  0.2,  0.3]))

Keys of one array have one length:

    integers, dates and floats   big endian, with bits flipped so that they sort as numbers; int64, uint64 and float64 are
                                 stored as the codecs of these names in forrest.codecs
    S and V                      the bytes of each item; those of S are padded with zero bytes
    2-D uint8                    each row is a key

A value is the bytes of an item, as NumPy has them, or of a row of an array with more dimensions. The stored bytes do not name
the type: always use the same. Other Python threads run during each call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _forrest
from ._errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Buffer

    from . import Keyspace, View

__all__ = ["get", "put", "read", "scan"]

_ROWS = 65_536
_ROWS_FIRST = 1_024


def _unsigned(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"u{dtype.itemsize}")


def _checked(dtype: npt.DTypeLike, what: str) -> np.dtype[Any]:
    made = np.dtype(dtype)
    if made.hasobject or made.itemsize == 0:
        raise TypeError(f"{what} of {made!r} have no fixed number of bytes; use another dtype")
    return made


def _key_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    made = _checked(dtype, "keys")
    if made.subdtype:
        base, shape = made.subdtype
        fits = base == np.uint8 and len(shape) == 1
    else:
        # Longer floats have bytes without meaning.
        fits = made.kind in "biumMSV" or made.kind == "f" and made.itemsize <= 8
    if not fits:
        raise TypeError(f"keys are integers, dates, floats of up to 8 bytes, S, V or rows of uint8, not {made!r}")
    return made


def _key_bytes(keys: npt.NDArray[Any]) -> bytes:
    """The bytes of keys, in an order in which they sort."""
    kind = keys.dtype.kind
    if keys.ndim == 2 or kind in "SV":
        return keys.tobytes()
    unsigned = _unsigned(keys.dtype)
    bits = np.ascontiguousarray(keys, keys.dtype.newbyteorder("=")).view(unsigned)
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    if kind in "imM":
        bits = bits ^ sign
    elif kind == "f":
        bits = np.where(bits & sign, ~bits, bits | sign)
    return bits.astype(unsigned.newbyteorder(">"), copy=False).tobytes()


def _keys(stored: bytearray, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The keys of their bytes."""
    if dtype.subdtype or dtype.kind in "SV":
        return _items(stored, count, dtype)
    unsigned = _unsigned(dtype)
    bits = np.frombuffer(stored, unsigned.newbyteorder(">"), count).astype(unsigned)
    sign = unsigned.type(1 << (8 * unsigned.itemsize - 1))
    if dtype.kind in "imM":
        bits ^= sign
    elif dtype.kind == "f":
        bits = np.where(bits & sign, bits ^ sign, ~bits)
    return bits.view(dtype.newbyteorder("="))


def _items(stored: bytearray, count: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    base, shape = dtype.subdtype or (dtype, ())
    return np.frombuffer(stored, np.uint8, count * dtype.itemsize).view(base).reshape(count, *shape)


def _array_of_keys(keys: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(keys)
    if array.ndim not in (1, 2):
        raise TypeError(f"keys are an array of 1 dimension, or of 2 with rows of uint8, not of {array.ndim}")
    _key_type((array.dtype, array.shape[1:]) if array.ndim == 2 else array.dtype)
    return array


def put(keyspace: Keyspace, keys: npt.ArrayLike, values: npt.ArrayLike) -> None:
    """Sets keys to values, row by row, as put_many() does."""
    keys, values = _array_of_keys(keys), np.asarray(values)
    if values.ndim == 0 or len(keys) != len(values):
        raise InvalidArgumentError(f"{len(keys)} keys and values of the shape {values.shape}; there must be one row for each key")
    _checked((values.dtype, values.shape[1:]), "values")
    for start in range(0, len(keys), _ROWS):
        some, theirs = keys[start : start + _ROWS], values[start : start + _ROWS]
        _forrest.put_rows(keyspace, _key_bytes(some), theirs.tobytes(), len(some), start)


def get(view: View, keys: npt.ArrayLike, value: npt.DTypeLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The values of keys as an array, and an array that is True where the key exists. The value of a missing key is zero.

    Raises InvalidArgumentError if a value has another number of bytes than `value`. A dtype with a shape, such as
    `("f4", 300)`, makes rows.
    """
    array, dtype = _array_of_keys(keys), _checked(value, "values")
    if len(array) == 0:
        return _items(bytearray(), 0, dtype), np.zeros(0, np.bool_)
    values, found = _forrest.get_rows(view, _key_bytes(array), len(array), dtype.itemsize)
    return _items(values, len(array), dtype), np.frombuffer(found, np.bool_)


def _bound(key: Any, dtype: np.dtype[Any]) -> Buffer | None:
    if key is None or dtype.subdtype or dtype.kind in "SV":
        bound: Buffer | None = key
        return bound
    made = np.array([key], dtype)
    if not _is_exact(key, made):
        raise InvalidArgumentError(f"the bound {key!r} is no key of {dtype!r}: it would be {made[0]!r}")
    return _key_bytes(made)


def _is_exact(key: Any, made: npt.NDArray[Any]) -> bool:
    """Whether a bound is the key that it became. A float may be rounded to the type of the keys, but not to infinity."""
    if made.dtype.kind == "f":
        return not np.isinf(made[0]) or float(key) == float(made[0])
    is_number = isinstance(key, (int, np.integer)) and not isinstance(key, np.timedelta64)
    if made.dtype.kind in "mM" and not is_number:
        given = np.array([key], f"{made.dtype.kind}8")
        return bool(given[0] == made[0]) or bool(np.isnat(given[0]) and np.isnat(made[0]))
    return made.dtype.kind in "mM" or bool(made.item(0) == key)


def scan(
    view: View,
    key: npt.DTypeLike,
    value: npt.DTypeLike | None,
    start: Any = None,
    stop: Any = None,
    *,
    prefix: Buffer | None = None,
    rows: int = _ROWS,
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Iterates over a range in pieces of up to `rows` rows: arrays of the keys and of their values.

    `key` and `value` are dtypes; without `value` the arrays of values have no columns. `start` and `stop` are keys: numbers, or
    bytes for S, V and rows of uint8. `prefix` is bytes. Raises InvalidArgumentError if a bound is no key of the dtype, such as 1.5
    for integers, and if a key or value of the range has another number of bytes than its dtype. As with range() of a store, each piece is read when it is needed.
    """
    key_type = _key_type(key)
    value_type = None if value is None else _checked(value, "values")
    if rows < 1:
        raise InvalidArgumentError(f"rows is {rows}; it must be at least 1")
    after, end = _bound(start, key_type), _bound(stop, key_type)
    return _pieces(view, key_type, value_type, after, end, prefix, rows)


def _pieces(
    view: View,
    key: np.dtype[Any],
    value: np.dtype[Any] | None,
    start: Buffer | None,
    stop: Buffer | None,
    prefix: Buffer | None,
    rows: int,
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    value_bytes = None if value is None else value.itemsize
    # A small range takes little memory.
    some = min(rows, _ROWS_FIRST)
    while True:
        keys, values, count = _forrest.scan_rows(view, start, stop, prefix, some, key.itemsize, value_bytes)
        if count:
            start = bytes(keys[(count - 1) * key.itemsize : count * key.itemsize]) + b"\0"
            yield (
                _keys(keys, count, key),
                np.zeros((count, 0), np.uint8) if value is None else _items(values, count, value),
            )
        if count < some:
            return
        some = min(rows, 4 * some)


def read(
    view: View,
    key: npt.DTypeLike,
    value: npt.DTypeLike | None,
    start: Any = None,
    stop: Any = None,
    *,
    prefix: Buffer | None = None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """A whole range as two arrays, with the arguments of scan(). It takes twice their memory for a moment."""
    pieces = list(scan(view, key, value, start, stop, prefix=prefix))
    if not pieces:
        empty = None if value is None else _checked(value, "values")
        return (
            _keys(bytearray(), 0, _key_type(key)),
            np.zeros((0, 0), np.uint8) if empty is None else _items(bytearray(), 0, empty),
        )
    keys, values = zip(*pieces)
    return np.concatenate(keys), np.concatenate(values)
