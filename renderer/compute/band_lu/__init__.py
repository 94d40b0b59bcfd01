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

Several GPUs are for matrices that one cannot hold; they are hardly faster. All rows must agree on the pivot of every
column, which takes 2.3 us on an H200, so that the panels are a chain that no further device shortens: with n = 16,384,
kl = ku = 4,096 and the matrix on the devices 128 of 0.32 ms each. With the block column that is updated ahead (42 us)
and a panel's way to the other device (20 us, by the publishing kernel's own writes) two take 46.5 ms where one takes
49.7, which updates all block columns within 0.37 ms a step itself. Python's calls are 16 ms of that, beside the work.
From host memory it is 94 ms for both: half of that matrix is gathered from the rows of the band before the first step.
"""

from renderer.compute.band_lu.batch import BandedBatch
from renderer.compute.band_lu.blocks import SingularMatrix
from renderer.compute.band_lu.cli import solve as command
from renderer.compute.band_lu.solver import BandedLU

__all__ = ["BandedBatch", "BandedLU", "SingularMatrix", "command"]
