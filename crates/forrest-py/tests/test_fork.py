"""Forked processes: the child cannot use the parent's objects, and cannot harm the parent."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import forrest
from conftest import starts_python

# The child runs little code before it ends, and uses no object of other threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work: Callable[[], object]) -> str:
    """Runs a function in a child and returns its report: "fine", or the exception."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            said = "fine"
        except BaseException:
            said = traceback.format_exc()
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, said
    return said


def test_a_child_is_refused_and_the_parent_goes_on(db: forrest.Db) -> None:
    db.put_many((b"%06d" % number, b"") for number in range(5_000))
    rows, batch, transaction = db.range(), db.batch(), db.transaction()
    db[b"large"] = bytes(5_000)
    reader = db.reader(b"large")
    next(rows)
    things: list[forrest.View] = [db]
    if db.capabilities()["snapshots"]:
        things += [db.keyspace("people"), db.snapshot()]

    def work() -> None:
        calls: list[Callable[[], object]] = [
            lambda: next(rows),
            lambda: reader.read(1),
            lambda: batch.write(),
            lambda: batch.set(b"a", b""),
            lambda: transaction.get(b"a"),
            lambda: transaction.commit(),
            lambda: db.transaction(),
            lambda: db.batch(),
            lambda: db.__setitem__(b"a", b""),
            lambda: db.put_many([(b"a", b"")]),
            lambda: db.snapshot(),
            lambda: db.keyspace("default"),
            lambda: db.sync(),
            lambda: db.close(),
        ]
        for thing in things:
            calls += [thing.popitem] if isinstance(thing, forrest.Keyspace) else []
            calls += [lambda thing=thing: thing.get(b"a"), lambda thing=thing: list(thing)]  # type: ignore[misc]
        for call in calls:
            with pytest.raises(forrest.InvalidArgumentError, match="process that forked this one"):
                call()

    assert in_child(work) == "fine"
    assert next(rows) == (b"000001", b"") and len(db) == 5_001
    assert reader.read() == bytes(5_000)
    db[b"a"] = b"1"
    assert in_child(work) == "fine"
    db.close()


ENDS_LIKE_ANY = """
import gc, os, sys
import forrest

db = forrest.open(sys.argv[1])
db[b"a"] = b"1"
held = [db.keyspace("people"), db.snapshot(), db.range(), db.batch(), db.transaction()]
child = os.fork()
if child == 0:
    held.clear()
    del db
    gc.collect()
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
# The child released nothing of the parent: neither its lock nor its memory.
try:
    forrest.open(sys.argv[1])
    sys.exit("the child has unlocked the store")
except forrest.BusyError:
    pass
db[b"b"] = b"2"
assert dict(db) == {b"a": b"1", b"b": b"2"}
"""


@starts_python
def test_a_child_that_ends_gives_nothing_back(tmp_path: Path) -> None:
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", ENDS_LIKE_ANY, str(tmp_path / "store")]
    ended = subprocess.run(program, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    with forrest.open(tmp_path / "store") as db:
        assert len(db) == 2


def test_a_child_opens_its_own(db: forrest.Db, tmp_path: Path) -> None:
    db[b"a"] = b"1"

    def work() -> None:
        for url in ("memory:", str(tmp_path / "the child's")):
            with forrest.open(url) as own:
                numbers = range(2_000)
                threads = [
                    threading.Thread(target=own.put_many, args=([(b"%06d" % one, b"") for one in numbers],))
                    for _ in range(3)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                for one in numbers:
                    own[b"%06d" % one] = b"other"
                assert len(own) == 2_000
                own.delete_range()
                assert len(own) == 0
        gc.collect()

    assert in_child(work) == "fine"
    with forrest.open(tmp_path / "the child's") as theirs:
        assert not theirs
    assert dict(db) == {b"a": b"1"}


def test_a_parent_that_closes_hands_over(tmp_path: Path) -> None:
    path = tmp_path / "store"
    db = forrest.open(path)
    db[b"a"] = b"1"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        # Busy until the parent has closed the store.
        os.read(reading, 1)
        try:
            with forrest.open(path) as own:
                own[b"b"] = own[b"a"]
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    with pytest.raises(forrest.BusyError):
        forrest.open(path)
    db.close()
    # A child that was forked meanwhile does not keep the store locked.
    forrest.open(path).close()
    os.write(writing, b"!")
    assert os.waitpid(child, 0)[1] == 0
    os.close(reading)
    os.close(writing)
    with forrest.open(path) as db:
        assert dict(db) == {b"a": b"1", b"b": b"1"}


def test_forks_under_threads(tmp_path: Path) -> None:
    with forrest.open("memory:") as memory, forrest.open(tmp_path / "store") as disk:
        done = threading.Event()

        def write(db: forrest.Db) -> None:
            while not done.is_set():
                db.put_many((b"%06d" % number, b"") for number in range(500))
                db.delete_range()

        threads = [threading.Thread(target=write, args=(db,)) for db in (memory, disk)]
        for thread in threads:
            thread.start()

        def work() -> None:
            with forrest.open("memory:") as own:
                own.put_many((b"%06d" % number, b"") for number in range(2_000))
                assert len(own) == 2_000
            with pytest.raises(forrest.InvalidArgumentError):
                memory.get(b"a")

        try:
            assert {in_child(work) for _ in range(20)} == {"fine"}
        finally:
            done.set()
            for thread in threads:
                thread.join()
