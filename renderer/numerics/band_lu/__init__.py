"""Band LU with partial pivoting on CPU and GPUs together (paper 4).

    from renderer.numerics.band_lu import BandedLU, solve

    x = solve(ab, kl, ku, b)               # by the host's cores; ab as for LAPACK's gbsv without rows of fill-in
    BandedLU(ab, kl, ku, devices).solve(b) # keeps the factors, on devices

solver.py has BandedLU; block_columns.py the storage, on which multicore.py (the host's cores) and block_cyclic.py (q
devices) work; device_columns.py and column_uploader.py are one device's part of that; substitution.py solves on the
devices; refinement.py corrects solutions and bounds their errors; batch.py factors many small systems in one launch;
complex_systems.py and least_squares.py make real square systems of others; command.py is `rayfold solve`.

A band solver is right where the band is full or narrow: one-dimensional and thin two-dimensional problems, splines,
boundary layers, and right-hand sides by the thousand. On a square m x m grid it costs 4 m^4 operations and 3 m^3
numbers; nested dissection (cuDSS, SuperLU, MUMPS) costs about m^3 operations and m^2 log m numbers, and wins from
some hundred unknowns a side on. It pivots statically, though: where pivoting matters, this one is the safer.

Use several GPUs for matrices that one cannot hold; they are hardly faster. The pivot search is sequential: 2.4 us a
column on an H200 with kl = 4,096, that is 39 ms for n = 16,384 on any number of devices. Each step adds 42 us for the
look-ahead update and 20 us to write the panel into the other device's memory. The trailing update of a step takes one
device 0.38 ms, hardly more than the 0.32 ms of the panel, so two devices gain little: 46.5 ms against 49.7 ms with the
matrix already on the devices. From host memory two take 95 ms and one 93 ms, since half of that matrix is gathered
from the rows of the band before the first step.
"""

from renderer.numerics.band_lu.batch import BandedBatch
from renderer.numerics.band_lu.block_columns import SingularMatrix, SolutionOverflows
from renderer.numerics.band_lu.solver import BandedLU, factor_for, solve

__all__ = ["BandedBatch", "BandedLU", "SingularMatrix", "SolutionOverflows", "factor_for", "solve"]
