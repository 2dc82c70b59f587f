"""Mappings in the order of their keys: what a store and a view with codecs have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V", covariant=True)


class Keys(KeysView[_K]):
    """The keys of a sorted mapping, in order."""

    __slots__ = ()
    _mapping: SortedMapping[_K, object]

    def __reversed__(self) -> Iterator[_K]:
        return reversed(self._mapping)


class Items(ItemsView[_K, _V]):
    """The pairs of a sorted mapping, in the order of their keys."""

    __slots__ = ()
    _mapping: SortedMapping[_K, _V]

    def __iter__(self) -> Iterator[tuple[_K, _V]]:
        return self._mapping._pairs()

    def __reversed__(self) -> Iterator[tuple[_K, _V]]:
        return self._mapping._pairs(reverse=True)


class Values(ValuesView[_V]):
    """The values of a sorted mapping, in the order of their keys."""

    __slots__ = ()
    _mapping: SortedMapping[object, _V]

    def __contains__(self, value: object) -> bool:
        return any(value == other for other in self)

    def __iter__(self) -> Iterator[_V]:
        return (value for _, value in self._mapping._pairs())

    def __reversed__(self) -> Iterator[_V]:
        return (value for _, value in self._mapping._pairs(reverse=True))


class SortedMapping(Mapping[_K, _V]):
    """A mapping that iterates in the order of its keys, from either end."""

    __slots__ = ()

    @abstractmethod
    def __reversed__(self) -> Iterator[_K]: ...

    @abstractmethod
    def _pairs(self, *, reverse: bool = False) -> Iterator[tuple[_K, _V]]: ...

    def keys(self) -> Keys[_K]:
        """The keys, in order."""
        return Keys(self)

    def items(self) -> Items[_K, _V]:
        """The pairs, in the order of their keys."""
        return Items(self)

    def values(self) -> Values[_V]:
        """The values, in the order of their keys."""
        return Values(self)
