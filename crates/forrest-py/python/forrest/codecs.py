"""Codecs: how the keys and values of a typed view are stored as bytes.

>>> import forrest
>>> from forrest import codecs
>>> db = forrest.open("memory:")
>>> heights = db.view(key=codecs.text, value=codecs.float64)
>>> heights["oak"] = 23.5
>>> heights["oak"], sorted(db)
(23.5, [b'oak'])

A store sorts keys by their bytes. `text`, `int64`, `uint64`, `float64`, `raw`, and tuples of them by `tuple_of` sort as their
values do, so ranges of a view are ranges of values. The stored bytes do not name the codec: always use the same.
"""

from __future__ import annotations

import json as _json
import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Codec", "counter", "float64", "int64", "json", "raw", "text", "tuple_of", "uint64"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Codec(Generic[_T]):
    """Two functions, one the inverse of the other. As the codec of keys, equal keys must be equal bytes.

    For example `Codec("pickle", pickle.dumps, pickle.loads)` stores any object as a value. A program that writes to such a
    store can run code in the process that reads it, so no codec here does that.
    """

    name: str
    """Its name, in errors and in repr()."""
    encode: Callable[[_T], bytes]
    """The stored bytes of a value. It raises TypeError for another type, and ValueError or OverflowError for a value that it
    cannot store."""
    decode: Callable[[bytes], _T]
    """The value of stored bytes. Exceptions become forrest.DecodeError."""
    length_bytes: int | None = None
    """The length of all encoded values; None if they differ."""
    part: Callable[[Any], bytes] | None = None
    """The first bytes of all values that begin with this part, for ranges. By default, encode."""

    def __repr__(self) -> str:
        return f"<Codec {self.name}>"


def _text(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"the codec text stores str, not {type(value).__name__}")
    return value.encode()


def _to_json(value: object) -> bytes:
    return _json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _integer(name: str, signed: bool, offset: int) -> Codec[int]:
    lowest, highest = (-(1 << 63), (1 << 63) - 1) if signed else (0, (1 << 64) - 1)
    form = struct.Struct(">q" if signed and not offset else ">Q")

    def encode(value: int) -> bytes:
        number = operator.index(value)
        if not lowest <= number <= highest:
            raise OverflowError(f"{number} is outside of {name}, which is from {lowest} to {highest}")
        return form.pack(number + offset)

    def decode(stored: bytes) -> int:
        number: int = form.unpack(stored)[0]
        return number - offset

    return Codec(name, encode, decode, 8)


_FLOAT, _BITS, _SIGN = struct.Struct(">d"), struct.Struct(">Q"), 1 << 63


def _from_float(value: float) -> bytes:
    (bits,) = _BITS.unpack(_FLOAT.pack(value))
    # Negative numbers sort by their size downwards, and before the others.
    return _BITS.pack(bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits | _SIGN)


def _to_float(stored: bytes) -> float:
    (bits,) = _BITS.unpack(stored)
    value: float = _FLOAT.unpack(_BITS.pack(bits ^ _SIGN if bits & _SIGN else bits ^ (2 * _SIGN - 1)))[0]
    return value


def _raw(value: bytes) -> bytes:
    return value if type(value) is bytes else memoryview(value).tobytes()


raw: Codec[bytes] = Codec("raw", _raw, _raw)
"""The bytes of a bytes-like object, as they are."""

text: Codec[str] = Codec("text", _text, bytes.decode)
"""str, as UTF-8. Sorts as Python sorts str."""

json: Codec[Any] = Codec("json", _to_json, _json.loads)
"""What JSON has: None, bool, int, float, str, and lists and dicts of these, as UTF-8. Tuples come back as lists, and keys of dicts
as str. As keys, they sort by their text, so 10 before 9; 1, 1.0 and True are three keys."""

int64: Codec[int] = _integer("int64", True, 1 << 63)
"""int from -2**63 to 2**63 - 1, as 8 bytes that sort as the numbers do: big endian, with the sign bit flipped."""

uint64: Codec[int] = _integer("uint64", False, 0)
"""int from 0 to 2**64 - 1, as 8 bytes, big endian. They sort as the numbers do."""

counter: Codec[int] = _integer("counter", True, 0)
"""int from -2**63 to 2**63 - 1, as add() of a keyspace keeps it: 8 bytes, big endian, two's complement. For values: as keys, negative
numbers would sort after the others."""

float64: Codec[float] = Codec("float64", _from_float, _to_float, 8)
"""float, as 8 bytes that sort as the numbers do. -0.0 is a key of its own, before 0.0; a NaN sorts before or after all numbers by its
sign."""


def tuple_of(*parts: Codec[Any]) -> Codec[tuple[Any, ...]]:
    """Tuples with one value for each codec. They sort as tuples do, if the parts sort. In ranges of a view, a shorter tuple stands for
    all that begin with it.

    Parts of one length are stored as they are; in others, a zero byte becomes 0, 1, and 0, 0 ends the part.

    >>> import forrest
    >>> from forrest import codecs
    >>> visits = forrest.open("memory:").view(key=codecs.tuple_of(codecs.text, codecs.uint64), value=codecs.text)
    >>> visits.update({("ada", 1815): "London", ("ada", 1828): "Kent", ("alan", 1912): "London"})
    >>> list(visits.range(prefix=("ada",), keys_only=True))
    [('ada', 1815), ('ada', 1828)]
    """
    name = f"({', '.join(part.name for part in parts)})"

    def part(values: tuple[Any, ...]) -> bytes:
        if not isinstance(values, tuple) or len(values) > len(parts):
            raise TypeError(f"the codec {name} stores tuples of {len(parts)}, not {values!r}")
        encoded = b""
        for codec, value in zip(parts, values):
            one = codec.encode(value)
            encoded += one if codec.length_bytes is not None else one.replace(b"\0", b"\0\1") + b"\0\0"
        return encoded

    def encode(values: tuple[Any, ...]) -> bytes:
        encoded = part(values)
        if len(values) != len(parts):
            raise TypeError(f"the codec {name} stores tuples of {len(parts)}, not {values!r}")
        return encoded

    def decode(stored: bytes) -> tuple[Any, ...]:
        values, at = [], 0
        for codec in parts:
            if codec.length_bytes is not None:
                end = after = at + codec.length_bytes
            else:
                end = stored.index(b"\0\0", at)
                after = end + 2
            one = stored[at:end]
            values.append(codec.decode(one if codec.length_bytes is not None else one.replace(b"\0\1", b"\0")))
            at = after
        if at != len(stored):
            raise ValueError(f"{len(stored) - at} bytes are left over")
        return tuple(values)

    return Codec(name, encode, decode, None, part)
