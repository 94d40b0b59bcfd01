"""Editing and breeding flames: algebra of triangles, lists of xforms, chance flames that draw."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.flames import edit, evolve, framing
from renderer.flames.chaos_game import ChaosGame
from renderer.flames.genome import Flame, Xform
from renderer.flames.interpolation import KeyFrame, interpolate_affine, interpolate_at
from renderer.flames.settings import Settings, settings_from_keyframe
from renderer.flames.xml.write import to_xml
from renderer.pictures.flame import Picture
from tests.flames.games import parse_flames


@pytest.fixture
def flame(rng):
    return replace(evolve.random_flame(rng), xforms=tuple(evolve.random_xform(rng, k / 2) for k in range(3)))


@pytest.mark.parametrize("post", [False, True])
@pytest.mark.parametrize("affine", [(1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)])
def test_corners_are_the_images_of_the_origin_and_the_unit_vectors(rng, flame, post, affine):
    flame = edit.with_xform(replace(flame, cam_pitch=1.0), 1, **{"post" if post else "affine": affine})
    corners, size = edit.triangle(flame.xforms[1], post), 2 if len(affine) == 6 else 3
    matrix = np.reshape(affine, (size, size + 1))
    assert corners[0] == tuple(matrix[:, -1])
    for k in range(size):
        assert np.allclose(corners[k + 1], matrix @ [*np.eye(size)[k], 1])
    places = rng.normal(size=(size + 1, size))
    other = edit.with_triangle(flame, 1, places, post)
    assert np.allclose(edit.triangle(other.xforms[1], post), places)
    assert other.xforms[0] is flame.xforms[0] and other.xforms[2] is flame.xforms[2]


def test_turning_keeps_corner_and_lengths(flame):
    before = np.array(edit.triangle(flame.xforms[0]))
    after = np.array(edit.triangle(edit.rotate_scale(flame, 0, 90.0, 2.0).xforms[0]))
    assert np.allclose(after[0], before[0])
    for k in (1, 2):
        x, y = before[k] - before[0]
        assert np.allclose(after[k] - after[0], [-2 * y, 2 * x])


def test_a_settings_stays_a_settings():
    settings = Settings(xforms=(Xform(), Xform()), brightness=7.0)
    changed = edit.with_variation(edit.with_xform(settings, 1, weight=2.0), 0, "swirl", 0.5)
    assert isinstance(changed, Settings) and changed.brightness == 7.0 and changed.view == settings.view
    assert dict(changed.xforms[0].variations) == {"linear": 1.0, "swirl": 0.5} and changed.xforms[1].weight == 2.0
    assert dict(edit.with_variation(changed, 0, "linear", 0.0).xforms[0].variations) == {"swirl": 0.5}
    assert edit.with_parameter(changed, 0, "julian_power", 3.0).xforms[0].parameter_value("julian_power") == 3.0


def test_maps_come_and_go_with_their_xaos():
    xforms = tuple(Xform(weight=k + 1.0, xaos=(0.1, 0.2, 0.3)) for k in range(3))
    less = edit.delete_xform(Flame(xforms), 1)
    assert [m.weight for m in less.xforms] == [1.0, 3.0] and less.xforms[0].xaos == (0.1, 0.3)
    more = edit.add_xform(less)
    assert len(more.xforms) == 3 and edit.with_xaos(more, 2, 0, 0.5).xforms[2].xaos == (0.5, 1.0, 1.0)
    with_final = edit.add_final_xform(less)
    assert edit.with_xform(with_final, edit.FINAL_XFORM, color=0.5).final_xform.color == 0.5
    assert edit.delete_xform(with_final, edit.FINAL_XFORM).final_xform is None
    with pytest.raises(UserError, match="no xform 5"):
        edit.with_xform(less, 5, weight=1.0)
    with pytest.raises(UserError, match="last xform"):
        edit.delete_xform(Flame(), 0)


def test_chance_flames_and_their_mutants_are_whole(rng):
    """Random flames and long chains of mutations stay valid, can be written, and read back the same."""
    for _ in range(5):
        flame = evolve.random_flame(rng)
        for _ in range(12):
            flame = evolve.mutate(flame, rng)
        child = evolve.cross(flame, evolve.random_flame(rng), rng)
        for each in (flame, child):
            each = replace(each, colors=tuple(map(tuple, each.palette_colors.tolist())))
            (key,), _ = parse_flames(to_xml([KeyFrame(each)]))
            assert key.flame.xforms == each.xforms
            assert replace(key.flame, palette=each.palette, final_xform=each.final_xform) == each


@pytest.mark.parametrize("kind", evolve.MUTATIONS)
def test_each_mutation_changes_something(rng, flame, kind):
    assert any(evolve.mutate(flame, rng, kind) != flame for _ in range(3))


def test_mutants_gain_and_lose_xforms(flame):
    assert len(flame.xforms) > 2
    counts = {len(evolve.mutate(flame, np.random.default_rng(k), "xforms").xforms) for k in range(24)}
    assert counts == {len(flame.xforms) - 1, len(flame.xforms) + 1}


def test_symmetry_makes_the_picture_symmetric(gpu):
    """The rotations map the flame's place onto itself (its measure only nearly: every other draw is one of them)."""
    rng = np.random.default_rng(4)
    plain = Flame(tuple(evolve.random_xform(rng, k / 2, "linear") for k in range(2)))

    def likeness(kind, turned):
        counts = framing.bucket_counts(ChaosGame(gpu.device), evolve.add_symmetry(plain, kind), (0.0, 0.0), 3.0)
        boxed = np.sqrt(counts.reshape(32, 8, 32, 8).sum((1, 3)))
        return np.corrcoef(boxed.ravel(), turned(boxed).ravel())[0, 1]

    assert likeness(4, np.rot90) > 0.85 > 0.6 > likeness(1, np.rot90)
    assert likeness(-1, np.fliplr) > 0.85 > 0.6 > likeness(1, np.fliplr)
    assert evolve.add_symmetry(plain, 1) == plain


def test_a_fitted_view_holds_the_flame(gpu, rng):
    affine = (0.5, 0.0, 3.0, 0.0, 0.5, -2.0)
    xforms = tuple(
        Xform((*affine[:2], affine[2] + dx, *affine[3:5], affine[5] + dy)) for dx, dy in ((0, 0), (1, 0), (0, 2))
    )
    view = framing.fit_view(ChaosGame(gpu.device), Flame(xforms))
    # The attractor spans x = 6 to 8 and y = -4 to 0.
    assert abs(view.center[0] - 7) < 0.4 and abs(view.center[1] + 2) < 0.7 and 3 < view.height < 5.5
    picture = Picture(gpu)
    picture.draw(Settings(xforms=xforms, view=view), (64, 64), 0.0)
    assert picture.report()["in_frame"] > 0.95


def test_a_fitted_view_holds_a_wide_halo(gpu):
    """A flame of julian and spherical, of symmetry 3, overflowed all edges: seen is the logarithm of the density."""
    halo = Xform(
        (0.9, -0.1, 0.3, 0.1, 0.9, 0.3), color=0.5, variations={"julian": 0.9}, parameters={"julian_power": 3.0}
    )
    xforms = (
        Xform((0.8, -0.3, 0.4, 0.3, 0.8, -0.2), variations={"linear": 0.4, "spherical": 0.6}), halo,
        Xform((0.5, 0.0, 0.7, 0.0, 0.5, 0.0), weight=0.6),
    )  # fmt: skip
    flame = evolve.add_symmetry(Flame(xforms), 3)
    view = framing.fit_view(ChaosGame(gpu.device), flame)
    picture = Picture(gpu)
    picture.draw(Settings(xforms=flame.xforms, view=view), (64, 64), 0.0)
    assert picture.report()["in_frame"] > 0.98


def test_a_chance_flame_can_be_seen(gpu):
    rng = np.random.default_rng(3)
    flame, view, _ = next(
        found for found in (framing.propose_flame(ChaosGame(gpu.device), rng) for _ in range(6)) if found[2]
    )
    pixels = (
        Picture(gpu)
        .draw(replace(Settings(xforms=flame.xforms, final_xform=flame.final_xform), view=view), (96, 96), 0.0)
        .read()
    )
    assert (pixels[..., :3].max(2) > 0.01).mean() > 0.03


def test_in_between_affines_go_the_short_way(rng):
    """Between a turn of 170 and one of -170 degrees lies one of 180; lengths grow by ratios."""

    def turn(degrees, length=1.0):
        c, s = length * np.cos(np.radians(degrees)), length * np.sin(np.radians(degrees))
        return (c, -s, 0.0, s, c, 0.0)

    assert np.allclose(interpolate_affine([turn(170), turn(-170)], (0.5, 0.5), "log"), turn(180), atol=1e-12)
    assert np.allclose(interpolate_affine([turn(0), turn(60, 4.0)], (0.5, 0.5), "log"), turn(30, 2.0))
    assert np.allclose(interpolate_affine([turn(0), turn(60)], (0.5, 0.5), "linear"), np.mean([turn(0), turn(60)], 0))
    assert np.isfinite(interpolate_affine([turn(0, 1e290), turn(60)], (1.1, -0.1), "log")).all()  # extrapolated


def test_key_frames_at_their_own_times_are_themselves(rng):
    keys = []
    for time in (0.0, 2.0, 3.0):
        flame = evolve.random_flame(rng)
        colors = tuple(map(tuple, flame.palette_colors.tolist()))
        keys.append(KeyFrame(replace(flame, colors=colors), time=time, interpolation="smooth"))
    for key in keys:
        found = interpolate_at(tuple(keys), key.time)
        for one, two in zip(found.flame.xforms, key.flame.xforms, strict=False):
            assert np.allclose(one.affine, two.affine) and np.isclose(one.weight, two.weight)
            assert all(np.isclose(one.variations.get(n, 0), w) for n, w in two.variations.items())
        assert np.allclose(found.flame.palette_colors, key.flame.palette_colors, atol=1e-6)
    assert settings_from_keyframe(keys[0], tuple(keys)).keyframes[2].time == 3.0
