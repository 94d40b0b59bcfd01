"""What the tests of exports and farms have in common: a small film, the command in a process, a cluster's processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from renderer.paths import ROOT
from tests.children import python_path, run_here

SCENE = """title = "Julia in motion"
picture = "fractal"
size = [70, 46]
[settings]
kind = "julia"
samples = 2
max_iterations = 60
[animation]
duration = 0.25
[[animation.keyframes]]
time = 0.0
set = { "color_offset" = 0.0 }
[[animation.keyframes]]
time = 1.0
set = { "color_offset" = 1.0 }
"""


def export(*words, code=0, **more):
    """`rayfold export WORDS`; in a process of its own where a farm is started or the process's `env` is given."""
    command = [sys.executable, str(ROOT / "main.py"), "export", *map(str, words)]
    if more or ("--farm" in words and code != 2):
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, **more)
    else:
        answer = run_here("export", *words)
    assert answer.returncode == code, answer
    assert "Traceback" not in answer.stderr
    return answer


@contextlib.contextmanager
def cluster(folder, protocol="tcp", workers=1, **environment):
    """A scheduler on loopback and its workers: the address, the scheduler's process, the workers' processes."""
    environment = {**os.environ, **environment, "PYTHONPATH": python_path()}
    file = folder / "address.json"
    started = []

    def start(name, *words):
        code = f"from distributed.cli.dask_{name} import main; main()"
        command = [sys.executable, "-c", code, *words, "--scheduler-file", str(file), "--no-dashboard"]
        process = subprocess.Popen(command, env=environment, cwd=folder, stderr=subprocess.DEVNULL)
        started.append(process)
        return process

    try:
        scheduler = start("scheduler", "--protocol", protocol, "--host", "127.0.0.1", "--port", "0")
        end = time.monotonic() + 30
        while not file.exists():
            assert time.monotonic() < end and scheduler.poll() is None
            time.sleep(0.1)
        yield (
            json.loads(file.read_text())["address"],
            scheduler,
            [start("worker", "--no-nanny", "--nthreads", "1") for _ in range(workers)],
        )
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def stopped(*processes):
    """Processes that are stopped in the block: they keep their connections and answer nothing."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
