"""Blobs as files."""

import gc
import io
import random
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import forrest
from forrest._blobs import blob_file


@pytest.fixture(params=["memory:", "disk"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[forrest.Db]:
    url = tmp_path / "forest" if request.param == "disk" else request.param
    with forrest.open(url) as db:
        yield db


def test_files_are_as_bytes_io(db: forrest.Db) -> None:
    blobs = db.blobs("blobs", piece_bytes=1024)
    numbers = random.Random(1)
    expected = {}
    for _ in range(60):
        key, data = bytes([numbers.randrange(6)]), numbers.randbytes(numbers.randrange(6_000))
        with blobs.create(key) as file:
            shutil.copyfileobj(io.BytesIO(data), file, length=numbers.randrange(1, 3_000))
        expected[key] = data
    assert blobs.items() == sorted((key, len(data)) for key, data in expected.items())
    assert list(blobs) == sorted(expected)
    for key, data in expected.items():
        with blobs.open(key) as file, io.BytesIO(data) as other:
            assert file.read() == data
            for _ in range(20):
                at, whence = numbers.randrange(len(data) + 1), numbers.choice([0, 2])
                at = -at if whence == 2 else at
                assert file.seek(at, whence) == other.seek(at, whence)
                count = numbers.randrange(3_000)
                assert file.read(count) == other.read(count)
                assert file.tell() == other.tell()
    del blobs[b"\0"]
    assert b"\0" not in blobs
    with pytest.raises(KeyError):
        del blobs[b"\0"]
    with pytest.raises(KeyError):
        blobs.open(b"\0")


def test_the_rest_is_read_in_large_pieces() -> None:
    asked: list[tuple[int, int]] = []

    class Pieces:
        size = 600 << 10

        def read_at(self, offset: int, count: int) -> bytes:
            asked.append((offset >> 10, count >> 10))
            return bytes(min(count, self.size - offset))

    file = blob_file(Pieces())  # type: ignore[arg-type]
    file.seek(100 << 10)
    assert file.read() == bytes(500 << 10) and file.tell() == 600 << 10
    assert asked == [(100, 256), (356, 256), (600, 256)]


def test_what_is_not_finished_is_not_there(db: forrest.Db) -> None:
    blobs = db.blobs("blobs", piece_bytes=1024)
    with pytest.raises(ZeroDivisionError), blobs.create(b"oak") as file:
        file.write(bytes(5_000))
        raise ZeroDivisionError
    file = blobs.create(b"elm")
    file.write(bytes(5_000))
    del file
    gc.collect()
    assert list(blobs) == []
    assert [key for key, _ in db.keyspace("blobs").range() if key[0] in (2, 3)] == []

    file = blobs.create(b"ash")
    file.write(memoryview(bytearray(5_000)))
    assert blobs.remove_unfinished(timedelta(hours=1)) == 0
    assert blobs.remove_unfinished(timedelta(0)) == 1
    with pytest.raises(forrest.ConditionFailedError):
        file.write(bytes(5_000))
    with pytest.raises(forrest.InvalidArgumentError):
        file.close()
    with pytest.raises(ValueError):
        file.write(b"")


def test_readers_keep_what_they_began_with(db: forrest.Db) -> None:
    blobs = db.blobs("blobs")
    with blobs.create(b"oak") as file:
        file.write(b"old" * 1_000)
    with blobs.open(b"oak") as reader, db.snapshot() as snapshot:
        with blobs.create(b"oak") as file:
            file.write(b"new")
        assert reader.read() == b"old" * 1_000
        with blobs.open(b"oak", snapshot=snapshot) as past:
            assert past.read(6) == b"oldold"
    assert blobs.open(b"oak").read() == b"new"


def test_wrong_arguments(db: forrest.Db) -> None:
    blobs = db.blobs("blobs")
    db.keyspace("pairs")[b"oak"] = b"Quercus"
    with pytest.raises(forrest.InvalidArgumentError, match="no blobs"):
        db.blobs("pairs")
    with pytest.raises(forrest.InvalidArgumentError):
        db.blobs("blobs", piece_bytes=0)
    with pytest.raises(forrest.LimitError):
        blobs.create(bytes(70_000))
    with pytest.raises(TypeError):
        blobs.create("oak")  # type: ignore[arg-type]
    with blobs.create(b"oak") as file, pytest.raises(TypeError):
        file.write("text")  # type: ignore[arg-type]
    with blobs.open(b"oak") as reader:
        with pytest.raises(ValueError):
            reader.seek(-1)
        assert reader.seek(100) == 100
        assert reader.read() == b""


def test_closing_the_store_discards(tmp_path: Path) -> None:
    with forrest.open(tmp_path / "forest") as db:
        file = db.blobs("blobs", piece_bytes=1024).create(b"oak")
        file.write(bytes(5_000))
    with pytest.raises(forrest.InvalidArgumentError):
        file.close()
    with forrest.open(tmp_path / "forest") as db:
        assert list(db.blobs("blobs")) == []
        assert [key for key, _ in db.keyspace("blobs").range() if key[0] in (2, 3)] == []
