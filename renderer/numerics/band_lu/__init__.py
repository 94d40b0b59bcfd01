"""Band LU with partial pivoting on the cores of the host or on GPUs.

Block columns and their distribution after A. Baranov, PLU factorization of non-symmetric band matrices on CPU and GPUs.

    from renderer.numerics.band_lu import BandedLU, solve

    x = solve(ab, kl, ku, b)               # by the host's cores; ab as for LAPACK's gbsv without rows of fill-in
    BandedLU(ab, kl, ku, devices).solve(b) # keeps the factors, on devices

Modules: solver.py has BandedLU. Its factors come from one call of LAPACK (lapack_factors.py), from the cores of the
host in blocks (multicore.py) or from q devices (devices/); both store them in block columns (block_columns.py).
accuracy/ refines solutions and bounds their errors. systems/ transposes, reorders and equilibrates systems and forms
least squares; complex_systems.py handles complex numbers. batch.py factors many small systems in one launch. command.py
is `rayfold solve`.

When to use it: for full or narrow bands, that is, one-dimensional and thin two-dimensional problems, splines, boundary
layers, and for thousands of right-hand sides. On a square m x m grid band LU costs 4 m^4 operations and 3 m^3 numbers.
Nested dissection (cuDSS, SuperLU, MUMPS) costs about m^3 operations and m^2 log m numbers and is faster from some
hundred unknowns per side on, but it pivots statically; if pivoting matters, band LU is safer.

Several GPUs are for matrices that one cannot hold; they are hardly faster. The pivot search is sequential: 2.4 us per
column on an H200 with kl = 4,096, which is 39 ms for n = 16,384 on any number of devices. A step adds 42 us for the
look-ahead update and 20 us to write the panel into the memory of the other device. The trailing update of a step takes
one device 0.38 ms, hardly more than the 0.32 ms of the panel. So two devices take 46.5 ms and one 49.7 ms, with the
matrix on the devices. From host memory two take 95 ms and one 93 ms, because half of that matrix is gathered from the
rows of the band before the first step.
"""

from renderer.numerics.band_lu.batch import BandedBatch
from renderer.numerics.band_lu.block_columns import SingularMatrix, SolutionOverflows
from renderer.numerics.band_lu.solver import BandedLU, factor_for, solve

__all__ = ["BandedBatch", "BandedLU", "SingularMatrix", "SolutionOverflows", "factor_for", "solve"]
