"""The homes under test, and stores in them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import forrest


def _starts_itself() -> bool:
    try:
        return subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0
    except OSError:
        return False


starts_python = pytest.mark.skipif(not _starts_itself(), reason="this Python is emulated, and cannot start itself")
"""Skips a test that starts another Python where that is not possible."""


@pytest.fixture(params=["memory:", "a path", "llds-user:"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A home without a store."""
    if request.param == "a path":
        return str(tmp_path / "store")
    if request.param == "llds-user:":
        name = f"llds-user:{tmp_path.name[:50]}"
        try:
            forrest.open(name).close()
        except forrest.UnsupportedError as error:
            pytest.skip(str(error))
        return name
    return "memory:"


@pytest.fixture
def db(url: str) -> Iterator[forrest.Db]:
    """An empty store in each home."""
    with forrest.open(url) as db:
        yield db


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[forrest.Db]:
    """An empty store on disk."""
    with forrest.open(tmp_path / "store") as db:
        yield db


@pytest.fixture
def chance() -> random.Random:
    """Random numbers, replayed by FORREST_PY_SEED."""
    seed = int(os.environ.get("FORREST_PY_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"FORREST_PY_SEED={seed}")
    return random.Random(seed)


def needs(db: forrest.Db, *capabilities: str) -> None:
    """Skips a test if the home of a store lacks a capability."""
    able = db.capabilities()
    for capability in capabilities:
        if not able[capability]:
            pytest.skip(f"{db!r} has no {capability}")
