"""Distributes independent tasks over the workers of a farm, whichever of them die, hang or join meanwhile.

export/farm.py and sums/command.py call run_tasks(). This process itself assigns each task to one worker, at most
TASKS_PER_WORKER at a time: dask leaves what it assigned to a stopped worker there for five minutes. No call waits for
the scheduler or a worker on the main thread, so that Ctrl-C always works.

An attempt is one task at one worker. By the worker's state (Watch in farm.py):

    alive     its heartbeats come; it gets tasks
    silent    the scheduler lists it, but no heartbeat comes: its attempts are abandoned, but their answers still count
    left      the scheduler does not list it: its attempts are cancelled and abandoned

An abandoned task waits for another worker. An idle worker also gets a copy of a task that is late. The first answer
of a task counts.
"""

import asyncio
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import Generic, TypeVar

from renderer.errors import IncompleteError
from renderer.records import dataclass
from renderer.system.farm import KEPT, Client, Watch, quiet_task

TASKS_PER_WORKER = 2  # one runs while the answer of the one before is on its way
STRAGGLER_FACTOR = 3.0  # a task is late after this many median durations
STRAGGLER_GRACE = 1.0  # plus these seconds
MAX_COPIES = 3  # attempts in flight for a late task
MAX_FAILURES = 3  # failures of one task (errors, or workers that died) that end the run
Common = TypeVar("Common")  # the argument that all tasks share
Task = TypeVar("Task")
Answer = TypeVar("Answer")


@dataclass
class _Attempt:
    """A task at a worker."""

    task: int
    worker: str
    since: float  # when the worker could begin: time.monotonic() of the sending or of the worker's previous answer
    copied: float = 0.0  # when another worker last got a copy of this late task; 0 if none did
    is_abandoned: bool = False


def _died(attempt: _Attempt) -> IncompleteError:
    return IncompleteError(f"--farm: every worker that drew part {attempt.task} died; {KEPT}")


class _Sender(Generic[Common, Task, Answer]):
    """Sends tasks to workers; run() and what it awaits run on dask's thread."""

    def __init__(self, client: Client, function: Callable[[Common, Task], Answer], common: Common):
        from distributed.comm.core import CommClosedError

        self._client, self._function, self._common = client, function, common
        # By worker: dask's references to `common`, a list of one, which is sent to each worker once.
        self._sent: dict[str, asyncio.Future[list[object]]] = {}
        self._cancelled = (asyncio.CancelledError, CancelledError, CommClosedError)

    async def run(self, task: Task, worker: str) -> tuple[Answer] | None:
        """Returns the answer in a tuple; None if the worker has left or closed. Raises the errors of the task.

        The tuple distinguishes an answer that is None from no answer.
        """
        try:
            if worker not in self._sent:
                sending = self._client.scatter([self._common], workers=[worker], direct=False, hash=False)
                self._sent[worker] = quiet_task(sending)
            (common,) = await asyncio.shield(self._sent[worker])  # other tasks may wait for it too: not to be cancelled
        except (*self._cancelled, OSError, KeyError):  # KeyError: the scheduler does not know the worker
            self._sent.pop(worker, None)
            return None
        future = self._client.submit(self._function, common, task, workers=[worker], pure=False)
        try:
            return (await future,)
        except self._cancelled:
            self._sent.pop(worker, None)
            return None
        finally:
            future.release()


class _Schedule(Generic[Common, Task, Answer]):
    """The tasks that wait, the attempts in flight, and the rules by which workers get tasks."""

    def __init__(self, sender: _Sender[Common, Task, Answer], loop: asyncio.AbstractEventLoop, tasks: Sequence[Task]):
        self._sender, self._loop, self._tasks = sender, loop, tasks
        self.missing = set(range(len(tasks)))  # tasks without an answer
        self._waiting = deque(range(len(tasks)))  # tasks that no worker has
        self._attempts: dict[Future[tuple[Answer] | None], _Attempt] = {}
        self._failures, self._durations = Counter[int](), list[float]()

    def _start(self, task: int, worker: str) -> None:
        call = asyncio.run_coroutine_threadsafe(self._sender.run(self._tasks[task], worker), self._loop)
        self._attempts[call] = _Attempt(task, worker, time.monotonic())

    def _retry(self, task: int, error: Exception | None = None) -> None:
        """Lets a task wait for a worker again, unless another attempt at it goes on; counts `error` as a failure.

        Raises `error` if the task has failed MAX_FAILURES times.
        """
        self._failures[task] += error is not None
        if error and self._failures[task] >= MAX_FAILURES:
            raise error
        is_tried = any(attempt.task == task and not attempt.is_abandoned for attempt in self._attempts.values())
        if task in self.missing and task not in self._waiting and not is_tried:
            self._waiting.append(task)

    def abandon(self, known: Container[str], alive: Container[str]) -> None:
        """Abandons attempts at workers that have left (not `known`) or are silent (not `alive`); retries their tasks.

        The oldest attempt at a worker that left was running and may have killed the worker, which counts as a failure
        of its task. Younger attempts were waiting there and count for nothing.
        """
        left = set[str]()
        for call, attempt in list(self._attempts.items()):  # oldest first
            if attempt.worker not in known:
                call.cancel()
                if not attempt.is_abandoned:
                    attempt.is_abandoned = True
                    self._retry(attempt.task, None if attempt.worker in left else _died(attempt))
                left.add(attempt.worker)
            elif attempt.worker not in alive and not attempt.is_abandoned:
                attempt.is_abandoned = True
                self._retry(attempt.task)

    def assign(self, alive: Sequence[str]) -> None:
        """Gives waiting tasks to workers, and copies of late tasks to idle workers once no task waits."""
        loads = Counter(attempt.worker for attempt in self._attempts.values())
        for load in range(TASKS_PER_WORKER):  # all workers get a first task before any gets a second
            for worker in alive:
                while self._waiting and self._waiting[0] not in self.missing:  # an abandoned attempt has answered it
                    self._waiting.popleft()
                if self._waiting and loads[worker] == load:
                    self._start(self._waiting.popleft(), worker)
                    loads[worker] += 1
        if self._durations and not self._waiting:
            self._copy_late([worker for worker in alive if not loads[worker]])

    def _copy_late(self, idle: list[str]) -> None:
        """Gives each late task, one that began before `deadline`, to one of the idle workers as well."""
        now = time.monotonic()
        deadline = now - STRAGGLER_GRACE - STRAGGLER_FACTOR * statistics.median(self._durations)
        copies = Counter(attempt.task for attempt in self._attempts.values())
        for attempt in list(self._attempts.values()):
            is_late = max(attempt.since, attempt.copied) < deadline and attempt.task in self.missing
            if idle and is_late and copies[attempt.task] < MAX_COPIES:
                self._start(attempt.task, idle.pop())
                attempt.copied = now

    def answers(self) -> Iterator[tuple[int, Answer]]:
        """Waits half a second at most; yields (index, answer) of each task that ended; starts failed tasks again."""
        if not self._attempts:  # no worker is alive: do not spin
            time.sleep(0.05)
        for call in wait(self._attempts, 0.5, FIRST_COMPLETED).done:
            attempt, now = self._attempts.pop(call), time.monotonic()
            for other in self._attempts.values():
                if other.worker == attempt.worker:
                    other.since = now  # the worker begins its next task
            answer = self._answer(call, attempt) if attempt.task in self.missing else None
            if answer is not None:
                self.missing.discard(attempt.task)
                self._durations.append(now - attempt.since)
                yield attempt.task, answer[0]

    def _answer(self, call: Future[tuple[Answer] | None], attempt: _Attempt) -> tuple[Answer] | None:
        """The answer of an attempt that has ended, in a tuple; None if its task is retried."""
        import distributed

        error: Exception | None = None
        try:
            answer = None if call.cancelled() else call.result()
        except distributed.scheduler.KilledWorker as killed:
            raise _died(attempt) from killed
        except Exception as failure:  # a task may raise anything
            answer, error = None, failure
        if answer is None:
            self._retry(attempt.task, error)
        return answer

    def cancel(self) -> None:
        """Cancels all attempts."""
        for call in self._attempts:
            call.cancel()


def run_tasks(
    client: Client, function: Callable[[Common, Task], Answer], common: Common, tasks: Sequence[Task]
) -> Iterator[tuple[int, Answer]]:
    """Yields (index, function(common, tasks[index])) of every task in the order of completion.

    A task whose worker dies or is silent, and one that takes much longer than the median, is given to another worker,
    and its first answer counts. Raises the errors of Watch.alive(), the error of a task that fails MAX_FAILURES times,
    and IncompleteError if as many workers died of a task.
    """
    schedule = _Schedule(_Sender(client, function, common), client.loop.asyncio_loop, tasks)
    with Watch(client) as watch:
        try:
            while schedule.missing:
                alive = watch.alive()
                schedule.abandon(watch.silence, alive)  # `silence` has each worker that the scheduler lists
                schedule.assign(alive)
                yield from schedule.answers()
        finally:
            schedule.cancel()
