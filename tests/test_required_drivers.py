"""A driver that is installed and broken fails tests; only a machine without one may skip them (tests/drivers.py)."""

import os
import subprocess
import sys

import pytest

from renderer.host import IS_LINUX
from renderer.paths import ROOT
from tests.drivers import COMPUTE_DRIVERS, GL_DRIVERS

pytestmark = pytest.mark.skipif(not IS_LINUX, reason="these variables choose drivers on Linux")
DEVICE_TEST = "tests/gpu/test_devices.py::test_probe_passes"
GL_TEST = "tests/gpu/test_gl.py"


def outcome(test: str, **variables: str) -> tuple[int, str]:
    """Exit status and output of pytest on one test, with other environment variables."""
    command = [sys.executable, "-m", "pytest", "-v", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", test]
    answer = subprocess.run(command, cwd=ROOT, env=os.environ | variables, capture_output=True, text=True, timeout=120)
    return answer.returncode, answer.stdout


@pytest.mark.skipif(any("NVIDIA" in driver for driver in COMPUTE_DRIVERS), reason="an NVIDIA driver serves the test")
def test_a_broken_compute_driver_fails(tmp_path):
    (tmp_path / "broken.icd").write_text("/nonexistent/libbroken.so\n")
    status, text = outcome(DEVICE_TEST, OCL_ICD_VENDORS=str(tmp_path))
    assert status == 1 and "installed but not working" in text and "broken.icd" in text, text


@pytest.mark.skipif(any("NVIDIA" in driver for driver in COMPUTE_DRIVERS), reason="an NVIDIA driver serves the test")
def test_a_machine_without_compute_drivers_skips(tmp_path):
    status, text = outcome(DEVICE_TEST, OCL_ICD_VENDORS=str(tmp_path))
    assert status == 0 and " 1 skipped" in text and "failed" not in text, text


@pytest.mark.skipif(not GL_DRIVERS, reason="no OpenGL driver is installed here")
def test_a_broken_gl_driver_fails():
    status, text = outcome(GL_TEST, __EGL_VENDOR_LIBRARY_FILENAMES="/nonexistent.json")
    assert status == 1 and "installed but not working" in text, text
