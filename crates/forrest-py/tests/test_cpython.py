"""CPython's own tests of mappings, on typed views."""

from __future__ import annotations

import pickle
import unittest
from typing import Any, ClassVar

import pytest

import forrest
from forrest import TypedKeyspace, codecs
from forrest.codecs import Codec

mapping_tests = pytest.importorskip("test.mapping_tests", reason="this Python has no package test")

PICKLE: Codec[Any] = Codec("pickle", pickle.dumps, pickle.loads)


class Opened(TypedKeyspace[Any, Any]):
    """A view of a new store in memory, which is what the tests construct."""

    codecs: ClassVar[tuple[Codec[Any], Codec[Any]]]

    def __init__(self, *pairs: Any, **named: Any) -> None:
        super().__init__(forrest.open("memory:"), *self.codecs)
        self.update(*pairs, **named)

    def copy(self) -> Opened:
        """A copy in a new store, which some tests begin with."""
        return type(self)(self)


class TextToJson(Opened):
    codecs = (codecs.text, codecs.json)


class TextToPickle(Opened):
    codecs = (codecs.text, PICKLE)


class JsonToJson(Opened):
    codecs = (codecs.json, codecs.json)


class TestTextToJson(mapping_tests.BasicTestMappingProtocol):  # type: ignore[misc, name-defined]
    type2test = TextToJson

    def _reference(self) -> dict[str, object]:
        return {"1": "2", "key1": "value1", "key2": 3}


class TestTextToPickle(mapping_tests.BasicTestMappingProtocol):  # type: ignore[misc, name-defined]
    type2test = TextToPickle


class TestJsonToJson(mapping_tests.TestMappingProtocol):  # type: ignore[misc, name-defined]
    type2test = JsonToJson
    _reference = TestTextToJson._reference

    @unittest.skip("a class has no store in which it could make a mapping of the keys")
    def test_fromkeys(self) -> None: ...

    @unittest.skip("it changes a list that it has read; a store has copies of values")
    def test_setdefault(self) -> None: ...
