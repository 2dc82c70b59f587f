"""Events: what happens in a store on disk, passed to a function."""

from __future__ import annotations

import gc
import os
import queue
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import forrest
from conftest import starts_python

Events = queue.SimpleQueue[forrest.Event]
_LONG = 120


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "forrest-events"]


def wait_for_the_end() -> None:
    for thread in threads():
        thread.join(_LONG)
        assert not thread.is_alive()


def fill(db: forrest.Db) -> None:
    db[b"oak"] = b"Quercus"
    db.flush()


def test_a_flush_is_heard_of(tmp_path: Path) -> None:
    heard: Events = queue.SimpleQueue()
    with forrest.open(tmp_path / "store", listener=heard.put) as db:
        fill(db)
        began, ended = heard.get(timeout=_LONG), heard.get(timeout=_LONG)
    assert (began.kind, began.job, began.took, began.bytes, began.error) == ("began", "flush", None, 0, None)
    assert (ended.kind, ended.job, ended.error, ended.lost) == ("ended", "flush", None, 0)
    assert ended.bytes > 0 and isinstance(ended.took, timedelta)
    assert str(began) == "flush began" and repr(began) == '<forrest.Event "flush began">'
    wait_for_the_end()


def test_an_exception_is_reported_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: queue.SimpleQueue[object] = queue.SimpleQueue()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: reported.put((args.exc_type, args.object)))

    def listener(event: forrest.Event) -> None:
        raise SystemExit if event.kind == "began" else ZeroDivisionError

    with forrest.open(tmp_path / "store", listener=listener) as db:
        fill(db)
        assert reported.get(timeout=_LONG) == (SystemExit, listener)
        assert reported.get(timeout=_LONG) == (ZeroDivisionError, listener)
    wait_for_the_end()


def test_a_listener_uses_and_closes_the_store(tmp_path: Path) -> None:
    closed = threading.Event()

    def listener(event: forrest.Event) -> None:
        if event.kind == "ended" and not closed.is_set():
            db[b"heard"] = str(event).encode()
            db.flush()  # which makes events itself
            db.close()
            closed.set()

    db = forrest.open(tmp_path / "store", listener=listener)
    fill(db)
    assert closed.wait(_LONG) and db.closed
    wait_for_the_end()
    with forrest.open(tmp_path / "store") as db:
        assert db[b"heard"].startswith(b"flush ended after ")


def test_a_slow_listener_delays_nothing(tmp_path: Path) -> None:
    heard: Events = queue.SimpleQueue()
    begun, goes_on = threading.Event(), threading.Event()

    def listener(event: forrest.Event) -> None:
        begun.set()
        assert goes_on.wait(_LONG)
        heard.put(event)

    with forrest.open(tmp_path / "store", listener=listener) as db:
        for round in range(600):
            db[b"oak"] = str(round).encode()
            db.flush()
        assert begun.wait(_LONG)
    # The store is closed, and the events that it left are still heard of.
    goes_on.set()
    wait_for_the_end()
    events = [heard.get() for _ in range(heard.qsize())]
    assert 1_024 <= len(events) <= 1_200 and all(event.lost == 0 for event in events)


def test_lost_events_are_counted(tmp_path: Path) -> None:
    heard: Events = queue.SimpleQueue()
    begun, goes_on = threading.Event(), threading.Event()

    def listener(event: forrest.Event) -> None:
        begun.set()
        assert goes_on.wait(_LONG)
        heard.put(event)

    with forrest.open(tmp_path / "store", listener=listener) as db:
        for round in range(600):
            db[b"oak"] = str(round).encode()
            db.flush()
        assert begun.wait(_LONG)
        goes_on.set()
        first = [heard.get(timeout=_LONG) for _ in range(1_024)]
        fill(db)
        rest = [heard.get(timeout=_LONG)]
        while rest[-1].lost == 0:
            rest.append(heard.get(timeout=_LONG))
    assert all(event.lost == 0 for event in first + rest[:-1])
    assert rest[-1].lost >= 1_200 - 1_024 - len(rest)


def test_a_listener_is_let_go(tmp_path: Path) -> None:
    class Listener:
        def __call__(self, event: forrest.Event) -> None: ...

    listener = Listener()
    gone = weakref.ref(listener)
    db = forrest.open(tmp_path / "store", listener=listener)
    del listener
    gc.collect()
    assert gone() is not None
    people = db.keyspace("people")
    del db
    gc.collect()
    assert threads() and gone() is not None  # the keyspace keeps the store open
    del people
    wait_for_the_end()
    gc.collect()
    assert gone() is None


def test_wrong_listeners(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="listener must be callable"):
        forrest.open(tmp_path / "store", listener="flush")  # type: ignore[arg-type]
    assert not (tmp_path / "store").exists()
    with pytest.raises(forrest.IoError):
        forrest.open(tmp_path / "none", create=False, listener=print)
    with forrest.open("memory:", listener=print) as db:
        db[b"oak"] = b"Quercus"
    wait_for_the_end()


ENDS = """
import sys, threading
import forrest

heard = threading.Event()
def listener(event):
    heard.set()
    {listening}

db = forrest.open(sys.argv[1], listener=listener)
kept = [db, db.range(), listener]
kept.append(kept)
db[b"oak"] = b"Quercus"
db.flush()
assert heard.wait(120)
{ending}
"""


@starts_python
@pytest.mark.parametrize("listening", ["pass", "threading.Event().wait()", "while True: pass", "db.flush()"])
@pytest.mark.parametrize("ending", ["", "del kept, db", "sys.exit(3)", "db.flush()"])
def test_the_interpreter_ends(tmp_path: Path, listening: str, ending: str) -> None:
    text = ENDS.format(listening=listening, ending=ending)
    program = [sys.executable, "-c", text, str(tmp_path / "store")]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=_LONG)
    assert (ended.returncode, ended.stderr) == (3 if "exit" in ending else 0, "")
    with forrest.open(tmp_path / "store") as db:
        assert dict(db) == {b"oak": b"Quercus"}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_hears_nothing(tmp_path: Path) -> None:
    heard: Events = queue.SimpleQueue()
    with forrest.open(tmp_path / "store", listener=heard.put) as db:
        fill(db)
        child = os.fork()
        if child == 0:
            calls: list[Callable[[], object]] = [lambda: db.flush(), lambda: db.close()]
            try:
                for call in calls:
                    with pytest.raises(forrest.InvalidArgumentError):
                        call()
                gc.collect()
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        fill(db)
        kinds = [heard.get(timeout=_LONG).kind for _ in range(4)]
        assert kinds == ["began", "ended"] * 2
    wait_for_the_end()
