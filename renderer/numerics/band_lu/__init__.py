"""Band LU with partial pivoting on CPU and GPUs together (paper 4), in the block columns of blocks.py.

    blocks.py    how the matrix lies in memory        lapack.py  BLAS and LAPACK in place
    crew.py      the host's cores alone               dealt.py   q devices: whole or streamed, panels by host or device
    host.py      factors in host memory, thin bands
    share.py     one device's part of that            substitution.py  solves on the device that has all factors
    solver.py    BandedLU                             batch.py   many small systems in one launch
    memory.py    what it takes, before it starts      cli.py     `rayfold solve`
    files.py     matrices from strangers

A band solver is right where the band is full or narrow: one-dimensional and thin two-dimensional problems, splines,
boundary layers, and right-hand sides by the thousand. On a square m x m grid it costs 4 m^4 operations and 3 m^3
numbers; nested dissection (cuDSS, SuperLU, MUMPS) costs about m^3 operations and m^2 log m numbers, and wins from
some hundred unknowns a side on. It pivots statically, though: where pivoting matters, this one is the safer.

Several GPUs are for matrices that one cannot hold; they are hardly faster. All rows must agree on the pivot of every
column, which takes 2.4 us on an H200 with kl = 4,096: n columns take n times that on any number of devices, 39 ms where
n is 16,384. Beside it a step has the block column that is updated ahead, 42 us, and a panel's way to the other device,
20 us, which the kernel that publishes it writes itself. One device updates all its block columns within 0.38 ms a step,
hardly more than the panel's 0.32, so that with the matrix on the devices one takes 49.7 ms and two take 46.5. From host
memory it is 93 and 95 ms: half of that matrix is gathered from the rows of the band before the first step.
"""

from renderer.numerics.band_lu.batch import BandedBatch
from renderer.numerics.band_lu.block_columns import SingularMatrix
from renderer.numerics.band_lu.solver import BandedLU

__all__ = ["BandedBatch", "BandedLU", "SingularMatrix"]
