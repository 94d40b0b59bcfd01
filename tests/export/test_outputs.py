"""Outputs of exports: frames that another run wants stay, a user's files too, and two runs never share an output."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from renderer.cli import main
from renderer.export import farm_worker, frames, run
from renderer.formats.images import read_recipe, write_exr, write_png
from renderer.paths import ROOT
from tests.export.export_helpers import SCENE, export
from tests.test_outputs import holder

pytestmark = pytest.mark.usefixtures("shared_gl")


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "julia.toml"
    path.write_text(SCENE)
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_film_removes_the_frames_that_it_shows_and_nothing_else(scene, tmp_path):
    """The folder was removed whole: a user's file in it, and the frames of a killed run with other numbers."""
    pytest.importorskip("av", reason="films need PyAV")
    folder = tmp_path / "film.mp4.frames"
    export(scene, "-o", tmp_path / "film.mp4", "--frames", "1-3")
    assert not folder.exists()
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    export(scene, "-o", tmp_path / "f_#.png", "--frames", "1-4", "--fps", "24")
    killed = folder / "######.png"  # where a killed film keeps its frames
    export(scene, "-o", killed, "--frames", "5-6")
    answer = export(scene, "-o", tmp_path / "film.mp4", "--frames", "1-3")
    assert names(folder) == ["000005.png", "000006.png", "frames.frames.jsonl", "notes.txt"]
    assert "keeps 2 frames, which are not in this film" in answer.stderr
    rows = [json.loads(line) for line in (folder / "frames.frames.jsonl").read_text().splitlines()]
    assert [row["frame"] for row in rows] == [5, 6]
    assert (folder / "notes.txt").read_text() == "mine"
    export(scene, "-o", tmp_path / "film.mp4", "--frames", "5-6")
    assert names(folder) == ["notes.txt"]


def test_a_folder_of_frames_that_is_a_link_or_a_file(scene, tmp_path):
    pytest.importorskip("av", reason="films need PyAV")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.gif.frames").symlink_to("elsewhere")
    export(scene, "-o", tmp_path / "a.gif", "--frames", "1-2")
    assert (tmp_path / "a.gif.frames").is_symlink() and names(tmp_path / "elsewhere") == []
    (tmp_path / "b.gif.frames").write_text("mine")
    answer = export(scene, "-o", tmp_path / "b.gif", "--frames", "1-2", code=2)
    assert "b.gif.frames: cannot be written: File exists" in answer.stderr
    assert (tmp_path / "b.gif.frames").read_text() == "mine" and not (tmp_path / "b.gif").exists()


def test_frames_of_another_scene_are_replaced_by_force_alone(scene, tmp_path):
    other = tmp_path / "other.toml"
    other.write_text(SCENE.replace("Julia in motion", "Another"))
    export(scene, "-o", tmp_path / "f_##.png", "--frames", "1-2")
    before = {name: (tmp_path / name).read_bytes() for name in ("f_01.png", "f_02.png", "f.frames.jsonl")}
    answer = export(other, "-o", tmp_path / "f_##.png", "--frames", "1-3", code=2)
    sentence = 'f_01.png and 1 more: of the scene "Julia in motion", not "Another"; --force replaces them\n'
    assert answer.stderr.endswith(sentence)
    assert {name: (tmp_path / name).read_bytes() for name in before} == before and not (tmp_path / "f_03.png").exists()
    export(other, "-o", tmp_path / "f_##.png", "--frames", "3-3")  # beside them it may
    answer = export(scene, "-o", tmp_path / "f_##.png", "--frames", "1-2", "--samples", "3", code=2)
    sentence = "f_01.png and 1 more: drawn with other settings, or in another size; --overwrite draws them again\n"
    assert answer.stderr.endswith(sentence)
    export(scene, "-o", tmp_path / "f_##.png", "--frames", "1-2", "--samples", "3", "--overwrite")  # its own again
    assert (tmp_path / "f_01.png").read_bytes() != before["f_01.png"]
    export(other, "-o", tmp_path / "f_##.png", "--frames", "1-3", "--force")
    export(scene, "-o", tmp_path / "f_##.png", "--frames", "1-3", code=2)
    (tmp_path / "f_01.png").write_bytes(b"torn")
    (tmp_path / "f_02.png").unlink()
    export(scene, "-o", tmp_path / "f_##.png", "--frames", "1-2")  # none is lost


def test_frames_that_no_list_names_are_replaced_only_if_a_killed_run_wrote_them(scene, tmp_path, capsys):
    """A picture of somebody else was overwritten, and so was a frame that was retouched."""
    words = ["export", str(scene), "-o", str(tmp_path / "f_#.png"), "--frames", "1-2"]
    assert main(words) == 0
    whole = (tmp_path / "f_2.png").read_bytes()
    listed = (tmp_path / "f.frames.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "f.frames.jsonl").write_text(listed[0])  # killed between a frame and its line
    assert main(words) == 0 and (tmp_path / "f_2.png").read_bytes() == whole
    write_png(tmp_path / "f_2.png", np.zeros((46, 70, 3), "u1"))
    foreign = (tmp_path / "f_2.png").read_bytes()
    for said in ("f_2.png: not as f.frames.jsonl lists it", "f_2.png: not listed in f.frames.jsonl"):
        capsys.readouterr()
        assert main(words) == 2 and (tmp_path / "f_2.png").read_bytes() == foreign
        assert capsys.readouterr().err.endswith(f"{said}; --force replaces them\n")
        (tmp_path / "f.frames.jsonl").write_text(listed[0])
    assert main([*words, "--force"]) == 0 and (tmp_path / "f_2.png").read_bytes() == whole


def test_an_unfinished_picture_replaces_none_of_more_samples(scene, tmp_path, capsys):
    """Ctrl-C or a time limit left two samples where a finished picture of many was."""
    out, aside = tmp_path / "a.png", [tmp_path / f"a.unfinished-{number}.png" for number in (1, 2)]
    words = ["export", str(scene), "-o", str(out)]
    assert main([*words, "--samples", "40"]) == 0
    finished = out.read_bytes()
    late = [*words, "--samples", "100", "--time-limit", "1e-9"]
    capsys.readouterr()
    assert main([*late, "--json"]) == 3
    told = capsys.readouterr()
    assert json.loads(told.out)["output"] == str(aside[0]) and out.read_bytes() == finished
    assert f"{out}: is kept; the unfinished picture of 1 samples is {aside[0]}\n" in told.err
    assert main(late) == 3 and names(tmp_path) == ["a.png", aside[0].name, "julia.toml"]  # no more samples are there
    write_png(aside[0], np.zeros((2, 2, 3), "u1"))  # a picture of another program
    assert main(late) == 3 and aside[1].exists() and read_recipe(aside[1])["samples"] == 1
    larger = [*words, "--samples", "100", "--time-limit", "1e-9", "--size", "80x50"]
    assert main([*words, "--samples", "1"]) == 0 and main(larger) == 3  # another size: no less may be in the old one
    assert read_recipe(out)["size"] == [70, 46] and read_recipe(tmp_path / "a.unfinished-3.png")["size"] == [80, 50]
    assert main([*late, "--force"]) == 3 and read_recipe(out)["samples"] == 1
    assert main([*words, "--samples", "2"]) == 0 and read_recipe(out)["samples"] == 2  # a finished one always


def test_a_forced_film_beside_another_names_the_other(scene, tmp_path, monkeypatch, capsys):
    """It ended with exit code 5 about a frame that nobody had named."""
    film, draw = tmp_path / "film.gif", run.carry_out

    def lose_a_frame(*arguments):
        result = draw(*arguments)
        (tmp_path / "film.gif.frames" / "000001.png").unlink()
        return result

    monkeypatch.setattr(run, "carry_out", lose_a_frame)
    with holder(f"claimed({str(film)!r})", "some words") as process:
        assert main(["export", str(scene), "-o", str(film), "--frames", "1-2", "--force"]) == 3
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.startswith(f"rayfold: {film}: process {process.pid} on ") and "000001.png" in last
        monkeypatch.setattr(run, "carry_out", lambda *_: run.read_digest(scene))  # an input at fault is the other's not
        assert main(["export", str(scene), "-o", str(film), "--frames", "1-2", "--force"]) == 5
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"rayfold: {scene}: ")


@pytest.mark.parametrize("name", ["film.gif", "f_#.png", "views"])
def test_a_frame_that_another_process_replaced_is_told(scene, tmp_path, monkeypatch, name, capsys):
    """A run reported its digests and exit code 0 for pictures of the scene of another run, which --force allows."""
    made, stranger = frames.Manifest.add, tmp_path / "stranger.png"
    write_png(stranger, np.zeros((4, 4, 3), "u1"), {})
    written = []

    def add(self, number, *facts):
        made(self, number, *facts)
        written.append(self.file(number))
        os.replace(stranger, written[0]) if len(written) == 2 else None

    monkeypatch.setattr(frames.Manifest, "add", add)
    more = ["--light-field", "1x2", "--size", "16x12"] if name == "views" else ["--frames", "1-2"]
    shown = ROOT / "scenes" / "mirrors.toml" if name == "views" else scene
    command = ["export", str(shown), "-o", str(tmp_path / name), "--samples", "1", *more]
    assert main(command) == 3
    answer = capsys.readouterr()
    assert f"{written[0]}: another process replaced this frame, and 0 more" in answer.err.splitlines()[-1]
    assert not answer.out and not (tmp_path / "film.gif").exists() and len(written) == 2
    assert main([*command, "--force"]) == 0 and len(written) == 3, "what is whole is not drawn again"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize(
    ("name", "numbers"), [("film.gif", "1-60"), ("f_##.png", "1-60"), pytest.param("a.png", "", marks=pytest.mark.slow)]
)
def test_two_runs_of_one_output(scene, tmp_path, name, numbers):
    """One film exited with 5 and the other with 70; frames of two scenes replaced each other in silence."""
    frames = ["--frames", numbers] if numbers else []
    words = [scene, "-o", tmp_path / name, "--samples", "100000", *frames]
    command = [sys.executable, str(ROOT / "main.py"), "export", *map(str, words)]
    ready = tmp_path / "ready"
    hold = "import sys, time, renderer.export.run as run; from pathlib import Path\n"  # no film is drawn: the run lasts
    hold += f"run.carry_out = lambda *all: (Path({str(ready)!r}).touch(), time.sleep(600))\n"
    hold += "from renderer.cli import main; sys.exit(main(sys.argv[1:]))"
    with subprocess.Popen([sys.executable, "-c", hold, *command[2:]], cwd=ROOT, stderr=subprocess.PIPE) as first:
        try:
            end = time.monotonic() + 60
            while not ready.exists():
                assert time.monotonic() < end and first.poll() is None
                time.sleep(0.02)
            answer = export(*words[:3], *frames, code=2)
            assert f"{name}: process {first.pid} on" in answer.stderr and "wait until it ends" in answer.stderr
            export(*words[:3], *frames, "--dry-run")
        finally:
            first.kill()
    few = ["--frames", "1-2"] if numbers else []
    export(*words[:3], *few)
    assert (tmp_path / name.replace("##", "02")).exists()


def test_files_sent_to_a_farm_are_used_only_if_whole(tmp_path, monkeypatch):
    """A file that a power failure cut short was taken for whole by its name."""
    monkeypatch.setattr(farm_worker, "private_folder", lambda: tmp_path)
    data = bytes(range(256)) * 64
    ((sent, here),) = farm_worker._store_files({"/there/picture.bin": data})
    assert sent == "/there/picture.bin" and here.endswith(".bin")
    for damaged in (b"", data[:-1], data[:-1] + b"x"):
        with open(here, "wb") as file:
            file.write(damaged)
        assert farm_worker._store_files({sent: data}) == ((sent, here),)
        with open(here, "rb") as file:
            assert file.read() == data
    written = os.stat(here).st_ino
    farm_worker._store_files({sent: data})
    assert os.stat(here).st_ino == written and len(list((tmp_path / "farm").iterdir())) == 1


def test_links_that_a_strangers_folder_holds_lead_no_output_out_of_it(scene, tmp_path):
    """The list of frames that a link led to a shell's start file ran the scene's title as a command."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "bashrc").write_text("mine")
    folder = tmp_path / "stranger"
    folder.mkdir()
    stranger = folder / "s.toml"
    stranger.write_bytes(scene.read_bytes())
    (folder / "f.frames.jsonl").symlink_to(mine / "bashrc")
    (folder / "a.png").symlink_to(mine / "bashrc")
    (folder / "h.gif.frames").symlink_to(mine)
    for more in ((), ("--untrusted",)):
        answer = export(stranger, "-o", folder / "f_#.png", "--frames", "1-1", *more, code=2)
        assert "f.frames.jsonl: is a link" in answer.stderr
    for output, more in (("a.png", ()), ("h.gif", ("--frames", "1-2"))):
        answer = export(stranger, "-o", folder / output, *more, "--untrusted", code=5)
        assert "is a link out of its folder" in answer.stderr
    assert names(mine) == ["bashrc"] and (mine / "bashrc").read_text() == "mine"


def test_frames_of_another_range_are_reused_only_if_they_show_the_same_moment(scene, tmp_path, capsys):
    """The first number of --frames moved the scene's time, and the list of frames did not know."""
    words = ["export", str(scene), "-o", str(tmp_path / "f_#.png"), "--samples", "1", "--fps", "10", "--frames"]
    assert main([*words, "3-4"]) == 0
    early = {name: (tmp_path / name).read_bytes() for name in ("f_3.png", "f_4.png")}
    capsys.readouterr()
    assert main([*words, "1-4"]) == 2 and {name: (tmp_path / name).read_bytes() for name in early} == early
    sentence = "f_3.png and 1 more: shows 0.0 s of the scene, not 0.2 s (the first frame drawn shows --time)"
    assert capsys.readouterr().err.endswith(f"{sentence}; --overwrite draws them again\n")
    assert main([*words, "1-4", "--overwrite"]) == 0
    fresh = {n: (tmp_path / f"f_{n}.png").read_bytes() for n in range(1, 5)}
    (tmp_path / "fresh").mkdir()
    assert main([*words[:3], str(tmp_path / "fresh" / "f_#.png"), *words[4:], "1-4"]) == 0
    assert {n: (tmp_path / "fresh" / f"f_{n}.png").read_bytes() for n in range(1, 5)} == fresh
    moments = [read_recipe(tmp_path / f"f_{n}.png")["time"] for n in range(1, 5)]
    assert moments == [0.0, 0.1, 0.2, 3 / 10]
    written = os.stat(tmp_path / "f_3.png").st_ino
    assert main([*words, "3", "--time", "0.2"]) == 0 and os.stat(tmp_path / "f_3.png").st_ino == written
    (tmp_path / "f.frames.jsonl").unlink()  # what no list names is known by its recipe, which holds the time
    assert main([*words, "3"]) == 2 and (tmp_path / "f_3.png").read_bytes() == fresh[3]


def picture_of_somebody(path):
    """A picture in the format that the suffix names, without a recipe."""
    if path.suffix == ".exr":
        write_exr(path, {"RGBA": np.ones((4, 4, 4), "f4")})
    else:
        write_png(path, np.zeros((4, 4, 3), "u1"))
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["views", "f_#.exr", "f_#.png"])
def test_all_numbered_outputs_have_the_same_protection(scene, tmp_path, kind, capsys):
    """Views of a light field and frames in EXR files were replaced, whoever had made them."""
    if kind == "views":
        words = [str(ROOT / "scenes" / "mirrors.toml"), "-o", str(tmp_path / kind), "--light-field", "1x2"]
    else:
        words = [str(scene), "-o", str(tmp_path / kind), "--frames", "1-2"]
    words = ["export", *words, "--size", "24x16", "--samples"]
    assert main([*words, "1"]) == 0
    (listed,) = tmp_path.rglob("*.frames.jsonl")
    rows = [json.loads(line) for line in listed.read_text().splitlines()]
    first, last = (listed.with_name(row["file"]) for row in rows)
    whole = [first.read_bytes(), last.read_bytes()]

    def refused(sentence, *more):
        capsys.readouterr()
        before = [first.read_bytes(), last.read_bytes()]
        assert main([*words, *more]) == 2 and [first.read_bytes(), last.read_bytes()] == before
        assert sentence in capsys.readouterr().err

    refused("and 1 more: drawn with other settings, or in another size", "2")
    assert main([*words, "2", "--overwrite"]) == 0 and first.read_bytes() != whole[0]
    assert main([*words, "1", "--force"]) == 0 and [first.read_bytes(), last.read_bytes()] == whole
    listed.write_text(json.dumps(rows[0]) + "\n")  # killed between a file and its line
    assert main([*words, "1"]) == 0 and last.read_bytes() == whole[1]
    for changed in (b"my thesis", whole[1][:-9], whole[1] + b"notes"):
        last.write_bytes(changed)
        assert main([*words, "1"]) == 0 and last.read_bytes() == whole[1]
        (kept,) = last.parent.glob("*.kept-1.*")
        assert kept.read_bytes() == changed and f"kept as {kept.name}" in capsys.readouterr().err
        kept.unlink()
    (diary := listed.with_name("diary.txt")).write_text("mine")
    last.unlink()
    last.symlink_to(diary)
    refused("is a link", "1")
    assert diary.read_text() == "mine"
    last.unlink()
    assert main([*words, "1"]) == 0
    rows_text = listed.read_text()
    listed.write_text("my list\n")
    refused(f"{listed}: holds no list of frames", "1")
    listed.write_text(rows_text)
    for foreign in (picture_of_somebody(last), b"\xff\xd8\xff\xe0 a photograph"):
        last.write_bytes(foreign)
        refused(f"{last}: not as {listed.name} lists it", "1")
    listed.write_text(json.dumps(rows[0]) + "\n")
    refused(f"{last}: not listed in {listed.name}", "1", "--overwrite")
    assert main([*words, "1", "--force"]) == 0 and last.read_bytes() == whole[1]


@pytest.mark.parametrize("suffix", [".png", ".exr"])
def test_a_still_replaces_a_picture_that_somebody_made_by_force_alone(scene, tmp_path, suffix, capsys):
    output = tmp_path / f"a{suffix}"
    Image.new("RGB", (4, 4)).save(output, "PNG")  # our own writers leave a digest
    before = output.read_bytes()
    words = ["export", str(scene), "-o", str(output), "--size", "8x6", "--samples", "1"]
    assert main(words) == 2 and output.read_bytes() == before
    assert f"-o {output}: holds what Rayfold did not write; --force replaces it" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0 and output.read_bytes() != before
    assert main(words) == 0  # its own picture, again
    (other := tmp_path / "other.toml").write_text(SCENE)
    assert main(["export", str(other), *words[2:]]) == 0  # one path for many inputs
    output.write_bytes(b"")  # as mktemp makes it
    assert main(words) == 0
