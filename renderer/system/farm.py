"""Connects `--farm` by dask.distributed to worker processes of this machine or to a remote scheduler, securely.

Scheduler, workers and client unpickle the messages that they receive, so that whoever reaches one of them can run code
there. Therefore processes of this machine use TLS with a temporary certificate in memory, and a connection without TLS
to another machine needs --insecure. The commands `export` and `sum` call parse_farm() and open_client().
"""

import asyncio
import ipaddress
import logging
import multiprocessing
import re
import signal
import socket
import ssl
import sys
import time
import warnings
from collections.abc import Awaitable, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from types import ModuleType
from typing import Any, Self, TypeVar

from renderer.errors import IncompleteError, UnavailableError, UserError, import_optional
from renderer.host import signals_blocked
from renderer.paths import private_folder
from renderer.plain import Json
from renderer.records import dataclass
from renderer.system.install import pip_install
from renderer.system.process import shorten, unfinished_work

IGNORE_SIGINT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # preloaded by local workers, for Windows
# Signals of a terminal. Workers do not get them: the main process ends its farm by itself.
NOT_FOR_WORKERS = [number for number in signal.Signals if number.name in ("SIGINT", "SIGHUP", "SIGQUIT")]
NO_LOGS = 60  # a level above all levels of logging: no message is shown
CONNECT_SECONDS = 5  # until a scheduler must answer, or be back after its connection broke
MAX_GREETING_BYTES = 1 << 16  # largest first message of a scheduler
POLL_SECONDS = 1.0  # between two questions for heartbeats; a worker sends two a second
SILENT_POLLS = 20  # without a heartbeat of a worker, until its tasks go to others
LOST_POLLS = 45  # without any worker, or without an answer of the scheduler, until the work ends
# Time limits for closing a client, a farm on this machine, and either one after Ctrl-C.
CLOSE_SECONDS, LOCAL_CLOSE_SECONDS, INTERRUPTED_CLOSE_SECONDS = 1.0, 10.0, 0.3
MAX_LOCAL = 999
KEPT = "what was complete is kept, and the same command resumes"  # the end of messages of a farm that is lost
# dask's web pages would publish tasks and files: none is served.
CONFIGURATION: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}

Client = Any  # distributed.Client; the package is optional, and its types are not checked
Cluster = Any  # distributed.LocalCluster
T = TypeVar("T")


@dataclass(frozen=True)
class Farm:
    """Target of tasks: a scheduler's address, or, if that is empty, `workers` processes of this machine."""

    address: str
    workers: int
    device: str

    def __str__(self) -> str:
        return f"--farm {self.address or f'local:{self.workers}'}"


def parse_farm(text: str, device: str, insecure: bool = False) -> Farm:
    """Parses `--farm local:N`, `tls://HOST:PORT` (with dask's TLS configuration) or `tcp://HOST:PORT`.

    UserError for other texts, and for tcp to another machine unless `insecure` allows it.
    """
    local = re.fullmatch(r"local:([0-9]{1,3})", text)
    if local and int(local[1]) > 0:
        return Farm("", int(local[1]), device)
    address = re.fullmatch(r"(tcp|tls)://([^\s:/]{1,253}):([0-9]{1,5})", text)
    if not (address and int(address[3]) < 65536):
        allowed = f"local:N with N of 1 to {MAX_LOCAL}, tls://HOST:PORT or tcp://HOST:PORT"
        raise UserError(f"--farm {text}: must be {allowed}")
    if address[1] == "tcp" and not insecure:
        _check_plain(text, address[2])
    return Farm(text, 0, device)


def _check_plain(text: str, host: str) -> None:
    """Raises UserError for a connection without TLS to another machine; warns about one to this machine."""
    if not _is_loopback(host):
        raise UserError(
            f"--farm {text}: without TLS, whoever can reach or imitate {host} can run code there and here; "
            "use tls://, or --insecure on a network of your own"
        )
    print(
        f"rayfold: --farm {text}: without TLS, other users of this machine can run code there and here; "
        "use local:N or tls:// (--insecure: no other users)",
        file=sys.stderr,
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name, which DNS may resolve to another machine


@contextmanager
def open_client(farm: Farm) -> Iterator[Client]:
    """Yields a connected client; UnavailableError without the package, the scheduler or a worker.

    Errors in the block that follow from the loss of the scheduler become an IncompleteError.
    """
    distributed = import_optional("distributed", f"--farm needs distributed: {pip_install('farm')}")
    # Ctrl-C may come between the creation of a coroutine and its await.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    unfinished_work.add(farm)  # so that the end of this process does not wait for dask's threads (system/process.py)
    connect = _connect_remote if farm.address else _start_local  # _start_local() starts the scheduler and workers too
    with _no_logs(), connect(distributed, farm) as client:
        try:
            workers(client)
        except IncompleteError as error:
            raise UnavailableError(f"{farm}: the scheduler has no worker") from error
        try:
            yield client
        except UserError:
            raise
        except Exception as error:  # dask raises many types where it has lost the scheduler
            is_connected = client.status == "running"
            if is_connected and not isinstance(error, (CancelledError, distributed.comm.CommClosedError)):
                raise  # a task's error, or a fault of this program
            raise IncompleteError(f"{farm}: the connection to the scheduler broke; {KEPT}") from error


class Watch:
    """A context manager that follows the heartbeats of a client's workers, on dask's thread.

    A member of a farm that is stopped (SIGSTOP, a frozen machine) keeps its connections open, and dask waits for it
    forever. Silence is counted in polls: seconds in which this process was itself suspended prove nothing.
    """

    def __init__(self, client: Client):
        self.silence: dict[str, int] = {}  # polls since the last heartbeat of each worker, by its address
        self._client, self._last_seen = client, dict[str, float]()  # the scheduler's time of each worker's heartbeat
        self._unanswered = self._without = 0  # polls without an answer of the scheduler, and without any heartbeat

    def __enter__(self) -> Self:
        self._poll = asyncio.run_coroutine_threadsafe(self._follow(), self._client.loop.asyncio_loop)
        return self

    def __exit__(self, *error: object) -> None:
        self._poll.cancel()

    async def _follow(self) -> None:
        """Polls: asks the scheduler for its workers, one question at a time."""
        question: asyncio.Future[Json] | None = None
        while True:
            question = question or quiet_task(self._client.scheduler.identity(n_workers=-1))
            await asyncio.wait([question], timeout=POLL_SECONDS)
            self._unanswered += 1
            if question.done():
                with suppress(Exception):  # dask raises many types; the question counts as unanswered
                    self._count(question.result()["workers"])
                question = None
                await asyncio.sleep(POLL_SECONDS)

    def _count(self, found: Json) -> None:
        """Counts a poll; `found` holds what the scheduler says of each worker, by address."""
        last_seen = {address: facts["last_seen"] for address, facts in found.items()}
        heard = {address for address, moment in last_seen.items() if moment != self._last_seen.get(address)}
        self.silence = {address: 0 if address in heard else self.silence[address] + 1 for address in last_seen}
        self._last_seen, self._unanswered = last_seen, 0
        # The silence of the worker that was heard last; without any worker one poll more than before
        self._without = min(self.silence.values(), default=self._without + 1)

    def alive(self) -> list[str]:
        """Returns the addresses of the workers whose heartbeats come.

        Raises ConnectionError without a scheduler, which open_client() turns into an IncompleteError; IncompleteError
        after LOST_POLLS polls without any heartbeat or without an answer of the scheduler.
        """
        if self._client.status == "closed":
            raise ConnectionError("the client is closed")
        seconds = f"{LOST_POLLS * POLL_SECONDS:.0f} seconds"
        if self._unanswered > LOST_POLLS:
            raise IncompleteError(f"--farm: the scheduler has not answered for {seconds}; {KEPT}")
        if self._without > LOST_POLLS:
            raise IncompleteError(f"--farm: no worker has been heard of for {seconds}; {KEPT}")
        return [address for address, polls in self.silence.items() if polls < SILENT_POLLS]


def quiet_task(work: Awaitable[T]) -> "asyncio.Future[T]":
    """Starts a task on dask's thread; its error is not logged if nobody waits for it any more."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # asyncio logs an error nobody asked for
    return task


def workers(client: Client) -> list[str]:
    """Waits for a worker; returns the addresses of all that are there. Raises the errors of Watch.alive()."""
    with Watch(client) as watch:
        while not (found := watch.alive()):
            time.sleep(0.05)
        return found


@contextmanager
def _closing(resource: Client | Cluster, seconds: float) -> Iterator[Client | Cluster]:
    """Closes a client or a cluster after the block; what does not close in time is left to the end of the process."""
    try:
        yield resource
    except KeyboardInterrupt:
        seconds = INTERRUPTED_CLOSE_SECONDS
        raise
    finally:
        with suppress(Exception):  # TimeoutError, or one of the types that dask raises without a scheduler
            resource.close(timeout=seconds)


def _connect_remote(distributed: ModuleType, farm: Farm) -> AbstractContextManager[Client]:
    """Returns a context manager of a client of the farm's scheduler."""
    encryption = None
    if farm.address.startswith("tls://"):
        encryption = distributed.Security().get_connection_args("client")["ssl_context"]
        if not encryption:
            raise UnavailableError(
                f"{farm}: no certificates; dask takes them from DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "..._TLS__CLIENT__CERT and ..._TLS__CLIENT__KEY, or from its configuration file"
            )
    try:
        _check_greeting(farm.address, encryption)
        client = distributed.Client(farm.address, timeout=CONNECT_SECONDS, set_as_default=False)
        return _closing(client, CLOSE_SECONDS)
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{farm}: no scheduler answers there: {shorten(str(error))}") from error


def _check_greeting(address: str, encryption: ssl.SSLContext | None) -> None:
    """Raises OSError unless the address sends a frame as dask's schedulers do; else a client would wait forever."""
    host, _, port = address.partition("://")[2].rpartition(":")
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, int(port)), CONNECT_SECONDS))
        if encryption:
            connection = stack.enter_context(encryption.wrap_socket(connection, server_hostname=host))
        size = int.from_bytes(connection.recv(8), "little")  # a scheduler speaks first; a frame begins with its size
    if not 0 < size < MAX_GREETING_BYTES:
        raise OSError("something else listens there")


@contextmanager
def _start_local(distributed: ModuleType, farm: Farm) -> Iterator[Client]:
    """Starts a scheduler and workers that other users of this machine cannot reach; yields their client."""
    import dask

    import_optional("cryptography", f"{farm} needs cryptography: {pip_install('farm')}")
    folder = private_folder() / "dask"
    folder.mkdir(exist_ok=True)
    # Workers start one by one beside this thread, so that one which hangs stops neither the others nor Ctrl-C.
    options: dict[str, Any] = dict(n_workers=0, threads_per_worker=1, processes=True, memory_limit=1 / farm.workers)
    options |= dict(security=distributed.Security.temporary(), local_directory=str(folder), host="127.0.0.1")
    # dask still starts a web server, without pages. Port 0 is any free port: a second farm would warn of dask's 8787.
    options["scheduler_kwargs"] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    others = set(multiprocessing.active_children())
    try:
        with dask.config.set(CONFIGURATION):  # the workers inherit it
            try:
                with _without_terminal():
                    cluster = distributed.LocalCluster(**options, silence_logs=NO_LOGS, preload=[IGNORE_SIGINT])
            except (OSError, TimeoutError, RuntimeError) as error:
                raise UnavailableError(f"{farm}: the processes do not start: {error}") from error
            cluster.shutdown_on_close = False  # at the end of this process, where dask would wait for it
            with _closing(cluster, LOCAL_CLOSE_SECONDS):
                cluster.scale(farm.workers)
                with _closing(distributed.Client(cluster, set_as_default=False), CLOSE_SECONDS) as client:
                    yield client
    finally:
        for process in set(multiprocessing.active_children()) - others:  # a stopped one heeds no other signal
            process.kill()


@contextmanager
def _without_terminal() -> Iterator[None]:
    """Threads that are started in the block, and the processes that they start, get no Ctrl-C and no hang-up.

    They inherit the mask of blocked signals. Python starts a tracker process before its first worker and unblocks
    SIGINT then; so the tracker is started here, and the signals are blocked again after it.
    """
    with signals_blocked(NOT_FOR_WORKERS):
        with suppress(ImportError):  # Windows has none
            from multiprocessing import resource_tracker

            # Its process inherits the option: it would warn of semaphores that a worker, killed by Ctrl-C, left to it.
            sys.warnoptions.append("ignore:resource_tracker")
            resource_tracker.ensure_running()
        with signals_blocked(NOT_FOR_WORKERS):
            yield


@contextmanager
def _no_logs() -> Iterator[None]:
    """Silences logging: distributed logs errors that it also raises."""
    before = logging.root.manager.disable
    logging.disable(NO_LOGS)
    try:
        yield
    finally:
        logging.disable(before)
