"""Syncer: futures of asyncio that wait for the device, without a thread each.

Invariant: no task waits for ever. A future is in the queue before the thread takes it out; the thread takes out all there are,
syncs once, and then resolves them. A future is only queued while the end of the queue is not: both happen under one lock, which
the thread never takes.
"""

from __future__ import annotations

import atexit
import copy
import os
import threading
import weakref
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from ._errors import BusyError, InvalidArgumentError

if TYPE_CHECKING:
    import asyncio  # at run time only where a loop runs, because it takes long to import

_WAITING_MAX = 1 << 20


class _Synced(Protocol):
    def sync(self) -> None: ...


class _Queue:
    """What a Syncer and its thread share. The thread must not keep the Syncer."""

    def __init__(self, db: _Synced) -> None:
        self._db = db
        self._waiting: SimpleQueue[asyncio.Future[None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="forrest-syncer", daemon=True)
        _queues.add(self)
        self._thread.start()

    def add(self, future: asyncio.Future[None]) -> None:
        if self._process != os.getpid():
            raise InvalidArgumentError(
                "invalid argument: a Syncer was used in a child of fork; make one there, of a store opened there"
            )
        with self._lock:
            if self._is_closed:
                raise InvalidArgumentError("invalid argument: the Syncer is closed")
            if self._waiting.qsize() >= _WAITING_MAX:
                raise BusyError(f"busy: {_WAITING_MAX} tasks wait for a sync already; await some of them first")
            self._waiting.put(future)

    def leave(self) -> None:
        """Ends the thread when it has resolved what is queued. Waits for nothing and takes no lock: the garbage collector calls
        it in the middle of anything, when nobody can add to the queue any more."""
        self._waiting.put(None)

    def end(self) -> None:
        """Waits until what is queued is resolved, which is at most two syncs, and ends the thread."""
        if self._process != os.getpid():
            return  # the thread is not in this process
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while self._take_turn():
            pass

    def _take_turn(self) -> bool:
        """Resolves what is queued; false at the end. An idle thread has no future in its hands."""
        futures = [self._waiting.get()]
        try:
            while True:
                futures.append(self._waiting.get_nowait())
        except Empty:
            pass
        waiting = [future for future in futures if future is not None]
        if waiting:
            self._resolve(waiting)
        return None not in futures

    def _resolve(self, waiting: list[asyncio.Future[None]]) -> None:
        error: BaseException | None = None
        try:
            self._db.sync()
        except BaseException as failed:  # noqa: BLE001 - those who wait get it, a panic too
            error = failed
        of_loops: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for future in waiting:
            of_loops.setdefault(future.get_loop(), []).append(future)
        for loop, futures in of_loops.items():
            try:
                loop.call_soon_threadsafe(_finish, futures, error)
            except RuntimeError:
                pass  # the loop is closed: nobody waits


# Their threads keep them until they end.
_queues: weakref.WeakSet[_Queue] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """The interpreter must not end while a thread is in a call."""
    for queue in list(_queues):
        queue.end()


def _finish(futures: list[asyncio.Future[None]], error: BaseException | None) -> None:
    for future in futures:
        if future.done():  # cancelled
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(_copied(error))


def _copied(error: BaseException) -> BaseException:
    """A copy, because raising an exception changes it; itself if it has none."""
    try:
        return copy.copy(error)
    except Exception:  # noqa: BLE001 - it is the error of another module
        return error


class Syncer:
    """Syncs a store for the tasks of asyncio: a change that must survive a loss of power is made as always, which takes
    microseconds, and the sync is awaited. Tasks that wait at the same time share one sync.

    >>> import asyncio, forrest
    >>> async def store(db: forrest.Db, syncer: forrest.Syncer, number: int) -> None:
    ...     db[b"order %d" % number] = b"paid"
    ...     await syncer.synced()
    >>> async def main(db: forrest.Db) -> None:
    ...     with forrest.Syncer(db) as syncer:
    ...         await asyncio.gather(*(store(db, syncer, number) for number in range(100)))
    >>> with forrest.open("memory:") as db:
    ...     asyncio.run(main(db))
    ...     len(db)
    100

    It has one thread, which sleeps while no task waits, and may be used by several loops and threads.
    """

    __slots__ = ("__weakref__", "_queue")

    def __init__(self, db: _Synced, /) -> None:
        self._queue = _Queue(db)
        leave = weakref.finalize(self, self._queue.leave)
        leave.atexit = False  # see _end_all

    def synced(self) -> asyncio.Future[None]:
        """A future that resolves when everything that was written before this call survives a loss of power, in all keyspaces
        and from all threads. The sync is on its way from this call on, whether or not the future is awaited; cancelling it
        gives up the wait, and takes nothing back.

        It raises what sync() of the store raises. The change is made then, and may be lost. In memory it resolves, and
        promises nothing. Raises BusyError if 1,048,576 futures wait already, and InvalidArgumentError after close() and in a
        child of a fork."""
        import asyncio

        future = asyncio.get_running_loop().create_future()
        self._queue.add(future)
        return future

    def close(self) -> None:
        """Waits for the syncs of the futures that there are, two at most, and ends the thread. A second call does nothing. The
        store stays open."""
        self._queue.end()

    def __enter__(self) -> Syncer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None:
        self.close()
