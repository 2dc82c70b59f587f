"""Directories of backups: what Db.backup() adds to, and backups(), restore(), verify_backup() and prune() work on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from os import PathLike
from typing import NamedTuple

from . import _forrest

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Backup(NamedTuple):
    """A backup in a directory of backups."""

    id: int
    """Its number. Later backups of a directory have greater ones."""
    time: datetime
    """When it was made, by the clock of the system, in UTC."""
    bytes: int
    """Bytes of the store that it has."""
    new_bytes: int
    """Bytes that were copied for it; the others were there."""
    files: int
    """Number of files of the store that it has."""
    damage: str | None = None
    """Why its description cannot be read, in a list of backups; the numbers but for `id` are then 0. None if it can."""


class Pruned(NamedTuple):
    """What prune() removed."""

    removed: list[int]
    """The numbers of the removed backups."""
    bytes: int
    """Bytes of the removed files."""


def made(fields: tuple[int, int, int, int, int, str | None]) -> Backup:
    """A backup of its fields, whose time is in milliseconds since 1970."""
    id, time, bytes, new_bytes, files, damage = fields
    return Backup(id, _EPOCH + timedelta(milliseconds=time), bytes, new_bytes, files, damage)


def backups(directory: str | PathLike[str], /, *, encryption_key: bytes | bytearray | None = None) -> list[Backup]:
    """Lists the backups in a directory, from the oldest on. A damaged one is listed too, with its damage. Copies of tables
    are not read: verify_backup() does that. A directory of encrypted backups needs its key: that of the store when the
    directory was made.

    It raises IoError if there are none, and InvalidArgumentError if the directory has other files, or for a wrong key.
    """
    return [made(fields) for fields in _forrest.backups(directory, encryption_key)]


def restore(
    directory: str | PathLike[str],
    target: str | PathLike[str],
    /,
    *,
    id: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    encryption_key: bytes | bytearray | None = None,
) -> Backup:
    """Makes a new store at `target` of a backup: of that with the number `id`, or of the newest one. Every byte is checked.

    `target` must not exist, or be an empty directory; its parent must exist. `progress` is as for salvage(), and
    `encryption_key` as for backups(); the store has the same key. When this returns, the new store survives power
    loss. A call that fails leaves nothing. It raises CorruptError, with file and offset, if the backup is damaged;
    InvalidArgumentError if there is no such backup, for a wrong key, or if something is at `target`; BusyError if `progress`
    returned False; IoError; OutOfSpaceError.
    """
    return made(_forrest.restore(directory, encryption_key, target, id, progress))


def verify_backup(
    directory: str | PathLike[str],
    /,
    *,
    id: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    encryption_key: bytes | bytearray | None = None,
) -> Backup:
    """Reads every byte of the backup with the number `id`, or of the newest one, and checks it. `progress` is as for salvage(),
    and `encryption_key` as for backups().

    It raises CorruptError for the first damage, with file and offset; InvalidArgumentError if there is no such backup;
    BusyError if `progress` returned False; IoError.
    """
    return made(_forrest.verify_backup(directory, encryption_key, id, progress))


def prune(
    directory: str | PathLike[str],
    /,
    *,
    keep: int | None = None,
    since: datetime | None = None,
    encryption_key: bytes | bytearray | None = None,
) -> Pruned:
    """Removes all but the newest `keep` backups, or those that were made before `since`; then the files that no other
    backup needs. The newest backup always stays.

    Give one of both; `since` needs a time zone. `encryption_key` is as for backups(). Nothing is removed if it raises
    CorruptError or UnsupportedError, because a backup that is to stay cannot be read and may need any file, or BusyError,
    because one that is to go is being read, or somebody else changes the directory. Also IoError.
    """
    if (keep is None) == (since is None):
        raise ValueError("give either keep or since")
    if since is not None and since.tzinfo is None:
        raise ValueError("since has no time zone")
    time = None if since is None else max(0, (since - _EPOCH) // timedelta(milliseconds=1))
    return Pruned(*_forrest.prune(directory, encryption_key, keep, time))
