"""The edge between commands and their process: internal errors, signals, streams that close or fill."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from renderer.formats.images import read_pixels
from renderer.paths import ROOT
from renderer.system.process import STOP_SIGNALS, StopFlag
from tests.children import python_path

BROKEN = "import sys, renderer.doctor as d; d.command = lambda args: {}['no such key']; " + (
    "from renderer.cli import main; sys.exit(main(['doctor']))"
)
EXPORT = ["export", "mandelbrot", "--size", "64x48", "--samples", "1"]


def python(code, **more):
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, **more)


def test_an_internal_error_is_one_sentence_a_log_and_exit_code_70(tmp_path):
    answer = python(BROKEN, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    assert answer.returncode == 70 and answer.stdout == ""
    assert (
        answer.stderr.startswith("rayfold: internal error in rayfold doctor: KeyError")
        and answer.stderr.count("\n") == 1
    )
    (log,) = (tmp_path / "rayfold" / "logs").glob("*.log")
    assert str(log) in answer.stderr and "Traceback" in log.read_text()


def test_logs_of_internal_errors_do_not_pile_up(tmp_path):
    logs = tmp_path / "rayfold" / "logs"
    logs.mkdir(parents=True)
    for number in range(60):
        (logs / f"2001{number:04d}.log").touch()
    assert python(BROKEN, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)}).returncode == 70
    assert len(list(logs.glob("*.log"))) == 50


def test_too_little_memory_is_not_an_internal_error():
    code = BROKEN.replace("{}['no such key']", "bytearray(1 << 60)")
    answer = python(code)
    assert answer.returncode == 4 and answer.stderr == "rayfold: not enough memory\n"


SIGNALS = [
    number
    for number in STOP_SIGNALS
    if signal.getsignal(number) != signal.SIG_IGN  # as nohup leaves SIGHUP, for children too
]


@pytest.mark.parametrize(
    "number", [n if n == signal.SIGTERM else pytest.param(n, marks=pytest.mark.slow) for n in SIGNALS]
)
def test_every_signal_that_ends_a_program_keeps_the_drawn_samples(tmp_path, number):
    target = tmp_path / "a.png"
    words = ["export", "mandelbrot", "-o", str(target), "--size", "64x48", "--samples", "100000000"]
    process = subprocess.Popen([sys.executable, "main.py", *words], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert "this will take about" in process.stderr.readline()  # said while it draws
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and read_pixels(target).shape[:2] == (48, 64) and "Traceback" not in stderr


@pytest.mark.parametrize("number", SIGNALS)
def test_every_signal_that_ends_a_program_is_exit_code_130(number):
    code = "import time, renderer.doctor as d; d.command = lambda args: print('ready', flush=True) or time.sleep(60); "
    code += "import sys; from renderer.cli import main; sys.exit(main(['doctor']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and stderr == "rayfold: interrupted\n"


STOP_FLAG = """
import sys, threading, time
import renderer.system.process as process
from renderer.cli import main
import renderer.doctor
event, lock = threading.Event(), threading.Condition()
def command(args):
    process.OBEY_SECONDS = float(sys.argv[2])
    with process.StopFlag() as stop:
        stop.wake = event.set
        print("ready", flush=True)
        {body}
    return 0
renderer.doctor.command = command
process.end_process(main(["doctor"]))
"""
BUSY = "while not stop.is_set: lock.acquire(); lock.notify_all(); lock.release(); event.wait(0)"


@pytest.mark.parametrize(
    ("body", "obey", "signals"),
    [
        ("event.wait(60)", 60, 1),  # wake() ends the wait
        (BUSY, 60, 1),
        ("time.sleep(600)", 600, 2),  # the second signal ends a process whose main thread does not look
        ("(dead := threading.Lock()).acquire(); dead.acquire()", 600, 2),  # nor a deadlock
        ("time.sleep(60)", 0.2, 1),  # as does one that is not obeyed
    ],
)
def test_a_stop_flag_ends_every_block(body, obey, signals):
    words = [sys.executable, "-c", STOP_FLAG.format(body=body), "", str(obey)]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    while signals == 2 and process.poll() is None:
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)  # again: two of the same number that wait for delivery are one
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and stderr == "rayfold: interrupted\n"


def test_a_stop_flag_sees_no_signal_on_other_threads_and_leaves_handlers_as_they_were():
    before, caught = signal.getsignal(signal.SIGTERM), []

    def enter():
        with StopFlag() as stop:
            pass
        caught.append(stop.is_set)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join(10)
    enter()
    assert caught == [False, False] and signal.getsignal(signal.SIGTERM) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_as_the_child_ends_is_exit_code_130():
    """The kernel gives the child's status to waitpid(), and then Python's handler raises."""
    code = "import os, sys, renderer.system.process as p; wait = os.waitpid\n"
    code += "def waitpid(child, options):\n    answer = wait(child, options)\n    if options: return answer\n"
    code += "    raise KeyboardInterrupt\n"
    code += "os.waitpid = waitpid; p.Supervision.allowed = True; p.supervise(); os._exit(0)"
    answer = python(code)
    assert answer.returncode == 130 and answer.stderr == ""


def test_an_interrupt_at_the_end_prints_no_traceback():
    """As PoCL's cache is recorded, by atexit, after the command is done."""
    code = (
        "import atexit, time, renderer.doctor as d; d.command = lambda args: 0; from renderer.cli import run_process; "
    )
    code += "atexit.register(lambda: print('ready', flush=True) or time.sleep(60)); "
    code += "import sys; sys.argv = ['rayfold', 'doctor']; run_process()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130 and stderr == ""


def test_nohup_is_respected():
    code = "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); import renderer.doctor as d; "
    code += "d.command = lambda args: os.kill(os.getpid(), signal.SIGHUP) or 0; "
    code += "import sys; from renderer.cli import main; sys.exit(main(['doctor']))"
    assert python(code).returncode == 0


@pytest.mark.parametrize(
    ("streams", "code"),
    [(">&-", 0), ("2>&-", 0), (">&- 2>&-", 0), ("2>/dev/full", 0), (">/dev/full", 3), ("| true", 0)],
)
def test_closed_or_full_streams_never_lose_a_picture(tmp_path, streams, code):
    if "/dev/full" in streams and not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    words = " ".join([sys.executable, "main.py", *EXPORT, "-o", str(tmp_path / "a.png"), streams])
    answer = subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert answer.returncode == code, answer
    assert read_pixels(tmp_path / "a.png").shape[:2] == (48, 64)
    assert "Traceback" not in answer.stderr and "Exception ignored" not in answer.stderr
    assert not code or "the output cannot be written: " in answer.stderr


EARLY = """
import os, sys
import renderer.__main__
class Finder:
    def find_spec(self, name, *_):
        if name == "renderer.cli":
            os.kill(os.getpid(), int(sys.argv[1]))
sys.meta_path.insert(0, Finder())
renderer.__main__.run()
"""


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_while_the_program_is_imported_is_one_line(number):
    answer = subprocess.run([sys.executable, "-c", EARLY, str(int(number))], cwd=ROOT, capture_output=True, timeout=60)
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, b"", b"rayfold: interrupted\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a process with its parent")
def test_a_trial_of_a_driver_ends_with_the_process_that_waits_for_it(tmp_path):
    wait = "import os, time\ndef wait(path):\n    open(path, 'w').write(str(os.getpid()))\n    time.sleep(60)\n"
    (tmp_path / "waits.py").write_text(wait)
    code = f"from renderer.system.trial import run_trial\nrun_trial('waits:wait', {str(tmp_path / 'id')!r}, seconds=60)"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as parent:
        child = _soon(lambda: (tmp_path / "id").read_text())
        parent.kill()
    assert _soon(lambda: not Path(f"/proc/{child}").exists())


def _soon(ask):
    """The answer of a question once it is true, within 30 s."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if answer := ask():
                return answer
        time.sleep(0.01)
    raise AssertionError("it took longer than 30 s")


FAKE_LIBRARY = """
import os, signal
os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGTERM)
[Context, Device, CommandQueue] = [object] * 3
print("whole", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals of POSIX")
def test_no_signal_is_handled_while_pyopencl_is_imported(tmp_path):
    """Of 120 imports with a SIGINT at a random time 3 ended by abort(), in C++ that called Python."""
    (tmp_path / "pyopencl.py").write_text(FAKE_LIBRARY)
    code = "from renderer.system import process\nwith process.stop_signals():\n    import renderer.gpu.opencl.memory"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), python_path()])}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert answer.stdout == "whole\n" and answer.stderr.endswith("KeyboardInterrupt\n")
