"""The archive of Spark's classes is used where it is, unless others could have written it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime import session
from sluicegate.runtime.class_archive import keep_classes, share_classes


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "classes.jsa"
    path.touch(mode=0o600)
    return path


def test_it_is_used_where_it_is(archive: Path) -> None:
    assert f"-XX:SharedArchiveFile={archive} " in share_classes(archive)
    assert str(archive) in keep_classes(archive)
    archive.unlink()
    assert share_classes(archive) == ""


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
def test_what_others_may_write_is_not_used(archive: Path, mode: int) -> None:
    archive.chmod(mode)
    assert share_classes(archive) == ""


def test_what_others_own_is_not_used(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = archive.stat().st_uid
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert (share_classes(archive) == "") is (owner != 0)


@pytest.mark.parametrize("name", ["two words.jsa", "base:top.jsa"])
def test_an_option_is_one_path(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch(mode=0o600)
    assert share_classes(path) == ""


def test_neither_a_link_nor_a_folder_of_all_is_trusted(archive: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsa"
    link.symlink_to(archive)
    assert share_classes(link) == ""
    tmp_path.chmod(0o1777)
    assert share_classes(archive) == ""


def test_spark_finds_no_configuration() -> None:
    """Java keeps classes for one list of folders, so that the folder has to be at one path; it must stay empty."""
    assert not session.NO_CONFIGURATION.exists()


def test_configuration_where_there_must_be_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "NO_CONFIGURATION", tmp_path)
    with (
        pytest.raises(DiagnosticError, match="must not be there"),
        session._own_environment(tmp_path, "ERROR", {}),
    ):
        pytest.fail("Spark would start")
