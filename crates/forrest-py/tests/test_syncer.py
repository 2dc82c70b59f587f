"""Futures of synced changes: one thread and few syncs for many tasks, errors, cancellation, closing."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import forrest
from conftest import starts_python
from forrest import _syncer
from test_fork import in_child

TASKS = 64
ROUNDS = 20


class Device:
    """A store whose syncs wait to be let through, and may fail."""

    def __init__(self) -> None:
        self.syncs = 0
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self.error: BaseException | None = None

    def sync(self) -> None:
        self.syncs += 1
        self.begun.release()
        assert self.may_end.acquire(timeout=30)
        if self.error is not None:
            raise self.error


def until(holds: Callable[[], bool]) -> bool:
    """Whether it holds within half a minute."""
    return any(holds() or threading.Event().wait(0.01) for _ in range(3000))


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "forrest-syncer"]


def test_many_tasks_share_syncs(disk: forrest.Db) -> None:
    async def task(syncer: forrest.Syncer, number: int) -> None:
        for turn in range(ROUNDS):
            disk[b"%d %d" % (number, turn)] = b"an order"
            await syncer.synced()

    async def main() -> None:
        with forrest.Syncer(disk) as syncer:
            await asyncio.gather(*(task(syncer, number) for number in range(TASKS)))
            assert len(threads()) == 1

    before = disk.metrics()["log_syncs"]
    asyncio.run(main())
    assert threads() == []
    assert len(disk) == TASKS * ROUNDS
    assert 1 <= disk.metrics()["log_syncs"] - before <= TASKS * ROUNDS


def test_a_sync_is_for_all_who_wait() -> None:
    device = Device()

    async def main() -> None:
        with forrest.Syncer(device) as syncer:
            for turn in range(ROUNDS):
                first = syncer.synced()
                await asyncio.to_thread(device.begun.acquire)
                waiting = [syncer.synced() for _ in range(TASKS)]
                device.may_end.release(2)
                await asyncio.gather(first, *waiting)
                await asyncio.to_thread(device.begun.acquire)
                assert device.syncs == 2 * (turn + 1)

    asyncio.run(main())


def test_it_waits_in_every_home(db: forrest.Db) -> None:
    async def main() -> None:
        with forrest.Syncer(db) as syncer:
            db[b"a"] = b"1"
            try:
                await syncer.synced()
            except forrest.UnsupportedError:
                assert not db.capabilities()["sync"]

    asyncio.run(main())


def test_a_future_waits_for_a_sync_that_began_after_it() -> None:
    device = Device()

    async def main() -> None:
        with forrest.Syncer(device) as syncer:
            first = syncer.synced()
            await asyncio.to_thread(device.begun.acquire)
            second = syncer.synced()
            device.may_end.release()
            await first
            assert not second.done()
            device.may_end.release()
            await second

    asyncio.run(main())
    assert device.syncs == 2


def test_a_cancelled_future_harms_no_other() -> None:
    device = Device()

    async def main() -> None:
        with forrest.Syncer(device) as syncer:
            waiting = [asyncio.ensure_future(syncer.synced()) for _ in range(3)]
            await asyncio.to_thread(device.begun.acquire)
            waiting[1].cancel()
            for _ in range(3):
                device.may_end.release()
            first, cancelled, last = await asyncio.gather(*waiting, return_exceptions=True)
            assert first is None and last is None
            assert isinstance(cancelled, asyncio.CancelledError)

    asyncio.run(main())


def test_each_future_gets_the_error() -> None:
    device = Device()
    device.error = forrest.IoError("i/o: the device is gone")

    async def main() -> None:
        with forrest.Syncer(device) as syncer:
            first = syncer.synced()
            await asyncio.to_thread(device.begun.acquire)
            waiting = [syncer.synced() for _ in range(2)]
            for _ in range(2):
                device.may_end.release()
            errors = await asyncio.gather(first, *waiting, return_exceptions=True)
            assert [str(error) for error in errors] == ["i/o: the device is gone"] * 3
            assert all(isinstance(error, forrest.IoError) for error in errors)
            assert len({id(error) for error in errors}) == 3
            # The thread goes on.
            device.error = None
            device.may_end.release()
            await syncer.synced()

    asyncio.run(main())
    assert device.syncs == 3


class Panicked(BaseException):
    """As a panic of Rust comes to Python."""


class Uncopied(Exception):
    def __init__(self, *, what: str) -> None:
        super().__init__(what)


@pytest.mark.parametrize("error", [Panicked("it panicked"), Uncopied(what="it cannot be copied")])
def test_any_error_ends_the_wait_and_not_the_thread(error: BaseException) -> None:
    device = Device()
    device.error = error

    async def main() -> None:
        with forrest.Syncer(device) as syncer:
            device.may_end.release()
            waiting = [syncer.synced(), syncer.synced()]
            device.may_end.release()
            found = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 30)
            assert [str(other) for other in found] == [str(error)] * 2
            device.error = None
            device.may_end.release()
            await asyncio.wait_for(syncer.synced(), 30)

    asyncio.run(main())


def test_an_idle_syncer_keeps_no_future_and_none_waits_for_the_collector() -> None:
    device = Device()

    async def main() -> weakref.ref[asyncio.Future[None]]:
        future = syncer.synced()
        device.may_end.release()
        await future
        return weakref.ref(future)

    syncer = forrest.Syncer(device)
    seen = asyncio.run(main())
    assert until(lambda: gc.collect() >= 0 and seen() is None)
    # The collector may run while a thread holds any lock.
    with threading._active_limbo_lock:  # type: ignore[attr-defined]
        del syncer
        gc.collect()
    assert until(lambda: threads() == [])


def test_closing(disk: forrest.Db) -> None:
    async def main() -> None:
        syncer = forrest.Syncer(disk)
        disk[b"a"] = b"1"
        future = syncer.synced()
        await asyncio.to_thread(syncer.close)
        await future
        syncer.close()
        with pytest.raises(forrest.InvalidArgumentError, match="the Syncer is closed"):
            syncer.synced()
        assert threads() == []
        with forrest.Syncer(disk) as syncer:
            disk.close()
            with pytest.raises(forrest.InvalidArgumentError, match="the store is closed"):
                await syncer.synced()

    asyncio.run(main())


def test_the_thread_ends_with_the_syncer(db: forrest.Db) -> None:
    syncer = forrest.Syncer(db)
    assert len(threads()) == 1
    del syncer
    gc.collect()
    assert threads() == []


def test_a_loop_that_ends_early() -> None:
    device = Device()
    syncer = forrest.Syncer(device)

    async def leave() -> None:
        syncer.synced()
        await asyncio.to_thread(device.begun.acquire)

    async def stay() -> None:
        await syncer.synced()

    asyncio.run(leave())
    for _ in range(2):
        device.may_end.release()
    asyncio.run(stay())
    syncer.close()


def test_several_loops_share_a_syncer(disk: forrest.Db) -> None:
    async def work(thread: int) -> None:
        for turn in range(50):
            disk[b"%d %d" % (thread, turn)] = b""
            await syncer.synced()

    with forrest.Syncer(disk) as syncer, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda thread: asyncio.run(work(thread)), range(3)))
    assert len(disk) == 150


def test_too_many_futures_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_syncer, "_WAITING_MAX", 5)
    device = Device()

    async def main() -> None:
        with forrest.Syncer(device) as syncer:
            first = syncer.synced()
            await asyncio.to_thread(device.begun.acquire)
            waiting = [syncer.synced() for _ in range(5)]
            with pytest.raises(forrest.BusyError, match="5 tasks wait"):
                syncer.synced()
            for _ in range(2):
                device.may_end.release()
            await asyncio.gather(first, *waiting)

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_is_refused(disk: forrest.Db) -> None:
    def work(syncer: forrest.Syncer) -> Callable[[], None]:
        async def wait() -> None:
            with pytest.raises(forrest.InvalidArgumentError, match="child of fork"):
                syncer.synced()

        def run() -> None:
            asyncio.run(wait())
            syncer.close()

        return run

    with forrest.Syncer(disk) as syncer:
        assert in_child(work(syncer)) == "fine"

        async def wait() -> None:
            await syncer.synced()

        asyncio.run(wait())


@starts_python
def test_a_program_that_forgets_to_close_ends(tmp_path_factory: pytest.TempPathFactory) -> None:
    program = """
import asyncio, sys, forrest
db = forrest.open(sys.argv[1])
syncer = forrest.Syncer(db)
async def main():
    db[b"a"] = b"1"
    await syncer.synced()
    syncer.synced()
asyncio.run(main())
"""
    store = str(tmp_path_factory.mktemp("forgotten") / "store")
    subprocess.run([sys.executable, "-c", program, store], check=True, timeout=60)
    with forrest.open(store) as db:
        assert db[b"a"] == b"1"
