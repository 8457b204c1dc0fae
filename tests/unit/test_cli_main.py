"""The command as a whole: exit statuses, and that bad input never shows a traceback."""

from __future__ import annotations

import io
import tomllib
from pathlib import Path

import pytest

import sluicegate
from sluicegate.cli import explain as explain_verb
from sluicegate.cli.console import Console, open_console
from sluicegate.cli.main import VERBS, build_parser, main
from sluicegate.errors import InvariantError
from sluicegate.rewrite import pipeline

ROOT = Path(__file__).parents[2]
SOLDIERS = str(ROOT / "examples" / "soldiers")
QUERY = "SELECT SID FROM Health"

Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *argv: str) -> tuple[int, str, str]:
    status = main(argv)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, out, err


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """Paths that cannot be read as what they are given for."""
    (tmp_path / "binary.query").write_bytes(b"\x7fELF\xff\xfe\x00")
    (tmp_path / "empty.query").write_bytes(b"")
    (tmp_path / "large.query").write_text("SELECT " + "x, " * 2_000_000)
    for name, text in (
        ("bare", None),
        ("broken", "CREATE STREAM"),
        ("hollow", ""),
        ("badtest", "CREATE ROLE r;"),
    ):
        (tmp_path / name).mkdir()
        if text is not None:
            (tmp_path / name / "a.sql").write_text(text)
    (tmp_path / "badtest" / "a.test.yaml").write_text("name: [")
    return {each.name: str(each) for each in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "the following arguments are required: VERB"),
        (["explain", SOLDIERS, QUERY], "--as"),
        (["explain", SOLDIERS, "--as", "paul"], "QUERY"),
        (["explain", SOLDIERS, "--as", "paul", QUERY, "--graphs", "-1"], "from 0"),
        (["explain", SOLDIERS, "--as", "paul", QUERY, "--graphs", "many"], "invalid int value"),
        (["explain", SOLDIERS, "--as", "paul", QUERY, "--jso"], "unrecognized arguments"),
        (["explain", SOLDIERS, "--as", "paul", "SELECT"], "there is no file `SELECT`"),
        (["explain", SOLDIERS, "--as", "paul", ""], "there is no file ``"),
        (["explain", SOLDIERS, "--as", "paul", "a\0b"], "there is no file"),
        (["explain", "no/such/folder", "--as", "paul", QUERY], "`no/such/folder` does not exist"),
        (["check", ""], "the catalog `` does not exist"),
        (["check", "a\0b"], "does not exist"),
        (["check", __file__], "is not a folder"),
        (["translate", SOLDIERS, "--as", "paul", QUERY, "--to", "esper"], "known targets: ccl, duckdb"),
        (["translate", SOLDIERS, "--as", "paul", QUERY], "--to"),
        (["bench", "nonsense"], "unknown benchmark `nonsense`"),
        (["test", SOLDIERS, "--engine", "abacus"], "invalid choice: 'abacus'"),
        (["test", str(ROOT / "docs")], "has no tests"),
    ],
)
def test_wrong_usage_is_2(capsys: Capture, argv: list[str], said: str) -> None:
    status, out, err = run(capsys, *argv)
    assert (status, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["explain", SOLDIERS, "--as", "paul", "SELECT SID FROM Helth"], "did you mean `Health`?"),
        (
            ["explain", SOLDIERS, "--as", "paul", "SELECT SID FROM Health ORDER BY SID"],
            "<query>:1:24: error[order-by]",
        ),
        (["explain", SOLDIERS, "--as", "paul", "  "], "error["),
        (["explain", SOLDIERS, "--as", "paul", "binary.query"], "error[file-not-text]"),
        (["explain", SOLDIERS, "--as", "paul", "empty.query"], "empty.query:1:1: error["),
        (["explain", SOLDIERS, "--as", "paul", "large.query"], "error[file-too-large]"),
        (["explain", SOLDIERS, "--as", "paul", "bare"], "error[file-unreadable]"),
        (["explain", "bare", "--as", "paul", QUERY], "error[empty-catalog]"),
        (["explain", "broken", "--as", "paul", QUERY], "a.sql:1:"),
        (["explain", "hollow", "--as", "paul", QUERY], "unknown stream `Health`"),
        (["who", SOLDIERS, "Helth"], "unknown stream `Helth`"),
        (["who", SOLDIERS, "Health.Hart"], "did you mean `Heart`?"),
        (["who", SOLDIERS, ""], "unknown stream ``"),
        (["test", "badtest"], "cannot be read"),
        (
            ["translate", SOLDIERS, "--as", "olga", QUERY, "--to", "duckdb"],
            "denied: no grant lets `olga` see `Health`",
        ),
        (
            ["translate", SOLDIERS, "--as", "eve", QUERY, "--to", "duckdb"],
            "denied: the catalog has no user `eve`",
        ),
        (
            [
                "translate",
                SOLDIERS,
                "--as",
                "olga",
                "SELECT MAX(Pos) FROM Position [RANGE 1 HOUR]",
                "--to",
                "duckdb",
            ],
            "error[nothing-to-translate]",
        ),
    ],
)
def test_denied_and_diagnostics_are_1(
    capsys: Capture, files: dict[str, str], argv: list[str], said: str
) -> None:
    status, out, err = run(capsys, *(files.get(each, each) for each in argv))
    assert (status, out) == (1, "")
    assert said in err


def test_a_query_may_begin_with_a_comment(capsys: Capture) -> None:
    assert run(capsys, "explain", SOLDIERS, "--as", "paul", "-- soldiers\n" + QUERY)[0] == 0


@pytest.mark.parametrize("verb", ["explain", "translate"])
def test_a_broken_invariant_is_3_and_gives_nothing(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    def refuse(*_: object) -> None:
        raise InvariantError("a source has no view above it")

    monkeypatch.setattr(pipeline, "verify", refuse)
    more = ["--to", "duckdb"] if verb == "translate" else ["--json"]
    status, out, err = run(capsys, verb, SOLDIERS, "--as", "paul", QUERY, *more)
    assert (status, out) == (3, "")
    assert err.count("\n") == 1
    assert "a fault of sluicegate" in err
    assert "after verify" in err


def test_any_other_fault_is_3_and_debug_tells_more(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("no\nidea")

    monkeypatch.setattr(explain_verb, "tell", fail)
    argv = ("explain", SOLDIERS, "--as", "paul", QUERY)
    status, out, err = run(capsys, *argv)
    assert (status, out) == (3, "")
    assert "RuntimeError: no idea" in err
    monkeypatch.setenv("SLUICEGATE_DEBUG", "1")
    assert main(argv) == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_ends_cleanly(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], status: int
) -> None:
    def stop(*_: object) -> str:
        raise error

    monkeypatch.setattr(explain_verb, "tell", stop)
    assert run(capsys, "explain", SOLDIERS, "--as", "paul", QUERY) == (status, "", "")


def test_version_is_the_package_s(capsys: Capture) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert run(capsys, "--version") == (0, f"sluicegate {declared}\n", "")
    assert sluicegate.__version__ == declared


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.NAME)
def test_every_verb_has_an_example_that_it_can_read(capsys: Capture, verb: object) -> None:
    name, example = verb.NAME, verb.EXAMPLE  # type: ignore[attr-defined]
    status, out, _ = run(capsys, name, "--help")
    assert status == 0
    assert example in out
    assert f"sluicegate {name}" in example
    build_parser()


def test_colour_is_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout", Terminal())
    assert open_console().style("x", "red") == "\x1b[31mx\x1b[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert open_console().style("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert open_console().style("x", "red") == "x"


@pytest.mark.parametrize("colour", [False, True])
def test_words_of_others_do_not_act_on_a_terminal(colour: bool) -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err, colour)
    console.write(console.style("fine", "green") + " \x1b[2J\x1b]0;x\x07 \u202e é")
    console.complain("\x1b[2J \x9b")
    shown = out.getvalue().replace("\x1b[32m", "").replace("\x1b[0m", "")
    assert shown == "fine \\x1b[2J\\x1b]0;x\\x07 \\u202e é\n"
    assert err.getvalue() == "\\x1b[2J \\x9b\n"
