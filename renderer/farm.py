"""Connections of `--farm` to dask.distributed: processes of this machine, or a scheduler elsewhere; and whom to trust.

Whoever reaches a scheduler or a worker can run code there, and they can run code in their client: all of them unpickle
what they receive. So processes of this machine speak TLS with a certificate that lives as long as they, in memory, and
a plain connection to another machine needs --insecure.
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
from renderer.process import shorten

IGNORE_SIGINT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # preloaded by local workers
NO_LOGS = 60  # above every level of a log: errors are raised
CONNECT_SECONDS = 5  # until a scheduler must answer, or be back after its connection broke
MAX_GREETING_BYTES = 1 << 16
WORKER_SECONDS = 60.0  # that a scheduler may be without any worker
MAX_LOCAL = 999
KEPT = "what was complete is kept, and the same command resumes"
INSTALL = "pip install distributed cryptography"
# Workers that listen for browsers publish their tasks and files: no page is served.
CONFIGURATION: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


@dataclass(frozen=True)
class Farm:
    """Where tasks go: a scheduler's address, or `workers` processes of this machine."""

    address: str
    workers: int
    device: str

    def __str__(self) -> str:
        return f"--farm {self.address or f'local:{self.workers}'}"


def parse_farm(text: str, device: str, insecure: bool = False) -> Farm:
    """The Farm of `--farm local:N`, `tls://HOST:PORT` (with dask's TLS configuration) or `tcp://HOST:PORT`.

    UserError where it is none of these, or has no TLS and is neither on this machine nor wanted as `insecure`.
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
    """UserError for a connection without TLS that leaves this machine; a warning for one that does not."""
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
        return False  # a name that others may resolve


@contextmanager
def open_client(farm: Farm) -> Iterator[Any]:
    """A connected client; UnavailableError where the package, the scheduler or a worker is not there.

    Raises what ends the block because the scheduler is gone as an IncompleteError.
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
        except Exception as error:  # once the scheduler is gone, dask raises many kinds; others are raised again
            if client.status == "running" and not isinstance(error, (CancelledError, distributed.comm.CommClosedError)):
                raise
            raise IncompleteError(f"{farm}: the connection to the scheduler broke; {KEPT}") from error


class Watch:
    """Notices that nobody works: a client waits for ever for workers that are gone."""

    def __init__(self, client: Any):
        self._client, self._seen = client, time.monotonic()

    def check(self) -> None:
        """ConnectionError, which open_client() expects, without a scheduler; IncompleteError long without a worker."""
        if self._client.status == "closed":
            raise ConnectionError("the client is closed")
        if workers(self._client):
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > WORKER_SECONDS:
            raise IncompleteError(f"--farm: no worker was there for {WORKER_SECONDS:.0f} seconds; {KEPT}")


def workers(client: Any) -> list[str]:
    """The addresses of the workers."""
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _connect(distributed: Any, farm: Farm) -> Any:
    """The context of a client, and of the processes that it is connected to if they are local."""
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
    """OSError where nothing greets as a scheduler does, by one frame: a client would wait there for ever."""
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
    """Workers of this machine, which other users can neither join nor watch."""
    import dask

    import_optional("cryptography", f"{farm} needs cryptography: {INSTALL}")
    folder = private_folder() / "dask"
    folder.mkdir(exist_ok=True)
    options: dict[str, Any] = dict(n_workers=farm.workers, threads_per_worker=1, processes=True)
    options |= dict(security=distributed.Security.temporary(), local_directory=str(folder), host="127.0.0.1")
    # Its web server, which serves no page, takes any free port: dask's choice is 8787, of which a second farm warns.
    options["scheduler_kwargs"] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    try:
        with _ignore_sigint(), dask.config.set(CONFIGURATION):  # which the workers inherit
            cluster = distributed.LocalCluster(**options, silence_logs=NO_LOGS, preload=[IGNORE_SIGINT])
    except (OSError, TimeoutError, RuntimeError) as error:
        raise UnavailableError(f"{farm}: the processes do not start: {error}") from error
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@contextmanager
def _ignore_sigint() -> Iterator[None]:
    """Processes that are started meanwhile ignore Ctrl-C, which this process handles."""
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
    """The package logs on stderr what it also raises."""
    before = logging.root.manager.disable
    logging.disable(NO_LOGS)
    try:
        yield
    finally:
        logging.disable(before)
