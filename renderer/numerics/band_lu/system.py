"""One system A x = b as `rayfold solve` takes it: transposed, reordered, equilibrated, factored, solved, certified."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from renderer.errors import IncompleteError, InputError
from renderer.formats.matrices import Band
from renderer.gpu import Device
from renderer.numerics.band_lu.block_columns import transposed_band
from renderer.numerics.band_lu.certified import Enclosure, enclose
from renderer.numerics.band_lu.device_residuals import pays
from renderer.numerics.band_lu.extended import ExtendedFactors, solve_extended
from renderer.numerics.band_lu.refinement import RefinedSolution, solve_refined
from renderer.numerics.band_lu.scaling import Scaling, equilibration
from renderer.numerics.band_lu.solver import BandedLU, checked_band

SMALLEST_NORMAL = 2.0**-1022


class System:
    """The factors of a band matrix for solving with all that helps: `lu` are those of P R A C P^T, or of A^T.

    P is the band's order of rows and columns, R and C the powers of two that equilibrate it, where it needs them. With
    `cholesky` they are L L^T, and nothing is equilibrated, which would not keep the symmetry. `residual_device`, by
    default the first of the devices, computes residuals of large bands. InputError unless the band is finite;
    BandedLU's errors.
    """

    def __init__(
        self,
        band: Band,
        is_transposed: bool = False,
        devices: Sequence[Device] = (),
        block: int | None = None,
        precision: Any = None,
        in_double: bool = False,
        cholesky: bool = False,
        residual_device: Device | None = None,
    ):
        self.band = band
        self.residual_device = residual_device or (devices[0] if devices else None)
        ab, self.kl, self.ku = checked_band(band.ab, band.kl, band.ku), band.kl, band.ku
        if in_double:
            ab = ab.astype("f8", copy=False)
        if is_transposed:
            ab, self.kl, self.ku = transposed_band(ab, self.kl, self.ku), self.ku, self.kl
        self._given = ab
        self.scaling: Scaling | None = None if cholesky else equilibration(ab, self.kl, self.ku)
        scaled = self.scaling.apply(ab, self.kl, self.ku) if self.scaling else ab
        self._scaled = scaled
        keeps_band = self.residual_device is not None and pays(self.residual_device, scaled)
        self.lu = BandedLU(
            scaled, self.kl, self.ku, devices, block, precision, cholesky=cholesky, keeps_band=keeps_band
        )

    def solve(self, b: np.ndarray, extended: bool = False) -> tuple[np.ndarray, RefinedSolution]:
        """The solution x, (n,) or (n, m) as b is, and the refined one of the equilibrated system, with x's error.

        With `extended` it is factored again in twice the precision (float64 systems; InputError for large ones).
        """
        own, units = self.own_rhs(b), self.scaling.units if self.scaling else None
        if extended:
            refined = solve_extended(ExtendedFactors(self._scaled, self.kl, self.ku), own, units)
        else:
            refined = solve_refined(self.lu, own, self.residual_device, units)
        return self._as_given(refined.x), refined

    def certify(
        self, b: np.ndarray, refined: RefinedSolution, progress: Callable[[int], None] | None = None
    ) -> tuple[np.ndarray, Enclosure]:
        """The radius of every component of x, proven, and the enclosure of the equilibrated system's solution.

        Of float64 systems. IncompleteError where nothing can be proven.
        """
        own = self.own_rhs(b)
        if self.scaling:
            exact = self.scaling.is_exact(self._given, self._scaled, self.kl, self.ku)
            back = Scaling(-self.scaling.rows, self.scaling.columns).scale_rhs(own)
            if not (exact and np.array_equal(back, self._ordered(np.asarray(b, "f8")))):
                raise IncompleteError("no enclosure: equilibration rounds subnormal numbers of the system")
        enclosure = enclose(self.lu, refined, own, progress)
        radius = self._as_given(enclosure.radius)
        if not np.isfinite(radius).all():
            raise IncompleteError("no enclosure: the radius of a component is beyond the largest number")
        is_rounded = (radius < SMALLEST_NORMAL) | (np.abs(self._as_given(enclosure.x)) < SMALLEST_NORMAL)
        if self.scaling:  # C may have rounded both
            radius = np.where(is_rounded & (self._as_given(enclosure.x) != 0), radius + 2.0**-1072, radius)
        return radius, enclosure

    def own_rhs(self, b: np.ndarray) -> np.ndarray:
        """The right-hand side of the factored system."""
        ordered = self._ordered(np.asarray(b).astype(self.lu.dtype, copy=False))
        if not self.scaling:
            return ordered
        with np.errstate(over="ignore"):
            scaled = self.scaling.scale_rhs(ordered)
        if not np.isfinite(scaled).all():
            raise InputError(f"the right-hand side is too large for {self.lu.dtype} once the matrix is equilibrated")
        return scaled

    def _ordered(self, b: np.ndarray) -> np.ndarray:
        return b if self.band.order is None else b[self.band.order]

    def _as_given(self, y: np.ndarray) -> np.ndarray:
        """C y in the order of the file."""
        x = self.scaling.unscale_solution(y) if self.scaling else y
        if self.band.order is None:
            return x
        out = np.empty_like(x)
        out[self.band.order] = x
        return out
