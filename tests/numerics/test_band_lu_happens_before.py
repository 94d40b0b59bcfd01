"""The host code of band LU on devices that run nothing (happens_before.py): all conflicting accesses are ordered."""

import numpy as np
import pytest

from renderer.numerics.band_lu.block_columns import BlockLayout
from renderer.numerics.band_lu.devices.block_cyclic import BlockCyclicFactors, Schedule
from renderer.numerics.band_lu.devices.device_columns import DeviceColumns
from tests.numerics.happens_before import ALL, Device, Order, Unordered, rectangle


def accesses_of(layout: BlockLayout) -> dict:
    """For each entry of the shaders a function of its constants and arguments: what it reads and what it writes."""
    s, height = layout.s, layout.ld

    def top(i, t, u, devices, slots):
        return t // devices % slots * s * (height + 1) + (i - t + u) * s

    def part(memory, i, first, count, u, devices, slots, start, end):
        """Rows start to end, from row i S on, of `count` block columns."""
        tops = [top(i, first + k * devices, u, devices, slots) + start for k in range(count)]
        return memory, np.concatenate([rectangle(at, height, end - start, s) for at in tops])

    def rows_of(i):
        return layout.panel_rows(i)

    def copy_elements(constants, source, target, source_at, target_at, count):
        words = np.arange(int(count))
        return [(source.memory, words + int(source_at))], [(target.memory, words + int(target_at))]

    def broadcast_panel(constants, matrix, pivots, target, source_at, source_ld, rows, first_pivot, pivots_at):
        reads = [(matrix.memory, rectangle(source_at, source_ld, rows, s)), (pivots.memory, np.arange(s) + first_pivot)]
        return reads, [(target.memory, np.arange(rows * s)), (target.memory, np.arange(s) + pivots_at)]

    def unpack_columns(constants, ab, matrix, slot_at, t, width, n, kl, ku, u, height, count):
        words = np.arange(count * s * (height + 1)) + int(slot_at)
        return [(ab.memory, np.arange(width * (kl + ku + 1)))], [(matrix.memory, words)]

    def max_abs(constants, ab, largest, t, width, n, kl, ku):
        groups = largest.shape[1]
        return [(ab.memory, np.arange(width * (kl + ku + 1)))], [(largest.memory, np.arange(groups) + t * groups)]

    def factor_panel(constants, matrix, i, pivots, info, p, low, u, height, devices, slots):
        panel = part(matrix.memory, i, i, 1, u, devices, slots, 0, rows_of(i))
        return [], [panel, (pivots.memory, np.arange(s) + i * s), (info.memory, ALL)]

    def advance_panel(constants, step, devices):
        step.value += devices
        return [], [(step.memory, ALL)]

    def factor_subpanel(constants, matrix, step, first, pivots, info, p, low, u, height, devices, slots):
        reads, writes = factor_panel(constants, matrix, step.value, pivots, info, p, low, u, height, devices, slots)
        return [(step.memory, ALL)], writes

    def apply_subpanel(constants, matrix, step, first, pivots, p, low, u, height, devices, slots):
        i = step.value
        panel = part(matrix.memory, i, i, 1, u, devices, slots, 0, rows_of(i))
        return [(step.memory, ALL), (pivots.memory, np.arange(s) + i * s)], [panel]

    def laswp(constants, matrix, pivots, pivots_at, i, first, count, u, height, devices, slots):
        changed = part(matrix.memory, i, first, count, u, devices, slots, 0, rows_of(i))
        return [(pivots.memory, np.arange(s) + pivots_at)], [changed]

    def trsm_rows(constants, matrix, panel, at, ld, i, first, count, u, height, devices, slots):
        changed = part(matrix.memory, i, first, count, u, devices, slots, 0, s)
        return [(panel.memory, rectangle(at, ld, s, s))], [changed]

    def gemm_tiles(constants, matrix, panel, at, ld, rows, i, first, count, u, height, devices, slots):
        where = i, first, count, u, devices, slots
        reads = [(panel.memory, rectangle(int(at) + s, ld, rows - s, s)), part(matrix.memory, *where, 0, s)]
        return reads, [part(matrix.memory, *where, s, rows)]

    def lookahead_swap_trsm(constants, matrix, pivots, pivots_at, panel, at, ld, i, t, u, height, devices, slots):
        reads = [(pivots.memory, np.arange(s) + pivots_at), (panel.memory, rectangle(at, ld, s, s))]
        return reads, [part(matrix.memory, i, t, 1, u, devices, slots, 0, rows_of(i))]

    def lookahead_gemm(constants, matrix, panel, at, ld, rows, i, t, u, height, devices, slots):
        return gemm_tiles(constants, matrix, panel, at, ld, rows, i, t, 1, u, height, devices, slots)

    def block_of(memory, i, padded_n, count):
        return memory, rectangle(i * s, padded_n, s, count)

    def compose_permutations(constants, pivots, permutations, window):
        return [(pivots.memory, ALL)], [(permutations.memory, ALL)]

    def invert_triangles(constants, matrix, lower, upper, large, limit, *sizes):
        return [(matrix.memory, ALL)], [(lower.memory, ALL), (upper.memory, ALL), (large.memory, ALL)]

    def factors_of(constants, first, end, u, height, devices, slots):
        """The words of the block columns that steps read: the rows from the diagonal block down (L), or up (U)."""
        places = []
        for i in range(first, end):
            above = min(i, u) * s if constants["UPPER"] else 0
            rows = above + s if constants["UPPER"] else rows_of(i)
            places.append(rectangle(top(i, i, u, devices, slots) - above, height, rows, s))
        return np.concatenate(places)

    def sweep(constants, matrix, inverses, source, solution, now, following, permutations, window, first, end, *sizes):
        p, reach, padded_n, count, *storage = sizes
        reads = [(matrix.memory, factors_of(constants, first, end, *storage)), (inverses.memory, ALL)]
        reads += [(source.memory, ALL), *([] if constants["UPPER"] else [(permutations.memory, ALL)])]
        is_changed = end < p if constants["UPPER"] else first
        writes = [(following.memory, ALL), *(block_of(solution.memory, i, padded_n, count) for i in range(first, end))]
        return [*reads, *([(now.memory, ALL)] if is_changed else [])], writes

    def transposed_sweep(constants, matrix, inverses, source, solution, now, following, permutations, window, *rest):
        sides, is_handed, first, end, p, *sizes = rest
        reads, writes = sweep(
            constants, matrix, inverses, source, solution, now, following, permutations, window, first, end, p, *sizes
        )
        if constants["UPPER"]:
            reads = [*reads[:3], *([(now.memory, ALL)] if is_handed and first else [])]
            return reads, [*(writes if is_handed else writes[1:]), (sides.memory, ALL)]
        reads = [*reads[:4], *([(now.memory, ALL)] if end < p else [])]
        return reads, [writes[0], (solution.memory, ALL), (sides.memory, ALL)]

    def solve_step(constants, matrix, source, solution, now, following, permutations, top, i, outside, changed, *sizes):
        window, reach, padded_n, count, u, height = sizes
        first = int(top) - (outside if constants["UPPER"] else 0)
        reads = [(matrix.memory, rectangle(first, height, outside + s, s)), (source.memory, ALL)]
        reads += [] if constants["UPPER"] else [(permutations.memory, ALL)]
        writes = [(following.memory, ALL), block_of(solution.memory, i, padded_n, count)]
        return [*reads, *([(now.memory, ALL)] if changed else [])], writes

    def subtract_column_products(constants, matrix, at, rows, height, values, first, reach, base, *rest):
        at_base, padded_n, sides, count = rest
        reads = [(matrix.memory, rectangle(at, height, rows, s)), block_of(base.memory, at_base // s, padded_n, count)]
        return [*reads, *([(values.memory, ALL)] if rows else [])], [(sides.memory, ALL)]

    def solve_transposed_step(constants, matrix, top, sides, solution, now, following, permutations, i, rows, *sizes):
        first_final, window, reach, padded_n, count, u, height = sizes
        reads = [(matrix.memory, rectangle(top, height, s, s)), (sides.memory, ALL)]
        if constants["UPPER"]:
            reads += [(now.memory, ALL)] if i else []
            return reads, [(following.memory, ALL), block_of(solution.memory, i, padded_n, count)]
        reads += [(permutations.memory, ALL), *([(now.memory, ALL)] if rows > s else [])]
        return reads, [(following.memory, ALL), (solution.memory, ALL)]

    return {name: entry for name, entry in locals().items() if callable(entry)}


SHAPES = [(140, 40, 33, 16), (150, 5, 9, 16), (40, 0, 5, 16), (90, 30, 0, 16), (64, 63, 63, 16), (100, 0, 0, 16)]
SHAPES.append((190, 40, 33, 64))  # whose sweeps are by clusters


def factor(shape, devices, cluster=8, resident=True, vendor=False, shared=False, peers=True):
    """The whole of two factorisations, watched; `shared` deals the block columns to one device again and again."""
    layout, order = BlockLayout(*shape), Order()
    made = [Device(order, index, accesses_of(layout), cluster, peers) for index in range(1 if shared else devices)]
    made = made * devices if shared else made
    factors = BlockCyclicFactors(layout, "f4", made, Schedule(resident, vendor))
    for _ in range(2):
        factors.factor(np.ones((layout.kl + layout.ku + 1, layout.n), "f4"), 0.0)
        for transposed in (False, True) if resident else ():
            factors.solve(np.ones((layout.n, 2), "f4"), transposed)
    return order


@pytest.mark.parametrize("resident", [True, False], ids=["resident", "streamed"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_conflict_is_ordered(shape, resident):
    for devices in (1, 2, 4):
        for cluster, vendor, peers in ((8, True, True), (8, False, False), (1, False, True)):
            choice = dict(cluster=cluster, resident=resident, vendor=vendor, peers=peers)
            assert factor(shape, devices, **choice).accesses > 0
    assert factor(shape, 3, resident=resident, shared=True).accesses > 0


def follow_later_panels_only(share: DeviceColumns) -> None:
    """A fault that once existed: the first update does not wait for the first panel."""
    if share.__dict__.setdefault("followed", 0):
        FOLLOW(share)
    share.followed += 1


FOLLOW = DeviceColumns.main_queue_waits_for_panels


@pytest.mark.parametrize(
    "devices,resident,name,instead",
    [
        (1, True, "main_queue_waits_for_panels", follow_later_panels_only),
        (1, True, "main_queue_waits_for_panels", lambda share: None),
        (1, True, "panel_queue_waits_for_main", lambda share: None),
        (2, True, "panel_queue_waits_for_main", lambda share: None),
        (2, False, "main_queue_waits_for_panels", lambda share: None),
        (1, False, "wait_download", lambda share, t: np.zeros(share.layout.stride, "f4")),
    ],
)
def test_a_forgotten_wait_is_found(monkeypatch, devices, resident, name, instead):
    monkeypatch.setattr(DeviceColumns, name, instead)
    with pytest.raises(Unordered):
        factor((140, 40, 33, 16), devices, resident=resident)
