"""Exact sums and banded systems as one call each; renderer/numerics has the parts.

sum() and solve() take arrays of NumPy and of GPU libraries, or paths of files, and return numbers and arrays. They
check the arguments, choose devices and call the parts; what is wrong is a UserError or InputError.
"""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import IncompleteError, InputError, UserError
from renderer.formats import matrices
from renderer.formats.matrix_market import Entries
from renderer.formats.npy import refuse_mask
from renderer.gpu import open_context
from renderer.numerics.band_lu.accuracy.refinement import RefinedSolution, digits_of, relative_bounds
from renderer.numerics.band_lu.block_columns import SingularMatrix, check_integer
from renderer.numerics.band_lu.command import DIGITS_EXPECTED, accuracy, doubt, solving_devices
from renderer.numerics.band_lu.complex_systems import real_form
from renderer.numerics.band_lu.systems.system import System
from renderer.numerics.sums.arrow_sums import batches_total, columns_of, grouped_sums, is_arrow, parquet_total
from renderer.numerics.sums.device_sums import MODES, array_sum, total_value
from renderer.numerics.sums.exact_sum import objects_total
from renderer.numerics.sums.tensors import is_dask_array, is_tensor
from renderer.paths import ensure_cache
from renderer.system.progress import OnProgress, Progress, checked_progress

__all__ = ["solve", "sum"]


def sum(
    numbers: Any, mode: str = "exact", *, device: str = "auto", column: str | None = None, by: str | None = None
) -> Any:
    """The sum of all numbers of an array or of files: the exact value rounded once, whatever the order and device.

    `numbers` is an array of NumPy, Dask or a library with DLPack, a list, or one or several paths of .npy and .npz
    files, which are read in chunks. A .parquet file, and a table of Arrow, DuckDB or Polars with several columns, need
    the name of one `column`; its nulls are left out, and the sum of nothing is 0. `mode` is "exact", "reproducible" or
    "fast". Sums of integers are Python integers, of any size; sums of DECIMAL columns and of lists of Decimals are
    decimal.Decimal, with all digits. With `by`, the name of another column of the table, a dict has the sum for each of
    its values, in the order of their first rows, and None where all numbers are null.

    Raises:
        UserError, InputError: numbers that cannot be added, a column that is not there, or a bad file.
    """
    ensure_cache()
    refuse_mask(numbers, "numbers")
    if mode not in MODES:
        raise UserError(f"mode is {mode!r}; allowed are {', '.join(MODES)}")
    if isinstance(numbers, (str, os.PathLike)):
        numbers = [numbers]
    is_paths = isinstance(numbers, (list, tuple)) and all(isinstance(n, (str, os.PathLike)) for n in numbers)
    paths = [Path(path) for path in numbers] if is_paths else []
    is_parquet = any(path.suffix.lower() == ".parquet" for path in paths)
    if is_parquet and len(paths) != 1:
        raise UserError(f"{paths[0]}: a .parquet file is added alone, by the name of its column=")
    if is_parquet or is_arrow(numbers):
        if mode != "exact":
            raise UserError(f"mode is {mode!r}; columns of Arrow tables and .parquet files are added in mode 'exact'")
        return _column_sum(paths[0] if is_parquet else numbers, device, column, by)
    for option, given in (("column", column), ("by", by)):
        if given is not None:
            kind = f"{paths[0]}" if paths else f"a {type(numbers).__name__}"
            known = "Arrow tables and .parquet files have them"
            raise UserError(f"{option} is {given!r}; {kind} has no named columns: {known}")
    if paths:
        from renderer.numerics.sums.command import SumRequest, sum_files  # imports Dask, which arrays do not need

        value: int | float | complex = sum_files(SumRequest(paths, mode, devices=(device,)))["value"]
        return value
    array = numbers if is_tensor(numbers) or is_dask_array(numbers) else np.asarray(numbers)
    if isinstance(numbers, (list, tuple)) and array.dtype.kind == "f" and {*map(type, numbers)} - {bool} == {int}:
        array = np.array(numbers, "O")  # NumPy rounds [-1, 2**63] to float64
    if getattr(array, "dtype", None) == np.dtype("O"):
        return objects_total(array.ravel().tolist())
    return total_value(array_sum(open_context(device).devices, array, mode))


def _column_sum(table: Any, device: str, column: str | None, by: str | None) -> Any:
    """The exact sum of a column of an Arrow table or of the .parquet file at a path; a dict of sums with `by`."""
    with Progress(1, "a sum"):
        devices = open_context(device).devices
        if isinstance(table, Path):
            total = parquet_total(devices, table, column, by)[0]
        else:
            batches, name = columns_of(table, column)
            total = batches_total(devices, batches, name) if by is None else grouped_sums(batches, name, by)
    return total_value(total) if by is None else total[0]  # by `by`: (the dict, its counts)


def solve(
    matrix: Any,
    rhs: Any,
    kl: int | None = None,
    ku: int | None = None,
    *,
    device: str | None = None,
    certified: bool = False,
    extended: bool = False,
    report: bool = False,
    trans: str = "N",
    progress: OnProgress | None = None,
) -> Any:
    """Solves a banded system by LU with partial pivoting, refined to the last digit; returns x, (n,) or (n, m) as rhs.

    `matrix` is the path of a file that `rayfold solve` takes, a square array (n, n), a square sparse matrix of SciPy,
    or with `kl` and `ku`, the numbers of diagonals below and above the main one, the band in LAPACK's layout
    (kl + ku + 1, n): ab[ku + i - j, j] = A[i, j]. `rhs` is an array or a path. `device` defaults to a GPU, or the
    host's cores where there is none.

    With `certified` the result is (x, radius): the exact solution lies within the proven radius of every component.
    `progress` is called as progress(rows proven, all rows), first before the proof. Most matrices are proven by one
    more factorization, without another call; the proof for the others takes n solutions, and calls it on the way.
    It cancels by returning False.
    `trans` "T" and "C" solve with the transposed and the conjugate transposed matrix.
    `extended` computes in twice the precision of float64, for conditions up to 1e30, on the host and slowly.
    With `report` a table follows x (and radius): `forward_bounds`, the bound of the relative error of each right-hand
    side or None, `correct_digits`, `rcond`, `growth`, `residual` and `backward_error`. Where no bound can be shown, or
    fewer than 6 digits (2 in float32) are certain, a UserWarning says so.

    Raises:
        SingularMatrix: a pivot is exactly zero; InputError: shapes that do not fit, or numbers that are not finite;
            IncompleteError: nothing can be proven, or `progress` cancelled the proof.
    """
    ensure_cache()
    checked_progress(progress)
    if trans not in ("N", "T", "C"):
        raise UserError(f"trans is {trans!r}; allowed are N, T and C")
    for name, numbers in (("matrix", matrix), ("rhs", rhs)):
        refuse_mask(numbers, name)
    band = _band(matrix, kl, ku)
    given = _right_hand_side(rhs, band.ab.shape[1])
    devices = solving_devices(None if device is None else [device])
    # The equivalent real system, of order 2 n for a complex matrix; None if all numbers are real. The transpose of the
    # real form is A^H; to solve with A^T, "T", it conjugates b and x.
    form = real_form(band, given, trans == "T")
    real, b = (form.band, form.right_hand_side(given)) if form else (band, given)
    is_complex = form is not None and form.is_matrix
    with Progress(1, f"solving {band.ab.shape[1]} unknowns{' in twice the precision' if extended else ''}"):
        system = System(real, trans != "N", devices, in_double=certified or extended, is_complex_form=is_complex)
        if system.lu.info:
            raise SingularMatrix((system.lu.info - 1) // (2 if is_complex else 1))  # the column in the given matrix
        y, refined = system.solve(b, extended)
    x, error = form.solution(y, refined.error) if form else (y, refined.error)
    bounds = relative_bounds(x, error)
    is_doubtful = not certified and digits_of(float(bounds.max(initial=0.0))) < DIGITS_EXPECTED[str(system.lu.dtype)]
    facts = accuracy(system, refined, bounds) if report or is_doubtful else {}
    if is_doubtful:
        warnings.warn(f"solve: {doubt(facts, 'certified=True', '' if extended else 'extended=True')}", stacklevel=2)
    result: list[Any] = [x]
    if certified:
        radius = _certified_radius(system, b, refined, progress)
        result.append(form.solution(y, radius)[1] if form else radius)
    if report:
        result.append(facts)
    return tuple(result) if len(result) > 1 else x


def _certified_radius(
    system: System, b: np.ndarray, refined: RefinedSolution, progress: OnProgress | None
) -> np.ndarray:
    """The proven radius of every component of a solution; IncompleteError if `progress` cancels the proof."""

    def cancel() -> None:
        raise IncompleteError(f"solve: cancelled after {bar.done} of {system.lu.n} rows")

    with Progress(system.lu.n, "rows certified", progress, cancel) as bar:
        bar.advance(0)
        return system.certify(b, refined, bar.advance)[0]


def _right_hand_side(rhs: object, count: int) -> np.ndarray:
    """The array of `rhs`, which may be a path, with `count` rows; InputError for others."""
    array = matrices.read_rhs(Path(rhs), count) if isinstance(rhs, (str, os.PathLike)) else np.asarray(rhs)
    if array.ndim not in (1, 2) or len(array) != count or array.dtype.kind not in "fiuc":
        raise InputError(f"rhs is {array.shape} {array.dtype}; it must have the {count} rows of the matrix")
    _check_finite("rhs", array)
    return array


def _check_finite(name: str, array: np.ndarray) -> None:
    for where in np.argwhere(~np.isfinite(array))[:1].tolist():
        raise InputError(f"{name}{where} is {array[tuple(where)]}; it must be finite")


def _band(matrix: Any, kl: int | None, ku: int | None) -> matrices.Band:
    """The band of a file, of a square array, or of an array in LAPACK's layout."""
    if isinstance(matrix, (str, os.PathLike)):
        return matrices.read_band(Path(matrix))
    for name, value in (("kl", kl), ("ku", ku)):
        if value is not None:
            check_integer(name, value, 0)
    is_sparse = hasattr(matrix, "tocoo")  # a sparse matrix of SciPy
    array: Any = matrix.tocoo() if is_sparse else np.asarray(matrix)
    if array.ndim != 2 or array.dtype.kind not in "fiuc":
        raise InputError(f"matrix is {array.shape} {array.dtype}; it must be numbers of two axes")
    if kl is not None and ku is not None and array.shape[0] == kl + ku + 1:
        rows = np.arange(len(array))[:, None] + np.arange(array.shape[1]) - ku
        array = np.where((rows >= 0) & (rows < array.shape[1]), array, 0)  # the corners are not read
    _check_finite("matrix.data" if is_sparse else "matrix", array.data if is_sparse else array)
    if kl is None and ku is None and array.shape[0] == array.shape[1]:
        rows, columns = (array.row, array.col) if is_sparse else np.nonzero(array)
        values = (array.data if is_sparse else array[rows, columns]).astype("c16" if array.dtype.kind == "c" else "f8")
        return matrices.narrowest_band(Path("matrix"), Entries(array.shape, rows, columns, values), None)
    if kl is None or ku is None or is_sparse or len(array) != kl + ku + 1:
        wanted = "it must be (kl + ku + 1, n), or (n, n) without both"
        hint = " (matrix.T?)" if array.shape[1] == (kl or 0) + (ku or 0) + 1 else ""
        raise UserError(f"matrix is {array.shape} with kl = {kl} and ku = {ku}; {wanted}{hint}")
    kl, ku = int(kl), int(ku)
    return matrices.Band(array if array.dtype.kind in "fc" else array.astype("f8"), kl, ku, natural=(kl, ku))
