"""System: a band system A x = b with equilibration, refinement and certification; for `rayfold solve`.

System transposes, equilibrates (scaling.py) and factors (solver.py) the matrix of a file, then solves for right-hand
sides with refinement (accuracy/) and converts solutions back to the order and scale of the file.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

import numpy as np

from renderer.errors import IncompleteError
from renderer.formats.matrices import Band
from renderer.gpu import Device
from renderer.numerics.band_lu.accuracy.certified import Enclosure, enclose, enclose_extended
from renderer.numerics.band_lu.accuracy.extended import ExtendedFactors, solve_extended
from renderer.numerics.band_lu.accuracy.refinement import RefinedSolution, solve_refined
from renderer.numerics.band_lu.accuracy.residuals import EPSILON, is_faster_on
from renderer.numerics.band_lu.block_columns import transposed_band
from renderer.numerics.band_lu.solver import BandedLU, shaped_band
from renderer.numerics.band_lu.systems.scaling import Scaling, equilibration, rhs_exponents, unscaled

SMALL_ORDER = 64  # up to this order a proof of all errors costs milliseconds
MAX_PROVEN = 1 << 24  # elements of the largest band for which a missing estimate of errors is replaced by a proof
# The largest magnitude of right-hand sides that are not scaled; float32 has 1e38.
USUAL_RHS = 1e-20, 1e20


class System:
    """A band matrix A, its equilibration and the factors `lu` of R P A P^T C (with `is_transposed`, of A^T).

    P is the permutation `band.order`; R and C are the powers of two of `scaling`, which is None if A needs none.
    `in_double` factors a float32 matrix in float64. With `cholesky` nothing is equilibrated, since that would break the
    symmetry. `residual_device`, by default the first of `devices`, computes residuals of large bands. With
    `overwrite_ab` the array of the band may be scaled in place. `block`, `precision` and `is_complex_form`: see
    BandedLU. InputError unless the band is finite; the errors of BandedLU.
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
        overwrite_ab: bool = False,
    ):
        self.band = band
        self.residual_device = residual_device or (devices[0] if devices else None)
        ab, self.kl, self.ku = shaped_band(band.ab, band.kl, band.ku), band.kl, band.ku
        if in_double:
            ab = ab.astype("f8", copy=False)
        if is_transposed:
            ab, self.kl, self.ku = transposed_band(ab, self.kl, self.ku), self.ku, self.kl
        self.scaling: Scaling | None = None if cholesky else equilibration(ab, self.kl, self.ku)
        is_copy = overwrite_ab or not np.shares_memory(ab, band.ab)
        scaled = self.scaling.apply(ab, self.kl, self.ku, ab if is_copy else None) if self.scaling else ab
        self._scaled = scaled
        self._extended: ExtendedFactors | None = None  # factors of the last solution with `extended`
        keeps_band = self.residual_device is not None and is_faster_on(self.residual_device, scaled)
        self.lu = BandedLU(
            scaled, self.kl, self.ku, devices, block, precision,
            cholesky=cholesky, keeps_band=keeps_band, is_complex_form=is_complex_form,
        )  # fmt: skip

    def solve(self, b: np.ndarray, extended: bool = False, refines: bool = True) -> tuple[np.ndarray, RefinedSolution]:
        """The solution x, (n,) or (n, m) as b, and its RefinedSolution, in the order and scale of the file.

        The errors of systems of order SMALL_ORDER or less are proven. In larger ones a proof without an inverse
        replaces estimates that refinement cannot give, as where the columns' scales spread widely. With `extended` the
        matrix, float64, is factored again in twice the precision; InputError if it is too large. Without `refines` x
        is computed once, and its errors are NaN. SolutionOverflows if x is beyond the largest number of its dtype.
        """
        rhs, shift = self.scaled_rhs(b)
        units = self.scaling.units if self.scaling else None
        if not refines:
            x = self.lu.solve(rhs)
            refined = RefinedSolution(x, np.broadcast_to(np.nan, x.shape), np.nan, 0, x, np.zeros((0, 0)))
        elif extended:
            self._extended = ExtendedFactors(self._scaled, self.kl, self.ku)
            refined = solve_extended(self._extended, rhs, units)
        else:
            refined = solve_refined(self.lu, rhs, self.residual_device, units)
            is_unknown = ~np.isfinite(refined.error) | (self.lu.n <= SMALL_ORDER)
            if is_unknown.any() and self._scaled.size <= MAX_PROVEN:
                error = np.where(is_unknown, self._proven_error(b, refined), refined.error)
                refined = refined._replace(error=error)
        x, error = self._in_file(refined.x, refined.error, shift)
        return x, refined._replace(x=x, error=error)

    def certify(
        self, b: np.ndarray, refined: RefinedSolution, progress: Callable[[int], None] | None = None
    ) -> tuple[np.ndarray, Enclosure]:
        """The proven radius of every component of x, and the Enclosure for the equilibrated system, in float64.

        After solve() with `extended` by its factors, unless a proof without an inverse gives radii below a unit in the
        last place. IncompleteError if nothing can be proven.
        """
        rhs, shift = self.scaled_rhs(b)
        refined = refined._replace(x=refined.scaled)
        # what enclose() and enclose_extended() take after the factors
        options = refined, rhs, progress, self._scaling_error(b, rhs, shift)
        enclosure = None
        if self._extended:
            with suppress(IncompleteError):
                enclosure = enclose(self.lu, *options, may_invert=False)
            if not enclosure or (enclosure.radius > EPSILON * np.abs(enclosure.x))[enclosure.x != 0].any():
                with suppress(IncompleteError):
                    enclosure = enclose_extended(self._extended, *options)
        enclosure = enclosure or enclose(self.lu, *options)
        _x, radius = self._in_file(enclosure.x, enclosure.radius, shift)
        if not np.isfinite(radius).all():
            raise IncompleteError("no enclosure: the radius of a component is beyond the largest number")
        return radius, enclosure

    def _proven_error(self, b: np.ndarray, refined: RefinedSolution) -> np.ndarray:
        """The radii of enclose() in the scale of the factors; infinity if they cannot be proven."""
        rhs, shift = self.scaled_rhs(b)
        try:
            uncertainty, is_small = self._scaling_error(b, rhs, shift), self.lu.n <= SMALL_ORDER
            return enclose(self.lu, refined, rhs, uncertainty=uncertainty, may_invert=is_small).radius
        except IncompleteError:
            return np.where(rhs.any(axis=0) | refined.x.any(axis=0), np.full(rhs.shape, np.inf), 0.0)

    def _scaling_error(self, b: np.ndarray, rhs: np.ndarray, shift: np.ndarray) -> float:
        """The largest rounding error of an element of the scaled matrix and right-hand sides; 0 if none was rounded."""
        before = np.ldexp(rhs.reshape(self.lu.n, -1), -shift - (self.scaling.rows[:, None] if self.scaling else 0))
        exact = np.array_equal(before.reshape(rhs.shape), self._ordered(np.asarray(b)))
        is_exact = exact and (self.scaling is None or self.scaling.is_exact)
        return 0.0 if is_exact else float(np.finfo(self.lu.dtype).smallest_subnormal)

    def scaled_rhs(self, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The right-hand sides R P b 2^shift of the factored system, in the shape of b, and shift (m,) or ()."""
        ordered = self._ordered(np.asarray(b).astype(self.lu.dtype, copy=False))
        columns = ordered.reshape(self.lu.n, -1)
        shift = np.zeros(columns.shape[1], int)
        largest = np.abs(columns).max(initial=0)
        if self.scaling or not USUAL_RHS[0] <= largest <= USUAL_RHS[1]:
            rows = self.scaling.rows[:, None] if self.scaling else 0
            shift = rhs_exponents(columns, rows)
            ordered = np.ldexp(columns, rows + shift).reshape(ordered.shape)
        return ordered, shift

    def _ordered(self, b: np.ndarray) -> np.ndarray:
        return b if self.band.order is None else b[self.band.order]

    def _in_file(self, y: np.ndarray, error: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """C y 2^-shift and its error in the order of the file, for y and its error in the scale of the factors."""
        if self.scaling or shift.any():
            exponents = (self.scaling.columns[:, None] if self.scaling else 0) - shift
            shape, (x, error) = y.shape, unscaled(y.reshape(self.lu.n, -1), error.reshape(self.lu.n, -1), exponents)
            y, error = x.reshape(shape), error.reshape(shape)
        if self.band.order is None:
            return y, error
        inverse = np.argsort(self.band.order)
        return y[inverse], error[inverse]
