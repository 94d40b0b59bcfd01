"""A farm: a scheduler of dask.distributed, or processes of this machine, for exports and sums."""

import re
import signal
import threading
import warnings
from contextlib import contextmanager
from dataclasses import dataclass

from renderer.errors import UnavailableError, UserError, import_optional

IGNORE_SIGINT = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # preloaded by local workers
NO_LOGS = 60  # above every level of a log: errors are raised


@dataclass(frozen=True)
class Farm:
    """Where tasks go: a scheduler's address, or `workers` processes of this machine."""

    address: str
    workers: int
    device: str


def parse_farm(text: str, device: str) -> Farm:
    """The Farm of `--farm local:N` or `--farm tcp://HOST:PORT` (tls:// with dask's TLS configuration)."""
    local = re.fullmatch(r"local:([0-9]{1,3})", text)
    if local and int(local[1]) > 0:
        return Farm("", int(local[1]), device)
    if re.fullmatch(r"(tcp|tls)://[^\s:/]+:[0-9]{1,5}", text):
        return Farm(text, 0, device)
    raise UserError(f"--farm {text}: must be local:N with N of at least 1, tcp://HOST:PORT or tls://HOST:PORT")


@contextmanager
def open_client(farm: Farm):
    """A connected client; UnavailableError where the package or the scheduler is not there."""
    distributed = import_optional("distributed", "--farm needs distributed: pip install distributed")
    # Ctrl-C may come between the creation of a coroutine and its await.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    if farm.address:
        tls = farm.address.startswith("tls://")
        if tls and not distributed.Security().get_connection_args("client")["ssl_context"]:
            raise UnavailableError(
                f"--farm {farm.address}: no certificates; dask takes them from DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "..._TLS__CLIENT__CERT and ..._TLS__CLIENT__KEY, or from its configuration file"
            )
        try:
            client = distributed.Client(farm.address, timeout="5s", set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UnavailableError(f"--farm {farm.address}: no scheduler answers there: {error}") from error
        with client:
            yield client
        return
    options = dict(n_workers=farm.workers, threads_per_worker=1, processes=True, dashboard_address=None)
    with _ignore_sigint():  # inherited by the workers until they run IGNORE_SIGINT
        cluster = distributed.LocalCluster(**options, silence_logs=NO_LOGS, preload=[IGNORE_SIGINT])
    with cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _ignore_sigint():
    """Processes that are started meanwhile ignore Ctrl-C, which this process handles."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
