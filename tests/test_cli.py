"""The command line as scripts see it: fresh processes, exit codes, stdout and stderr."""

import json
import os
import signal
import subprocess
import sys

import pytest

from renderer.formats.images import read_pixels
from renderer.paths import ROOT
from renderer.system.install import GL, OPENCL, system_install
from tests.children import run_here


def rayfold(*words, **more):
    return subprocess.run(
        [sys.executable, str(ROOT / "main.py"), *map(str, words)], capture_output=True, text=True, timeout=120, **more
    )


def test_help_is_quick_and_every_command_has_an_example():
    for command in ([], ["view"], ["export"], ["run"], ["sum"], ["solve"], ["bench"], ["doctor"]):
        answer = (rayfold if command in ([], ["export"]) else run_here)(*command, "--help")
        assert answer.returncode == 0 and "usage:" in answer.stdout
        assert not command or "example:" in answer.stdout


def test_usage_mistakes_exit_with_2(tmp_path):
    for words in (
        [], ["fly"], ["export"], ["export", "x.toml"], ["export", "x.toml", "-o", "x.png", "--size", "0x0"],
        ["export", "x.toml", "-o", tmp_path / "x.bmp"], ["export", "x.toml", "-o", tmp_path / "x_##.png"],
        ["export", "x.toml", "-o", tmp_path / "x.png", "--frames", "5-1"], ["export", "x.toml", "-o", tmp_path],
        ["export", "x.toml", "-o", tmp_path / "none" / "x.png"],
        ["export", "x.toml", "-o", tmp_path / "x.png", "--time", "nan"],
        ["export", "x.toml", "-o", tmp_path / "x.png", "--time-limit", "0"],
        ["export", "x.toml", "-o", tmp_path / "x.png", "--seed", "9999999999"],
    ):  # fmt: skip
        answer = (run_here if words[1:] else rayfold)(*words)  # a process of its own takes 0.2 CPU-seconds
        assert answer.returncode == 2, (words, answer)
        assert answer.stderr.startswith("rayfold: ") and answer.stderr.count("\n") == 1, answer.stderr
        assert "Traceback" not in answer.stderr and answer.stdout == ""


def test_bad_input_files_exit_with_5(tmp_path):
    (tmp_path / "bad.toml").write_text("picture = 3")
    (tmp_path / "odd.xyz").touch()
    (tmp_path / "plain.png").write_bytes(b"not a picture")
    for name in ("none.toml", "bad.toml", "odd.xyz", "plain.png"):
        answer = (rayfold if name == "bad.toml" else run_here)("export", tmp_path / name, "-o", tmp_path / "x.png")
        assert answer.returncode == 5, answer
        assert name in answer.stderr and answer.stderr.count("\n") == 1 and not (tmp_path / "x.png").exists()


def test_a_device_that_is_not_there_exits_with_4(tmp_path):
    answer = rayfold("export", ROOT / "scenes/cornell.toml", "-o", tmp_path / "x.png", "--device", "cuda:77")
    assert answer.returncode == 4 and "cuda:77" in answer.stderr and answer.stderr.count("\n") == 1


def test_doctor_answers_with_one_json_object():
    answer = rayfold("doctor", "--json")
    facts = json.loads(answer.stdout)
    assert answer.returncode in (0, 4)
    assert {"name", "kind", "ok", "reason"} <= facts["devices"][0].keys() if facts["devices"] else True
    assert "ok" in facts["gl"]


def test_doctor_without_any_driver_says_what_brings_them(tmp_path):
    nothing = dict(
        os.environ, OCL_ICD_VENDORS=str(tmp_path), __EGL_VENDOR_LIBRARY_FILENAMES=str(tmp_path / "none.json")
    )
    answer = rayfold("doctor", "--json", env=nothing)
    facts = json.loads(answer.stdout)
    assert system_install(OPENCL) in " ".join(facts["install_hints"])
    has_gpu = any(device["ok"] for device in facts["devices"])  # CUDA needs no OpenCL; some systems find GL elsewhere
    assert {system_install(GL, OPENCL), system_install(OPENCL)} & set(facts["fix"]) or has_gpu
    opencl = [device for device in facts["devices"] if device["kind"] == "opencl"]
    assert not opencl


def test_no_display_exits_with_4():
    pytest.importorskip("imgui_bundle", reason="the window needs imgui-bundle")
    bare = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    answer = rayfold("view", env=bare)
    assert answer.returncode == 4 and "isplay" in answer.stderr and "Traceback" not in answer.stderr


def test_export_writes_the_picture_and_its_recipe_renders_the_same_again(tmp_path):
    size = ["--size", "64x48", "--samples", "2"]
    first = rayfold("export", ROOT / "scenes/cornell.toml", "-o", tmp_path / "a.png", *size, "--seed", 3, "--json")
    assert first.returncode == 0, first.stderr
    facts = json.loads(first.stdout)
    assert facts["size"] == [64, 48] and facts["samples"] == 2 and facts["output"] == str(tmp_path / "a.png")
    assert {"seconds", "samples_per_second", "device"} <= facts.keys()
    again = rayfold("export", tmp_path / "a.png", "-o", tmp_path / "b.png")
    assert again.returncode == 0 and again.stdout.strip() == str(tmp_path / "b.png"), again.stderr
    assert (read_pixels(tmp_path / "a.png") == read_pixels(tmp_path / "b.png")).all()


def test_the_old_file_survives_a_failing_export(tmp_path):
    old = tmp_path / "a.png"
    old.write_bytes(b"precious")
    for more in (["--set", "max_depth=999"], ["--set", "nonsense=1"], ["--set", "max_depth"]):
        answer = rayfold("export", ROOT / "scenes/cornell.toml", "-o", old, *more)
        assert answer.returncode == 2 and old.read_bytes() == b"precious"


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_interrupt_ends_with_130_and_leaves_nothing_torn(tmp_path):
    words = [
        "export",
        ROOT / "scenes/cornell.toml",
        "-o",
        tmp_path / "a.png",
        "--size",
        "256x256",
        "--samples",
        "100000000",
    ]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), *map(str, words)], stderr=subprocess.PIPE, text=True
    )
    told = [next(process.stderr)]
    while "this will take about" not in told[-1]:  # said while it draws
        told.append(next(process.stderr))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)  # little of what is queued is waited for
    assert process.returncode == 130 and "Traceback" not in errors
    (left,) = tmp_path.iterdir()  # a whole picture of the samples that were drawn until then
    assert left == tmp_path / "a.png" and read_pixels(left).shape[:2] == (256, 256)
