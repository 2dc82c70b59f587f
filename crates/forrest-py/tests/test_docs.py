"""The documentation is correct: its programs and commands run."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forrest
from conftest import starts_python

CRATE = Path(__file__).resolve().parent.parent
ROOT = CRATE.parent.parent


def blocks(language: str) -> list[str]:
    """The programs of the guide in a language."""
    text = (CRATE / "README.md").read_text()
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found and len(re.findall(r"^```", text, re.MULTILINE)) == 2 * sum(
        len(re.findall(rf"^```{one}$", text, re.MULTILINE)) for one in ("sh", "python")
    )
    return found


def test_the_programs_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "guide"}
    for number, program in enumerate(blocks("python"), 1):
        exec(compile(program, f"program {number} of README.md", "exec"), names)


@starts_python
def test_the_first_program_prints_what_it_says(tmp_path: Path) -> None:
    program = "\n".join(blocks("python")[:2])
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout == "ash is Fraxinus excelsior\nelm is Ulmus glabra\n"


def test_the_program_of_the_front_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "README.md").read_text()
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(programs) == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(programs[0], "README.md", "exec"), {})


def test_the_commands_of_the_guide_run(tmp_path: Path) -> None:
    if not shutil.which("cargo"):
        pytest.skip("there is no cargo to build the package with")
    home = Path.home()
    env = {
        **os.environ,
        "HOME": str(tmp_path),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
    }
    commands = "\n".join(["set -e", *blocks("sh"), "python -c 'import forrest; print(forrest.__file__)'"])
    ended = subprocess.run(["sh", "-c", commands], cwd=ROOT, env=env, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert str(tmp_path) in ended.stdout.splitlines()[-1]


def test_the_texts_of_the_package() -> None:
    failed, tried = doctest.testmod(forrest)
    assert tried and not failed


@starts_python
def test_the_comparison_runs() -> None:
    program = [sys.executable, str(CRATE / "examples/put_many.py"), "memory:", "2000", "--no-native"]
    told = subprocess.run(program, capture_output=True, text=True, check=True)
    assert "put_many" in told.stdout


@starts_python
def test_the_other_measurements_run() -> None:
    for arguments, expected in (
        (["asyncio_gets.py", "memory:", "300"], "microseconds"),
        (["arrays.py", "memory:", "300", "1"], "times"),
    ):
        program = [sys.executable, str(CRATE / "examples" / arguments[0]), *arguments[1:]]
        printed = subprocess.run(program, capture_output=True, text=True, check=True)
        assert printed.stdout.count(expected) >= 3
