"""The chaos game: sums equal a NumPy reference and exact measures, with the same bits in every arrangement."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.flames import chaos_game, kernel_arguments, kernel_cache, kernel_source, sample_schedule
from renderer.flames.camera import world_to_buckets
from renderer.flames.genome import Flame, Xform
from renderer.flames.postprocess import BLOCK, PADDING, TILE
from renderer.flames.xml import read
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.flame import Picture
from tests.flames.games import CAMERA, WINDOW, random_contraction, run_chaos_game, with_simd_width


def mixed(u):
    u = (u ^ (u >> np.uint32(16))) * np.uint32(0x21F0AAAD)
    u = (u ^ (u >> np.uint32(15))) * np.uint32(0x735A2D97)
    return u ^ (u >> np.uint32(15))


def words(*values):
    return np.array(values, "u8").astype("u4")


def fused(a, b, c):
    return (np.float64(a) * np.asarray(b, "f8") + np.asarray(c, "f8")).astype("f4")


def reference(flame, steps, chains, seed, window=WINDOW, camera=CAMERA):
    """(cells, 4) uint64 sums of the same game, run_chaos_game with arrays."""
    specialization = kernel_source.specialize((flame,), False)
    table = kernel_arguments.xform_distributions(flame, specialization)[0]
    slots, seed_word = np.arange(chains, dtype="u4"), words(chaos_game.seed_to_u32(seed))
    key = mixed(mixed(slots) + seed_word)
    gamma = mixed(key ^ words(0x5BF03635)) | np.uint32(1)
    blocks = slots // 256
    block_key = mixed(mixed(words(0x80000000) | blocks) + seed_word)
    block_gamma = mixed(block_key ^ words(0x5BF03635)) | np.uint32(1)
    uniform = [(mixed(key + words(n) * gamma) >> np.uint32(8)).astype("f4") * np.float32(2**-24) for n in (1, 2, 3)]
    x, y, color = 2 * uniform[0] - 1, 2 * uniform[1] - 1, uniform[2]
    affine = np.array([m.affine for m in flame.xforms], "f4")
    pull = np.array([[m.color, m.color_speed] for m in flame.xforms], "f4")
    light = np.floor(flame.palette_colors + 0.5).astype("u8")
    sums = np.zeros((window.buckets, 4), "u8")
    block, row, column = slots // 256, slots // 32 % 8, slots % 32
    for step in range(1, sample_schedule.FUSE + steps + 1):
        step_word = mixed(words(step) * words(0x9E3779B9) + seed_word)
        turn = ((column + words(1)) * (step_word | np.uint32(1))) >> np.uint32(29)
        source = block * 256 + ((row - turn) & np.uint32(7)) * 32 + column
        x, y, color = x[source], y[source], color[source]
        block_word = mixed(block_key + words(step) * block_gamma)
        eighth = (row * (block_word >> np.uint32(3) | np.uint32(1)) + block_word) & np.uint32(7)
        even = (blocks * words(0x9E3779B9) + step_word * words(0x85EBCA6B)) >> np.uint32(3)
        drawn = eighth << np.uint32(29) | even
        wide = drawn.astype("u8") * np.uint64(len(flame.xforms))
        choice, rest = (wide >> np.uint64(32)).astype("i8"), (wide & np.uint64(0xFFFFFFFF)).astype("u4")
        choice = np.where(rest < table[choice, 0], choice, table[choice, 1].astype("i8"))
        a, (c, s) = affine[choice].T, pull[choice].T
        x, y = fused(a[0], x, fused(a[1], y, a[2])), fused(a[3], x, fused(a[4], y, a[5]))
        color = s * c + (np.float32(1) - s) * color
        if step > sample_schedule.FUSE:
            m = camera.astype("f4")
            fx, fy = fused(m[0], x, fused(m[1], y, m[2])), fused(m[3], x, fused(m[4], y, m[5]))
            seen = (fx >= 0) & (fx < window.columns) & (fy >= 0) & (fy < window.rows)
            cell = fy[seen].astype(int) * window.columns + fx[seen].astype(int)
            entry = np.clip((color[seen] * np.float32(256)).astype(int), 0, 255)
            for k in range(3):
                np.add.at(sums[:, k], cell, light[entry, k])
            np.add.at(sums[:, 3], cell, np.uint64(255))
    return sums


@pytest.mark.parametrize("name", ["fixed", "fresh"])
def test_sums_equal_the_numpy_reference(device, rng, name):
    flame = random_contraction(np.random.default_rng(5) if name == "fixed" else rng)
    wanted = reference(flame, 12, 1024, 3)
    sums = run_chaos_game(device, flame, 12).sums.read()
    assert wanted[:, 3].sum() > 255 * 1000
    # The reference rounds a * b + c twice in double, which differs from one rounding once in 2^29 products.
    assert np.abs(sums.astype("i8") - wanted.astype("i8")).sum() <= 1e-4 * wanted.sum()


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_any_number_of_points_in_a_work_item_gives_the_same_bits(device, rng, lanes):
    flame = random_contraction(rng, 4)
    assert np.array_equal(
        run_chaos_game(with_simd_width(device, lanes), flame).sums.read(), run_chaos_game(device, flame).sums.read()
    )


def test_launches_and_parts_change_no_bit(device, rng):
    flame = random_contraction(rng)
    whole = run_chaos_game(device, flame, 60).sums.read()
    assert np.array_equal(run_chaos_game(device, flame, 60, launches=5).sums.read(), whole)
    parts = [run_chaos_game(device, flame, 60, chunk=(k, 3)).sums.read() for k in range(3)]
    assert np.array_equal(sum(parts), whole)


def test_seeds_differ_and_repeat(device):
    flame = random_contraction(np.random.default_rng(1))
    one, again, other = (run_chaos_game(device, flame, seed=seed).sums.read() for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    correlation = np.corrcoef(one[:, 3].astype(float), other[:, 3].astype(float))[0, 1]
    assert correlation > 0.9  # the same picture, from other samples


def test_a_window_of_the_grid_is_that_part_of_the_whole(device, rng):
    flame = random_contraction(rng)
    whole = run_chaos_game(device, flame).sums.read().reshape(64, 96, 4)
    window = chaos_game.BucketRect(30, 10, 25, 40)
    part = run_chaos_game(device, flame, window=window).sums.read().reshape(40, 25, 4)
    assert np.array_equal(part, whole[10:50, 30:55])


def in_floats(device):
    """The device as one that adds four floats at once."""
    reference = with_simd_width(device, 1)
    reference.has_float4_atomics = True
    return reference


def test_sums_in_floats_are_the_exact_ones(device, rng, monkeypatch):
    monkeypatch.setattr(chaos_game, "MIN_FLOAT_SAMPLES", 1)
    monkeypatch.setattr(chaos_game, "MIN_INTERVAL", 1)
    monkeypatch.setattr(chaos_game, "INITIAL_INTERVAL", 1024 * 7)
    flame = random_contraction(rng)
    game = run_chaos_game(in_floats(device), flame, 60, launches=4)
    assert game.kernels.specialized_kernel(game.spec, kernel_cache.FLOAT_SUMS) is not None and game._measured_samples
    assert np.array_equal(game.sums.read(), run_chaos_game(device, flame, 60).sums.read())


def test_inexact_float_intervals_are_recomputed(device, monkeypatch):
    """All light in one bucket: 255 a sample pass 2^24 within an interval, and the sums are still exact."""
    monkeypatch.setattr(chaos_game, "MIN_FLOAT_SAMPLES", 1)
    monkeypatch.setattr(chaos_game, "INITIAL_INTERVAL", 1 << 18)
    monkeypatch.setattr(chaos_game, "MIN_INTERVAL", 1 << 16)
    flame = Flame((Xform((0.2, 0.0, 0.01, 0.0, 0.2, 0.01)),), palette="white")
    camera = np.array([4.0, 0, 48, 0, -4.0, 32])
    game = chaos_game.ChaosGame(in_floats(device))
    game.restart([flame], [camera], [1.0], WINDOW, 4096, 1)
    game.advance(101)
    assert game._inexact.read().any()
    game.advance(100)
    sums = game.sums.read()
    assert sums.max() == 255 * 4096 * 201 and sums.sum() == 4 * sums.max()
    assert game._interval_samples < 1 << 18  # it has learnt


def test_sierpinski_has_the_self_similar_measure(device):
    """Each of the 3^5 triangles of depth 5 holds 3^-5 of the points: chi-squared of their counts."""
    scene = load(SCENES / "sierpinski.toml")
    chains, steps, seed = 4096, 48, 11
    size = 1024
    camera = np.array([size / 2, 0, size / 2 + 0.317, 0, size / 2, size / 2 + 0.213])
    window = chaos_game.BucketRect(0, 0, size + 1, size + 1)
    counts = (
        run_chaos_game(device, scene.settings, steps, chains, seed, camera=camera, window=window).sums.read()[:, 3]
        // 255
    )
    assert counts.sum() == chains * steps
    vertices = np.array([[m.affine[2], m.affine[5]] for m in scene.settings.xforms]) * 2
    cells = np.flatnonzero(counts)
    point = np.stack(
        [(cells % (size + 1) + 0.5 - 0.317) / (size / 2) - 1, (cells // (size + 1) + 0.5 - 0.213) / (size / 2) - 1], 1
    )
    address = np.zeros(len(cells), int)
    for _ in range(5):  # the map undone: the nearest vertex says which
        nearest = np.argmin(((point[:, None] - vertices) ** 2).sum(2), 1)
        address = address * 3 + nearest
        point = 2 * point - vertices[nearest]
    found = np.bincount(address, counts[cells].astype(float), 243)
    wanted = chains * steps / 243
    # Samples of one chain are correlated for some steps, so the statistic spreads wider than 242 +- 22.
    assert 100 < ((found - wanted) ** 2 / wanted).sum() < 800
    assert abs(found / wanted - 1).max() < 0.2


@pytest.mark.parametrize("name", ["fern", "maple", "dragon"])
def test_the_first_moments_are_those_of_the_invariant_measure(device, name):
    """The mean of the measure solves m = sum p_i (A_i m + b_i)."""
    settings = load(SCENES / f"{name}.toml").settings
    weights = np.array([m.weight for m in settings.xforms])
    weights = weights / weights.sum()
    xforms = np.array([m.affine for m in settings.xforms]).reshape(-1, 2, 3)
    mean = np.linalg.solve(np.eye(2) - np.tensordot(weights, xforms[:, :, :2], 1), weights @ xforms[:, :, 2])
    scale, size = 40.0, 800
    camera = np.array([scale, 0, 300.0, 0, scale, 150.0])
    window = chaos_game.BucketRect(0, 0, size, size)
    counts = run_chaos_game(device, settings, 200, 16384, 5, camera=camera, window=window).sums.read()[:, 3] // 255
    assert counts.sum() == 200 * 16384
    at = np.arange(size) + 0.5
    grid = counts.reshape(size, size).astype(float)
    found = [((grid.sum(0) @ at) / counts.sum() - 300) / scale, ((grid.sum(1) @ at) / counts.sum() - 150) / scale]
    # 32 points share a draw of the map and the fern's memory is long: about 10,000 independent points of spread 2.5.
    assert np.allclose(found, mean, atol=0.1)


def test_weights_are_drawn_as_told(device, rng):
    """Maps that send everything to a point each: the share of the points is the share of the weight."""
    weights = rng.uniform(0.05, 3, 7)
    weights[2] = 0
    xforms = tuple(Xform((0.0, 0.0, k + 0.5, 0.0, 0.0, 0.5), weight=float(w)) for k, w in enumerate(weights))
    window, camera = chaos_game.BucketRect(0, 0, 7, 1), np.array([1.0, 0, 0, 0, 1.0, 0])
    counts = run_chaos_game(device, Flame(xforms), 400, 4096, 2, camera=camera, window=window).sums.read()[:, 3] / 255
    share = weights / weights.sum()
    draws = 400 * 4096 / 32  # a row of 32 draws one map
    assert counts[2] == 0
    assert (np.abs(counts / counts.sum() - share) < 6 * np.sqrt(share / draws) + 1e-9).all()


def test_alias_tables_hold_the_weights(rng):
    for count in (1, 2, 5, 7, 10, 300):
        weights = rng.exponential(size=count) * (rng.uniform(size=count) < 0.8) + 1e-9
        if count == 10:
            weights = np.nextafter(np.full(count, 0.1), rng.integers(0, 2, count))  # shares a last bit off 1
        table = kernel_arguments.alias_table(weights)
        share = np.zeros(count)
        for i, (threshold, alias) in enumerate(table):
            share[i] += threshold / 2**32 / count
            share[alias] += (1 - threshold / 2**32) / count
        assert np.allclose(share, weights / weights.sum(), atol=1e-9)


def test_fuse_grows_with_isometry_weight(device):
    """A map that halves the plane is drawn once in 40 steps; the points have come to its fixed point all the same."""
    halving = Xform((0.5, 0.0, 0.0, 0.0, 0.5, 0.0), weight=0.5)
    flame = Flame((halving, *read.symmetry_xforms(-20)), palette="spectrum")
    assert (
        sample_schedule.fuse_steps([flame]) == sample_schedule.FUSE * 41
        and sample_schedule.fuse_steps([Flame((halving,))]) == sample_schedule.FUSE
    )
    assert sample_schedule.chain_count(1 << 20, 1, sample_schedule.fuse_steps([flame])) < sample_schedule.chain_count(
        1 << 20, 1
    )
    hits = run_chaos_game(device, flame, 8, 256).sums.read()[:, 3].reshape(64, 96)
    assert hits[31:33, 47:49].sum() == hits.sum() == 255 * 8 * 256


def test_schedule_deals_every_step_once():
    for quality, size in ((0.01, (1, 1)), (3.0, (17, 31)), (100.0, (512, 512)), (1024.0, (3840, 2160))):
        plan = sample_schedule.SampleSchedule(quality, size, 1)
        steps = [plan.batch_steps(k) for k in range(plan.batches)]
        assert sum(steps) == plan.steps_per_chain and min(steps) >= 1
        assert plan.chains * plan.steps_per_chain >= quality * size[0] * size[1]
        assert plan.batches < 120


@pytest.mark.parametrize("lanes", [1, 16])
def test_fifth_consecutive_bad_value_is_accepted(device, lanes):
    """A map that is never good, drawn with chance b: after four bad points in a row the fifth passes."""
    b = 0.6
    xforms = (Xform((0.5, 0.0, 0.1, 0.0, 0.5, 0.0), weight=1 - b), Xform((0.0, 0.0, 1e11, 0.0, 0.0, 0.0), weight=b))
    game = run_chaos_game(with_simd_width(device, lanes), Flame(xforms), 400, chains=8192)
    passed = b**5 / sum(b**k for k in range(5))
    assert game.bad_values() / game.samples == pytest.approx(b - passed, abs=2e-3)
    closed = tuple(replace(m, xaos=(0.0, 1.0)) for m in xforms)  # chains cannot leave the bad map
    game = run_chaos_game(with_simd_width(device, lanes), Flame(closed), 400, chains=8192)
    assert game.bad_values() / game.samples == pytest.approx(0.8, abs=2e-3)
    counts = game.sums.read()[:, 3].reshape(64, 96).astype(float) / 255
    square = counts[:, 8:88]  # the random points fill -1 to 1 evenly: 80 buckets across, more than the 64 rows
    assert counts.sum() == square.sum() and square.std() < 1.3 * np.sqrt(square.mean())


def test_flames_of_space_have_the_same_bits_in_any_arrangement(device):
    settings = load(SCENES / "tetrahedron.toml").settings
    camera = world_to_buckets(settings.view, (96, 64), 1, 0)
    one = run_chaos_game(with_simd_width(device, 1), settings, camera=camera).sums.read()
    assert one[:, 3].sum() > 255 * 10000
    for lanes in (4, 16):
        assert np.array_equal(one, run_chaos_game(with_simd_width(device, lanes), settings, camera=camera).sums.read())


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_xaos_final_maps_and_opacity_have_the_same_bits_in_any_arrangement(device, lanes):
    xforms = (
        Xform((0.6, -0.3, 0.2, 0.3, 0.6, 0.1), xaos=(0.0, 1.0, 2.0), opacity=0.7,
            variations={"julian": 0.8, "linear": 0.1}, parameters={"julian_power": 3.0}),
        Xform((0.5, 0.2, -0.4, -0.2, 0.5, 0.3), xaos=(1.0, 0.5, 1.0), color=0.5,
            variations={"pre_blur": 0.1, "swirl": 0.7}),
        Xform((0.4, 0.0, 0.1, 0.0, 0.4, -0.6), opacity=0.0, color=1.0, post=(0.8, 0.1, 0.0, -0.1, 0.8, 0.1)),
    )  # fmt: skip
    final = Xform(variations={"bubble": 0.6, "linear": 0.5}, opacity=0.6, color_speed=0.0)
    flame = Flame(xforms, final_xform=final, palette="spectrum", palette_mode="linear")
    found = run_chaos_game(with_simd_width(device, lanes), flame).sums.read()
    assert np.array_equal(found, run_chaos_game(device, flame).sums.read()) and found.any()


def test_density_estimation_on_processors_adds_as_the_loop_over_buckets(device, rng):
    """Each bucket adds its filter to its neighbors in the order of rows and columns: the same floats, bit for bit."""
    lanes, rows, columns, side = device.simd_width, 37, 83, 6
    if lanes == 1:
        pytest.skip("for processors")
    radii = np.array([5, 3, 1, 0], "i4")
    kernels = rng.uniform(size=(4, side, side)).astype("f4")
    for kernel, r in zip(kernels, radii, strict=True):
        kernel[r + 1 :] = kernel[:, r + 1 :] = 0
    chosen = rng.integers(-1, 4, (rows, columns)).astype("i4")
    scaled = rng.uniform(size=(rows, columns, 4)).astype("f4")
    wanted = np.zeros_like(scaled)
    for v, u in np.ndindex(rows, columns):
        r = radii[chosen[v, u]] if chosen[v, u] >= 0 else -1
        for row in range(max(v - r, 0), min(v + r + 1, rows)):
            for column in range(max(u - r, 0), min(u + r + 1, columns)):
                wanted[row, column] += scaled[v, u] * kernels[chosen[v, u], abs(row - v), abs(column - u)]
    tiles = [-(-n // TILE) for n in (columns, rows)]
    nearest = np.full((tiles[1], tiles[0]), -1, "i4")
    for v, u in zip(*np.nonzero(chosen >= 0), strict=True):
        nearest[v // TILE, u // TILE] = max(nearest[v // TILE, u // TILE], radii[chosen[v, u]])
    both = np.pad(np.concatenate([kernels[..., :0:-1], kernels], 2), ((0, 0), (0, 0), (PADDING, PADDING)))
    given = [device.buffer(a.shape, a.dtype).write(a) for a in (scaled, chosen, radii, nearest, both)]
    out = device.buffer((rows, columns, 4))
    across, down = -(-columns // BLOCK[0]), -(-rows // BLOCK[1])
    kernel = device.kernel("flames/density.cu", "filter_density_by_blocks", 8, STRICT=1, LANES=lanes)
    kernel(across * down, given[0], out, *given[1:], columns, rows, tiles[0], side, across)
    assert np.array_equal(out.read(), wanted)


def test_a_picture_that_nobody_looks_at_ends_as_the_one_that_is_shown(gpu):
    settings = replace(load(SCENES / "sierpinski.toml").settings, quality=4.0, estimator_radius=5.0)
    frames = []
    for shows in (True, False):
        picture = Picture(gpu)
        picture.shows_each = shows
        for _ in range(picture.sample_count(settings, (48, 32))):
            frame = picture.draw(settings, (48, 32), 0.0)
        frames.append(picture.current_frame(frame).read())
    assert frames[0].max() > 0 and np.array_equal(*frames)


def test_temporal_samples_take_a_rare_xform_in_different_steps(device):
    """Its share of the samples is near its weight; if all blocks took it in the same steps, it would be 0 or 1 / 8."""
    rare = Xform((0, 0, 1.0, 0, 0, 0.5), weight=0.004)
    flame = Flame((Xform((0.1, 0, -0.7, 0, 0.1, 0)), rare), palette="spectrum")
    shares = []
    for seed in range(6):
        game = chaos_game.ChaosGame(device)
        game.restart([flame] * 100, [CAMERA] * 100, [1.0] * 100, WINDOW, 256 * 100, seed)
        game.advance(20)
        hits = game.sums.read()[:, 3].reshape(WINDOW.rows, WINDOW.columns)
        shares.append(hits[:, 60:].sum() / hits.sum())
    assert np.allclose(shares, 0.004 / 1.004, rtol=0.2), shares
