"""Ctrl-C while a kernel runs: the command ends within two seconds, whatever the driver does."""

import os
import signal
import subprocess
import sys
import time

import pytest

from renderer.paths import ROOT

DEAF = """
import signal, sys, time
from renderer.system.process import Supervision, supervise
Supervision.allowed = True
supervise()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
print("blocked", flush=True)
time.sleep(60)
"""
# The first call ends at once, so that the second one runs a kernel that is compiled.
ENDLESS = """
int f(int x) {
    int n = x;
    for (int far = 0; far < 16000000; far++) {
        for (int k = 0; k < 60000; k++) { if (x == 0) return n; n = n * 3 + (k ^ n); }
    }
    return n;
}
int[] main() { let u(i : 0..2000000) = f(0 * i); let v(i) = f(u(i) + 1); return v; }
"""


def ends(process, number=signal.SIGINT, group=False):
    """Sends a signal and waits for the end, which comes after two seconds unless the machine is loaded."""
    (os.killpg if group else os.kill)(process.pid, number)
    return process.wait(20) == 130


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no supervision without fork")
@pytest.mark.parametrize("number, group", [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_command_that_hears_no_signal_is_killed(number, group):
    process = subprocess.Popen(
        [sys.executable, "-c", DEAF], cwd=ROOT, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == "blocked\n"
    assert ends(process, number, group) and "interrupted" in process.stderr.read()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no supervision without fork")
def test_a_supervised_command_passes_on_its_exit_code_and_says_which_signal_ended_it():
    start = "from renderer.system.process import Supervision, supervise\nSupervision.allowed = True\nsupervise()\n"
    for end, code, words in (
        ("raise SystemExit(5)", 5, ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", 4, "signal 11"),
    ):
        run = subprocess.run([sys.executable, "-c", start + end], cwd=ROOT, capture_output=True, text=True, timeout=20)
        assert run.returncode == code and words in run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("target", ["numpy", "opencl", "glsl"])
def test_an_endless_kernel_dies_within_two_seconds_of_ctrl_c(tmp_path, target):
    program = tmp_path / "endless.cb"
    program.write_text(ENDLESS)
    process = subprocess.Popen(
        [sys.executable, "-m", "renderer", "run", str(program), "--target", target], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    time.sleep(5)
    assert process.poll() is None, process.stderr.read()
    assert ends(process, group=True) and "interrupted" in process.stderr.read()
