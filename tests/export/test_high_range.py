"""Exports of high dynamic range: PQ in PNG and films of 10 bits, read back by PyAV and drawn again by verify."""

import json

import numpy as np
import pytest

from renderer.cli import main
from renderer.formats.images import read_exr, read_recipe, read_samples


def rayfold(*words):
    return main([str(word) for word in words])


def pq_nits(encoded):
    m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 4096 * 128, 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
    power = encoded ** (1 / m2)
    return 1e4 * (np.maximum(power - c1, 0) / (c2 - c3 * power)) ** (1 / m1)


WORDS = ("--size", "48x32", "--samples", "4", "--device", "cpu", "--set", "tone.exposure=manual", "--set", "tone.ev=2")


def test_a_pq_png_holds_the_radiance_and_is_verified(tmp_path, capsys):
    path, linear = tmp_path / "a.png", tmp_path / "a.exr"
    assert rayfold("export", "cornell", "-o", path, *WORDS, "--bit-depth", 16, "--transfer", "pq", "--json") == 0
    assert json.loads(capsys.readouterr().out)["digest"]
    assert b"cICP\x09\x10\x00\x01" in path.read_bytes() and b"sRGB" not in path.read_bytes()[:200]
    assert read_recipe(path)["transfer"] == "pq"
    rayfold("export", "cornell", "-o", linear, *WORDS)
    to_2020 = np.array([[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]])
    expected = np.clip(read_exr(linear)[..., :3] * 4 @ to_2020.T * 203, 0, 1e4)
    shown = pq_nits(read_samples(path)[..., :3] / 65535)
    assert expected.max() > 500, "the lamp is brighter than white"
    assert (np.abs(shown - expected) <= 0.01 + 0.003 * expected).all()
    capsys.readouterr()
    assert rayfold("verify", path, "--device", "cpu", "--json") == 0
    assert json.loads(capsys.readouterr().out)["same"]


@pytest.mark.parametrize("suffix", [".mp4", ".webm"])
def test_a_film_of_ten_bits_says_its_colors_and_keeps_them(tmp_path, suffix):
    av = pytest.importorskip("av", reason="videos need PyAV")
    path, still = tmp_path / f"a{suffix}", tmp_path / "still.png"
    high = ("--transfer", "pq", "--bit-depth")
    assert rayfold("export", "cornell", "-o", path, "--frames", "1-2", *WORDS, *high, 10) == 0
    assert rayfold("export", "cornell", "-o", still, *WORDS, *high, 16) == 0
    with av.open(str(path)) as film:
        stream = film.streams.video[0]
        frames = list(film.decode(stream))
        context = stream.codec_context
        assert (context.color_primaries, context.color_trc, context.colorspace, context.color_range) == (9, 16, 9, 1)
    frame = frames[0]
    assert len(frames) == 2 and frame.format.name.endswith("10le")
    luma = frame.to_ndarray()[:32, :48].astype(float)
    expected = 64 + 876 * (read_samples(still)[..., :3] / 65535 @ [0.2627, 0.6780, 0.0593])
    assert np.abs(luma - expected).mean() < 12, "within the codec's loss"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.png", "--bit-depth", "10"], "only .mp4, .mkv, .webm files have it, not .png"),
        (["a.mp4", "--bit-depth", "16"], "only .png files have it, not .mp4"),
        (["a.mp4", "--bit-depth", "10", "--frames", "1-2", "--size", "8x20"], "8 x 20 pixels; films of it have 16"),
        (["a.gif", "--bit-depth", "10"], "not .gif"),
        (["a.png", "--transfer", "pq"], "--transfer pq: .png with 8 bits per channel"),
        (["a.png", "--set", "tone.lut=missing.cube"], "there is no missing.cube"),
        (["a.png", "--set", "tone.temperature=1"], "it must be 1000.0 to 15000.0"),
    ],
)
def test_mistakes_are_named(tmp_path, monkeypatch, capsys, words, said):
    if "8x20" in words:
        pytest.importorskip("av", reason="videos need PyAV")
    monkeypatch.chdir(tmp_path)
    assert rayfold("export", "cornell", "-o", *words) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_look_up_table_travels_with_the_recipe(tmp_path, capsys):
    (tmp_path / "invert.cube").write_text("LUT_1D_SIZE 2\n1 1 1\n0 0 0\n")
    path = tmp_path / "a.png"
    plain = tmp_path / "b.png"
    assert rayfold("export", "cornell", "-o", path, *WORDS, "--set", f"tone.lut={tmp_path / 'invert.cube'}") == 0
    assert rayfold("export", "cornell", "-o", plain, *WORDS) == 0
    assert read_recipe(path)["scene"]["tone"]["lut"] == "invert.cube"
    assert np.abs(255 - read_samples(path)[..., :3].astype(int) - read_samples(plain)[..., :3]).max() <= 1
    capsys.readouterr()
    assert rayfold("verify", path, "--device", "cpu", "--json") == 0
