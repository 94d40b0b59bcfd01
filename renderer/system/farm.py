"""Connects `--farm` by dask.distributed to worker processes of this machine or to a remote scheduler, securely.

Scheduler, workers and client unpickle the messages that they receive, so that whoever reaches one of them can run code
there. Therefore processes of this machine use TLS with a temporary certificate in memory, and a connection without TLS
to another machine needs --insecure. `export` calls parse_farm() and open_client().
"""

import ipaddress
import logging
import re
import signal
import socket
import ssl
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from renderer.errors import IncompleteError, UnavailableError, UserError, import_optional
from renderer.paths import private_folder
from renderer.system.process import shorten

IGNORE_SIGINT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # preloaded by local workers
NO_LOGS = 60  # a level above all levels of logging: no message is shown
CONNECT_SECONDS = 5  # until a scheduler must answer, or be back after its connection broke
MAX_GREETING_BYTES = 1 << 16
WORKER_SECONDS = 60.0  # longest time without any worker
MAX_LOCAL = 999
KEPT = "what was complete is kept, and the same command resumes"
INSTALL = "pip install distributed cryptography"
# dask's web pages would publish tasks and files: none is served.
CONFIGURATION: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}

Client = Any  # distributed.Client; the package is optional


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
def open_client(farm: Farm) -> Iterator[Any]:
    """Yields a connected client; UnavailableError without the package, the scheduler or a worker.

    Errors in the block that follow from the loss of the scheduler become an IncompleteError.
    """
    distributed = import_optional("distributed", f"--farm needs distributed: {INSTALL}")
    # Ctrl-C may come between the creation of a coroutine and its await.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    with _no_logs(), _connect(distributed, farm) as client:
        try:
            if farm.address:
                client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            raise UnavailableError(f"{farm}: the scheduler has no worker") from error
        try:
            yield client
        except UserError:
            raise
        except Exception as error:  # without a scheduler dask raises many types; with one, errors are raised again
            if client.status == "running" and not isinstance(error, (CancelledError, distributed.comm.CommClosedError)):
                raise
            raise IncompleteError(f"{farm}: the connection to the scheduler broke; {KEPT}") from error


class Watch:
    """Detects the loss of all workers, for which a client would wait forever."""

    def __init__(self, client: Client):
        self._client, self._seen = client, time.monotonic()

    def check(self) -> None:
        """Raises ConnectionError without a scheduler, IncompleteError after WORKER_SECONDS without a worker.

        open_client() turns the ConnectionError into an IncompleteError.
        """
        if self._client.status == "closed":
            raise ConnectionError("the client is closed")
        if workers(self._client):
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > WORKER_SECONDS:
            raise IncompleteError(f"--farm: no worker was there for {WORKER_SECONDS:.0f} seconds; {KEPT}")


def workers(client: Client) -> list[str]:
    """Returns the addresses of the workers."""
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _connect(distributed: object, farm: Farm) -> Any:
    """Returns a context manager of a client; for --farm local:N, of its scheduler and workers too."""
    return _connect_remote(distributed, farm) if farm.address else _start_local(distributed, farm)


def _connect_remote(distributed: Any, farm: Farm) -> Any:
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
        return distributed.Client(farm.address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnavailableError(f"{farm}: no scheduler answers there: {shorten(str(error))}") from error


def _check_greeting(address: str, encryption: ssl.SSLContext | None) -> None:
    """Raises OSError unless the address sends a frame as dask's schedulers do; else a client would wait forever."""
    host, _, port = address.partition("://")[2].rpartition(":")
    with ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((host, int(port)), CONNECT_SECONDS))
        if encryption:
            connection = stack.enter_context(encryption.wrap_socket(connection, server_hostname=host))
        size = int.from_bytes(connection.recv(8), "little")
    if not 0 < size < MAX_GREETING_BYTES:
        raise OSError("something else listens there")


@contextmanager
def _start_local(distributed: Any, farm: Farm) -> Iterator[Any]:
    """Starts a scheduler and workers that other users of this machine cannot reach; yields their client."""
    import dask

    import_optional("cryptography", f"{farm} needs cryptography: {INSTALL}")
    folder = private_folder() / "dask"
    folder.mkdir(exist_ok=True)
    options: dict[str, Any] = dict(n_workers=farm.workers, threads_per_worker=1, processes=True)
    options |= dict(security=distributed.Security.temporary(), local_directory=str(folder), host="127.0.0.1")
    # dask still starts a web server, without pages. Port 0 is any free port: a second farm would warn of dask's 8787.
    options["scheduler_kwargs"] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    try:
        with _ignore_sigint(), dask.config.set(CONFIGURATION):  # the workers inherit both
            cluster = distributed.LocalCluster(**options, silence_logs=NO_LOGS, preload=[IGNORE_SIGINT])
    except (OSError, TimeoutError, RuntimeError) as error:
        raise UnavailableError(f"{farm}: the processes do not start: {error}") from error
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _ignore_sigint() -> Iterator[None]:
    """Lets processes that are started in the block ignore Ctrl-C, which this process handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _no_logs() -> Iterator[None]:
    """Silences logging: distributed logs errors that it also raises."""
    before = logging.root.manager.disable
    logging.disable(NO_LOGS)
    try:
        yield
    finally:
        logging.disable(before)
