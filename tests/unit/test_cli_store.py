"""The verbs on a store, from a folder to a file and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sluicegate.cli.main import main
from sluicegate.service.store import Event, open_store

SOLDIERS = Path(__file__).parents[2] / "examples" / "soldiers"
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalog that a test may change, in a folder where the default store would be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICEGATE_STORE", raising=False)
    (tmp_path / "catalog").mkdir()
    for each in SOLDIERS.glob("*.sql"):
        shutil.copy(each, tmp_path / "catalog")
    return tmp_path


def run(capsys: Capture, *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, out, err


def test_from_a_folder_to_versions_and_back(capsys: Capture, folder: Path) -> None:
    status, _, err = run(capsys, "plan", "catalog")
    assert (status, "error[store-missing]" in err, (folder / "sluicegate.db").exists()) == (1, True, False)
    assert run(capsys, "apply", "catalog", "--reason", "first") == (0, "version 1\n", "")
    assert run(capsys, "plan", "catalog") == (0, "nothing to change: the store is at version 1\n", "")
    assert run(capsys, "apply", "catalog", "--reason", "again")[1].startswith("nothing to change")
    (folder / "catalog" / "more.sql").write_text("CREATE ROLE extra;")
    assert run(capsys, "plan", "catalog") == (0, "CREATE ROLE extra;\n", "")
    assert json.loads(run(capsys, "plan", "catalog", "--json")[1]) == {
        "version": 1, "statements": ["CREATE ROLE extra;"], "effects": [],
    }  # fmt: skip
    assert run(capsys, "apply", "catalog", "--reason", "more", "--store", "sluicegate.db")[:2] == (
        0,
        "version 2\n",
    )
    assert run(capsys, "history", "--diff", "2", "1")[1] == "DROP ROLE extra;\n"
    assert run(capsys, "rollback", "1", "--reason", "undo")[:2] == (0, "version 3\n")
    listed = json.loads(run(capsys, "history", "--after", "1", "--json")[1])
    assert [(each["version"], each["reason"], each["statements"]) for each in listed] == [
        (2, "more", ["CREATE ROLE extra;"]), (3, "undo", ["DROP ROLE extra;"]),
    ]  # fmt: skip
    assert "undo" in run(capsys, "history")[1]
    assert "\nDROP ROLE extra;\n" in run(capsys, "history", "--statements")[1]
    assert run(capsys, "export", "out")[0] == 0
    assert run(capsys, "plan", "out")[1].startswith("nothing to change")
    assert "error[export-folder]" in run(capsys, "export", "out")[2]
    assert run(capsys, "export", "out", "--version", "2", "--replace")[0] == 0
    assert run(capsys, "plan", "out")[1] == "CREATE ROLE extra;\n"


def test_audit_backup_and_restore(capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICEGATE_STORE", "sqlite:///a.db")
    run(capsys, "apply", "catalog", "--reason", "first")
    with open_store("a.db") as store:
        store.audit.record(Event("paul", "query", "SELECT SID FROM Health", 1, ("g",), "partial"))
    status, out, _ = run(capsys, "audit", "verify", "--json")
    found = json.loads(out)
    assert (status, found["changes"]["count"], found["events"]["count"], found["broken"]) == (0, 1, 2, [])
    assert run(capsys, "audit", "verify", "--expect", found["events"]["last"])[0] == 0
    assert run(capsys, "audit", "verify", "--expect", "0" * 64)[0] == 1
    assert "paul" in run(capsys, "audit", "search", "--text", "health", "--since", "2020-01-01")[1]
    assert run(capsys, "audit", "search", "--until", "2020-01-01T00:00+02:00")[1] == "no events\n"
    (line,) = run(capsys, "audit", "export", "--principal", "paul")[1].splitlines()
    assert json.loads(line)["grants"] == ["g"]
    assert run(capsys, "backup", "b.jsonl")[1] == "b.jsonl: 1 changes, 2 events\n"
    assert run(capsys, "restore", "b.jsonl", "--store", "sqlite:///c.db")[0] == 0
    assert json.loads(run(capsys, "audit", "verify", "--json", "--store", "c.db")[1]) == found
    assert "error[store-not-empty]" in run(capsys, "restore", "b.jsonl", "--store", "c.db")[2]


def test_a_gateway_that_did_not_take_the_change_is_named(capsys: Capture, folder: Path) -> None:
    run(capsys, "apply", "catalog", "--reason", "first")
    with open_store("sluicegate.db") as store:
        store.leases.renew("gateway-7", 1, 60)
    (folder / "catalog" / "more.sql").write_text("CREATE ROLE extra;")
    status, out, err = run(capsys, "apply", "catalog", "--reason", "more", "--wait", "0")
    assert (status, out) == (1, "version 2\n")
    assert "gateway-7" in err


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["apply", "catalog"], 2, "--reason"),
        (["apply", "catalog", "--reason", "x", "--wait", "-1"], 2, "--wait"),
        (["apply", "catalog", "--reason", "x", "--store", "mysql://h/d"], 1, "error[store-url]"),
        (["plan", "nowhere"], 2, "does not exist"),
        (["history"], 1, "error[store-missing]"),
        (["rollback", "1", "--reason", "x"], 1, "error[store-missing]"),
        (["export", ""], 2, "not a folder"),
        (["audit", "verify", "--principal", "x"], 2, "no conditions"),
        (["audit", "search", "--expect", "x"], 2, "--expect"),
        (["audit", "search", "--since", "soon"], 2, "not a time"),
        (["audit", "look"], 2, "invalid choice"),
        (["restore", "nothing.jsonl"], 2, "there is no file"),
    ],
)
def test_wrong_use_is_explained_and_makes_no_store(
    capsys: Capture, folder: Path, argv: list[str], status: int, said: str
) -> None:
    found, out, err = run(capsys, *argv)
    assert (found, out) == (status, "")
    assert said in err
    assert list(folder.glob("*.db*")) == []
