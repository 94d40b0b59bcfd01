"""Distributes independent tasks over the workers of a farm, whichever of them die, hang or join meanwhile.

export/farm.py and sums/command.py call run_tasks(). This process itself assigns each task to one worker, at most
TASKS_PER_WORKER at a time: dask leaves what it assigned to a stopped worker there for five minutes. No call waits for
the scheduler or a worker on the main thread, so that Ctrl-C always works.
"""

import asyncio
import statistics
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass
from typing import Any

from renderer.errors import IncompleteError
from renderer.system.farm import KEPT, Client, Watch, quiet_task

TASKS_PER_WORKER = 2  # one runs while the answer of the one before is on its way
STRAGGLER_FACTOR = 3.0  # a task is late after this many median durations
STRAGGLER_GRACE = 1.0  # plus these seconds
MAX_ATTEMPTS = 3  # of a task that is late, and of one that fails or whose worker dies


@dataclass
class _Attempt:
    """A task at a worker."""

    task: int
    worker: str
    since: float  # its start, or the time of its worker's answer to the task before
    lost: bool = False  # its worker is silent: the task was given to others, and the first answer counts


def _died(attempt: _Attempt) -> IncompleteError:
    return IncompleteError(f"--farm: every worker that drew part {attempt.task} died; {KEPT}")


class _Sender:
    """Sends tasks to workers; its coroutines run on dask's thread."""

    def __init__(self, client: Client, function: Callable[[Any, Any], Any], common: Any):
        from distributed.comm.core import CommClosedError

        self._client, self._function, self._common = client, function, common
        self._sent: dict[str, asyncio.Future[list[Any]]] = {}  # by worker: `common`, which is sent once to each
        self._cancelled = (asyncio.CancelledError, CancelledError, CommClosedError)

    async def run(self, task: Any, worker: str) -> tuple[Any] | None:
        """Returns the answer in a tuple; None if the worker was lost. Raises the errors of the task."""
        try:
            if worker not in self._sent:
                sending = self._client.scatter([self._common], workers=[worker], direct=False, hash=False)
                self._sent[worker] = quiet_task(sending)
            (common,) = await asyncio.shield(self._sent[worker])
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


def run_tasks(
    client: Client, function: Callable[[Any, Any], Any], common: Any, tasks: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yields (index, function(common, tasks[index])) of every task in the order of completion.

    A task whose worker dies or is silent, and one that takes much longer than the median, is given to another worker,
    and its first answer counts. Raises the errors of Watch.alive(), the error of a task that fails MAX_ATTEMPTS times,
    and IncompleteError if as many workers died of a task.
    """
    import distributed

    sender, calls = _Sender(client, function, common), dict[Future[Any], _Attempt]()
    missing, todo = set(range(len(tasks))), deque(range(len(tasks)))
    failures, durations = Counter[int](), list[float]()

    def start(task: int, worker: str) -> None:
        call = asyncio.run_coroutine_threadsafe(sender.run(tasks[task], worker), client.loop.asyncio_loop)
        calls[call] = _Attempt(task, worker, time.monotonic())

    def again(task: int, error: Exception | None = None) -> None:
        failures[task] += error is not None
        if error and failures[task] >= MAX_ATTEMPTS:
            raise error
        if task in missing and task not in todo and not any(at.task == task and not at.lost for at in calls.values()):
            todo.append(task)

    with Watch(client) as watch:
        try:
            while missing:
                alive, dead = watch.alive(), set[str]()
                for call, at in list(calls.items()):
                    if at.worker not in watch.silence:
                        call.cancel()
                        if not at.lost:
                            at.lost = True
                            again(at.task, None if at.worker in dead else _died(at))  # the first one was running
                        dead.add(at.worker)
                    elif at.worker not in alive and not at.lost:
                        at.lost = True
                        again(at.task)
                loads = Counter(at.worker for at in calls.values())
                for load in range(TASKS_PER_WORKER):
                    for worker in alive:
                        while todo and todo[0] not in missing:
                            todo.popleft()
                        if todo and loads[worker] == load:
                            start(todo.popleft(), worker)
                            loads[worker] += 1
                if durations and not todo:
                    late = time.monotonic() - STRAGGLER_GRACE - STRAGGLER_FACTOR * statistics.median(durations)
                    idle, copies = [w for w in alive if not loads[w]], Counter(at.task for at in calls.values())
                    for at in list(calls.values()):
                        if idle and at.since < late and at.task in missing and copies[at.task] < MAX_ATTEMPTS:
                            start(at.task, idle.pop())
                            at.since = time.monotonic()
                if not calls:
                    time.sleep(0.05)
                for call in wait(calls, 0.5, FIRST_COMPLETED).done:
                    at, now = calls.pop(call), time.monotonic()
                    for other in calls.values():
                        other.since = now if other.worker == at.worker else other.since
                    if at.task not in missing:
                        continue
                    try:
                        answer = None if call.cancelled() else call.result()
                    except distributed.scheduler.KilledWorker as error:
                        raise _died(at) from error
                    except Exception as error:
                        again(at.task, error)
                        continue
                    if answer is None:
                        again(at.task)
                        continue
                    missing.discard(at.task)
                    durations.append(now - at.since)
                    yield at.task, answer[0]
        finally:
            for call in calls:
                call.cancel()
