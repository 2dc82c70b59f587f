"""The thread that calls a listener."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import _forrest


def run(events: _forrest.Events, listener: Callable[[_forrest.Event], object]) -> None:
    """Calls the listener with each event, until the store is closed.

    Not in native code: at the end of the interpreter a daemon thread ends where it is, without its native callers, if it runs
    Python.
    """
    while (event := events.next()) is not None:
        try:
            listener(event)
        except BaseException as error:  # noqa: BLE001 - there is no caller
            events.report(error, listener)
