"""Palettes as gradients: stops are found again, edits change what they say and nothing else."""

import colorsys

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.flames import gradient, palettes


def test_stops_are_recovered(rng):
    """Stops of a palette that is linear between them are its stops, and give it back."""
    entries = [0, *sorted(rng.choice(np.arange(8, 248, 8), 5, replace=False).tolist()), 255]
    stops = [(entry, tuple(rng.integers(0, 256, 3).astype(float).tolist())) for entry in entries]
    palette = gradient.from_stops(stops)
    for (at, color), (to, last) in zip(stops[:-1], stops[1:], strict=True):
        middle = (at + to) // 2
        expected = np.array(color) + (np.array(last) - color) * (middle - at) / (to - at)
        assert abs(palette[middle] - expected).max() <= 0.5
    assert abs(gradient.from_stops(gradient.fit_stops(palette)) - palette).max() <= gradient.FIT_TOLERANCE
    assert set(entries) <= {entry for entry, _ in gradient.fit_stops(palette)} | {
        entry for entry in entries if abs(np.diff(palette[entry - 1 : entry + 2], 2, axis=0)).max(initial=0) < 2
    }


def test_a_noisy_palette_keeps_its_details_when_a_stop_moves(rng):
    palette = np.round(rng.uniform(60, 200, (256, 3)))
    stops = gradient.fit_stops(palette)
    assert len(stops) == gradient.MAX_FITTED_STOPS
    assert np.array_equal(gradient.move_stops(palette, stops, stops), palette)
    at, (red, green, blue) = stops[5]
    after = [*stops[:5], (at, (red + 20, green, blue)), *stops[6:]]
    moved = gradient.move_stops(palette, stops, after)
    low, high = stops[4][0], stops[6][0]
    assert np.array_equal(np.delete(moved, np.s_[low + 1 : high], 0), np.delete(palette, np.s_[low + 1 : high], 0))
    assert np.array_equal(moved[at], palette[at] + (20, 0, 0))


def test_a_deleted_stop_leaves_a_line_between_its_neighbors():
    stops = [(0, (0.0, 0.0, 0.0)), (100, (255.0, 0.0, 0.0)), (200, (0.0, 200.0, 0.0)), (255, (9.0, 9.0, 9.0))]
    palette = gradient.from_stops(stops)
    left = gradient.delete_stop(palette, stops, 1)
    assert np.array_equal(left[:201, 1], np.arange(201)) and not left[:201, 0].any()
    assert np.array_equal(left[200:], palette[200:])
    outer = gradient.delete_stop(palette, stops, 3)
    assert np.array_equal(outer[:201], palette[:201]) and (outer[201:] == (0, 200, 0)).all()


def test_adjustments_do_what_they_say(rng):
    palette = np.round(rng.uniform(0, 255, (256, 3)))
    assert np.array_equal(gradient.adjust(palette, "rotate", 10)[10:], palette[:-10])
    there = gradient.adjust(palette, "hue", 108)
    assert np.allclose(gradient.adjust(there, "hue", -108), palette, atol=1e-6)
    assert np.allclose(there.max(1), palette.max(1)), "a turned hue keeps the value"
    for name, value in (("saturation", -100), ("saturation", 40), ("contrast", -100), ("contrast", 60)):
        out = gradient.adjust(palette, name, value)
        for before, after in zip(palette[::37] / 255, out[::37] / 255, strict=True):
            hue, saturation, brightness = colorsys.rgb_to_hsv(*before)
            expected = colorsys.hsv_to_rgb(hue, min(saturation * (1 + value / 100), 1), brightness)
            if name == "contrast":
                expected = [min(max((c - 0.5) * (1 + value / 100) + 0.5, 0), 1) for c in before]
            assert after == pytest.approx(expected, abs=1e-9)
    soft = gradient.smooth(palette)
    assert np.allclose(soft[100], np.array([1, 4, 6, 4, 1]) @ palette[98:103] / 16)
    assert np.allclose(gradient.smooth(palettes.builtin("white")), palettes.builtin("white"))


def test_random_palettes_have_few_stops(rng):
    made = [gradient.random_palette(rng) for _ in range(8)]
    assert all(p.shape == (256, 3) and p.min() >= 0 and p.max() <= 255 for p in made)
    assert not np.array_equal(made[0], made[1])


def test_a_numbered_palette_keeps_its_hues_unless_told_to_turn(rng, monkeypatch):
    colors = rng.uniform(0, 255, (256, 3))
    monkeypatch.setattr(palettes, "flam3_palettes", lambda: {3: colors})
    assert np.array_equal(palettes.flam3_palette(3), colors) and palettes.flam3_palette(4) is None
    assert np.allclose(palettes.flam3_palette(3, 0.5), palettes.rotate_hue(colors, 0.5))


def test_a_damaged_palette_of_flam3_names_what_is_wrong(tmp_path, monkeypatch):
    """A file of the user's: of two mistakes in a palette its number is told, without which it has no name."""
    path = tmp_path / "palettes.xml"
    monkeypatch.setenv("flam3_palettes", str(path))
    for number, told in (("x", "the number .x.; it must be a whole number"), ("7", "palette 7: its data are not hexa")):
        path.write_text(f'<palettes><palette number="{number}" data="zz"/></palettes>')
        palettes.flam3_palettes.cache_clear()
        with pytest.raises(InputError, match=told):
            palettes.flam3_palettes()
    palettes.flam3_palettes.cache_clear()
