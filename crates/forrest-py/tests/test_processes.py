"""Other processes: many readers of one store, while one process writes."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

import forrest
from conftest import starts_python

# A child of a fork opens the store itself, and uses no object of its parent.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
WORKERS = 3
KEYS = 2_000

reader: forrest.Db


def key(number: int) -> bytes:
    return b"%06d" % number


def open_reader(path: str) -> None:
    """What each worker begins with."""
    global reader
    reader = forrest.open(path, read_only=True)


def look(number: int) -> tuple[int, bytes, str]:
    """The number of keys and a value after a refresh, and the refusal of a change."""
    reader.refresh()
    try:
        reader[key(number)] = b"changed by a reader"
    except forrest.UnsupportedError as error:
        return len(reader), reader[key(number)], str(error)
    return -1, b"", ""


def open_writer(path: str) -> str:
    """The name of the error."""
    try:
        forrest.open(path).close()
    except forrest.Error as error:
        return type(error).__name__
    return "none"


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(method, marks=starts_python) for method in ("forkserver", "spawn"))]
)
def test_many_processes_read_while_one_writes(method: str, tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with forrest.open(path) as db:
        db.put_many((key(number), b"1") for number in range(KEYS))
        context = multiprocessing.get_context(method)
        with context.Pool(WORKERS, open_reader, (path,)) as pool:
            looks = pool.map(look, range(50), chunksize=1)
            assert {(keys, value) for keys, value, _ in looks} == {(KEYS, b"1")}
            assert all("read" in refusal for _, _, refusal in looks)
            assert pool.map(open_writer, [path] * WORKERS) == ["BusyError"] * WORKERS
            db.put_many((key(number), b"2") for number in range(KEYS + 1))
            db.flush()
            db.put_many((key(number), b"3") for number in range(KEYS + 2))
            looks = pool.map(look, range(50), chunksize=1)
            assert {(keys, value) for keys, value, _ in looks} == {(KEYS + 2, b"3")}


def test_a_reader_goes_on_without_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with forrest.open(path) as db:
        db[b"a"] = b"1"
    readers = [forrest.open(path, read_only=True) for _ in range(3)]
    with forrest.open(path) as db:
        db[b"a"] = b"2"
        db.compact()
    assert {reader[b"a"] for reader in readers} == {b"1"}
    for reader in readers:
        reader.refresh()
        assert reader[b"a"] == b"2"
        reader.close()


@starts_python
def test_the_example_with_workers_runs(tmp_path: Path) -> None:
    program = Path(__file__).resolve().parent.parent / "examples/workers.py"
    printed = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "store")], capture_output=True, text=True, check=True
    )
    assert printed.stdout == "4 workers found 10000 of 10000 keys\n"
