"""Waiting for compilers: Tasks, child processes that compile, and interrupts of those who wait."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from renderer.errors import KernelError
from renderer.gpu import compilation, open_context
from renderer.gpu.cache import cache_folder, write_atomically
from renderer.gpu.compilation import CompilePool, Compiler, CompilerDied, Task, background, interruptible, result, wait
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import GeneratedSource
from renderer.gpu.opencl import pocl_compile
from renderer.gpu.opencl.pocl_compile import PoclCompile
from renderer.paths import ROOT, SHADERS
from tests.gpu.slow_compiler import is_alive, pids, slow_child, wait_until

POCL = Path("/etc/OpenCL/vendors/pocl.icd")
needs_pocl = pytest.mark.skipif(not POCL.exists(), reason="PoCL is not installed here")
ADD = """KERNEL add(GLOBAL float *values, int count) {
    int i = (int)thread_index();
    if (i < count) values[i] += 1.0f;
}
"""


def test_a_task_is_suspended_until_one_of_its_futures_is_done_and_wakes_its_window():
    first, second, woken, seen = Future(), Future(), [], []

    def work():
        seen.append("start")
        wait([first, second], "a kernel")
        seen.append(result(second, "another kernel"))

    task = Task(work, lambda: woken.append(True))
    assert not task.resume() and seen == ["start"] and not task.ready and task.compiles == "a kernel"
    first.set_result(1)
    assert woken and task.ready
    assert not task.resume() and not task.ready and task.compiles == "another kernel"
    second.set_result("answer")
    assert task.resume() and seen == ["start", "answer"]


def test_two_tasks_of_one_thread_wait_beside_each_other():
    futures, order = [Future(), Future()], []

    def work(index):
        order.append(result(futures[index], "a kernel"))

    tasks = [Task(lambda index=index: work(index)) for index in (0, 1)]
    assert [task.resume() for task in tasks] == [False, False]
    futures[1].set_result("second")
    assert tasks[1].resume() and not tasks[0].ready
    futures[0].set_result("first")
    assert tasks[0].resume() and order == ["second", "first"]


def test_what_a_task_raises_goes_to_who_resumes_it_and_cancelling_unwinds_it():
    failing, cleaned = Future(), []
    task = Task(lambda: result(failing, "a kernel"))
    assert not task.resume()
    failing.set_exception(KernelError("it does not compile"))
    with pytest.raises(KernelError, match="does not compile"):
        task.resume()

    def work():
        try:
            wait([Future()], "a kernel")
        finally:
            cleaned.append(True)

    task = Task(work)
    assert not task.resume() and not cleaned
    task.cancel()
    assert cleaned and task.dead
    Task(work).cancel()  # it has not started
    assert cleaned == [True]


def test_others_than_tasks_wait_for_what_they_need():
    future = Future()
    threading.Timer(0.2, future.set_result, ["answer"]).start()
    assert result(future, "a kernel") == "answer"


def test_work_is_interruptible_and_its_errors_are_its_callers():
    assert interruptible(lambda: 7) == 7
    with pytest.raises(KernelError, match="no"):
        interruptible(lambda: (_ for _ in ()).throw(KernelError("no")))


NATIVE = """
import ctypes, os, signal, sys, threading
from renderer import cli
from renderer.gpu import device
from renderer.gpu.opencl import device as opencl
from renderer.system.process import unfinished_work
libc, number = ctypes.CDLL(None), getattr(signal, sys.argv.pop(1))
real = device.interruptible

def slow(work):  # a compiler in native code that takes a minute
    threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
    return real(lambda: (libc.sleep(60), work()))

{where}.interruptible = slow
cli.run_process()
"""


@needs_pocl
@pytest.mark.parametrize(
    ("where", "number"),  # where a program is built, where a first launch compiles
    [("device", "SIGINT"), ("device", "SIGTERM"), ("opencl", "SIGINT"), ("opencl", "SIGHUP")],
)
def test_a_command_that_compiles_ends_at_a_signal(tmp_path, where, number):
    words = ["export", "mirrors", "-o", str(tmp_path / "a.png"), "--size", "32x32", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-c", NATIVE.format(where=where), number, *words],
        **dict(cwd=ROOT, stderr=subprocess.PIPE, text=True),
    )
    start = time.perf_counter()
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "rayfold: interrupted\n")
    assert time.perf_counter() - start < 20, "of a minute"
    assert not list(tmp_path.iterdir())


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A pool of compilers that record their processes."""
    monkeypatch.setattr(compilation, "module_child", slow_child(0.0, tmp_path))
    pool = CompilePool(1)
    yield pool
    pool.close()


@pytest.fixture
def cpu(pool, monkeypatch):
    """The CPU through PoCL, whose kernels are compiled in the pool, whatever the cache has."""
    if not POCL.exists():
        pytest.skip("PoCL is not installed here")
    monkeypatch.setattr(PoclCompile, "_is_ready", lambda self, marker: False)
    gpu = open_context("cpu")
    gpu.compile_in_children(pool)
    return gpu.device


def source(text=ADD):
    """A kernel that no cache has."""
    other = f"KERNEL other_{time.time_ns()}_{os.getpid()}(GLOBAL int *x) {{ x[0] = 0; }}\n"
    return GeneratedSource("new.cu", text + other)


def functions():
    return set(Path(os.environ["POCL_CACHE_DIR"]).glob("??/*/add/*/*.so"))


@pytest.mark.parametrize("count", [1000, 70000])  # PoCL compiles for less than 65535 work-items, and for more
def test_a_child_compiles_all_that_a_launch_needs(cpu, tmp_path, count):
    before = functions()
    add = cpu.kernel(source(), "add", group_size=64)
    buffer = cpu.buffer(count).fill(0)
    assert not functions() - before
    add._before_launch(count, (buffer, count))
    made = functions() - before
    assert len(made) == 1 and ("smallgrid" in str(made)) == (count == 1000)
    add(count, buffer, count)
    assert (buffer.read() == 1).all() and functions() - before == made
    assert len(pids(tmp_path)) == 1


def compiler_with_files():
    compiler = Compiler(0)
    (compiler.folder / "AB" / "C").mkdir(parents=True)
    for name in "12":
        (compiler.folder / "AB" / "C" / name).write_text(name)
    return compiler


def test_closing_a_compiler_waits_until_its_files_are_published(tmp_path, monkeypatch):
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "cache"))
    compiler, marker = compiler_with_files(), tmp_path / "cache" / "ready" / "marker"
    closing = threading.Thread(target=compiler.close)

    def close_and_write(*arguments):
        if not closing.ident:
            closing.start()
        write_atomically(*arguments)

    monkeypatch.setattr(pocl_compile, "write_atomically", close_and_write)
    PoclCompile(0, 0, "a device")._publish(compiler, "AB/C", marker)
    closing.join(30)
    assert sorted(marker.read_text().splitlines()) == ["AB/C/1", "AB/C/2"] and not compiler.folder.exists()


def test_no_marker_vouches_for_the_files_of_a_closed_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path / "cache"))
    compiler, marker = compiler_with_files(), tmp_path / "cache" / "ready" / "marker"
    compiler.close()
    with pytest.raises(CompilerDied):
        PoclCompile(0, 0, "a device")._publish(compiler, "AB/C", marker)
    assert not marker.exists() and not compiler.folder.exists()


@needs_pocl
def test_a_kernel_in_the_cache_needs_no_child(pool, tmp_path):
    text = source()
    for expected in (1, 1):
        gpu = open_context("cpu")
        gpu.compile_in_children(pool)
        buffer = gpu.device.buffer(64).fill(0)
        gpu.device.kernel(text, "add", group_size=64)(64, buffer, 64)
        assert (buffer.read() == 1).all() and len(pids(tmp_path)) == expected


@pytest.mark.parametrize(
    "body", [pytest.param("for (;;) values[0] += 1.0f;", marks=pytest.mark.slow), "*(GLOBAL float *)16 = 1.0f;"]
)
def test_a_kernel_that_runs_on_or_dies_in_the_child_is_compiled_all_the_same(cpu, tmp_path, body):
    text = ADD.replace("if (i < count) values[i] += 1.0f;", f"if (count == 0) {{ {body} }} else values[i] += 1.0f;")
    add, buffer = cpu.kernel(source(text), "add", group_size=64), cpu.buffer(64).fill(0)
    add(64, buffer, 64)
    assert (buffer.read() == 1).all()
    other, buffer = cpu.kernel(source(), "add", group_size=64), cpu.buffer(64).fill(0)
    other(64, buffer, 64)  # by the next child
    assert (buffer.read() == 1).all() and len(pids(tmp_path)) == 2


def test_a_text_that_does_not_compile_has_the_words_of_a_build(cpu):
    broken = GeneratedSource("broken.cu", "KERNEL f(GLOBAL int *x) { undeclared(x) }")
    with pytest.raises(KernelError, match=r"broken\.cu: .*refuses it") as in_child:
        cpu.kernel(broken, "f")
    cpu.compile_pool = None
    with pytest.raises(KernelError) as here:
        cpu.kernel(broken, "f")
    assert str(in_child.value) == str(here.value)


def test_a_compiler_that_dies_is_an_error_of_one_kernel(cpu, tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "module_child", slow_child(0.0, tmp_path, dies=True))
    with pytest.raises(KernelError, match=r"new\.cu: the compiler's process ended \(-11\)"):
        cpu.kernel(source(), "add")
    monkeypatch.setattr(compilation, "module_child", slow_child(0.0, tmp_path))
    cpu.kernel(source(), "add")
    assert [is_alive(pid) for pid in pids(tmp_path)].count(True) == 1


@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="NVRTC is not installed here")
def test_a_child_compiles_for_cuda_into_the_cache(pool, tmp_path, monkeypatch):
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path / "cache"))
    text = 'extern "C" __global__ void f(float *x) { x[0] = 1.0f; }'
    job = dict(text=text, architecture="sm_90", name="f.cu", strict=True)
    assert not nvrtc.is_cached(text, "sm_90", True)
    pool.submit(lambda compiler: compiler.run({"do": "cubin", **job}, "f.cu")).result()
    assert nvrtc.is_cached(text, "sm_90", True) and not nvrtc.is_cached(text, "sm_90", False)
    (entry,) = (cache_folder() / "cubin").iterdir()
    made = entry.read_bytes()
    entry.unlink()
    nvrtc.compile_cubin(**job)
    assert entry.read_bytes() == made
    job["text"] = text.replace("1.0f", "one")
    with pytest.raises(KernelError, match="f.cu: NVRTC: compilation failed"):
        pool.submit(lambda compiler: compiler.run({"do": "cubin", **job}, "f.cu")).result()


def test_what_is_compiled_in_the_background_delays_nothing(tmp_path, monkeypatch):
    pool, release = CompilePool(1), threading.Event()
    monkeypatch.setattr(pool, "_replace", lambda old, niceness: niceness)
    with background():
        slow = pool.submit(lambda niceness: release.wait(20) and niceness)
    assert pool.submit(lambda niceness: niceness).result(10) == compilation.NICE and not slow.done()
    release.set()
    assert slow.result(10) == compilation.BACKGROUND_NICE


def test_no_child_outlives_its_pool_or_its_parent(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation, "module_child", slow_child(60.0, tmp_path))
    pool = CompilePool(1)
    future = pool.submit(lambda compiler: (compiler.run({"do": "cubin"}, "x"), compiler)[0])
    wait_until(lambda: pids(tmp_path), 20)
    start = time.perf_counter()
    pool.close()
    assert time.perf_counter() - start < 2 and isinstance(future.exception(2), KernelError)
    (pid,) = pids(tmp_path)
    wait_until(lambda: not is_alive(pid), 2)
    code = "from pathlib import Path; import sys; from renderer.gpu import compilation as c; "
    code += "import tests.gpu.slow_compiler as s; c.module_child = s.slow_child(60, Path(sys.argv[1])); "
    code += "child = c.Compiler(5); print(child.folder, flush=True); child.run({'do': 'cubin'}, 'x')"
    words = [sys.executable, "-c", code, str(tmp_path)]
    parent = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    folder = Path(parent.stdout.readline().strip())
    wait_until(lambda: len(pids(tmp_path)) == 2, 20)
    assert folder.is_dir()
    parent.kill()
    parent.communicate()
    wait_until(lambda: not any(map(is_alive, pids(tmp_path))), 2, "the child lives on")
    wait_until(lambda: not folder.exists(), 2, "its folder stays")


def test_a_compiler_answers_what_it_was_asked(tmp_path):
    compiler = Compiler(0)
    try:
        with pytest.raises(KernelError, match="ended"):
            compiler.run({"do": "nothing"}, "x.cu")  # a mistake of ours: KeyError
        assert not compiler.is_alive
    finally:
        compiler.close()
    assert not compiler.folder.exists()


@pytest.mark.slow
@needs_pocl
def test_a_cold_export_ends_at_ctrl_c_and_the_next_one_draws_the_same_bits(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "POCL_CACHE_DIR"}
    environment["RAYFOLD_CACHE"] = str(tmp_path / "cache")
    words = ["export", "cornell", "--size", "32x32", "--samples", "1", "--device", "cpu", "-o"]
    command = [sys.executable, "main.py", *words]
    process = subprocess.Popen([*command, str(tmp_path / "a.png")], cwd=ROOT, env=environment, stderr=subprocess.PIPE)
    wait_until(lambda: len(list(tmp_path.glob("cache/pocl-*/??/*/program.bc"))) > 3, 60)
    start = time.perf_counter()
    process.send_signal(signal.SIGINT)
    *before, last = process.communicate(timeout=60)[1].splitlines()  # a slow machine says that it compiles
    assert last == b"rayfold: interrupted" and len(before) <= 1 and process.returncode == 130
    assert time.perf_counter() - start < 2
    for name in ("b.png", "c.png"):
        subprocess.run([*command, str(tmp_path / name)], cwd=ROOT, env=environment, check=True, timeout=120)
    assert (tmp_path / "b.png").read_bytes() == (tmp_path / "c.png").read_bytes()


def test_no_macro_takes_a_variable_number_of_arguments():
    """OpenCL C has none: PoCL accepts them, NVIDIA's compiler refuses the whole program."""
    files = [path for path in SHADERS.rglob("*") if path.suffix in (".h", ".cu")]
    variadic = [path.name for path in files if re.search(r"(?m)^\s*#\s*define\s+\w+\([^)]*\.\.\.", path.read_text())]
    assert len(files) > 100 and not variadic
