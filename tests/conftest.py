"""Fixtures: every compute device of this machine, one GL context, a generator of random numbers."""

import gc
import os
import re
import signal
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from tests import drivers
from tests.seeds import FRESH, seed_of

# RAYFOLD_TEST_DEVICES=emulated runs the tests on emulated CUDA devices (tests/emulated) instead of this machine's own;
# RAYFOLD_EMULATED_SEED repeats the order in which that ran, RAYFOLD_EMULATED_RACES=1 looks for data races (slower).
EMULATED = os.environ.get("RAYFOLD_TEST_DEVICES") == "emulated"
EMULATED_SEED = int(os.environ.get("RAYFOLD_EMULATED_SEED", seed_of("the order of emulated launches")))
if EMULATED:
    from tests import emulated

    emulated.replace_cuda(devices=4, seed=EMULATED_SEED, races="RAYFOLD_EMULATED_RACES" in os.environ)

# The suite's many kernels stay out of the user's own cache, which keeps a limited number of programs.
os.environ.setdefault("POCL_CACHE_DIR", str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "pocl"))

from renderer.errors import UnavailableError  # noqa: E402
from renderer.gpu import list_devices, open_device  # noqa: E402
from renderer.gpu.cuda import nvrtc  # noqa: E402
from renderer.gpu.opencl import device as opencl  # noqa: E402

# A shell ignores SIGINT in what it starts in the background, and children inherit that: tests send it to children.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

np.seterr(all="raise", under="ignore")
hypothesis.settings.register_profile("rayfold", derandomize=not FRESH, deadline=None)
hypothesis.settings.load_profile("rayfold")

FOUND = list_devices()[0]
if EMULATED:
    FOUND = FOUND[:1]  # the others are like it
os.environ.pop("RAYFOLD_COMMIT", None)  # names this tree's commit; tests make repositories of their own
collect_ignore = [] if find_spec("imgui_bundle") else ["window", "test_kills.py"]


def pytest_report_header():
    told = ["the window is not tested: no imgui-bundle here"] if collect_ignore else []
    return told + ([f"RAYFOLD_EMULATED_SEED={EMULATED_SEED}"] if EMULATED else [])


def pytest_collection(session):
    """Workers of a whole run import the tests from different files on: in a fresh clone each rewrites a part of them.

    pytest rewrites the `assert` statements of a file once and keeps the result for whoever imports it later. Workers
    that begin at the same file would all rewrite every file: 10 seconds of processor time each.
    """
    gc.disable()  # what is imported here stays
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:], os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    if int(workers) > 1 and session.config.args_source == pytest.Config.ArgsSource.TESTPATHS:
        files = sorted(Path(__file__).parent.rglob("test_*.py"))
        first = len(files) * int(worker) // int(workers)
        for file in files[first:] + files[:first]:
            with suppress(Exception, pytest.skip.Exception):  # the collection imports the file again and reports both
                import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish():
    gc.freeze()  # 400,000 objects that each full collection would visit: a quarter of a second
    gc.enable()


QUICK_PROGRAMS = 8  # of so many C$ programs NVRTC compiles one in a quick run
# What NVRTC takes 3 to 11 seconds for, and test_headers.py and test_band_lu_system.py compile as GPUs do.
HAVE_TESTS = {"materials", "numerics/band_lu/residual.cu"}


def is_chosen(name: str, folder: Path) -> bool:
    """True if NVRTC compiles this text too: in `make test-all` all, else one text of each kernel file in a whole run.

    The names of kernels of C$ programs are hashes of their texts. `folder` belongs to all workers of the run.
    """
    program = re.fullmatch(r"cdollar_([0-9a-f]+)\.cu", name)
    if FRESH or program or name in HAVE_TESTS:
        return FRESH or (program is not None and int(program[1], 16) % QUICK_PROGRAMS == 0)
    try:
        os.close(os.open(folder / name.replace("/", "-"), os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@pytest.fixture(scope="session", autouse=True)
def compile_for_cuda_too(tmp_path_factory):
    """Kernel texts that tests build for OpenCL are compiled by NVRTC for sm_90 as well, with no GPU needed."""
    if nvrtc.why_missing() or EMULATED:
        yield
        return
    build = opencl.OpenclDevice._build
    folder = tmp_path_factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "compiled-for-cuda"
    folder.mkdir(exist_ok=True)

    def build_both(device, program):
        built = build(device, program)
        if is_chosen(program.name, folder):
            # Points per work-item on CPUs; 1 on GPUs.
            scalar = re.sub(r"#define LANES \d+", "#define LANES 1", program.text)
            drivers.check_for_cuda(scalar, program.name, program.strict)
        return built

    opencl.OpenclDevice._build = build_both
    yield
    opencl.OpenclDevice._build = build


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        device_ids = [found.device_id for found in FOUND] or ["none"]
        metafunc.parametrize("device", device_ids, indirect=True, scope="session")


@pytest.fixture(scope="session")
def device(request):
    """Each compute device that this machine's drivers list. A machine without a driver skips."""
    if request.param == "none":
        drivers.skip_without(drivers.COMPUTE_DRIVERS, "no OpenCL or CUDA driver is installed here")
    try:
        return open_device(request.param)
    except UnavailableError as error:
        drivers.skip_without([request.param], str(error))


@pytest.fixture(scope="session")
def gpu():
    """The DeviceContext that a command without --device would open."""
    from renderer.gpu import open_context

    return open_context()


@pytest.fixture(scope="session")
def shared_gl():
    from renderer.gpu.gl import GlContext

    try:
        return GlContext.headless()
    except UnavailableError as error:
        drivers.skip_without(drivers.GL_DRIVERS, str(error))


@pytest.fixture
def gl(shared_gl):
    """The headless GL context, asserted free of GL errors before and after the test."""
    assert shared_gl.ctx.error == "GL_NO_ERROR"
    yield shared_gl
    assert shared_gl.ctx.error == "GL_NO_ERROR"


@pytest.fixture
def rng(request):
    """Random numbers: the same in every run, or fresh ones (see tests/seeds.py); the seed is shown on failure."""
    seed = seed_of(request.node.nodeid)
    print(f"RAYFOLD_TEST_SEED={seed}")
    return np.random.default_rng(seed)
