"""Values as files."""

from __future__ import annotations

import gc
import io
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import forrest
from conftest import needs, starts_python
from forrest._blobs import value_file


def test_values_are_files(db: forrest.Db, chance: random.Random) -> None:
    for length in (0, 1, 4_095, 4_096, 4_097, 300_000):
        value = chance.randbytes(length)
        db[b"photo"] = value
        # Of the buffer's length, and shorter and longer pieces.
        for piece in (1_000, 256 << 10, 1 << 20):
            copy = io.BytesIO()
            with db.reader(b"photo") as file:
                db[b"photo"] = b"another"
                shutil.copyfileobj(file, copy, length=piece)
                assert file.read() == b"" and file.closed is False
            assert copy.getvalue() == value
            db[b"photo"] = value
        with db.reader(b"photo") as file:
            assert file.readable() and not file.seekable() and not file.writable()
        raw = db.reader(b"photo").detach()
        assert isinstance(raw, io.RawIOBase)
        assert raw.read(10) == value[:10] and raw.readall() == value[10:]
    del db[b"photo"]
    with pytest.raises(KeyError):
        db.reader(b"photo")
    with pytest.raises(forrest.LimitError):
        db.reader(bytes(70_000))
    with pytest.raises(TypeError):
        db.reader("photo")  # type: ignore[arg-type]


def test_the_rest_is_read_in_large_pieces() -> None:
    asked: list[int] = []

    class Pieces:
        left = 600 << 10

        def read(self, count: int) -> bytes:
            asked.append(count)
            read = min(count, self.left)
            self.left -= read
            return bytes(read)

    file = value_file(Pieces())  # type: ignore[arg-type]
    assert file.read() == bytes(600 << 10) and file.read() == b""
    assert asked == [256 << 10] * 5


def test_a_closed_file_is_not_read(db: forrest.Db) -> None:
    db[b"photo"] = b"an oak"
    file = db.reader(b"photo")
    file.close()
    with pytest.raises(ValueError):
        file.read()
    file = db.reader(b"photo")
    raw = file.detach()
    raw.close()
    with pytest.raises(ValueError):
        raw.readall()
    with io.TextIOWrapper(db.reader(b"photo")) as text:
        assert text.read() == "an oak"


def test_a_snapshot_has_its_own_values(db: forrest.Db) -> None:
    needs(db, "snapshots")
    people = db.keyspace("people")
    people[b"ada"] = b"old" * 5_000
    with db.snapshot() as snapshot:
        people[b"ada"] = b"new"
        file = snapshot.keyspace("people").reader(b"ada")
        assert file.read(3) == b"old" and people.reader(b"ada").read() == b"new"
        with pytest.raises(KeyError):
            snapshot.reader(b"ada")
        raw = file.detach()
    with pytest.raises(forrest.InvalidArgumentError, match="the snapshot is closed"):
        raw.read(1)


def test_a_file_that_is_gone_lets_the_store_close(tmp_path: Path) -> None:
    db = forrest.open(tmp_path / "store")
    db[b"photo"] = bytes(5_000)
    db.flush()  # it stays in the log
    kept = db.reader(b"photo")
    del db
    gc.collect()
    with pytest.raises(forrest.BusyError):
        forrest.open(tmp_path / "store")
    del kept
    gc.collect()
    forrest.open(tmp_path / "store").close()


def test_damage_is_an_exception(tmp_path: Path) -> None:
    value = random.Random(5).randbytes(200_000)
    with forrest.open(tmp_path / "store") as db:
        db[b"photo"] = value
        db.flush()
    damaged = 0
    for log in (tmp_path / "store").iterdir():
        data = bytearray(log.read_bytes())
        at = data.find(value[:100])
        if at >= 0:
            data[at + 100_000] ^= 1
            log.write_bytes(data)
            damaged += 1
    assert damaged == 1
    with forrest.open(tmp_path / "store") as db, db.reader(b"photo") as file:
        with pytest.raises(forrest.CorruptError):
            while file.read(1_000):
                pass
        with pytest.raises(forrest.CorruptError):
            while file.read(1_000):
                pass


def test_threads_read_one_file(tmp_path: Path) -> None:
    with forrest.open(tmp_path / "store") as db:
        db[b"photo"] = b"".join(number.to_bytes(8, "big") for number in range(100_000))
        raw = db.reader(b"photo").detach()
        pieces: list[bytes] = []

        def read() -> None:
            while piece := raw.read(8):
                pieces.append(piece)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(int.from_bytes(piece, "big") for piece in pieces) == list(range(100_000))


READS_A_LARGE_VALUE = """
import resource, shutil, sys
import forrest

class Sum:
    bytes = 0
    def write(self, piece):
        self.bytes += len(piece)

with forrest.open(sys.argv[1]) as db:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with db.reader(b"photo") as file:
        shutil.copyfileobj(file, sum := Sum())
    assert sum.bytes == 200 << 20, sum.bytes
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 20 << 10, grown
"""


@starts_python
def test_a_large_value_needs_the_memory_of_a_piece(tmp_path: Path) -> None:
    with forrest.open(tmp_path / "store") as db:
        db[b"photo"] = bytes(200 << 20)
        db.flush()
    program = [sys.executable, "-c", READS_A_LARGE_VALUE, str(tmp_path / "store")]
    ended = subprocess.run(program, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
