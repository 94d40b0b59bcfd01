"""System: a band system A x = b with equilibration, refinement and certification; for `rayfold solve`.

System transposes, equilibrates (scaling.py) and factors (solver.py) the matrix of a file, then solves for right-hand
sides with refinement (accuracy/) and converts solutions back to the order and scale of the file.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from renderer.errors import IncompleteError, InputError
from renderer.formats.matrices import Band
from renderer.gpu import Device
from renderer.numerics.band_lu.accuracy.certified import Enclosure, enclose
from renderer.numerics.band_lu.accuracy.extended import ExtendedFactors, solve_extended
from renderer.numerics.band_lu.accuracy.refinement import RefinedSolution, solve_refined
from renderer.numerics.band_lu.accuracy.residuals import pays
from renderer.numerics.band_lu.block_columns import transposed_band
from renderer.numerics.band_lu.solver import BandedLU, checked_band
from renderer.numerics.band_lu.systems.scaling import Scaling, equilibration

SMALLEST_NORMAL = 2.0**-1022


class System:
    """A band matrix A, its equilibration and the factors `lu` of R P A P^T C (with `is_transposed`, of A^T).

    P is the permutation `band.order`; R and C are the powers of two of `scaling`, which is None if A needs none.
    `in_double` factors a float32 matrix in float64. With `cholesky` nothing is equilibrated, since that would break the
    symmetry. `residual_device`, by default the first of `devices`, computes residuals of large bands. `block`,
    `precision` and `is_complex_form`: see BandedLU. InputError unless the band is finite; the errors of BandedLU.
    """

    def __init__(
        self,
        band: Band,
        is_transposed: bool = False,
        devices: Sequence[Device] = (),
        block: int | None = None,
        precision: Literal["f4", "f8"] | None = None,
        in_double: bool = False,
        cholesky: bool = False,
        residual_device: Device | None = None,
        is_complex_form: bool = False,
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
            scaled, self.kl, self.ku, devices, block, precision,
            cholesky=cholesky, keeps_band=keeps_band, is_complex_form=is_complex_form,
        )  # fmt: skip

    def solve(self, b: np.ndarray, extended: bool = False) -> tuple[np.ndarray, RefinedSolution]:
        """The solution x, (n,) or (n, m) as b, and the RefinedSolution of the equilibrated system with its errors.

        With `extended` the matrix, float64, is factored again in twice the precision; InputError if it is too large.
        """
        rhs, units = self.scaled_rhs(b), self.scaling.units if self.scaling else None
        if extended:
            refined = solve_extended(ExtendedFactors(self._scaled, self.kl, self.ku), rhs, units)
        else:
            refined = solve_refined(self.lu, rhs, self.residual_device, units)
        return self._unscaled(refined.x), refined

    def certify(
        self, b: np.ndarray, refined: RefinedSolution, progress: Callable[[int], None] | None = None
    ) -> tuple[np.ndarray, Enclosure]:
        """The proven radius of every component of x, and the Enclosure for the equilibrated system, in float64.

        IncompleteError if nothing can be proven.
        """
        rhs = self.scaled_rhs(b)
        if self.scaling:
            exact = self.scaling.is_exact(self._given, self._scaled, self.kl, self.ku)
            unscaled = Scaling(-self.scaling.rows, self.scaling.columns).scale_rhs(rhs)
            if not (exact and np.array_equal(unscaled, self._ordered(np.asarray(b, "f8")))):
                raise IncompleteError("no enclosure: equilibration rounds subnormal numbers of the system")
        enclosure = enclose(self.lu, refined, rhs, progress)
        radius = self._unscaled(enclosure.radius)
        if not np.isfinite(radius).all():
            raise IncompleteError("no enclosure: the radius of a component is beyond the largest number")
        if self.scaling:  # multiplying by C may have rounded a subnormal x or radius
            x = self._unscaled(enclosure.x)
            is_subnormal = (radius < SMALLEST_NORMAL) | (np.abs(x) < SMALLEST_NORMAL)
            radius = np.where(is_subnormal & (x != 0), radius + 2.0**-1072, radius)
        return radius, enclosure

    def scaled_rhs(self, b: np.ndarray) -> np.ndarray:
        """The right-hand side R P b of the factored system."""
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

    def _unscaled(self, y: np.ndarray) -> np.ndarray:
        """C y in the order of the file."""
        x = self.scaling.unscale_solution(y) if self.scaling else y
        if self.band.order is None:
            return x
        out = np.empty_like(x)
        out[self.band.order] = x
        return out
