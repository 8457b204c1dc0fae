"""Sessions on a cluster: masters, secrets by name, what executors are given."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluicegate.errors import DiagnosticError
from sluicegate.runtime import cluster_check
from sluicegate.runtime import session as sessions
from sluicegate.runtime.cluster import (
    SECRET_VARIABLE,
    Executors,
    cluster_settings,
    cluster_variables,
    is_local,
    pack_package,
)
from sluicegate.runtime.session import check_session
from sluicegate.runtime.table import databases

MASTER = "spark://127.0.0.1:7077"
SECRET = "0123456789abcdef-secret"


def code(error: pytest.ExceptionInfo[DiagnosticError]) -> str:
    return error.value.diagnostics[0].code


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]", "local[2,3]"])
def test_masters_within_the_process(master: str) -> None:
    assert is_local(master)


@pytest.mark.parametrize("master", [MASTER, "spark://a:1,b:2", "yarn", "k8s://https://h:6443"])
def test_masters_of_clusters(master: str) -> None:
    assert not is_local(master)


@pytest.mark.parametrize(
    "master",
    ["", "local-cluster[2,1,512]", "spark://h", "sc://h:15002", "mesos://h:1", "spark://h:1 x", "k8s://h"],
)
def test_other_masters_are_refused(master: str) -> None:
    with pytest.raises(DiagnosticError) as error:
        is_local(master)
    assert code(error) == "spark-master"


def test_the_secret_is_in_the_environment_of_the_jvm_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a setting stands on a command line."""
    monkeypatch.setenv("SLUICEGATE_SECRET_OURS", SECRET)
    executors = Executors(secret="ours")
    assert cluster_variables(MASTER, executors, {})[SECRET_VARIABLE] == SECRET
    settings = cluster_settings(MASTER, executors)
    assert SECRET not in "".join(settings.values())
    assert (
        settings["spark.authenticate.secret"]
        != cluster_settings(MASTER, executors)["spark.authenticate.secret"]
    )
    monkeypatch.setenv("SLUICEGATE_SECRET_OURS", "short")
    with pytest.raises(DiagnosticError) as error:
        cluster_variables(MASTER, executors, {})
    assert code(error) == "spark-setting"
    assert "short" not in str(error.value)


def test_no_catalog_is_given_the_cluster_s_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its author would name a host that asks for it."""
    monkeypatch.setattr(databases, "_RESERVED", set(databases._RESERVED))
    for name in ("CLUSTER", "THEIRS"):
        monkeypatch.setenv(f"SLUICEGATE_SECRET_{name}", SECRET)
    assert databases.find_secret("theirs") == SECRET
    cluster_variables(MASTER, Executors(secret="theirs"), {})
    for name in ("theirs", "Theirs", "cluster", "CLUSTER"):
        with pytest.raises(DiagnosticError) as error:
            databases.find_secret(name)
        assert code(error) == "database-secret"
        assert SECRET not in str(error.value)
    assert cluster_variables(MASTER, Executors(secret="theirs"), {})[SECRET_VARIABLE] == SECRET


def test_what_holds_for_the_driver_holds_for_executors() -> None:
    settings = cluster_settings(MASTER, Executors(memory="2g", cores=3, driver_port=7100))
    assert "-Xss16m" in settings["spark.executor.extraJavaOptions"]
    assert (settings["spark.executor.memory"], settings["spark.executor.cores"]) == ("2g", "3")
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.driver.blockManager.port"] == "7101"
    assert settings["spark.speculation"] == "false"
    assert settings["spark.network.crypto.enabled"] == "true"
    assert cluster_settings(MASTER, Executors(driver_host="10.0.0.7"))["spark.driver.host"] == "10.0.0.7"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
def test_where_the_master_is_no_host_the_driver_s_address_is_needed(master: str) -> None:
    with pytest.raises(DiagnosticError, match="executors find the driver"):
        cluster_settings(master, Executors())
    assert "spark.authenticate.secret" not in cluster_settings(master, Executors(driver_host="h"))


def test_yarn_s_own_folders_are_kept_for_yarn_alone() -> None:
    given = {"HADOOP_CONF_DIR": "/etc/hadoop", "HADOOP_OPTS": "-x"}
    found = cluster_variables("yarn", Executors(driver_host="h"), given)
    assert found["HADOOP_CONF_DIR"] == "/etc/hadoop"
    assert "HADOOP_OPTS" not in found


@pytest.mark.parametrize(
    "given",
    [
        {"memory": "lots"},
        {"cores": 0},
        {"driver_port": 70_000},
        {"extra": (("spark.sql.ansi.enabled", "false"),)},
        {"extra": (("spark.jars", "x.jar"),)},
    ],
)
def test_other_settings_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(DiagnosticError) as error:
        Executors(**given)
    assert code(error) == "spark-setting"


def test_operators_may_say_where_executors_come_from() -> None:
    extra = (("spark.kubernetes.namespace", "n"), ("spark.speculation", "true"))
    with pytest.raises(DiagnosticError):
        Executors(extra=extra)
    found = cluster_settings("k8s://https://h:6443", Executors(driver_host="h", extra=extra[:1]))
    assert found["spark.kubernetes.namespace"] == "n"


def test_the_package_is_shipped_whole(tmp_path: Path) -> None:
    pack_package(tmp_path / "p.zip")
    with zipfile.ZipFile(tmp_path / "p.zip") as packed:
        names = set(packed.namelist())
    assert {"sluicegate/__init__.py", "sluicegate/runtime/feed/replay.py"} <= names
    assert all(name.endswith(".py") for name in names)


def test_a_folder_that_executors_do_not_share_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they cannot read it, or write into another of its name."""
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master=MASTER))
    monkeypatch.setattr(cluster_check, "_wait_for_executors", lambda *_: None)
    monkeypatch.setattr(cluster_check, "_SETTLE", 0)
    for answers, refused in ((lambda ask: ask(0), False), (lambda _: False, True), (lambda _: True, True)):
        monkeypatch.setattr(
            cluster_check, "ask_executors", lambda _, ask, answers=answers: [(0, "far", answers(ask))]
        )
        if not refused:
            cluster_check.check_shared(spark, tmp_path)
            continue
        with pytest.raises(DiagnosticError, match="executors on `far`") as error:
            cluster_check.check_shared(spark, tmp_path)
        assert code(error) == "cluster-path"
    assert list(tmp_path.iterdir()) == []


def test_a_client_of_spark_connect_is_refused() -> None:
    """Before anything is asked of it."""
    client: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(DiagnosticError) as error:
        check_session(client)
    assert code(error) == "spark-connect"


@pytest.mark.parametrize(
    "name",
    ["kafka.sasl.jaas.config", "kafka.ssl.truststore.password", "kafka.ssl.key.password", "url", "token"],
)
def test_plans_show_no_option_that_may_be_a_secret(tmp_path: Path, name: str) -> None:
    """Also of a process that only writes topics."""
    settings = sessions._settings(tmp_path, 2, {}, {})
    assert re.search(settings["spark.sql.redaction.options.regex"].replace("(?i)", ""), name, re.IGNORECASE)
