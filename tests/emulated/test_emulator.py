"""The emulated CUDA machine finds what it is for: each of these kernels or programs has one known mistake, or none."""

import os
import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest

from renderer.errors import KernelError
from renderer.gpu import self_test
from renderer.gpu.gl_interop import GlInterop
from renderer.gpu.kernel_source import GeneratedSource
from renderer.numerics.band_lu import BandedLU
from tests import emulated
from tests.emulated import compiler
from tests.numerics.band_matrices import scheduled

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64") or not shutil.which(compiler.COMPILER),
    reason="no C++ compiler for x86-64 Linux here",
)

TEXT = """
KERNEL reverse(GLOBAL const int *from, GLOBAL int *to) {  // each group its own run
    LOCAL_ARRAY(int, kept, GROUP_SIZE);
    kept[local_index()] = from[thread_index()];
#if !FORGETS_BARRIER
    BARRIER();
#endif
    to[thread_index()] = kept[GROUP_SIZE - 1 - local_index()];
}
KERNEL turn_warp(GLOBAL int *to) {
    LOCAL_ARRAY(int, kept, GROUP_SIZE);
    kept[local_index()] = (int)thread_index();
#if !FORGETS_BARRIER
    WARP_BARRIER();
#endif
    to[thread_index()] = kept[local_index() ^ 1u];
}
KERNEL beyond(GLOBAL int *to, int at) {
    if (thread_index() == 37) to[at] = 1;
}
KERNEL beside(GLOBAL int *to, int at) {
    LOCAL_ARRAY(int, kept, 8);
    LOCAL int *place = kept;
    if (local_index() == 0) place[at] = 1;
    BARRIER();
    to[thread_index()] = kept[0];
}
KERNEL stuck(GLOBAL int *to) {
    if (local_index() < 32) to[thread_index()] = (int)ballot(true);
    else BARRIER();
}
KERNEL count(GLOBAL int *to) { to[0] += 1; }
KERNEL add(GLOBAL int *to, GLOBAL const int *from) { to[thread_index()] += from[thread_index()]; }
KERNEL gather(GLOBAL uint *to, GLOBAL const float *x) {
    uint lane = lane_index(), word = ballot(x[thread_index()] > 0), best = warp_max((uint)x[thread_index()]);
    to[3 * thread_index()] = word;
    to[3 * thread_index() + 1] = warp_shuffle(lane * lane, lane ^ 5u);
    to[3 * thread_index() + 2] = best;
}
"""
CLUSTER = """
KERNEL_CLUSTER(4) pass_round(GLOBAL int *to, int forgets) {  // every group gets the numbers of the group before it
    LOCAL_ARRAY(ulong, box, 1);
    LOCAL_ARRAY(float, letters, 2 * GROUP_SIZE);
    uint rank = cluster_rank(), lane = local_index();
    if (lane == 0) {
        mbarrier_init(box);
        mbarrier_expect_tx(box, 8 * GROUP_SIZE);
    }
    CLUSTER_BARRIER();
    DSMEM_STORE(&letters[2 * lane], (rank + 1) % 4, (float)(100 * rank), (float)lane, box);
    if (!forgets || rank > 0) mbarrier_wait(box, 0);
    to[thread_index()] = (int)(letters[2 * lane] + letters[2 * lane + 1]);
}
KERNEL copy_tiles(GLOBAL const int *from, GLOBAL int *to, int n) {
    LOCAL_ARRAY(int4, tile, GROUP_SIZE);
    int first = 4 * (int)thread_index(), valid = clamp(n - first, 0, 4);
    async_copy16(&tile[local_index()], from + first, 4 * valid);
    async_commit_group();
#if !FORGETS_BARRIER
    async_wait_group(0);
    BARRIER();
#endif
    int4 mine = tile[GROUP_SIZE - 1 - local_index()];
    to[thread_index()] = mine.x + mine.y + mine.z + mine.w;
}
"""


@pytest.fixture
def seed(rng):
    return int(rng.integers(1 << 31))


def kernel(device, entry, group_size=64, text=TEXT, **constants):
    return device.kernel(GeneratedSource("mistakes.cu", text), entry, group_size, **{"FORGETS_BARRIER": 0, **constants})


def reversed_by(device, forgets):
    given = np.arange(128, dtype="i4")
    out = device.buffer(128, "i4").fill(0)
    kernel(device, "reverse", FORGETS_BARRIER=forgets)(128, device.buffer(128, "i4").write(given), out)
    return np.array_equal(out.read().reshape(2, 64)[:, ::-1], given.reshape(2, 64))


def turned_by(device, forgets):
    out = device.buffer(64, "i4")
    kernel(device, "turn_warp", FORGETS_BARRIER=forgets)(64, out)
    return np.array_equal(out.read(), np.arange(64) ^ 1)


@pytest.mark.parametrize("run", [reversed_by, turned_by])
def test_a_forgotten_barrier_changes_results_and_is_reported_as_a_race(run, seed):
    plain, checked = (emulated.cuda_machine(1, seed, races).CudaDevice(0) for races in (False, True))
    assert all(run(plain, 0) for _ in range(20)) and run(checked, 0)
    assert not all(run(plain, 1) for _ in range(20))
    with pytest.raises(KernelError, match=r"race on .*mistakes\.cu:\d+"):
        for _ in range(20):
            run(checked, 1)


def test_groups_that_change_one_word_race(seed):
    device = emulated.cuda_machine(1, seed, True).CudaDevice(0)
    kernel(device, "count")(64, device.buffer(1, "i4").fill(0))
    with pytest.raises(KernelError, match=r"count: a race .*mistakes\.cu:32"):
        device.finish()


def test_words_out_of_bounds_are_told_with_their_line(seed):
    device = emulated.cuda_machine(1, seed).CudaDevice(0)
    buffers = [device.buffer(100, "i4") for _ in range(20)]
    beyond = kernel(device, "beyond")
    for buffer in buffers:
        beyond(64, buffer, 99)
    device.finish()
    for buffer in buffers:
        beyond(64, buffer, 100)
    with pytest.raises(
        KernelError, match=r"beyond: illegal .* group 0, thread 37; at mistakes\.cu:19; byte 400 of a b"
    ):
        device.finish()
    beside = kernel(device, "beside")
    for at in (0, 7):
        beside(64, buffers[0], at)
    device.finish()
    for at in (-1, 8):
        beside(64, buffers[0], at)
        with pytest.raises(KernelError, match="beside its local array kept"):
            device.finish()


def test_threads_that_wait_for_ever_are_told(seed):
    device = emulated.cuda_machine(1, seed).CudaDevice(0)
    kernel(device, "stuck")(64, device.buffer(64, "i4"))
    with pytest.raises(KernelError, match="stuck: 32 threads of group 0 ended before a barrier at which 32 wait"):
        device.finish()


def test_memory_is_garbage_before_it_is_written(seed):
    device = emulated.cuda_machine(1, seed).CudaDevice(0)
    assert device.buffer(100, "u1").read().all()


def test_warps_vote_and_exchange(rng, seed):
    device = emulated.cuda_machine(1, seed).CudaDevice(0)
    x = rng.integers(-50, 50, 128).astype("f4")
    out = device.buffer((128, 3), "u4")
    x = np.abs(x) * (rng.random(128) < 0.5)
    kernel(device, "gather")(128, out, device.buffer(128).write(x.astype("f4")))
    words, lanes, best = out.read().T
    warps = x.reshape(4, 32)
    assert np.array_equal(words, np.repeat([sum(1 << k for k in range(32) if warp[k] > 0) for warp in warps], 32))
    assert np.array_equal(lanes, (np.arange(128) % 32 ^ 5) ** 2)
    assert np.array_equal(best, np.repeat(warps.max(axis=1), 32))


def test_clusters_mail_and_tiles_are_copied(rng, seed):
    device = emulated.cuda_machine(1, seed).CudaDevice(0)
    out = device.buffer(4 * 64, "i4")
    for _ in range(5):
        kernel(device, "pass_round", text=CLUSTER)(4 * 64, out, 0)
        want = np.roll(np.arange(4) * 100, 1)[:, None] + np.arange(64)
        assert np.array_equal(out.read().reshape(4, 64), want)
    with pytest.raises(KernelError, match="rank 0 of a cluster, which has ended|ended with mail on its way"):
        for _ in range(20):
            kernel(device, "pass_round", text=CLUSTER)(4 * 64, out, 1)
            device.finish()
    given = rng.integers(-9, 9, 4 * 64).astype("i4")
    out, tiles, n = device.buffer(64, "i4"), device.buffer(4 * 64, "i4").write(given), int(rng.integers(1, 256))
    want = np.where(np.arange(256) < n, given, 0).reshape(64, 4).sum(axis=1)[::-1]
    kernel(device, "copy_tiles", text=CLUSTER)(64, tiles, out, n)
    assert np.array_equal(out.read(), want)


def sums_come_first(machine, waits):
    """Whether sums on one queue came before their copies on another."""
    device = machine.CudaDevice(0)
    add, one = kernel(device, "add"), device.buffer(64, "i4").write(np.ones(64, "i4"))
    told = []
    for _ in range(4):
        total, copied, queue = device.buffer(64, "i4").fill(0), device.buffer(64, "i4"), device.priority_queue()
        device.finish()
        add(64, total, one)
        place = device.record_event()
        with queue:
            if waits:
                device.wait_event(place)
            copied.copy_from(total)
            back = device.record_event()
        device.wait_event(back)
        told.append(bool((copied.read() == 1).all()))
    return all(told)


def test_queues_are_ordered_by_places_alone(seed):
    machines = [emulated.cuda_machine(1, seed + k) for k in range(20)]
    assert all(sums_come_first(machine, True) for machine in machines)
    assert not all(sums_come_first(machine, False) for machine in machines)


def test_band_lu_is_the_same_in_any_order_on_four_devices(rng, seed):
    machine = emulated.cuda_machine(4, seed)
    devices = [machine.CudaDevice(k) for k in range(4)]
    self_test(devices[-1])
    n, kl, ku = 150, 20, 9
    ab = rng.standard_normal((kl + ku + 1, n)).astype("f4")
    ab[ku] += 9
    want = BandedLU(ab, kl, ku, devices[:1], 16, **scheduled(gemm="own"))
    for residency in ("resident", "streamed"):
        lu = BandedLU(ab, kl, ku, devices, 16, **scheduled(residency, "own"))
        assert np.array_equal(lu.upper(), want.upper()) and np.array_equal(lu.pivots, want.pivots)


def test_compiler_rewrites_asm():
    text = 'int a; asm volatile("op.it.u32 %0, [%1], 4, _;" : "=r"(a) : "r"(f(b, (c))) : "memory");\nnext'
    assert compiler.calls_for_asm(text) == "int a; ptx_op_it_u32((a), (f(b, (c))), 4);\nnext"
    assert compiler.calls_for_asm('asm volatile("" : : : "memory");') == 'asm volatile("" : : : "memory");'


@pytest.mark.slow
def test_band_lu_in_many_orders(rng, seed):
    """Shapes, devices, panels, residence and products at random, against the processor; twice into the same buffers."""
    for turn in range(40):
        count = int(rng.choice([1, 2, 4]))
        machine = emulated.cuda_machine(count, seed + turn)
        devices = [machine.CudaDevice(k) for k in range(count)]
        n, kl, ku = (int(k) for k in rng.integers((60, 1, 1), (160, 40, 40)))
        ab, b = rng.standard_normal((kl + ku + 1, n)), rng.standard_normal((n, 3))
        ab[ku] += 2 + np.sqrt(kl + ku)
        words = ("resident", "streamed"), ("vendor", "own")
        how = scheduled(*(str(rng.choice(pair)) for pair in words))
        host, lu = BandedLU(ab, kl, ku, block=16), BandedLU(ab, kl, ku, devices, 16, **how)
        assert np.array_equal(lu.pivots, host.pivots), how
        assert np.allclose(lu.upper(), host.upper(), rtol=0, atol=1e-11 * np.abs(host.upper()).max()), how
        x = lu.solve(b)
        assert lu.residual(x, b) <= 50 * 0.5 * np.finfo("f8").eps, how
        assert np.array_equal(lu.refactor(ab).solve(b), x), how


@pytest.mark.slow
def test_suite_runs_on_it():
    """The way that `make test-emulated` takes, with one test of the device contract."""
    test = "tests/gpu/test_devices.py::test_bound_launch_repeats_with_the_same_arguments"
    environment = {**os.environ, "RAYFOLD_TEST_DEVICES": "emulated"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-vv", test], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and "[cuda:0] PASSED" in done.stdout and "RAYFOLD_EMULATED_SEED" in done.stdout


def test_a_copied_frame_survives_the_next_draw_and_timers_do_not_wait(gl):
    """The way of a window's draws: a timer, a copy behind the draw, the next draw over the same memory."""
    device = emulated.cuda_machine(1).CudaDevice(0)
    frame, interop = device.buffer((4, 8, 4)).fill(0), GlInterop(gl)
    first, copies = device.start_timer(), []
    for byte in (1, 2):
        frame.fill(byte)
        copies.append(interop.start(frame))
        if byte == 1:
            first.stop()
            assert first.is_done in (True, False), "asking does not wait"
    frame.fill(3)
    for byte, copied in zip((1, 2), copies, strict=True):
        assert set(copied().read().tobytes()) == {byte}
    device.finish()
    assert first.is_done and first.seconds() >= 0
    assert set(interop.start(frame)().read().tobytes()) == {3}, "the memory of a copy is used again"
