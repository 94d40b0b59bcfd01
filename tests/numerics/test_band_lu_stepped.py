"""The recorded parts of a factorization against elimination in NumPy, column by column; pictures and time line."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.images.band_lu_picture import (
    OUTSIDE,
    PHASE_COLORS,
    PIVOT,
    ZERO,
    band_lu_view,
    matrix_colors,
    part_picture,
)
from renderer.numerics.band_lu.solver import BandedLU
from renderer.numerics.band_lu.stepped import MAX_ORDER, Bar, SteppedFactors, time_line
from renderer.pictures.band_lu import Settings, band_matrix
from tests.numerics.band_matrices import dense


def eliminations(matrix):
    """The matrix after each column's elimination with partial pivoting, (n + 1, n, n), and the pivot rows (n,)."""
    states, pivots, a = [matrix.copy()], [], matrix.copy()
    for k in range(len(matrix)):
        pivot = k + int(np.abs(a[k:, k]).argmax())
        pivots.append(pivot)
        a[[k, pivot]] = a[[pivot, k]]
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= factors[:, None] * a[k, k:]
        states.append(a.copy())
    return np.array(states), np.array(pivots)


def applied(name, i, t):
    """The steps that block column t has behind it when a part of step i is done; None once it is factored."""
    panels = i + 1 if name == "update" else i
    if t <= panels:
        return None
    if name == "look-ahead":
        return i + 1 if t == i + 1 else i
    return max(i + 1 if name == "update" else i - 1, 0)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(n=40, kl=6, ku=5, block=4, seed=3),
        Settings(n=37, kl=3, ku=9, block=8, matrix="growth"),
        Settings(n=33, kl=20, ku=2, block=5),
        Settings(n=24, kl=4, ku=4, block=8, matrix="convection"),
        Settings(n=5, kl=9, ku=9, block=16),
    ],
)
def test_every_part_is_that_of_elimination_by_columns(settings):
    ab, kl, ku = band_matrix(settings)
    matrix = dense(ab, kl, ku)
    stepped = SteppedFactors(ab, kl, ku, settings.block)
    states, pivots = eliminations(matrix)
    s, n, p = settings.block, settings.n, stepped.layout.p
    assert len(stepped.parts) == p + (p - 1) + p - sum(
        i + 1 > stepped.layout.last_updated(i) for i in range(p - 1)
    )  # without a band above there is nothing to look ahead to
    assert np.array_equal(stepped.pivots, pivots)
    for part in stepped.parts:
        assert np.array_equal(part.pivots, pivots[: part.factored])
        for t in range(p):
            steps = applied(part.name, part.step, t)
            columns = slice(t * s, min((t + 1) * s, n))
            if np.isnan(part.matrix[:, columns]).all():
                assert t > part.step + stepped.layout.u  # it is packed later
                continue
            wanted = states[min((t + 1) * s, n) if steps is None else min(steps * s, n)][:, columns]
            found = part.matrix[:, columns]
            if steps is None:  # below the diagonal is L
                rows, cols = np.indices(found.shape)
                is_upper = rows <= cols + t * s
                found, wanted = np.where(is_upper, found, 0), np.where(is_upper, wanted, 0)
            assert np.allclose(np.nan_to_num(found), wanted, atol=1e-9 * np.abs(wanted).max(initial=1)), (part.name, t)
    last = stepped.parts[-1]
    own = BandedLU(ab, kl, ku, block=16)
    assert last.largest / np.abs(ab).max() == pytest.approx(own.pivot_growth)
    assert np.array_equal(own.pivots, pivots)


def test_a_band_as_lapack_stores_it(rng):
    for settings in (Settings(n=30, kl=4, ku=7, seed=int(rng.integers(99))), Settings(n=9, kl=30, ku=0)):
        ab, kl, ku = band_matrix(settings)
        assert ab.shape == (kl + ku + 1, settings.n) and kl <= settings.n - 1
        matrix = np.random.default_rng(settings.seed).normal(size=(settings.n, settings.n))
        away = np.subtract.outer(np.arange(settings.n), np.arange(settings.n))
        assert np.array_equal(dense(ab, kl, ku), np.where((away <= kl) & (away >= -ku), matrix, 0))
    with pytest.raises(InputError, match=f"n is {MAX_ORDER + 1}; at most {MAX_ORDER}"):
        SteppedFactors(np.ones((1, MAX_ORDER + 1)), 0, 0, 8)


def test_the_time_line_has_every_phase_once_and_no_core_does_two_things():
    ab, kl, ku = band_matrix(Settings())
    layout = SteppedFactors(ab, kl, ku, 8).layout
    bars = time_line(layout, 2)
    assert [bar.step for bar in bars if bar.phase == "panel"] == list(range(layout.p))
    for core in (0, 1):
        own = sorted((bar for bar in bars if bar.core == core), key=lambda bar: (bar.begin, bar.end))
        assert own and all(a.end <= b.begin + 1e-9 for a, b in zip(own, own[1:], strict=False))
    for i in range(layout.p):
        updates = [bar for bar in bars if bar.step == i and bar.phase == "update"]
        assert bool(updates) == (i + 1 <= layout.last_updated(i) and i + 1 < layout.p)
        panel = next(bar for bar in bars if bar.phase == "panel" and bar.step == i)
        assert all(bar.begin >= panel.end - 1e-9 for bar in updates)


def test_pictures_show_the_matrix_its_pivots_and_the_devices():
    settings = Settings()
    ab, kl, ku = band_matrix(settings)
    stepped = SteppedFactors(ab, kl, ku, settings.block)
    view = band_lu_view(stepped, [], 2, float(np.abs(ab).max()), (400, 200))
    part = stepped.parts[15]
    step = view.step(15)
    at = np.argwhere(np.isfinite(step.values))
    first, last = at.min(0), at.max(0)
    side = last[0] - first[0] + 1
    for row, column in ((3, 5), (20, 20), (40, 44), (63, 60)):
        y, x = (first[k] + (2 * index + 1) * side // 128 for k, index in ((0, row), (1, column)))
        assert step.values[y, x] == part.matrix[row, column]
    colors, legend = matrix_colors(part.matrix)
    assert tuple(colors[0, 63]) == OUTSIDE and legend.high == np.nanmax(np.abs(part.matrix))
    assert tuple(colors[part.matrix == 0][0]) == ZERO
    moved = np.flatnonzero(part.pivots != np.arange(part.factored))
    reds = {tuple(p) for p in np.argwhere((step.pixels == PIVOT).all(-1))}
    assert len(reds) > 4 * len(moved)
    rows = view.rows
    assert rows[0]["does"] == "panel 0" and rows[1]["does"] == "look-ahead 0" and rows[1]["devices"] == "1"
    assert rows[-1]["interchanges"] == int((stepped.pivots != np.arange(64)).sum())
    assert rows[15]["growth"] == pytest.approx(part.largest / np.abs(ab).max())


def test_the_time_line_has_a_row_a_core_and_dims_other_steps():
    """Two cores that change places after half of the time, in a picture of 400 x 200."""
    settings = Settings(n=40, kl=6, ku=5, block=8, seed=3)
    ab, kl, ku = band_matrix(settings)
    stepped = SteppedFactors(ab, kl, ku, settings.block)
    part = stepped.parts[0]
    phases = list(PHASE_COLORS)[:2]
    bars = [Bar(core=k, begin=0.5 * half, end=0.5 + 0.5 * half, phase=phases[k], step=part.step + (half != k))
            for half in (0, 1) for k in (0, 1)]  # fmt: skip
    picture = part_picture(stepped, part, bars, 1, (400, 200)).pixels.astype(int)
    lines = picture[:, -60:-12]  # within the second half of the time
    rows = [np.flatnonzero((lines == color).all(2).all(1)) for color in
            ((np.array(PHASE_COLORS[phases[0]]) * 0.4).astype(int), np.array(PHASE_COLORS[phases[1]]))]  # fmt: skip
    height = rows[0][-1] - rows[0][0] + 1
    assert height == len(rows[0]) == len(rows[1]) >= 4 and rows[1][0] == rows[0][-1] + 3, "two pixels between rows"
