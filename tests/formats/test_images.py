"""Image files: round trips, recipes, files that are not what they say, and outputs that cannot be written."""

import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from renderer.errors import InputError, UserError
from renderer.formats.images import (
    atomic_write,
    linear_to_srgb,
    read_exr,
    read_image,
    read_pixels,
    read_recipe,
    srgb_to_linear,
    write_exr,
    write_png,
    write_png_rows,
)
from renderer.images.metrics import psnr
from tests.children import python_path


def test_png_keeps_pixels_and_recipe(tmp_path, rng):
    recipe = {"scene": {"title": "Ünïcode ☃", "list": [1, 2.5, None]}}
    for channels in (3, 4):
        pixels = rng.integers(0, 256, (5, 7, channels), "u1")
        write_png(tmp_path / "a.png", pixels, recipe)
        assert np.array_equal(read_pixels(tmp_path / "a.png")[..., :channels], pixels)
        assert read_recipe(tmp_path / "a.png") == recipe


def test_sixteen_bits_and_bands_are_what_another_reader_sees(tmp_path, rng):
    pixels = rng.integers(0, 65536, (37, 11, 3), "u2")
    write_png(tmp_path / "deep.png", pixels)
    with Image.open(tmp_path / "deep.png") as picture:  # Pillow reads 16-bit color as its high bytes
        assert picture.size == (11, 37) and np.array_equal(np.asarray(picture.convert("RGB")), pixels >> 8)
    small = rng.integers(0, 256, (37, 11, 4), "u1")
    write_png_rows(tmp_path / "bands.png", small.shape, "u1", [small[:1], small[1:20], small[20:]], {"a": 1})
    assert np.array_equal(read_pixels(tmp_path / "bands.png"), small) and read_recipe(tmp_path / "bands.png") == {
        "a": 1
    }


def test_exr_keeps_every_bit(tmp_path, rng):
    linear = rng.standard_normal((6, 5, 4)).astype("f4")
    linear[0, 0, 0] = np.inf
    write_exr(tmp_path / "a.exr", {"RGBA": linear}, {"a": 1})
    assert np.array_equal(read_exr(tmp_path / "a.exr"), linear)
    assert np.array_equal(read_image(tmp_path / "a.exr"), linear)


def test_srgb_round_trip_is_exact_for_every_byte():
    every = np.arange(256, dtype="u1")
    assert np.array_equal(linear_to_srgb(srgb_to_linear(every)), every)


def test_files_that_are_no_images(tmp_path, rng):
    path = tmp_path / "a.png"
    with pytest.raises(InputError, match="No such file"):
        read_pixels(path)
    path.write_bytes(b"hello")
    with pytest.raises(InputError, match="not an image"):
        read_pixels(path)
    write_png(path, rng.integers(0, 256, (64, 64, 3), "u1"))
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(InputError, match="damaged"):
        read_pixels(path)
    with pytest.raises(InputError, match="not an EXR"):
        read_exr(path)


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path):
    write_png(tmp_path / "bomb.png", np.zeros((1, 1, 3), "u1"))
    data = bytearray((tmp_path / "bomb.png").read_bytes())
    data[16:24] = struct.pack(">II", 40_000, 40_000)
    data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
    (tmp_path / "bomb.png").write_bytes(data)
    with pytest.raises(InputError, match="more than"):
        read_pixels(tmp_path / "bomb.png")


def test_recipes_that_are_missing_or_damaged(tmp_path):
    write_png(tmp_path / "a.png", np.zeros((2, 2, 3), "u1"))
    with pytest.raises(InputError, match="holds no recipe"):
        read_recipe(tmp_path / "a.png")


def test_what_was_there_survives_a_failure(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["a.txt"]


def test_unwritable_outputs_are_told(tmp_path):
    with pytest.raises(UserError, match="is a folder"), atomic_write(tmp_path):
        pass
    with pytest.raises(UserError, match="cannot be written"), atomic_write(tmp_path / "none" / "a.png"):
        pass


def test_psnr_by_hand():
    a = np.zeros((2, 2, 3), "u1")
    b = a.copy()
    b[0, 0, 0] = 2
    assert psnr(a, a) == float("inf")
    assert psnr(a, b) == pytest.approx(10 * np.log10(255**2 / (4 / 12)))


def test_only_the_formats_we_promise_are_opened(tmp_path):
    pixels = np.full((4, 5, 3), 90, "u1")
    for kind in ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "PPM", "GIF"):
        Image.fromarray(pixels).save(tmp_path / "a.png", kind)
        assert np.abs(read_pixels(tmp_path / "a.png").astype(int)[..., :3] - 90).max() <= 2, kind
    for kind in ("EPS", "TGA", "ICO", "PCX", "PDF", "SGI", "IM"):  # EPS would start Ghostscript
        Image.fromarray(pixels).save(tmp_path / "a.png", kind)
        with pytest.raises(InputError, match="not an image that can be read"):
            read_pixels(tmp_path / "a.png")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_recipes_are_read_without_decoding_a_pixel(tmp_path):
    path = tmp_path / "a.png"
    write_png(path, np.zeros((9, 9, 3), "u1"), {"rayfold": 1, "a": "é"})
    data = path.read_bytes()
    path.write_bytes(data[: data.index(b"IDAT") - 4])  # nothing behind the recipe
    assert read_recipe(path) == {"rayfold": 1, "a": "é"}
    plain = b"rayfold:recipe\0\0\0en\0key\0" + '{"a": "é"}'.encode()
    path.write_bytes(data[:8] + chunk(b"iTXt", b"other\0\0\0\0\0{}") + chunk(b"iTXt", plain))
    assert read_recipe(path) == {"a": "é"}
    bomb = b"rayfold:recipe\0\1\0\0\0" + zlib.compress(b" " * (64 << 20), 9)
    for content, told in ((chunk(b"iTXt", bomb), "larger than the 16 MiB"), (chunk(b"iTXt", plain)[:-1], "cut off"),
                          (chunk(b"iTXt", plain)[:-4] + b"abcd", "checksum"), (b"", "no recipe")):  # fmt: skip
        path.write_bytes(data[:8] + content)
        with pytest.raises(InputError, match=told):
            read_recipe(path)


DISK = """
import resource, signal
import numpy as np
from pathlib import Path
from renderer.errors import UserError
from renderer.formats.images import write_exr
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
try:
    write_exr(Path("a.exr"), {"RGB": np.random.default_rng(0).random((300, 300, 3)).astype("f4")})
except UserError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process's files are POSIX's")
def test_an_exr_that_cannot_be_written_is_one_sentence_and_leaves_no_file(tmp_path):
    environment = {**os.environ, "PYTHONPATH": python_path()}
    command = [sys.executable, "-c", DISK]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=60)
    assert result.stdout.startswith("DiskFullError a.exr: cannot be written: ") and result.stdout.count("\n") == 1, (
        result.stdout + result.stderr
    )
    assert not list(tmp_path.iterdir())


def test_images_beyond_the_budget_of_memory_are_refused_before_they_are_decoded(tmp_path):
    path = tmp_path / "a.png"
    for side, read in ((7095, read_pixels), (5793, read_image)):
        head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b""))
        with pytest.raises(InputError, match=f"{side} x {side} pixels are more than"):
            read(path)
