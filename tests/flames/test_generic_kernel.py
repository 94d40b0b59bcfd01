"""The generic kernel adds the bits of the specialized ones."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.flames import chaos_game, evolve, kernel_cache, kernel_source
from renderer.flames.camera import world_to_buckets
from renderer.flames.genome import Flame, Xform
from renderer.paths import SCENES
from renderer.pictures import load
from tests.flames.games import CAMERA, WINDOW, random_contraction, run_chaos_game, with_simd_width


def run_generic_then_specialized(device, flame, lanes: int, camera=CAMERA):
    """The sums of 20 steps that the interpreter plays, and of those with 20 more by the flame's own kernel."""
    reference = with_simd_width(device, lanes)
    game = chaos_game.ChaosGame(reference)
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


def flame_with_every_feature(rng):
    """All that the interpreter must tell apart: post-affines, a final map, xaos, opacity, blended palettes."""
    flame = evolve.random_flame(rng)
    names = [str(name) for name in rng.choice(list(kernel_source.generic_variations()), 3, replace=False)]
    weights = {name: float(rng.uniform(0.1, 0.4)) for name in names}
    xforms = [replace(m, xaos=tuple(map(float, rng.integers(0, 3, len(flame.xforms)) + 0.5))) for m in flame.xforms]
    xforms[0] = replace(
        xforms[0], variations={"linear": 0.3, **weights}, post=(0.8, 0.1, 0.0, -0.1, 0.8, 0.1), opacity=0.5
    )
    final = Xform(variations={"bubble": 0.6, "linear": 0.5, "pre_blur": 0.2}, opacity=0.6, color_speed=0.0)
    return replace(flame, xforms=tuple(xforms), final_xform=final, palette_mode="linear")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "lanes"),
    [
        ("plain", 1),
        ("strange", 1),
        pytest.param("strange", 16, marks=pytest.mark.slow),
        pytest.param("plain", 16, marks=pytest.mark.slow),
    ],  # 40 s to compile
)
def test_generic_kernel_adds_the_bits_of_specialized_ones(device, rng, lanes, kind):
    for _ in range(2 if kind == "plain" else 1):
        flame = evolve.random_flame(rng) if kind == "plain" else flame_with_every_feature(rng)
        first, both = run_generic_then_specialized(device, flame, lanes)
        assert np.array_equal(first, run_chaos_game(with_simd_width(device, lanes), flame, 20).sums.read())
        assert (
            np.array_equal(both, run_chaos_game(with_simd_width(device, lanes), flame, 40).sums.read()) and both.any()
        )


@pytest.mark.slow
def test_generic_kernel_has_every_variation(device, rng):
    """Four xforms of 25 variations each, one after another in the file's order."""
    names = list(kernel_source.generic_variations())
    xforms = []
    for number in range(4):
        chosen = names[number::4]
        parameters = {p: v for name in chosen for p, v in evolve.random_parameters(rng, name).items()}
        weights = {name: float(rng.uniform(0.005, 0.02)) for name in chosen}
        xforms.append(Xform(evolve.random_affine(rng), variations=weights, parameters=parameters, color=number / 3))
    flame = Flame(tuple(xforms), palette="spectrum")
    first, _ = run_generic_then_specialized(device, flame, device.simd_width)
    assert np.array_equal(first, run_chaos_game(device, flame, 20).sums.read()) and first[:, 3].sum() > 255 * 1000


@pytest.mark.slow
def test_generic_kernel_runs_3d_flames(device):
    settings = load(SCENES / "tree.toml").settings
    camera = world_to_buckets(settings.view, (96, 64), 1, 0)
    first, _ = run_generic_then_specialized(device, settings, 1, camera)
    wanted = run_chaos_game(with_simd_width(device, 1), settings, 20, camera=camera).sums.read()
    assert np.array_equal(first, wanted) and first.any()


def test_failed_compilation_is_not_cached(device, monkeypatch):
    kernels = kernel_cache.KernelCache(device)
    specialization = kernel_source.specialize((random_contraction(np.random.default_rng(1)),), False)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "_compile", lambda what, kind: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            kernels.best_kernel(specialization)
    assert kernels.best_kernel(specialization) is kernels.best_kernel(specialization)
