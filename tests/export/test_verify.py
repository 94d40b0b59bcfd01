"""`rayfold verify`: a picture is drawn again from its recipe and compared bit for bit; digests of exports."""

import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from renderer.cli import main
from renderer.export.verify import compare
from renderer.formats.images import read_digest, read_recipe, read_samples, sample_digest, write_png


@pytest.fixture
def rayfold(capsys):
    def run(*words):
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


def verify(rayfold, path, *words):
    code, out, _ = rayfold("verify", path, "--json", *words)
    return code, json.loads(out)


@pytest.mark.parametrize("bit_depth", [8, 16])
@pytest.mark.parametrize(
    ("scene", "words"), [("mandelbrot", []), ("mirrors", ["--set", "max_depth=2", "--time", "0.5"])]
)
def test_a_picture_drawn_again_has_the_same_bits(rayfold, tmp_path, scene, words, bit_depth):
    path = tmp_path / "a.png"
    words = ["--size", "40x30", "--samples", "3", "--bit-depth", bit_depth, "--json", "--device", "cpu", *words]
    code, out, _ = rayfold("export", scene, "-o", path, *words)
    digest = json.loads(out)["digest"]
    samples = read_samples(path)
    assert code == 0 and digest == read_digest(path) == sample_digest(samples) and samples.itemsize == bit_depth // 8
    head = "{} {} {} {}\n".format(*samples.shape, samples.itemsize).encode()
    assert digest == hashlib.sha256(head + samples.astype(samples.dtype.newbyteorder(">")).tobytes()).hexdigest()
    code, answer = verify(rayfold, path, "--device", "cpu")
    assert code == 0 and answer["same"] and answer["worst"] == 0 and answer["where"] is None and answer["intact"]
    assert answer["digest"] == answer["digest_again"] == digest
    assert answer["device"].startswith(answer["device_before"])


def test_a_changed_pixel_is_found(rayfold, tmp_path):
    path = tmp_path / "a.png"
    rayfold("export", "mandelbrot", "-o", path, "--size", "40x30", "--samples", "1")
    samples, recipe = read_samples(path).copy(), read_recipe(path)
    samples[7, 11, 1] ^= 4
    write_png(path, samples, recipe)
    code, answer = verify(rayfold, path)
    assert code == 1 and not answer["same"] and answer["where"] == [11, 7] and answer["worst"] == 4
    assert answer["pixels"] == 1 and answer["intact"]  # its digest is that of the forged samples
    code, out, _ = rayfold("verify", path)
    assert code == 1 and out == f"{path}: differs: 1 pixels differ, most by 4 of 255 at pixel (11, 7)\n"


def test_samples_changed_behind_the_digest_are_told(rayfold, tmp_path):
    path, other = tmp_path / "a.png", tmp_path / "b.png"
    for target, seed in ((path, 1), (other, 2)):
        words = ["--size", "24x16", "--samples", "1", "--seed", seed]
        assert rayfold("export", "fern", "-o", target, *words)[0] == 0
    whole, forged = path.read_bytes(), other.read_bytes()
    path.write_bytes(forged.replace(read_digest(other).encode(), read_digest(path).encode()))
    assert rayfold("verify", path)[0] == 5  # the chunk's own checksum is wrong now
    path.write_bytes(whole)
    assert rayfold("verify", path)[0] == 0


def test_frames_verify_each_and_a_film_has_one_digest(rayfold, tmp_path):
    words = ["--frames", "2-4", "--size", "32x24", "--samples", "2", "--fps", "5"]
    code, out, _ = rayfold("export", "lightfield", "-o", tmp_path / "f_#.png", *words, "--json")
    answer = json.loads(out)
    assert code == 0 and answer["digest"] == [read_digest(tmp_path / f"f_{n}.png") for n in (2, 3, 4)]
    rows = [json.loads(line) for line in (tmp_path / "f.frames.jsonl").read_text().splitlines()]
    assert [row["digest"] for row in rows] == answer["digest"] and len(set(answer["digest"])) == 3
    assert all(verify(rayfold, path)[0] == 0 for path in answer["output"])
    pytest.importorskip("av", reason="films need PyAV")
    code, out, _ = rayfold("export", "lightfield", "-o", tmp_path / "film.mkv", *words, "--json")
    lines = "".join(f"{digest}\n" for digest in answer["digest"])
    assert json.loads(out)["digest"] == hashlib.sha256(lines.encode()).hexdigest()


def test_an_exr_carries_a_digest(rayfold, tmp_path):
    digests = []
    for name, samples in (("a", 1), ("b", 1), ("c", 2)):
        words = ["--size", "24x16", "--samples", samples, "--json"]
        code, out, _ = rayfold("export", "mirrors", "-o", tmp_path / f"{name}.exr", *words)
        digests.append(json.loads(out)["digest"])
        assert code == 0 and digests[-1] == read_digest(tmp_path / f"{name}.exr") and len(digests[-1]) == 64
    assert digests[0] == digests[1] != digests[2]


def test_files_that_cannot_be_verified(rayfold, tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "plain.png")
    Image.new("RGB", (8, 8)).save(tmp_path / "photo.jpg")
    (tmp_path / "noise.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "folder.png").mkdir()
    rayfold(
        "export", "mandelbrot", "-o", tmp_path / "cut.png", "--size", "40x30", "--samples", "1", "--bit-depth", "16"
    )
    data = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(data[: len(data) // 2])
    for name in ("none.png", "plain.png", "photo.jpg", "noise.png", "folder.png", "cut.png"):
        code, out, err = rayfold("verify", tmp_path / name)
        assert code == 5 and out == "" and err.count("\n") == 1 and name in err, (name, code, err)


def test_differences_are_counted(rng):
    before = rng.integers(0, 65536, (9, 7, 3), dtype="u2")
    after = before.copy()
    after[2, 5] = 65535 - after[2, 5]
    after[8, 6, 0] ^= 1
    answer = compare(before, after)
    expected = np.abs(before.astype(int) - after).max()
    assert (answer["pixels"], answer["worst"], answer["same"]) == (2, expected, False)
    assert compare(before, before)["same"] and compare(before, before)["worst"] == 0
    shapes = compare(before, before[:, :, :2])
    assert not shapes["same"] and shapes["shapes"] == [[9, 7, 3], [9, 7, 2]]


def test_what_is_printed_names_no_file_or_option_that_verify_lacks(rayfold, tmp_path):
    path = tmp_path / "noisy.png"
    _, _, hint = rayfold("export", "cornell", "-o", path, "--size", "32x24", "--samples", "1", "--device", "cpu")
    code, _, said = rayfold("verify", path, "--device", "cpu")
    assert "--denoise" in hint and code == 0 and "again.png" not in said and "--" not in said
