"""The chaos game: a NumPy twin of its random numbers and steps, exact measures, the same bits in every arrangement."""

import copy
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from renderer.cli import main
from renderer.errors import InputError
from renderer.export.render import format_duration
from renderer.flames import chaos_game, evolve, filters, kernel_cache, kernel_source, sample_schedule, variations
from renderer.flames.camera import world_to_buckets
from renderer.flames.genome import Flame, Xform
from renderer.flames.xml import read
from renderer.formats.images import read_pixels, read_recipe
from renderer.paths import SCENES
from renderer.pictures import flame as picture_module
from renderer.pictures import flame3d, load, open_picture
from renderer.scene.cameras import Camera, View2D

IFS = ["fern", "sierpinski", "dragon", "maple", "koch"]
WINDOW = chaos_game.BucketRect(0, 0, 96, 64)
CAMERA = np.array([40.0, 0, 48, 0, -40.0, 32])


def with_lanes(device, lanes: int):
    """The device as one on which work items carry `lanes` points."""
    if lanes > 1 and device.simd_width == 1:
        pytest.skip("GPUs carry one point a work item; their compilers have no vectors for more")
    twin = copy.copy(device)
    twin.simd_width = lanes
    return twin


def played(device, flame, steps=40, chains=1024, seed=3, chunk=(0, 1), launches=1, camera=CAMERA, window=WINDOW):
    game = chaos_game.ChaosGame(device)
    game.restart([flame], [camera], [1.0], window, chains, seed, chunk)
    for _ in range(launches):
        game.advance(steps // launches)
    return game


def some_flame(rng, count=3, **settings):
    """Contracting xforms with random coefficients."""
    xforms = []
    for _ in range(count):
        a = rng.normal(size=(2, 2))
        a *= rng.uniform(0.3, 0.8) / np.linalg.norm(a, 2)
        b = rng.uniform(-0.5, 0.5, 2)
        affine = (*a[0], b[0], *a[1], b[1])
        xforms.append(Xform(tuple(map(float, affine)), weight=float(rng.uniform(0.2, 2)), color=float(rng.uniform())))
    return Flame(tuple(xforms), palette="spectrum", **settings)


# ---- the twin: the same numbers in NumPy


def mixed(u):
    u = (u ^ (u >> np.uint32(16))) * np.uint32(0x21F0AAAD)
    u = (u ^ (u >> np.uint32(15))) * np.uint32(0x735A2D97)
    return u ^ (u >> np.uint32(15))


def words(*values):
    return np.array(values, "u8").astype("u4")


def fused(a, b, c):
    return (np.float64(a) * np.asarray(b, "f8") + np.asarray(c, "f8")).astype("f4")


def twin(flame, steps, chains, seed, window=WINDOW, camera=CAMERA):
    """(cells, 4) uint64 sums of the same game, played with arrays."""
    specialization = kernel_source.specialization_of((flame,), False)
    table = kernel_source.xform_distributions(flame, specialization)[0]
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
def test_sums_equal_the_numpy_twin(device, rng, name):
    flame = some_flame(np.random.default_rng(5) if name == "fixed" else rng)
    wanted = twin(flame, 12, 1024, 3)
    sums = played(device, flame, 12).sums.read()
    assert wanted[:, 3].sum() > 255 * 1000
    # The twin rounds a * b + c twice in double, which differs from one rounding once in 2^29 products.
    assert np.abs(sums.astype("i8") - wanted.astype("i8")).sum() <= 1e-4 * wanted.sum()


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_any_number_of_points_in_a_work_item_gives_the_same_bits(device, rng, lanes):
    flame = some_flame(rng, 4)
    assert np.array_equal(played(with_lanes(device, lanes), flame).sums.read(), played(device, flame).sums.read())


def test_launches_and_parts_change_no_bit(device, rng):
    flame = some_flame(rng)
    whole = played(device, flame, 60).sums.read()
    assert np.array_equal(played(device, flame, 60, launches=5).sums.read(), whole)
    parts = [played(device, flame, 60, chunk=(k, 3)).sums.read() for k in range(3)]
    assert np.array_equal(sum(parts), whole)


def interpreted(device, flame, lanes: int, camera=CAMERA):
    """The sums of 20 steps that the interpreter plays, and of those with 20 more by the flame's own kernel."""
    twin = with_lanes(device, lanes)
    game = chaos_game.ChaosGame(twin)
    game.restart([flame], [camera], [1.0], WINDOW, 1024, 3)
    own = game.kernels._compile(game.spec, kernel_cache.INTEGER_SUMS)
    game.kernels.best_kernel = lambda specialization: game.kernels._compile(
        specialization.is_3d, kernel_cache.INTEGER_SUMS
    )
    game.advance(20)
    first = game.sums.read()
    game.kernels.best_kernel = lambda specialization: own
    game.advance(20)
    return first, game.sums.read()


def strange_flame(rng):
    """All that the interpreter must tell apart: post-affines, a final map, xaos, opacity, blended palettes."""
    flame = evolve.random_flame(rng)
    names = [str(name) for name in rng.choice(list(variations.variation_table()), 3, replace=False)]
    weights = {name: float(rng.uniform(0.1, 0.4)) for name in names}
    xforms = [replace(m, xaos=tuple(map(float, rng.integers(0, 3, len(flame.xforms)) + 0.5))) for m in flame.xforms]
    xforms[0] = replace(
        xforms[0], variations={"linear": 0.3, **weights}, post=(0.8, 0.1, 0.0, -0.1, 0.8, 0.1), opacity=0.5
    )
    final = Xform(variations={"bubble": 0.6, "linear": 0.5, "pre_blur": 0.2}, opacity=0.6, color_speed=0.0)
    return replace(flame, xforms=tuple(xforms), final_xform=final, palette_mode="linear")


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("kind", ["plain", "strange"])
def test_the_interpreter_adds_the_bits_of_a_flame_s_own_kernel(device, rng, lanes, kind):
    for _ in range(2 if kind == "plain" else 1):
        flame = evolve.random_flame(rng) if kind == "plain" else strange_flame(rng)
        first, both = interpreted(device, flame, lanes)
        assert np.array_equal(first, played(with_lanes(device, lanes), flame, 20).sums.read())
        assert np.array_equal(both, played(with_lanes(device, lanes), flame, 40).sums.read()) and both.any()


def test_the_interpreter_knows_every_variation(device, rng):
    """Four xforms of 25 variations each, one after another in the file's order."""
    names = list(variations.variation_table())
    xforms = []
    for number in range(4):
        chosen = names[number::4]
        parameters = {p: v for name in chosen for p, v in evolve.random_parameters(rng, name).items()}
        weights = {name: float(rng.uniform(0.005, 0.02)) for name in chosen}
        xforms.append(Xform(evolve.random_affine(rng), variations=weights, parameters=parameters, color=number / 3))
    flame = Flame(tuple(xforms), palette="spectrum")
    first, _ = interpreted(device, flame, device.simd_width)
    assert np.array_equal(first, played(device, flame, 20).sums.read()) and first[:, 3].sum() > 255 * 1000


@pytest.mark.slow
def test_the_interpreter_draws_flames_of_space(device):
    settings = load(SCENES / "tree.toml").settings
    camera = world_to_buckets(settings.view, (96, 64), 1, 0)
    first, _ = interpreted(device, settings, 1, camera)
    wanted = played(with_lanes(device, 1), settings, 20, camera=camera).sums.read()
    assert np.array_equal(first, wanted) and first.any()


def test_pictures_in_a_hurry_are_the_same_and_take_over_their_own_kernel(gpu, rng):
    """Structures come faster than their kernels are compiled; every picture is that of a patient one."""
    hasty, patient, size = picture_module.Picture(gpu), picture_module.Picture(gpu), (64, 48)
    hasty.never_block()
    for _ in range(3):
        flame = evolve.random_flame(rng)
        settings = picture_module.Settings(
            xforms=flame.xforms, final_xform=flame.final_xform, palette=flame.palette, quality=400.0
        )
        for _ in range(2):
            pixels = hasty.draw(settings, size, 0.0).read()
        patient.draw(settings, size, 0.0)
        assert np.array_equal(pixels, patient.draw(settings, size, 0.0).read())
    kernels, specialization = hasty._game.kernels, hasty._game.spec
    own = kernels._futures[specialization, kernel_cache.INTEGER_SUMS].result()
    assert kernels.best_kernel(specialization) is own
    assert np.array_equal(hasty.draw(settings, size, 0.0).read(), patient.draw(settings, size, 0.0).read())


def test_a_kernel_that_did_not_compile_is_tried_again(device, monkeypatch):
    kernels = kernel_cache.KernelCache(device)
    specialization = kernel_source.specialization_of((some_flame(np.random.default_rng(1)),), False)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_compile", lambda what, kind: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            kernels.best_kernel(specialization)
    assert kernels.best_kernel(specialization) is kernels.best_kernel(specialization)


def test_seeds_differ_and_repeat(device):
    flame = some_flame(np.random.default_rng(1))
    one, again, other = (played(device, flame, seed=seed).sums.read() for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    correlation = np.corrcoef(one[:, 3].astype(float), other[:, 3].astype(float))[0, 1]
    assert correlation > 0.9  # the same picture, from other samples


def test_a_window_of_the_grid_is_that_part_of_the_whole(device, rng):
    flame = some_flame(rng)
    whole = played(device, flame).sums.read().reshape(64, 96, 4)
    window = chaos_game.BucketRect(30, 10, 25, 40)
    part = played(device, flame, window=window).sums.read().reshape(40, 25, 4)
    assert np.array_equal(part, whole[10:50, 30:55])


def in_floats(device):
    """The device as one that adds four floats at once."""
    twin = with_lanes(device, 1)
    twin.has_float4_atomics = True
    return twin


def test_sums_in_floats_are_the_exact_ones(device, rng, monkeypatch):
    monkeypatch.setattr(chaos_game, "MIN_FLOAT_SAMPLES", 1)
    monkeypatch.setattr(chaos_game, "MIN_INTERVAL", 1)
    monkeypatch.setattr(chaos_game, "INITIAL_INTERVAL", 1024 * 7)
    flame = some_flame(rng)
    game = played(in_floats(device), flame, 60, launches=4)
    assert game.kernels.specialized_kernel(game.spec, kernel_cache.FLOAT_SUMS) is not None and game._measured
    assert np.array_equal(game.sums.read(), played(device, flame, 60).sums.read())


def test_spoiled_sums_in_floats_are_played_again(device, monkeypatch):
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
    assert game._interval < 1 << 18  # it has learnt


# ---- exact measures


def test_sierpinski_has_the_self_similar_measure(device):
    """Each of the 3^5 triangles of depth 5 holds 3^-5 of the points: chi-squared of their counts."""
    scene = load(SCENES / "sierpinski.toml")
    chains, steps, seed = 4096, 48, 11
    size = 1024
    camera = np.array([size / 2, 0, size / 2 + 0.317, 0, size / 2, size / 2 + 0.213])
    window = chaos_game.BucketRect(0, 0, size + 1, size + 1)
    counts = played(device, scene.settings, steps, chains, seed, camera=camera, window=window).sums.read()[:, 3] // 255
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
    counts = played(device, settings, 200, 16384, 5, camera=camera, window=window).sums.read()[:, 3] // 255
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
    counts = played(device, Flame(xforms), 400, 4096, 2, camera=camera, window=window).sums.read()[:, 3] / 255
    share = weights / weights.sum()
    draws = 400 * 4096 / 32  # a row of 32 draws one map
    assert counts[2] == 0
    assert (np.abs(counts / counts.sum() - share) < 6 * np.sqrt(share / draws) + 1e-9).all()


def test_alias_tables_hold_the_weights(rng):
    for count in (1, 2, 5, 7, 10, 300):
        weights = rng.exponential(size=count) * (rng.uniform(size=count) < 0.8) + 1e-9
        if count == 10:
            weights = np.nextafter(np.full(count, 0.1), rng.integers(0, 2, count))  # shares a last bit off 1
        table = kernel_source.alias_table(weights)
        share = np.zeros(count)
        for i, (threshold, alias) in enumerate(table):
            share[i] += threshold / 2**32 / count
            share[alias] += (1 - threshold / 2**32) / count
        assert np.allclose(share, weights / weights.sum(), atol=1e-9)


# ---- the picture


@pytest.mark.parametrize("name", IFS)
def test_scenes_draw_their_fractal(gpu, name):
    scene = load(SCENES / f"{name}.toml")
    picture = open_picture(scene, gpu)
    width, height = scene.size[0] // 8, scene.size[1] // 8
    pixels = picture.draw(scene.settings, (width, height), 0.0).read()
    assert pixels.shape == (height, width, 4) and np.isfinite(pixels).all() and (pixels[..., 3] == 1).all()
    lit = pixels[..., :3].max(2) > 0.02
    assert 0.05 < lit.mean() < 0.8, lit.mean()
    assert picture.report()["in_frame"] > 0.99  # the view of the scene holds the whole attractor
    assert not lit[[0, -1]].any() and not lit[:, [0, -1]].any()


def test_the_view_pans_and_zooms_and_turns(gpu):
    """A map onto one point: where it is seen follows from the view alone; y grows upwards."""
    xforms = (Xform((0.0, 0.0, 1.0, 0.0, 0.0, 0.5)),)
    settings = picture_module.Settings(xforms=xforms, colors=((255.0,) * 3,) * 256, filter_radius=0.0, quality=2.0)

    def seen(view, y_axis="up"):
        picture = picture_module.Picture(gpu)
        pixels = picture.draw(replace(settings, view=view, y_axis=y_axis), (200, 100), 0.0).read()
        rows, columns = np.nonzero(pixels[..., 0])
        return columns.tolist(), rows.tolist()

    assert seen(View2D((0.0, 0.0), 4.0)) == ([125], [37])
    assert seen(View2D((0.0, 0.0), 4.0), "down") == ([125], [62])
    assert seen(View2D((0.99, 0.49), 4.0)) == ([100], [49])
    assert seen(View2D((0.0, 0.0), 2.0)) == ([150], [25])
    assert seen(View2D((0.003, 0.003), 4.0, 90.0)) == ([112], [74])


def test_more_draws_are_more_samples_of_the_same_picture(gpu):
    scene = load(SCENES / "dragon.toml")
    picture = open_picture(scene, gpu)
    size = (200, 160)
    total = picture.sample_count(scene.settings, size)
    for _ in range(total):
        frame = picture.draw(scene.settings, size, 0.0)
    report = picture.report()
    assert report["samples"] >= scene.settings.quality * size[0] * size[1]
    again = open_picture(scene, gpu)
    for _ in range(total):
        other = again.draw(scene.settings, size, 0.0)
    assert np.array_equal(frame.read(), other.read())


def test_tiles_are_parts_of_the_whole(gpu, rng):
    scene = load(SCENES / "maple.toml")
    size = (150, 130)
    whole = open_picture(scene, gpu).draw(scene.settings, size, 0.0).read()
    left, top = int(rng.integers(0, 100)), int(rng.integers(0, 90))
    tile = open_picture(scene, gpu).draw(scene.settings, size, 0.0, (left, top, 50, 40)).read()
    assert np.array_equal(tile, whole[top : top + 40, left : left + 50])


def test_chains_wait_longer_where_most_maps_are_symmetry(device):
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
    hits = played(device, flame, 8, 256).sums.read()[:, 3].reshape(64, 96)
    assert hits[31:33, 47:49].sum() == hits.sum() == 255 * 8 * 256


def test_schedule_deals_every_step_once():
    for quality, size in ((0.01, (1, 1)), (3.0, (17, 31)), (100.0, (512, 512)), (1024.0, (3840, 2160))):
        plan = sample_schedule.SampleSchedule(quality, size, 1)
        steps = [plan.batch_steps(k) for k in range(plan.batches)]
        assert sum(steps) == plan.steps_per_chain and min(steps) >= 1
        assert plan.chains * plan.steps_per_chain >= quality * size[0] * size[1]
        assert plan.batches < 120


def test_filters_sum_to_one():
    for shape in filters.FILTER_SUPPORT:
        for supersample in (1, 2, 3):
            for radius in (0.0, 0.3, 0.5, 1.2):
                taps = filters.spatial_filter(Flame(filter_shape=shape, supersample=supersample, filter_radius=radius))
                assert taps.shape[0] == taps.shape[1] and (taps.shape[0] - supersample) % 2 == 0
                assert np.isclose(taps.sum(), 1, atol=1e-5)


def test_tiles_of_estimated_and_oversampled_flames_are_parts_of_the_whole(gpu, rng):
    scene = load(SCENES / "lantern.flame")
    settings = replace(scene.settings, supersample=2, filter_radius=0.8, estimator_radius=5.0, quality=8.0)
    size = (90, 70)
    whole = open_picture(scene, gpu).draw(settings, size, 0.0).read()
    for left, top, width, height in (
        (0, 0, 30, 25),
        (60, 45, 30, 25),
        (int(rng.integers(50)), int(rng.integers(40)), 31, 23),
    ):
        tile = open_picture(scene, gpu).draw(settings, size, 0.0, (left, top, width, height)).read()
        assert np.array_equal(tile, whole[top : top + height, left : left + width])


def test_layers_hold_the_raw_density(gpu):
    scene = load(SCENES / "fern.toml")
    settings = replace(scene.settings, supersample=2, palette="white", colors=())
    picture = open_picture(scene, gpu)
    picture.draw(settings, (60, 80), 0.0)
    layers = picture.layers(settings, (60, 80))
    assert layers["density"].shape == (80, 60) and layers["color_sum"].shape == (80, 60, 3)
    assert layers["density"].sum() == picture.report()["samples"]  # the whole fern is in view
    assert np.allclose(layers["color_sum"], layers["density"][..., None])


def test_exr_files_hold_the_raw_density(tmp_path):
    OpenEXR = pytest.importorskip("OpenEXR")
    path = tmp_path / "fern.exr"
    assert main(["export", str(SCENES / "fern.toml"), "-o", str(path), "--size", "48x64", "--tile", "40"]) == 0
    channels = OpenEXR.File(str(path)).channels()
    assert channels["density"].pixels.sum() >= 100 * 48 * 64 and "RGBA" in channels


def test_transparent_pictures_have_alpha_where_light_is(gpu):
    scene = load(SCENES / "fern.toml")
    pixels = open_picture(scene, gpu).draw(replace(scene.settings, transparent=True), (60, 80), 0.0).read()
    lit = pixels[..., :3].max(2) > 0
    assert 0 < lit.mean() < 1 and (pixels[..., 3][lit] > 0).mean() > 0.8 and (pixels[..., 3] == 0).mean() > 0.2


def test_bad_points_are_made_up_for(gpu):
    """A map that is never finite, drawn half of the time: the finished picture still has its samples."""
    xforms = (Xform(), Xform(variations={"modulus": 1.0}), Xform((0.5, 0.0, 0.1, 0.0, 0.5, 0.1)))
    settings = picture_module.Settings(xforms=xforms, quality=200.0)
    picture, size = picture_module.Picture(gpu), (64, 64)
    for _ in range(picture.sample_count(settings, size)):
        picture.draw(settings, size, 0.0)
    report = picture.report()
    assert report["bad_values"] > 0.3 * report["samples"] and report["samples"] >= 200 * 64 * 64 * 0.999


@pytest.mark.parametrize("lanes", [1, 16])
def test_the_fifth_bad_point_in_a_row_counts(device, lanes):
    """A map that is never good, drawn with chance b: after four bad points in a row the fifth passes."""
    b = 0.6
    xforms = (Xform((0.5, 0.0, 0.1, 0.0, 0.5, 0.0), weight=1 - b), Xform((0.0, 0.0, 1e11, 0.0, 0.0, 0.0), weight=b))
    game = played(with_lanes(device, lanes), Flame(xforms), 400, chains=8192)
    passed = b**5 / sum(b**k for k in range(5))
    assert game.bad_values() / game.samples == pytest.approx(b - passed, abs=2e-3)
    closed = tuple(replace(m, xaos=(0.0, 1.0)) for m in xforms)  # chains cannot leave the bad map
    game = played(with_lanes(device, lanes), Flame(closed), 400, chains=8192)
    assert game.bad_values() / game.samples == pytest.approx(0.8, abs=2e-3)
    counts = game.sums.read()[:, 3].reshape(64, 96).astype(float) / 255
    square = counts[:, 8:88]  # the random points fill -1 to 1 evenly: 80 buckets across, more than the 64 rows
    assert counts.sum() == square.sum() and square.std() < 1.3 * np.sqrt(square.mean())


def endless(tmp_path, name: str, asked: int):
    """An export that would take days: what it has told when it is interrupted so many times, and its answer."""
    out = tmp_path / name
    command = [sys.executable, "main.py", "export", str(SCENES / "sierpinski.toml"), "-o", str(out), "--size", "64x48"]
    command += ["--set", "quality=1e9", "--json"]
    process = subprocess.Popen(
        command, cwd=SCENES.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    told = process.stderr.readline()
    for _ in range(asked):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    answer, more = process.communicate(timeout=120)
    return process.returncode, told + more, answer, out


def test_an_endless_picture_tells_its_time_and_keeps_what_it_has(tmp_path):
    code, told, answer, out = endless(tmp_path, "kept.png", 1)
    assert code == 130 and "Traceback" not in told
    assert re.search(r"will take about [\d,]+ (minutes|hours|days|years); Ctrl-C keeps what is drawn", told), told
    facts = json.loads(answer)
    assert facts["report"]["samples"] > 1 << 20 and facts["samples"] == read_recipe(out)["samples"]
    pixels = read_pixels(out)
    assert pixels.shape[:2] == (48, 64) and 0.05 < (pixels[..., :3].max(2) > 30).mean() < 0.9


def test_spoken_times():
    assert (
        format_duration(100) == "100 seconds"
        and format_duration(600) == "10 minutes"
        and format_duration(86400 * 12) == "12 days"
    )
    assert format_duration(3600.0 * 5) == "5 hours" and format_duration(31557600.0 * 12345) == "12,345 years"


# ---- space


@pytest.mark.parametrize("name", ["tetrahedron", "tree"])
def test_flames_of_space_draw(gpu, name):
    scene = load(SCENES / f"{name}.toml")
    picture = open_picture(scene, gpu)
    pixels = picture.draw(scene.settings, (100, 100), 0.0).read()
    assert 0.05 < (pixels[..., :3].max(2) > 0.02).mean() < 0.7 and picture.report()["in_frame"] > 0.9


def test_the_camera_places_points_of_space(gpu, rng):
    """Maps onto points: their pixels are those of a pinhole."""
    camera = Camera(tuple(map(float, rng.normal(size=3) + (0, 0, 6))), (0.1, -0.2, 0.3), fov_degrees=50.0)
    points = rng.uniform(-1, 1, (6, 3))
    xforms = tuple(Xform((0, 0, 0, float(x), 0, 0, 0, float(y), 0, 0, 0, float(z))) for x, y, z in points)
    settings = flame3d.Settings(xforms=xforms, palette="white", filter_radius=0.0, quality=20.0, view=camera)
    size = (200, 160)
    pixels = flame3d.Picture(gpu).draw(settings, size, 0.0).read()
    right, up, forward = camera.axes()
    found = set(zip(*(axis.tolist() for axis in np.nonzero(pixels[..., 0])), strict=True))
    wanted = set()
    for point in points:
        d = point - camera.position
        k = size[1] / 2 / np.tan(np.radians(25.0)) / (d @ forward)
        wanted.add((int(size[1] / 2 - k * (d @ up)), int(size[0] / 2 + k * (d @ right))))
    assert found == wanted


def test_flames_of_space_have_the_same_bits_in_any_arrangement(device):
    settings = load(SCENES / "tetrahedron.toml").settings
    camera = world_to_buckets(settings.view, (96, 64), 1, 0)
    one = played(with_lanes(device, 1), settings, camera=camera).sums.read()
    assert one[:, 3].sum() > 255 * 10000
    for lanes in (4, 16):
        assert np.array_equal(one, played(with_lanes(device, lanes), settings, camera=camera).sums.read())


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
    found = played(with_lanes(device, lanes), flame).sums.read()
    assert np.array_equal(found, played(device, flame).sums.read()) and found.any()


# ---- mistakes


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("weight = -1.0", "weight is -1.0; it must be 0.0 to"),
        ("affine = [1.0, 2.0]", "affine has 2 numbers"),
        ("affine = [nan, 0.0, 0.0, 0.0, 1.0, 0.0]", "must be finite"),
        ("variations = { linaer = 1.0 }", "unknown variation 'linaer'; the nearest known is 'linear'"),
        ("parameters = { julian_powr = 1.0 }", "nearest known is 'julian_power'"),
        ("xaos = [-1.0]", "xaos"),
        ("colr = 1.0", "unknown key 'colr' (did you mean color?)"),
    ],
)
def test_mistakes_in_maps_are_told(tmp_path, change, told):
    path = tmp_path / "bad.toml"
    path.write_text(f'picture = "flame"\n[[settings.xforms]]\n{change}\n')
    with pytest.raises(InputError, match=None) as error:
        load(path)
    assert told in str(error.value) and "bad.toml" in str(error.value)


def test_weights_of_zero_and_closing_xaos_are_told(gpu):
    for xforms, told in (
        ((Xform(weight=0.0),), "weights of all xforms are 0"),
        ((Xform(xaos=(1.0, 0.0)), Xform(xaos=(0.0, 0.0))), "xaos of xform 1 excludes every xform"),
    ):
        with pytest.raises(InputError) as error:
            picture_module.Picture(gpu).draw(picture_module.Settings(xforms=xforms), (8, 8), 0.0)
        assert told in str(error.value)


def test_points_that_blow_up_are_counted(gpu):
    """Twice a map that triples, once one that halves: points leave for infinity and come back at random."""
    xforms = (Xform((3.0, 0, 0, 0, 3.0, 0), weight=2.0), Xform((0.5, 0, 0, 0, 0.5, 0)))
    picture = picture_module.Picture(gpu)
    pixels = picture.draw(picture_module.Settings(xforms=xforms), (64, 64), 0.0).read()
    assert picture.report()["bad_values"] > 1000
    assert np.isfinite(pixels).all()
