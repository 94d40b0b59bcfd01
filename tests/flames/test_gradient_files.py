"""Palettes in files of other programs: hand-written files say what they say, ours read back, bad files are refused."""

import struct

import numpy as np
import pytest

from renderer.errors import InputError, UserError
from renderer.flames.gradient_files import SUFFIXES, read_gradients, write_gradient

UGR = """red {
gradient:
 title="red" smooth=no index=0 color=255 index=200 color=16711680
}
 b {
gradient:
 index=7 color=65280 }"""


def read(folder, name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_gradients(folder / name)


def test_files_of_other_programs_are_read(tmp_path):
    (name, colors), (_, green) = read(tmp_path, "a.ugr", UGR)
    assert name == "red" and np.allclose(
        colors[[0, 64, 128, 192]], [[255, 0, 0], [127.5, 0, 127.5], [0, 0, 255], [127.5, 0, 127.5]]
    )
    assert (green == [0, 255, 0]).all()
    ((_, gimp),) = read(tmp_path, "b.gpl", "GIMP Palette\nName: x\nColumns: 2\n#\n0 0 0 black\n255 51 0\tred\n")
    assert np.allclose(gimp, np.linspace([0, 0, 0], [255, 51, 0], 256))
    ((_, fractint),) = read(tmp_path, "c.map", "".join(f"{k} {255 - k} 9 comment\r\n" for k in range(256)))
    assert (fractint == [[k, 255 - k, 9] for k in range(256)]).all()
    name = "ab".encode("utf-16-be") + b"\0\0"
    swatches = [(b"RGB ", 1.0, 0.5, 0.0), (b"CMYK", 0.0, 1.0, 0.0, 0.2), (b"Gray", 0.4), (b"LAB ", 0.1, 0.2, 0.3)]
    packed = [struct.pack(">H", 3) + name + m + struct.pack(f">{len(v)}fH", *v, 2) for m, *v in swatches]
    blocks = b"".join(struct.pack(">HI", 1, len(each)) + each for each in packed)
    ((_, ase),) = read(tmp_path, "d.ase", b"ASEF" + struct.pack(">HHI", 1, 0, 4) + blocks)
    assert np.allclose(ase[[0, -1]], [[255, 127.5, 0], [102] * 3]) and np.allclose(
        ase[127:129].mean(0), [204, 0, 204], atol=2
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_written_gradients_read_back(tmp_path, rng, suffix):
    wanted = np.round(rng.uniform(0, 255, (256, 3)))
    write_gradient(tmp_path / f"a{suffix}", "my {gradient}", wanted)
    ((_, found),) = read_gradients(tmp_path / f"a{suffix}")
    assert np.abs(found - wanted).mean() < (40 if suffix == ".ugr" else 1e-3)  # its 400 positions are not ours


def test_bad_files_are_refused_in_one_sentence(tmp_path, rng):
    bad = {
        "a.ase": b"GIF8",
        "b.ase": b"ASEF" + bytes(8) + struct.pack(">HIH", 1, 99, 60000),
        "c.ugr": "x { gradient: }",
        "d.map": "",
        "e.gpl": "GIMP Palette",
    }
    for name, content in bad.items():
        with pytest.raises(InputError, match=name):
            read(tmp_path, name, content)
    for suffix in SUFFIXES:  # noise: an answer or an InputError, no other error
        for _ in range(20):
            try:
                read(tmp_path, f"n{suffix}", b"ASEF" * (suffix == ".ase") + rng.bytes(80))
            except InputError:
                pass
    with pytest.raises(UserError, match=".ugr"):
        write_gradient(tmp_path / "a.txt", "", np.zeros((256, 3)))
    with pytest.raises(UserError, match=".ugr"):
        read(tmp_path, "a.txt", "")
