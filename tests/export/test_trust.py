"""Farms and trust: who may connect, what is refused, and what is kept when schedulers and workers die."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import warnings

import numpy as np
import pytest

from renderer import cli
from renderer.errors import IncompleteError, UnavailableError, UserError
from renderer.export import farm
from renderer.formats.images import read_pixels
from renderer.paths import ROOT, private_folder
from renderer.system import farm as farms
from renderer.system.farm import Farm, open_client, parse_farm
from tests.export.export_helpers import SCENE, cluster, export

distributed = pytest.importorskip("distributed", reason="farms need distributed")


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "julia.toml"
    path.write_text(SCENE)
    return path


def test_a_plain_connection_to_another_machine_must_be_wanted(capsys):
    for host in ("10.0.0.1", "farm.example", "localhost.example", "0.0.0.0", "2130706433", "127.1"):
        with pytest.raises(UserError, match="--insecure"):
            parse_farm(f"tcp://{host}:8786", "auto")
        assert parse_farm(f"tcp://{host}:8786", "auto", insecure=True).address == f"tcp://{host}:8786"
        assert parse_farm(f"tls://{host}:8786", "auto").address == f"tls://{host}:8786"
    assert capsys.readouterr().err == ""
    for host in ("127.0.0.1", "127.8.8.8", "localhost"):
        parse_farm(f"tcp://{host}:8786", "auto")
        assert "other users of this machine can run code" in capsys.readouterr().err
        parse_farm(f"tcp://{host}:8786", "auto", insecure=True)
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    ["", "local", "local:0", "local:1000", "local:-1", "local:\u0664", "local:2 ", "udp://a:1", "tls://a:65536"]
    + ["tls://a", "tls://:1", "tls://a:1/x", "tls://a b:1", "tls://a:\u0661", "inproc://1", f"tls://{'a' * 254}:1"],
)
def test_other_farms_are_refused(text):
    with pytest.raises(UserError, match="must be local:N"):
        parse_farm(text, "auto", insecure=True)


@pytest.mark.parametrize(
    "words", [["export", "julia", "-o", "a.png"], ["verify", "a.png"], ["sum", "x.npy"]], ids=" ".join
)
def test_each_command_refuses_a_plain_connection(words, tmp_path, scene):
    np.save(tmp_path / "x.npy", np.ones(3))
    if words[0] == "verify":
        export(scene, "-o", tmp_path / "a.png")
    command = [sys.executable, str(ROOT / "main.py"), *words, "--farm", "tcp://192.0.2.1:8786"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2 and "--insecure" in answer.stderr and answer.stderr.count("\n") == 1


def listening(pids) -> list[int]:
    """The TCP ports that these processes listen on (Linux)."""
    inodes = set()
    for pid in pids:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                link = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if link.startswith("socket:["):
                inodes.add(link[8:-1])
    rows = [line.split() for kind in ("tcp", "tcp6") for line in open(f"/proc/net/{kind}").readlines()[1:]]
    assert all(row[1].split(":")[0] == "0100007F" for row in rows if row[3] == "0A" and row[9] in inodes), "loopback"
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in inodes]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_other_users_cannot_enter_a_local_farm():
    """Every port of it speaks TLS to those who have its certificate, or serves nothing."""
    with open_client(Farm("", 1, "auto")) as client:
        pids = [os.getpid(), *client.run(os.getpid).values()]
        ports, served = listening(pids), []
        workers = client.scheduler_info()["workers"]
        addresses = [client.scheduler.address, *workers, *(facts["nanny"] for facts in workers.values())]
        assert all(address.startswith("tls://") for address in addresses)
        assert {int(address.rpartition(":")[2]) for address in addresses} <= set(ports)
        for port in {int(address.rpartition(":")[2]) for address in addresses}:
            for security in (None, distributed.Security.temporary()):
                with pytest.raises(OSError):
                    asyncio.run(greet(("tls" if security else "tcp") + f"://127.0.0.1:{port}", security))
        for port in ports:
            for path in ("", "info/main/workers.html", "json/counts.json", "metrics", "statics/css/base.css"):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
                        served.append((port, path, answer.status))
                except urllib.error.HTTPError as error:
                    assert error.code == 404
                except OSError:
                    pass  # not HTTP: TLS
        assert not served
        (folder,) = client.run(lambda dask_worker: dask_worker.local_directory).values()
        assert folder.startswith(str(private_folder()))
        assert client.submit(sum, [1, 2]).result() == 3


def test_a_second_farm_says_nothing_about_ports():
    """Another program has the port that dask's web server prefers."""
    with socket.socket() as taken, warnings.catch_warnings():
        with contextlib.suppress(OSError):  # it has it already
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        warnings.simplefilter("error")
        with open_client(Farm("", 1, "auto")) as client:
            assert client.submit(sum, [1, 2]).result() == 3


async def greet(address: str, security) -> None:
    """Connects as dask's own client does, with its handshake, and asks who is there."""
    arguments = security.get_connection_args("client") if security else {}
    comm = await distributed.comm.connect(address, timeout=2, **arguments)
    try:
        await comm.write({"op": "identity", "reply": True})
        await asyncio.wait_for(comm.read(), 2)
    finally:
        comm.abort()


def test_a_local_farm_without_certificates_is_no_farm(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(UnavailableError, match="--farm local:2 needs cryptography"):
        with open_client(Farm("", 2, "auto")):
            pass


FILM = ["--frames", "1-300", "--samples", "20", "--size", "160x100"]


def test_a_film_whose_scheduler_dies_is_kept_and_resumes(scene, tmp_path, monkeypatch, capsys, shared_gl):
    monkeypatch.setattr(farms, "CONNECT_SECONDS", 1)
    out, results = tmp_path / "f_####.png", farm.results
    with cluster(tmp_path) as (address, scheduler, _):

        def cut_off(*words):
            for count, answer in enumerate(results(*words), 1):
                yield answer
                if count == 3:
                    scheduler.kill()

        monkeypatch.setattr(farm, "results", cut_off)
        words = ["export", scene, "-o", out, *FILM, "--farm", address, "--insecure"]
        assert cli.main([str(word) for word in words]) == 3
    stdout, stderr = capsys.readouterr()
    assert stderr.startswith(f"rayfold: --farm {address}: the connection to the scheduler broke; ") and not stdout
    assert stderr.count("\n") == 1 and "resumes" in stderr
    kept = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.glob("f_*.png"))}
    assert 3 <= len(kept) < 300
    export(scene, "-o", out, "--frames", f"1-{len(kept) + 2}", *FILM[2:])
    fresh = [path for path in sorted(tmp_path.glob("f_*.png")) if path.stat().st_mtime_ns != kept.get(path)]
    assert len(fresh) == 2, "only the frames that were missing are drawn"


@pytest.mark.slow
def test_a_film_whose_workers_are_gone_ends(scene, tmp_path, monkeypatch):
    with cluster(tmp_path) as (address, _, (worker,)):
        with pytest.raises(IncompleteError, match="no worker has been heard of for 2 seconds"):
            with open_client(Farm(address, 0, "auto")) as client:
                monkeypatch.setattr(farms, "LOST_POLLS", 2)
                worker.kill()
                list(farm.results(client, {"files": {}}, [{"kind": "frame"}]))
        with pytest.raises(UnavailableError, match="the scheduler has no worker"):
            with open_client(Farm(address, 0, "auto")):
                pass


@pytest.mark.slow
def test_a_part_that_ends_every_worker_is_one_sentence(monkeypatch):
    monkeypatch.setattr(farm, "run_task", lambda common, files, task: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(IncompleteError, match="every worker that drew part 0 died; what was complete is kept"):
        with open_client(Farm("", 1, "auto")) as client:
            list(farm.results(client, {"files": {}}, [{"kind": "frame"}]))


@pytest.mark.parametrize(
    "says", [None, b"", b"SSH-2.0-OpenSSH_9.9\r\n", b"\0" * 64], ids=["silence", "end", "ssh", "zeros"]
)
def test_a_port_where_something_else_answers_is_no_scheduler(says, monkeypatch):
    """A client of distributed would wait there for ever, or allocate what the first bytes claim."""
    monkeypatch.setattr(farms, "CONNECT_SECONDS", 1)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        def answer():
            connection, _ = other.accept()
            with connection:
                if says is not None:
                    connection.sendall(says)
                time.sleep(2 if says is None else 0.2)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="no scheduler answers there: "):
            with open_client(Farm(address, 0, "auto")):
                pass
        thread.join()


def test_farm_by_tls(scene, tmp_path):
    """A scheduler that offers TLS: with its certificates the picture comes, without them a sentence."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl to make certificates")
    names = {name: str(tmp_path / f"{name}.pem") for name in ("key", "cert")}
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=farm"]
    subprocess.run([*command, "-keyout", names["key"], "-out", names["cert"]], check=True, capture_output=True)
    tls = {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": names["cert"], "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true"}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        tls |= {f"DASK_DISTRIBUTED__COMM__TLS__{role}__{k.upper()}": path for k, path in names.items()}
    with cluster(tmp_path, "tls", **tls) as (address, _, _):
        assert address.startswith("tls://")
        told = export(scene, "-o", tmp_path / "no.png", "--farm", address, code=4).stderr
        assert address in told and "no certificates" in told
        environment = {**os.environ, **tls}
        export(scene, "-o", tmp_path / "farm.png", "--farm", address, "--tile", "32", env=environment)
    export(scene, "-o", tmp_path / "here.png")
    assert np.array_equal(read_pixels(tmp_path / "here.png"), read_pixels(tmp_path / "farm.png"))
