"""The one place where a Spark session is made, with the settings that results and safety rely on, checked at start.

Configuration from outside (environment, `spark-defaults.conf`, submit arguments) has no say: it is not read, and what
still got in is refused.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sluicegate.errors import Diagnostic, DiagnosticError
from sluicegate.runtime.class_archive import ARCHIVE, share_classes
from sluicegate.runtime.cluster import (
    JAVA_OPTIONS,
    LOOPBACK,
    Executors,
    cluster_settings,
    cluster_variables,
    is_local,
    ship_package,
)
from sluicegate.runtime.connectors import find_connectors
from sluicegate.runtime.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEANING: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.variable.substitute": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.json.allowEmptyString.enabled": "false",
    "spark.sql.variant.allowDuplicateKeys": "false",
}
"""What the meaning of a translated query depends on; a session that others made must have these too."""

STREAMING: Mapping[str, str] = {
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.execution.reuseSubquery": "true",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.unsupportedOperationCheck": "true",
}
"""What streaming frames rely on besides: that a source read twice does not hang, that nothing within a watermark is lost, and
that a policy's values are read once in a micro-batch."""

_READING = frozenset({"ConvertToLocalRelation", "ConstantFolding", "OptimizeOneRowRelationSubquery"})
"""The rules by which a micro-batch reads its subscription once, while it is planned (`stream.local_row`)."""
REDACTED, HIDDEN = "spark.sql.redaction.options.regex", "(?i)url|jaas|passw|secret|token|ssl"
"""What plans do not show of the options of sources and sinks."""
_OWN: Mapping[str, str] = {
    **MEANING,
    **STREAMING,
    REDACTED: HIDDEN,
    "spark.sql.caseSensitive": "true",
    "spark.sql.streaming.join.stateFormatVersion": "4",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # a batch of a log is small, and still worth a task for each core
    "spark.sql.files.openCostInBytes": "262144",
    # groups are many here (windows by keys by queries): a small map before the large one is one more look-up that misses
    "spark.sql.codegen.aggregate.map.twolevel.enabled": "false",
    # a table of a few subscriptions or verdicts takes a page, however few there are
    "spark.buffer.pageSize": "2m",
    # an expression as deep as the language allows has to be parsed and analysed: failing, it would fail for everybody
    "spark.sql.analyzer.maxIterations": "1000",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # jobs come without end: what is kept of those that are over, and threads that wait with what they did last, has one
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "2000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.broadcastExchange.maxThreadThreshold": "16",
    "spark.sql.shuffleExchange.maxThreadThreshold": "32",
    "spark.sql.resultQueryStage.maxThreadThreshold": "64",
    # a batch's files are listed anew for each read, and no list is asked for twice
    "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    "spark.eventLog.enabled": "false",
    "spark.authenticate": "true",
}
# what code of others could hang on to
_ABSENT = (
    "spark.sql.extensions",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.streamingQueryListeners",
    "spark.extraListeners",
    "spark.plugins",
    "spark.jars.packages",
    "spark.driver.extraClassPath",
    "spark.executor.extraClassPath",
)
# what Spark's launcher, Hadoop and the JVM read settings, options and classes from
_CLEARED = re.compile(r"_?(?:SPARK|PYSPARK|HADOOP|YARN)_.*|.*JAVA_OPTIONS|JAVA_TOOL_OPTIONS|CLASSPATH")
_LEVELS = ("OFF", "ERROR", "WARN")
_LOGGING = "log4j2.properties"
_JAVA = "spark.driver.extraJavaOptions"
NO_CONFIGURATION = Path(__file__).with_name("no-configuration")
"""Spark's folder for configuration: there is none, and always at one path, since an archive of classes holds for one list of
folders and jars."""
_USUAL = Executors()


def make_session(
    master: str = "local[2]",
    shuffle_partitions: int = 4,
    log_level: str = "ERROR",
    extra: Mapping[str, str] | None = None,
    executors: Executors = _USUAL,
) -> SparkSession:
    """A new session; `extra` may add settings but change none of those that are required.

    `executors` counts where `master` is a cluster's.
    """
    local = is_local(master)
    if log_level not in _LEVELS:
        raise ValueError(f"the log level is one of {', '.join(_LEVELS)}")
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        help_ = "pip install 'sluicegate[spark]'"
        raise _refuse("no-spark", "this needs Spark, and pyspark is not installed", help_) from error
    if SparkSession.getActiveSession() is not None or _has_context():
        raise _refuse("spark-running", "Spark already runs in this process, with settings of its own")
    folder = Path(tempfile.mkdtemp(prefix="sluicegate-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    over = {} if local else cluster_settings(master, executors)
    wanted = _settings(folder, shuffle_partitions, extra or {}, over)
    variables = {} if local else cluster_variables(master, executors, os.environ)
    with _own_environment(folder, log_level, variables), _muted(log_level == "OFF"):
        builder = SparkSession.builder.master(master).appName("sluicegate")
        for name, value in wanted.items():
            builder = builder.config(name, value)
        try:
            spark = builder.getOrCreate()
        except Exception as error:  # noqa: BLE001 — py4j's own, which carry Java's text
            help_ = f"{type(error).__name__}" + (f"; without `{ARCHIVE}` it may" if ARCHIVE.exists() else "")
            raise _refuse("spark-start", "Spark does not start", help_) from None
    spark.sparkContext.setLogLevel(log_level)
    _check_own(spark, wanted)
    if not local:
        ship_package(spark, folder)
    return spark


def _has_context() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None


def _settings(
    folder: Path, shuffle_partitions: int, extra: Mapping[str, str], over: Mapping[str, str] | None = None
) -> dict[str, str]:
    """`over` replaces what holds for a local session alone."""
    fixed = {
        **_OWN,
        **(over or {}),
        _JAVA: f"{_OWN[_JAVA]} -Dlog4j2.configurationFile={(folder.absolute() / _LOGGING).as_uri()} {share_classes()}",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        # ours or none: the name is set, so that no other list gets in
        "spark.jars": ",".join(map(str, find_connectors())),
    }
    changed = sorted(name for name in extra if name in fixed or name in _ABSENT)
    if changed:
        raise _refuse("spark-setting", f"the setting `{changed[0]}` cannot be changed")
    return {**extra, **fixed}


@contextmanager
def _own_environment(folder: Path, log_level: str, variables: Mapping[str, str]) -> Iterator[None]:
    """While the JVM starts: our Java, no configuration, and nothing that somebody left in the environment."""
    if NO_CONFIGURATION.exists():
        raise _refuse("spark-setting", f"`{NO_CONFIGURATION}` must not be there: Spark would read it")
    (folder / _LOGGING).write_text(_logging(log_level), encoding="utf-8")
    before = dict(os.environ)
    own = {
        "JAVA_HOME": str(find_java(before)),
        "SPARK_CONF_DIR": str(NO_CONFIGURATION),
        "SPARK_LOCAL_IP": LOOPBACK,
        # workers that read our sources must find what this process has
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        **variables,
    }
    try:
        for name in filter(_CLEARED.fullmatch, before):
            del os.environ[name]
        os.environ |= own
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _muted(silent: bool) -> Iterator[None]:
    """A JVM that starts now keeps a standard error that leads nowhere: what it writes there no logger governs."""
    if not silent:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _logging(level: str) -> str:
    lines = [
        f"rootLogger.level = {level.lower()}",
        "rootLogger.appenderRef.stderr.ref = console",
        "appender.console.type = Console",
        "appender.console.name = console",
        "appender.console.target = SYSTEM_ERR",
        "appender.console.layout.type = PatternLayout",
        "appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n",
    ]
    return "\n".join(lines) + "\n"


def _check_own(spark: SparkSession, wanted: Mapping[str, str]) -> None:
    """A session of ours that is not as asked is stopped."""
    try:
        started = dict(spark.sparkContext.getConf().getAll())
        foreign = [name for name in started if name.startswith("spark.sql.") and name not in wanted]
        foreign = [name for name in foreign if name != "spark.sql.artifact.isolation.enabled"]
        foreign += [name for name in _ABSENT if started.get(name)]
        if foreign:
            raise _refuse("spark-setting", f"the setting `{min(foreign)}` came from outside")
        _check(spark, {name: value for name, value in wanted.items() if name.startswith("spark.sql.")})
        if _OWN[_JAVA] not in started.get(_JAVA, ""):
            raise _refuse("spark-setting", "the JVM was not started with the options that it needs")
    except DiagnosticError:
        spark.stop()
        raise


def check_session(spark: SparkSession) -> None:
    """Refuse a session, made by anyone, under whose settings a query would mean something else, or that is a client's."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        message = "this is a client of Spark Connect; what it asks for runs under settings and code that are not ours"
        raise _refuse(
            "spark-connect", message, "run where the driver is: `make_session(master)`, or the gateway"
        )
    _check(spark, MEANING)


_EXCLUDED = "spark.sql.optimizer.excludedRules"


def check_streaming(spark: SparkSession) -> None:
    """Refuse a session under whose settings a streaming frame would lose rows or hang, or mix two versions of a policy."""
    _check(spark, STREAMING)
    excluded = spark.conf.get(_EXCLUDED, None) or ""
    away = {rule.strip().rpartition(".")[2] for rule in excluded.split(",")} & _READING
    if away:
        message = f"the setting `{_EXCLUDED}` takes `{min(away)}` away, which streaming frames need"
        raise _refuse("spark-setting", message, f"leave it out of `{_EXCLUDED}`")


def _check(spark: SparkSession, wanted: Mapping[str, str]) -> None:
    for name, value in wanted.items():
        found = spark.conf.get(name, None)
        if (found or "").lower().removeprefix("file:") != value.lower():
            help_ = f"spark.conf.set('{name}', '{value}')"
            raise _refuse("spark-setting", f"the setting `{name}` is `{found}`, not `{value}`", help_)


def _refuse(code: str, message: str, help_: str | None = None) -> DiagnosticError:
    return DiagnosticError([Diagnostic(code, message, help=help_)])
