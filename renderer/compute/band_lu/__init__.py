"""Band LU with partial pivoting on CPU and GPUs together (paper 4), in the block columns of blocks.py.

    blocks.py    how the matrix lies in memory        lapack.py  BLAS and LAPACK in place
    crew.py      the host's cores alone               dealt.py   q devices: whole or streamed, panels by host or device
    host.py      factors in host memory, thin bands
    share.py     one device's part of that            substitution.py  solves on the device that has all factors
    solver.py    BandedLU                             batch.py   many small systems in one launch
    memory.py    what it takes, before it starts      cli.py     `main.py solve`
    files.py     matrices from strangers

A band solver is right where the band is full or narrow: one-dimensional and thin two-dimensional problems, splines,
boundary layers, and right-hand sides by the thousand. On a square m x m grid it costs 4 m^4 operations and 3 m^3
numbers; nested dissection (cuDSS, SuperLU, MUMPS) costs about m^3 operations and m^2 log m numbers, and wins from
some hundred unknowns a side on. It pivots statically, though: where pivoting matters, this one is the safer.

Several GPUs are for matrices that one cannot hold; they are not faster. On an H200 with n = 32,768, kl = ku = 4,096 a
column of a panel takes 2.7 us, since all rows must agree on its pivot, so that the panels are a chain of 88 ms that
no further device shortens. With the block column that is updated ahead and a panel's way to the others, some 50 ms
more, two devices could take 140 of the 191 ms of one. They took 246, four 290: a step of the host, which is Python, is
150 calls of the driver for one device, 220 for two and 360 for four, beside the gathering of the next block column.
"""

from renderer.compute.band_lu.batch import BandedBatch
from renderer.compute.band_lu.blocks import SingularMatrix
from renderer.compute.band_lu.cli import solve as command
from renderer.compute.band_lu.solver import BandedLU

__all__ = ["BandedBatch", "BandedLU", "SingularMatrix", "command"]
