"""Typed views: a store as a mapping from and to other types than bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ._errors import DecodeError
from ._mapping import SortedMapping
from .codecs import Codec

if TYPE_CHECKING:
    from . import Keyspace, View

_K = TypeVar("_K")
_V = TypeVar("_V")
_T = TypeVar("_T")
_NOTHING: Any = object()


def _decoded(codec: Codec[_T], stored: bytes, what: str) -> _T:
    try:
        return codec.decode(stored)
    except Exception as error:
        shown = f"{stored[:32]!r}{' and more' if len(stored) > 32 else ''}"
        raise DecodeError(f"the {what} {shown} was not written by the codec {codec.name}: {error}") from error


class TypedView(SortedMapping[_K, _V]):
    """The reads of a store, keyspace or snapshot, with keys and values of other types than bytes; view() of each makes it. It has no
    state of its own. Reads raise DecodeError for bytes that another codec wrote."""

    __slots__ = ("_key", "_source", "_value")
    _source: View

    def __init__(self, source: View, key: Codec[_K], value: Codec[_V]) -> None:
        self._source = source
        self._key = key
        self._value = value

    def _part(self, key: Any) -> bytes | None:
        return None if key is None else (self._key.part or self._key.encode)(key)

    def _pair(self, pair: tuple[bytes, bytes]) -> tuple[_K, _V]:
        return _decoded(self._key, pair[0], "key"), _decoded(self._value, pair[1], "value")

    def _pairs(self, *, reverse: bool = False) -> Iterator[tuple[_K, _V]]:
        return map(self._pair, self._source.range(reverse=reverse))

    def __getitem__(self, key: _K, /) -> _V:
        stored = self._source.get(self._key.encode(key))
        if stored is None:
            raise KeyError(key)
        return _decoded(self._value, stored, "value")

    @overload
    def get(self, key: _K, default: None = None, /) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _V, /) -> _V: ...
    @overload
    def get(self, key: _K, default: _T, /) -> _V | _T: ...
    def get(self, key: _K, default: object = None, /) -> object:
        """The value of a key, or the default."""
        stored = self._source.get(self._key.encode(key))
        return default if stored is None else _decoded(self._value, stored, "value")

    def __contains__(self, key: object, /) -> bool:
        return self._key.encode(key) in self._source  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._source)

    def __bool__(self) -> bool:
        return bool(self._source)

    def __iter__(self) -> Iterator[_K]:
        return self.range(keys_only=True)

    def __reversed__(self) -> Iterator[_K]:
        return self.range(reverse=True, keys_only=True)

    @overload
    def range(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        prefix: Any = None,
        reverse: bool = False,
        keys_only: Literal[False] = False,
    ) -> Iterator[tuple[_K, _V]]: ...
    @overload
    def range(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        prefix: Any = None,
        reverse: bool = False,
        keys_only: Literal[True],
    ) -> Iterator[_K]: ...
    def range(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        prefix: Any = None,
        reverse: bool = False,
        keys_only: bool = False,
    ) -> Iterator[tuple[_K, _V]] | Iterator[_K]:
        """Iterates over the pairs of a range, as range() of a store does. The arguments are keys, or parts of them: the
        beginning of a text, or a tuple with fewer values. The order is that of the encoded keys."""
        start, stop, prefix = map(self._part, (start, stop, prefix))
        if keys_only:
            keys = self._source.range(start, stop, prefix=prefix, reverse=reverse, keys_only=True)
            return (_decoded(self._key, key, "key") for key in keys)
        return map(self._pair, self._source.range(start, stop, prefix=prefix, reverse=reverse))

    def count(self, start: Any = None, stop: Any = None, *, prefix: Any = None) -> int:
        """The number of keys in a range, with the arguments of range(). Takes time proportional to that number."""
        return self._source.count(self._part(start), self._part(stop), prefix=self._part(prefix))

    def approximate(self, start: Any = None, stop: Any = None, *, prefix: Any = None) -> tuple[int, int]:
        """The number of keys in a range and the bytes that they take, about. Does not read them."""
        return self._source.approximate(self._part(start), self._part(stop), prefix=self._part(prefix))

    @overload
    def multi_scan(
        self, ranges: Iterable[tuple[Any, Any]], limit: int, *, keys_only: Literal[False] = False
    ) -> list[list[tuple[_K, _V]]]: ...
    @overload
    def multi_scan(
        self, ranges: Iterable[tuple[Any, Any]], limit: int, *, keys_only: Literal[True]
    ) -> list[list[_K]]: ...
    def multi_scan(
        self, ranges: Iterable[tuple[Any, Any]], limit: int, *, keys_only: bool = False
    ) -> list[list[tuple[_K, _V]]] | list[list[_K]]:
        """The first pairs of many ranges, or their keys, at most limit of each. The start and stop of a range are as in
        range(); None is no end. The waits for the disk overlap."""
        parts = [(self._part(start), self._part(stop)) for start, stop in ranges]
        if keys_only:
            found = self._source.multi_scan(parts, limit, keys_only=True)
            return [[_decoded(self._key, key, "key") for key in keys] for keys in found]
        return [[self._pair(pair) for pair in pairs] for pairs in self._source.multi_scan(parts, limit)]

    def prefixes_exist(self, prefixes: Iterable[Any], /) -> list[bool]:
        """For each prefix, whether a key begins with it. A prefix is a part of a key, as in range()."""
        encode = self._key.part or self._key.encode
        return self._source.prefixes_exist([encode(prefix) for prefix in prefixes])

    def get_many(self, keys: Iterable[_K], /) -> list[_V | None]:
        """The values of many keys, in the order of keys; None for each missing key. Faster than single reads."""
        found = self._source.get_many(map(self._key.encode, keys))
        return [None if stored is None else _decoded(self._value, stored, "value") for stored in found]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._source!r} from {self._key.name} to {self._value.name}>"


class TypedKeyspace(TypedView[_K, _V], MutableMapping[_K, _V]):
    """A store or keyspace as a MutableMapping with keys and values of other types than bytes; view() of each makes it. It has no
    state of its own. Values are stored when they are assigned: a list that was read can be changed, and then must be assigned again."""

    __slots__ = ()
    _source: Keyspace

    def __init__(self, source: Keyspace, key: Codec[_K], value: Codec[_V]) -> None:
        super().__init__(source, key, value)

    def __setitem__(self, key: _K, value: _V, /) -> None:
        self._source[self._key.encode(key)] = self._value.encode(value)

    def __delitem__(self, key: _K, /) -> None:
        if self._source.pop(self._key.encode(key), None) is None:
            raise KeyError(key)

    def clear(self) -> None:
        """Removes all keys."""
        self._source.clear()

    @overload
    def pop(self, key: _K, /) -> _V: ...
    @overload
    def pop(self, key: _K, /, default: _V) -> _V: ...
    @overload
    def pop(self, key: _K, /, default: _T) -> _V | _T: ...
    def pop(self, key: _K, /, default: object = _NOTHING) -> object:
        """Removes a key and returns its value, at one instant. If the key is missing, returns the default or raises
        KeyError. A value that cannot be decoded stays."""
        encoded = self._key.encode(key)
        while (stored := self._source.get(encoded)) is not None:
            value = _decoded(self._value, stored, "value")
            if self._source.compare_and_swap(encoded, stored, None):
                return value
        if default is _NOTHING:
            raise KeyError(key)
        return default

    def popitem(self) -> tuple[_K, _V]:
        """Removes the first pair and returns it, or raises KeyError if there is none. A pair that cannot be decoded stays."""
        while (stored := next(self._source.range(), None)) is not None:
            pair = self._pair(stored)
            if self._source.compare_and_swap(*stored, None):
                return pair
        raise KeyError("popitem(): there are no keys")

    def setdefault(self, key: _K, default: _V = None, /) -> _V:  # type: ignore[assignment]
        """The value of a key. If the key is missing, sets it to the default first. Both happen at one instant."""
        stored = self._source.setdefault(self._key.encode(key), self._value.encode(default))
        return _decoded(self._value, stored, "value")

    def put_many(self, pairs: Iterable[tuple[_K, _V]], /) -> None:
        """Sets many keys, as put_many() of a store does."""
        encode_key, encode_value = self._key.encode, self._value.encode
        self._source.put_many((encode_key(key), encode_value(value)) for key, value in pairs)

    def ingest(self, pairs: Iterable[tuple[_K, _V]], /) -> int:
        """Sets many keys at one instant, as ingest() of a store does: in ascending order of the encoded keys."""
        encode_key, encode_value = self._key.encode, self._value.encode
        return self._source.ingest((encode_key(key), encode_value(value)) for key, value in pairs)

    def compare_and_swap(self, key: _K, expected: _V | None, new: _V | None, /) -> bool:
        """Replaces the value of a key if its bytes are those of the expected one; None is absence. Otherwise changes nothing and
        returns False."""
        old, value = (None if one is None else self._value.encode(one) for one in (expected, new))
        return self._source.compare_and_swap(self._key.encode(key), old, value)

    def delete_range(self, start: Any = None, stop: Any = None, *, prefix: Any = None) -> None:
        """Removes all keys of a range, with the arguments of range()."""
        self._source.delete_range(self._part(start), self._part(stop), prefix=self._part(prefix))
