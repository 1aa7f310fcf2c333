"""Virtual environments of their own, and what pyproject.toml allows in them."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.record import ROOT

SETTINGS: Mapping[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT: Mapping[str, Any] = SETTINGS["project"]
EXTRAS: Mapping[str, list[str]] = PROJECT["optional-dependencies"]
LEFT_OUT = ("lightgbm", "mypy", "playwright", "pyspark", "ruff")  # of the extra `test`
OURS = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")  # what no other environment may see


class Failed(Exception):
    """A command that ended with an error."""


def command(*words: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """Run a command without anything of this environment on its path, and return what it printed."""
    kept = {name: text for name, text in os.environ.items() if name not in OURS}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "rror" in line]
        raise Failed(f"{Path(words[0]).name} {words[1]}: {' '.join((errors or lines)[-2:])}"[:400])
    return done.stdout


class Environment:
    """A virtual environment of its own."""

    def __init__(self, folder: Path, interpreter: str = sys.executable) -> None:
        command(interpreter, "-m", "venv", folder)
        self.bin = folder / "bin"
        self.python = self.bin / "python"

    def install(self, *requirements: str, pre: bool = False) -> None:
        """Install packages, or say in one line which could not be."""
        options = ["--quiet", "--disable-pip-version-check", "--no-compile", *(["--pre"] if pre else [])]
        command(self.python, "-m", "pip", "install", *options, *requirements)

    def versions(self, names: Sequence[str]) -> str:
        """Return the versions of packages, for a row."""
        found = json.loads(command(self.python, "-m", "pip", "list", "--format", "json"))
        by_name = {package["name"].lower(): package["version"] for package in found}
        return ", ".join(f"{name} {by_name[name]}" for name in names if name in by_name)


def name_of(requirement: str) -> str:
    """Return the name of a package in a requirement."""
    return re.split(r"[\[<>=! ;]", requirement)[0].lower()


def lowest(requirement: str) -> str:
    """Return a requirement with the lowest version that it allows, and no other."""
    name, bound, version = requirement.partition(">=")
    if not bound or not re.fullmatch(r"[\d.]+", version):
        raise ValueError(f"{requirement!r} has no plain lower bound.")
    return f"{name}=={version}"


def direct() -> list[str]:
    """Return the direct dependencies, with those of the extras that the tests need."""
    extra = [each for each in EXTRAS["test"] if name_of(each) not in LEFT_OUT]
    return list(dict.fromkeys([*PROJECT["dependencies"], *EXTRAS["report"], *extra]))
