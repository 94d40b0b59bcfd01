"""The papers' own figures, drawn beside this program's: by the figure's name and what its points differ in."""

from renderer.pages.plot import Plot

THESIS_VARIANTS = ("row", "coalesced", "tiles", "unrolled", "prefetch", "unrolled_prefetch", "each2", "each4")
THESIS = {  # MFLOP/s of 512 x 512 by the edge of blocks of threads; None: out of memory
    "tile=4": (95.08, 872.28, 6659.77, 9118.67, 6812.91, 9560.01, 10046.24, 10222.22),
    "tile=8": (51.93, 2339.48, 6925.76, 9878.76, 7599.02, 9878.76, 9878.76, 8467.46),
    "tile=16": (41.11, 3187.93, 7502.81, 10021.05, 7876.86, 9716.77, 9716.77, None),
}
STENCIL = Plot(
    "The paper: stencil of bits, GTX 560",
    (1, 2, 3, 4, 5, 6), {"bits": (30.0, 25.0, 23.7, 20.0, 19.4, 18.8)}, "depth", "frames/s",
)  # fmt: skip
PAPERS = {
    ("mirrors", "max_depth"): STENCIL,
    ("raytrace", "depth"): STENCIL,
    ("raytrace/mirrors", "depth"): STENCIL,
    ("products/thesis", "bars"): Plot(
        "The thesis: Tesla C2075, 512 x 512", THESIS_VARIANTS, THESIS, "", "MFLOP/s", "bars", log_y=True
    ),
    ("cdollar", "bars"): Plot(
        "The paper: products of 1024 x 1024, ATI X1800 XL",
        ("float, loop", "float, pipelined", "float4, loop", "float4, pipelined"),
        {"C$": (4.61, 4.66, 15.81, 15.22)}, "", "GFLOP/s", "bars",
    ),
}  # fmt: skip
