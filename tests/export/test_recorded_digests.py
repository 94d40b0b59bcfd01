"""Recorded digests: a picture has the same bits on every device and driver, so that anybody can verify anybody's.

The kernels of these pictures, C$'s among them, round every operation as IEEE 754 says (STRICT) and call no vendor's
elementary function.
`python -m tests.export.test_recorded_digests` records them anew, after a change that is meant to change pictures.
"""

import contextlib
import io
import json
import tempfile
from pathlib import Path

import pytest

from renderer.cli import main
from renderer.paths import SCENES

RECORDED = Path(__file__).with_name("digests.json")
QUICK = ("cornell", "menger", "maple", "mandelbrot.cb", "orb.flame")
# Left out: pictures that fragment shaders draw (GL rounds as it likes), and `ink`, whose solver adds by device: its
# bound is in tests/pictures/test_ink.py.
SLOW = (
    "bokeh", "candles", "clockwork", "cloth", "downlights", "fern", "fisheye", "gallery", "gasket", "glassware",
    "grove", "jewels", "koch", "mirrors", "orrery", "sierpinski", "sphereflake", "still_life", "terrace", "tree",
    "veach", "anemone.flame", "filigree.flame", "lantern.flame", "petals.flame",
)  # fmt: skip


def digest(name: str, folder: Path) -> str:
    """The digest of a small picture on the default device, as `export --json` prints it."""
    words = [
        "export",
        str(SCENES / name) if "." in name else name,
        "-o",
        str(folder / "a.png"),
        "--size",
        "64x48",
        "--samples",
        "2",
        "--json",
    ]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as messages:
        code = main(words)
    assert code == 0, messages.getvalue()
    return json.loads(out.getvalue())["digest"]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_a_picture_has_the_recorded_digest(name, tmp_path):
    assert digest(name, tmp_path) == json.loads(RECORDED.read_text())[name]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        RECORDED.write_text(json.dumps({name: digest(name, Path(folder)) for name in QUICK + SLOW}, indent=1) + "\n")
