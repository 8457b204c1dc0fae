"""What Spark's process has used so far: processor time, jobs, rows read from files, memory of operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluicegate.runtime.frames import Session


@dataclass(frozen=True, slots=True)
class Used:
    """What a work took. Processor time is that of Spark's process and of this one, all threads."""

    seconds: float
    cpu: float
    jobs: int
    rows_read: int
    memory: int
    """The most that the operators of one of its stages held, in bytes, all tasks added."""


class Jvm:
    """Reads the counters of a session's process."""

    def __init__(self, spark: Session) -> None:
        context: Any = spark.sparkContext
        self._java = context._jvm
        self._scala = context._jsc.sc()
        self._none = self._java.java.util.ArrayList()
        self._no_quantiles = context._gateway.new_array(self._java.double, 0)

    def measure(self, work: Callable[[], object]) -> Used:
        jobs, stages = self._count_jobs(), self._last_stage()
        cpu, start = self.cpu(), perf_counter()
        work()
        seconds, spent = perf_counter() - start, self.cpu() - cpu
        found = [each for each in self._stages() if each.stageId() > stages]
        return Used(
            seconds,
            spent,
            self._count_jobs() - jobs,
            sum(each.inputRecords() for each in found),
            max((each.peakExecutionMemory() for each in found), default=0),
        )

    def collect(self) -> None:
        """Let go of what nobody uses any more."""
        self._java.java.lang.System.gc()

    def cpu(self) -> float:
        """Processor seconds so far."""
        taken = self._java.java.lang.ProcessHandle.current().info().totalCpuDuration()
        return float(taken.get().toNanos()) / 1e9 + process_time()

    def _count_jobs(self) -> int:
        return int(self._scala.dagScheduler().numTotalJobs())

    def _stages(self) -> list[Any]:
        store = self._scala.statusStore()
        found = store.stageList(self._none, False, False, self._no_quantiles, self._none)
        return [found.apply(at) for at in range(found.size())]

    def _last_stage(self) -> int:
        return max((each.stageId() for each in self._stages()), default=-1)
