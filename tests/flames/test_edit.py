"""Editing and breeding flames: algebra of triangles, lists of maps, chance flames that draw."""

from dataclasses import replace

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.flames import edit, evolve, framing
from renderer.flames.genome import Flame, Map
from renderer.flames.interpolation import KeyFrame, at_time, blended_affine
from renderer.flames.xml.read import parse_flames
from renderer.flames.xml.write import text_of_flames
from renderer.pictures.flame import Picture, Settings, settings_of


@pytest.fixture
def flame(rng):
    return replace(evolve.random_flame(rng), maps=tuple(evolve.random_map(rng, k / 2) for k in range(3)))


@pytest.mark.parametrize("post", [False, True])
def test_a_dragged_corner_goes_where_it_is_dragged_and_the_others_stay(rng, flame, post):
    before = edit.triangle(flame.maps[1], post)
    for corner in (1, 2):
        place = tuple(map(float, rng.normal(size=2)))
        after = edit.triangle(edit.with_corner(flame, 1, corner, place, post).maps[1], post)
        wanted = list(before)
        wanted[corner] = place
        assert np.allclose(after, wanted)
    moved = np.array(edit.triangle(edit.with_corner(flame, 1, 0, (2.0, 3.0), post).maps[1], post))
    assert np.allclose(moved - np.array(before), np.array([2.0, 3.0]) - before[0])
    other = edit.with_corner(flame, 1, 1, (9.0, 9.0), post)
    assert other.maps[0] is flame.maps[0] and other.maps[2] is flame.maps[2]


def test_turning_keeps_corner_and_lengths(flame):
    before = np.array(edit.triangle(flame.maps[0]))
    after = np.array(edit.triangle(edit.turned(flame, 0, 90.0, 2.0).maps[0]))
    assert np.allclose(after[0], before[0])
    for k in (1, 2):
        x, y = before[k] - before[0]
        assert np.allclose(after[k] - after[0], [-2 * y, 2 * x])


def test_a_settings_stays_a_settings():
    settings = Settings(maps=(Map(), Map()), brightness=7.0)
    changed = edit.with_variation(edit.with_map(settings, 1, weight=2.0), 0, "swirl", 0.5)
    assert isinstance(changed, Settings) and changed.brightness == 7.0 and changed.view == settings.view
    assert dict(changed.maps[0].variations) == {"linear": 1.0, "swirl": 0.5} and changed.maps[1].weight == 2.0
    assert dict(edit.with_variation(changed, 0, "linear", 0.0).maps[0].variations) == {"swirl": 0.5}
    assert edit.with_parameter(changed, 0, "julian_power", 3.0).maps[0].value("julian_power") == 3.0


def test_maps_come_and_go_with_their_xaos():
    maps = tuple(Map(weight=k + 1.0, xaos=(0.1, 0.2, 0.3)) for k in range(3))
    less = edit.without_map(Flame(maps), 1)
    assert [m.weight for m in less.maps] == [1.0, 3.0] and less.maps[0].xaos == (0.1, 0.3)
    more = edit.with_new_map(less)
    assert len(more.maps) == 3 and edit.with_xaos(more, 2, 0, 0.5).maps[2].xaos == (0.5, 1.0, 1.0)
    with_final = edit.with_final(less)
    assert edit.with_map(with_final, edit.FINAL, color=0.5).final.color == 0.5
    assert edit.without_map(with_final, edit.FINAL).final is None
    with pytest.raises(UserError, match="no map 5"):
        edit.with_map(less, 5, weight=1.0)
    with pytest.raises(UserError, match="last map"):
        edit.without_map(Flame(), 0)


def test_chance_flames_and_their_mutants_are_whole(rng):
    """Random flames and long chains of mutations stay valid, can be written, and read back the same."""
    for _ in range(5):
        flame = evolve.random_flame(rng)
        for _ in range(12):
            flame = evolve.mutated(flame, rng)
        child = evolve.crossed(flame, evolve.random_flame(rng), rng)
        for each in (flame, child):
            each = replace(each, colors=tuple(map(tuple, each.palette_colors.tolist())))
            (key,), _ = parse_flames(text_of_flames([KeyFrame(each)]))
            assert key.flame.maps == each.maps
            assert replace(key.flame, palette=each.palette, final=each.final) == each


@pytest.mark.parametrize("kind", evolve.MUTATIONS)
def test_each_mutation_changes_something(rng, flame, kind):
    assert any(evolve.mutated(flame, rng, kind) != flame for _ in range(3))


def test_symmetry_makes_the_picture_symmetric(gpu):
    """The rotations map the flame's place onto itself (its measure only nearly: every other draw is one of them)."""
    rng = np.random.default_rng(4)
    plain = Flame(tuple(evolve.random_map(rng, k / 2, "linear") for k in range(2)))

    def likeness(kind, turned):
        counts = framing.counts_of(gpu.device, evolve.symmetrical(plain, kind), (0.0, 0.0), 3.0)
        boxed = np.sqrt(counts.reshape(32, 8, 32, 8).sum((1, 3)))
        return np.corrcoef(boxed.ravel(), turned(boxed).ravel())[0, 1]

    assert likeness(4, np.rot90) > 0.85 > 0.6 > likeness(1, np.rot90)
    assert likeness(-1, np.fliplr) > 0.85 > 0.6 > likeness(1, np.fliplr)
    assert evolve.symmetrical(plain, 1) == plain


def test_a_fitted_view_holds_the_flame(gpu, rng):
    affine = (0.5, 0.0, 3.0, 0.0, 0.5, -2.0)
    maps = tuple(
        Map((*affine[:2], affine[2] + dx, *affine[3:5], affine[5] + dy)) for dx, dy in ((0, 0), (1, 0), (0, 2))
    )
    view = framing.fitted(gpu.device, Flame(maps))
    # The attractor spans x = 6 to 8 and y = -4 to 0.
    assert abs(view.centre[0] - 7) < 0.4 and abs(view.centre[1] + 2) < 0.7 and 3 < view.height < 5.5
    picture = Picture(gpu)
    picture.draw(Settings(maps=maps, view=view), (64, 64), 0.0)
    assert picture.report()["in_frame"] > 0.95


def test_a_chance_flame_can_be_seen(gpu):
    flame, view = framing.chance_flame(gpu.device, np.random.default_rng(3), tries=6)
    pixels = Picture(gpu).draw(replace(Settings(maps=flame.maps, final=flame.final), view=view), (96, 96), 0.0).read()
    assert (pixels[..., :3].max(2) > 0.01).mean() > 0.03


def test_in_between_affines_go_the_short_way(rng):
    """Between a turn of 170 and one of -170 degrees lies one of 180; lengths grow by ratios."""

    def turn(degrees, length=1.0):
        c, s = length * np.cos(np.radians(degrees)), length * np.sin(np.radians(degrees))
        return (c, -s, 0.0, s, c, 0.0)

    assert np.allclose(blended_affine([turn(170), turn(-170)], (0.5, 0.5), "log"), turn(180), atol=1e-12)
    assert np.allclose(blended_affine([turn(0), turn(60, 4.0)], (0.5, 0.5), "log"), turn(30, 2.0))
    assert np.allclose(blended_affine([turn(0), turn(60)], (0.5, 0.5), "linear"), np.mean([turn(0), turn(60)], 0))


def test_key_frames_at_their_own_times_are_themselves(rng):
    keys = []
    for time in (0.0, 2.0, 3.0):
        flame = evolve.random_flame(rng)
        colors = tuple(map(tuple, flame.palette_colors.tolist()))
        keys.append(KeyFrame(replace(flame, colors=colors), time=time, interpolation="smooth"))
    for key in keys:
        found = at_time(tuple(keys), key.time)
        for one, two in zip(found.flame.maps, key.flame.maps, strict=False):
            assert np.allclose(one.affine, two.affine) and np.isclose(one.weight, two.weight)
            assert all(np.isclose(one.variations.get(n, 0), w) for n, w in two.variations.items())
        assert np.allclose(found.flame.palette_colors, key.flame.palette_colors, atol=1e-6)
    assert settings_of(keys[0], tuple(keys)).keys[2].time == 3.0
