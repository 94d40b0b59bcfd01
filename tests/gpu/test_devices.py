"""The device contract on every device of this machine, and the text that kernels are assembled from."""

import contextlib
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import KernelError, UnavailableError, UserError
from renderer.gpu import list_devices, open_device, opening, self_test, verdicts
from renderer.gpu.cuda.cublas import Cublas
from renderer.gpu.kernel_source import GeneratedSource, c_struct, preprocess
from renderer.paths import SHADERS

ADD = """KERNEL add(GLOBAL float *a, GLOBAL const float *b, int n, float scale) {
    uint i = thread_index();
    if (i < (uint)n) a[i] += scale * b[i];
}"""


def test_probe_passes(device):
    self_test(device)


def test_write_read_copy_fill_round_trip(device, rng):
    values = rng.standard_normal((7, 13)).astype("f4")
    buffer = device.buffer((7, 13)).write(values)
    assert np.array_equal(buffer.read(), values)
    assert np.array_equal(device.buffer((13, 7)).copy_from(buffer).read().ravel(), values.ravel())
    assert (device.buffer(5, "u4").fill(0xAB).read() == 0xABABABAB).all()
    assert device.buffer((0, 4)).read().shape == (0, 4)


def test_stages_deliver_every_block_while_others_are_in_flight(device, rng):
    """Two stages in turn, each block added into one total: nothing is overwritten before it was used."""
    size, blocks = 1 << 16, 7
    add = device.kernel(GeneratedSource("add.cu", ADD), "add")
    total = device.buffer(size).fill(0)
    stages = [device.staging_buffer(4 * size), device.staging_buffer(4 * size)]
    values = rng.integers(-1000, 1000, (blocks, size)).astype("f4")
    lengths = rng.integers(1, size, blocks)
    for i, (block, length) in enumerate(zip(values, lengths, strict=True)):
        stage = stages[i % 2]
        stage.map()[: 4 * length] = block[:length].view("u1")
        stage.upload_then(4 * int(length), lambda buffer, n=int(length): add(n, total, buffer, n, 1.0))
    wanted = sum(np.where(np.arange(size) < n, block, 0) for block, n in zip(values, lengths, strict=True))
    assert np.array_equal(total.read(), wanted)


def test_bound_launch_repeats_with_the_same_arguments(device):
    add = device.kernel(GeneratedSource("add.cu", ADD), "add", group_size=64)
    a, b = device.buffer(100).fill(0), device.buffer(100).write(np.arange(100, dtype="f4"))
    launch = add.bind_launch(100, a, b, 100, 2.0)
    launch()
    launch()
    assert np.array_equal(a.read(), 4 * np.arange(100, dtype="f4"))


def test_device_properties_are_plausible(device):
    properties = device.properties
    assert (
        properties.compute_units >= 1
        and properties.warp_size in (1, 32)
        and 0 < properties.max_buffer_bytes <= properties.memory_bytes
    )


def test_the_properties_name_the_warp_functions_that_kernels_have(device):
    answer = device.buffer(1, "u4")
    text = "KERNEL query_ballot(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }"
    device.kernel(GeneratedSource("query_ballot", text), "query_ballot", group_size=64)(1, answer)
    assert answer.read()[0] == device.properties.has_ballot


def test_kernel_covers_any_number_of_threads(device, rng):
    add = device.kernel(GeneratedSource("add.cu", ADD), "add", group_size=64)
    for n in (0, 1, 63, 64, 65, 1000, int(rng.integers(1, 5000))):
        a, b = rng.standard_normal((2, n)).astype("f4")
        buffer = device.buffer(n).write(a)
        add(n, buffer, device.buffer(n).write(b), n, 0.5)
        assert np.allclose(buffer.read(), a + np.float32(0.5) * b, rtol=1e-6, atol=1e-6)


def test_record_is_passed_by_value_and_read_from_memory(device):
    record = np.dtype([("scale", "f4", (4,)), ("shift", "i4", (2,)), ("bytes", "u1", (8,))])
    text = """KERNEL fetch(GLOBAL const Record *records, const Record one, int which, GLOBAL float *out) {
        if (thread_index() > 0) return;
        out[0] = records[which].scale.z;
        out[1] = (float)one.shift.y;
        out[2] = (float)one.bytes[5]; }"""
    records = np.zeros(3, record)
    records["scale"][1] = 1, 2, 3, 4
    records["shift"][2] = 5, 6
    records["bytes"][2] = range(8)
    fetch = device.kernel(GeneratedSource("fetch.cu", text), "fetch", group_size=32, Record=record)
    out = device.buffer(3)
    fetch(1, device.buffer(3, record).write(records), records[2], 1, out)
    assert out.read().tolist() == [3, 6, 5]


def test_readback_buffer_copies_results_beside_later_work(device, rng):
    add = device.kernel(GeneratedSource("add.cu", ADD), "add", group_size=64)
    values = rng.standard_normal(1000).astype("f4")
    readback, one = device.readback_buffer(4000), device.buffer(1000).write(values)
    for turn in range(3):
        readback.buffer.copy_from(one)
        readback.start_copy()
        add(1000, one, device.buffer(1000).write(values), 1000, 1.0)
        assert np.array_equal(readback.wait().view("f4"), values * np.float32(turn + 1))
        values_now = one.read()
        assert np.allclose(values_now, values * (turn + 2), rtol=1e-6)
        one.write(values * np.float32(turn + 2))


def test_repeat_launches_again(device, rng):
    add = device.kernel(GeneratedSource("add.cu", ADD), "add", group_size=64)
    a, b = device.buffer(100).fill(0), device.buffer(100).write(np.ones(100, "f4"))
    again = device.capture_graph(lambda: [add(100, a, b, 100, scale) for scale in (1.0, 10.0)])
    assert (a.read() == 0).all() or not hasattr(again, "_graph")
    a.fill(0)
    for turn in range(1, 4):
        again()
        assert (a.read() == 11 * turn).all()


def test_marks_measure_the_work_between_them(device):
    first = device.timestamp()
    device.buffer(1 << 20).fill(1)
    last = device.timestamp()
    assert 0 <= last.seconds_since(first) < 60


def test_vendor_product_subtracts_parts_of_matrices(device, rng):
    for dtype in ("f4", "f8"):
        product = device.vendor_blas(dtype)
        if product is None:
            pytest.skip(f"{device.name} has no vendor product here")
        a, b, c = rng.standard_normal((3, 20, 16)).astype(dtype)  # columns of 16 rows
        places = [device.buffer((20, 16), dtype).write(x) for x in (a, b, c)]
        product.bind_gemm_subtract(5, 7, 6, (places[0], 18, 16), (places[1], 3, 16), (places[2], 33, 16))()
        want = c.T.copy()
        want[1:6, 2:9] -= a.T[2:7, 1:7] @ b.T[3:9, 0:7]
        assert np.allclose(places[2].read().T, want, atol=1e-5 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("failing", [None, "cublasCreate", "cublasGetVersion"])
def test_the_version_of_cublas_is_named_and_a_failing_call_is_a_sentence(failing):
    """A library that answers as cuBLAS does: 0 is success, a version is 10,000 major + 100 minor + patch."""

    def create(handle):
        return 3 * (failing == "cublasCreate")

    def get_version(handle, version):
        version._obj.value = 120_405
        return 3 * (failing == "cublasGetVersion")

    class Card(contextlib.nullcontext):
        name = "card"

    library = SimpleNamespace(
        cublasDgemm_v2_64=None,
        cublasDgemmStridedBatched_64=None,
        cublasCreate_v2=create,
        cublasGetVersion_v2=get_version,
    )
    if failing:
        with pytest.raises(KernelError, match=f"^card: {failing} failed with status 3$"):
            Cublas(Card(), library, np.dtype("f8"))
    else:
        assert Cublas(Card(), library, np.dtype("f8")).name == "cuBLAS 12.4"


def test_strict_forbids_contraction(device, rng):
    text = "KERNEL f(GLOBAL float *a, GLOBAL const float *b) { uint i = thread_index(); a[i] = a[i] * b[i] + 1.0f; }"
    a, b = rng.standard_normal((2, 4096)).astype("f4")
    buffer = device.buffer(4096).write(a)
    device.kernel(GeneratedSource("f.cu", text), "f", STRICT=1)(4096, buffer, device.buffer(4096).write(b))
    assert np.array_equal(buffer.read(), a * b + np.float32(1))


def test_seconds_grows_with_the_work(device):
    text = """KERNEL spin(GLOBAL float *a, int n) { float x = a[thread_index()];
        for (int i = 0; i < n; i++) x = x * 0.999f + 0.5f; a[thread_index()] = x; }"""
    spin, buffer = device.kernel(GeneratedSource("spin.cu", text), "spin"), device.buffer(4096).fill(0)
    few, many = (min(device.time_seconds(lambda n=n: spin(4096, buffer, n)) for _ in range(3)) for n in (100, 100_000))
    assert 0 <= few < many


def test_compile_error_names_the_true_file_and_line(device):
    text = '#include "common/portable.h"\n\nKERNEL broken(GLOBAL float *a) {\n    a[0] = undeclared_name;\n}\n'
    with pytest.raises(KernelError, match=r"broken\.cu(:4|\(4\)).*|undeclared_name") as error:
        device.kernel(GeneratedSource("broken.cu", text), "broken")
    assert "broken.cu" in str(error.value) and "undeclared_name" in str(error.value)


def test_missing_entry_is_named(device):
    with pytest.raises(KernelError, match="nothing"):
        device.kernel("common/self_test.cu", "nothing")


def test_wrong_argument_types_are_refused(device):
    add = device.kernel(GeneratedSource("add.cu", ADD), "add")
    with pytest.raises((TypeError, KernelError)):
        add(1, device.buffer(1), [1.0], 1, 0.5)


def test_too_much_memory_is_a_sentence(device):
    with pytest.raises(UnavailableError, match="[GM]iB"):
        device.buffer(1 << 44)


def test_struct_layout_is_checked():
    assert "float4 low;" in c_struct("Node", np.dtype([("low", "f4", (4,)), ("left", "i4"), ("pad", "i4", (3 + 4,))]))
    with pytest.raises(AssertionError, match="portable"):
        c_struct("Bad", np.dtype([("p", "f4", (3,))]))
    with pytest.raises(AssertionError, match="padded"):
        c_struct("Bad", np.dtype([("p", "f4", (4,)), ("q", "f4")]))
    with pytest.raises(AssertionError, match="offset"):
        c_struct("Bad", np.dtype([("q", "f4"), ("p", "f4", (4,))]))


def test_includes_are_replaced_once_each_line_by_line():
    def expand(name: str, lines: list[str]) -> list[str]:
        seen.add(name)
        out = [f'#line 1 "{name}"']
        for number, line in enumerate(lines, 1):
            words = line.split('"')
            if not line.startswith("#include"):
                out.append(line)
                continue
            out += expand(words[1], (SHADERS / words[1]).read_text().splitlines()) if words[1] not in seen else []
            out.append(f'#line {number + 1} "{name}"')
        return out

    seen: set[str] = set()
    text = '\n\n#include "bvh/presplit.cu"\n#include "bvh/presplit.cu"\n\nint last;'
    wanted = "\n".join(expand("made", text.splitlines())) + "\n"
    assert preprocess(GeneratedSource("made", text), None) == "\n" + wanted
    assert len(seen) > 2


def test_assemble_keeps_line_numbers_and_includes_once():
    text = preprocess(
        GeneratedSource("x.cu", '#include "common/self_test.cu"\n#include "common/self_test.cu"\nlast'), None
    )
    assert text.count("KERNEL self_test") == 1
    assert text.rstrip().endswith('#line 3 "x.cu"\nlast')


def test_unknown_device_spellings_are_told():
    with pytest.raises(UserError, match="allowed are"):
        open_device("warp-drive")
    with pytest.raises(UnavailableError, match="not on this machine"):
        open_device("cuda:99")


@pytest.mark.skipif(not [f for f in list_devices()[0] if f.device_type == "cpu"], reason="no CPU OpenCL driver here")
def test_device_cpu_opens_a_cpu():
    assert "opencl" in open_device("cpu").name


def test_what_is_compiled_ahead_is_compiled_once_and_fails_where_it_is_asked_for(device, monkeypatch):
    real, built = type(device)._build, []
    monkeypatch.setattr(device, "compiles_beside_work", True, raising=False)
    monkeypatch.setattr(device, "_build", lambda p: built.append(p.name) or real(device, p), raising=False)
    others = dict(device._compiling)  # guesses of tests before, that nobody asked for
    source = GeneratedSource("ahead", ADD.replace("a[i] +=", "a[i] -="))
    device.compile_ahead(source, 64)
    device.compile_ahead(source, 64)
    a, b = device.buffer(8).fill(0), device.buffer(8).write(np.arange(8, dtype="f4"))
    device.kernel(source, "add", 64)(8, a, b, 8, 2.0)
    assert np.array_equal(a.read(), -2 * np.arange(8)) and built == ["ahead"]
    device.compile_ahead(GeneratedSource("wrong", "KERNEL add("), 64)  # says nothing
    with pytest.raises(KernelError, match="wrong"):
        device.kernel(GeneratedSource("wrong", "KERNEL add("), "add", 64)
    assert built == ["ahead", "wrong"] and device._compiling == others


def test_portable_header_holds_the_only_back_end_questions():
    for path in SHADERS.rglob("*"):
        if path.is_file() and path.name != "portable.h":
            for word in ("__CUDACC", "__OPENCL", "__NV_CL", "cl_khr"):
                assert word not in path.read_text(encoding="utf-8"), f"{path.name} asks for {word}"


def test_drivers_behind_the_one_that_works_are_not_asked(monkeypatch):
    """A machine with CUDA waits for no OpenCL: its drivers are tried in child processes, and one may hang."""

    def info(backend, number, kind):
        return opening.DeviceInfo(
            f"{backend}:{number}", "name", backend, kind, lambda: opened.append(backend) or device
        )

    def list_backend(backend):
        asked.append(backend)
        kinds = {"cuda": ["gpu"], "opencl": ["gpu", "cpu"]}[backend]
        return [info(backend, number, kind) for number, kind in enumerate(kinds)], ""

    device = object()
    monkeypatch.setattr(opening, "list_backend", list_backend)
    monkeypatch.setattr(opening, "_test", lambda device: None)
    for device_id, wanted in (("auto", "cuda"), ("cuda:0", "cuda"), ("opencl:0", "opencl"), ("cpu", "opencl")):
        asked, opened = [], []
        assert open_device(device_id) is device
        assert asked == opened == [wanted], device_id
    asked, opened = [], []
    with pytest.raises(UnavailableError, match="has auto, cpu, cuda:0, opencl:0, opencl:1"):
        open_device("cuda:7")
    with pytest.raises(UserError, match="allowed are auto"):
        open_device("metal")


def test_processors_pass_their_self_test_once(monkeypatch, tmp_path):
    """Once for each driver and text, again behind a crash and where it failed; GPUs pass it at each start."""
    ran: list[str] = []
    killed = {"before": False}

    def run(device):
        ran.append(device.driver)
        if device.driver == "broken":
            raise KernelError("wrong bits")

    def device(driver, scalar=True):
        return SimpleNamespace(name="a", driver=driver, properties=SimpleNamespace(scalar_threads=scalar))

    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path))
    monkeypatch.setattr(opening, "self_test", run)
    monkeypatch.setattr(verdicts, "_was_killed", lambda: killed["before"])
    for driver in ("1", "1", "2", "1", "2"):
        opening._test(device(driver))
    assert ran == ["1", "2"]
    killed["before"] = True
    opening._test(device("1"))
    killed["before"] = False
    for _ in range(2):
        with pytest.raises(KernelError, match="wrong bits"):
            opening._test(device("broken"))
        opening._test(device("gpu", scalar=False))
    assert ran[2:] == ["1", "broken", "gpu", "broken", "gpu"]
    monkeypatch.setattr(opening, "preprocess", lambda file: "another text")
    opening._test(device("1"))
    assert ran[7:] == ["1"]


def test_the_next_driver_is_asked_where_the_first_has_no_device_that_works(monkeypatch):
    def fail():
        raise KernelError("broken")

    rows = {"cuda": [opening.DeviceInfo("cuda:0", "a", "cuda", "gpu", fail)], "opencl": []}
    monkeypatch.setattr(opening, "list_backend", lambda backend: (rows[backend], ""))
    with pytest.raises(UnavailableError, match=r"no compute device works here: cuda:0 \(a\): broken"):
        open_device("auto")
    rows["opencl"] = [opening.DeviceInfo("opencl:0:0", "b", "opencl", "cpu", lambda: "b")]
    monkeypatch.setattr(opening, "_test", lambda device: None)
    assert open_device("auto") == "b"
