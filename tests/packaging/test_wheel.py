"""The wheel holds all that it needs: used from an empty folder, with nothing else of the checkout in sight."""

from renderer import __version__
from renderer.paths import ROOT
from tests.packaging.conftest import in_empty_folder

CODE = """
import renderer
image = renderer.render("cornell", size=(32, 24), samples=1)
print(image.shape, image.dtype, renderer.__file__)
"""


def test_the_command_and_the_metadata_are_there(installed):
    (entry,) = installed.glob("*.dist-info/entry_points.txt")
    assert "rayfold = renderer.__main__:run" in entry.read_text()
    (metadata,) = installed.glob("*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    assert "License-Expression: MIT" in text and f"Version: {__version__}" in text
    assert list(installed.glob("*.dist-info/licenses/LICENSE"))


def files_below(folder):
    """Relative paths of the files in a folder, without the bytecode of tests that import makers of assets meanwhile."""
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"}


def test_it_holds_every_shader_scene_and_asset(installed):
    for place in ("shaders", "scenes", "assets"):
        missing = files_below(ROOT / place) - files_below(installed / "renderer" / place)
        assert not missing, sorted(map(str, missing))[:5]


def test_commands_work_from_an_empty_folder(installed, tmp_path):
    version = in_empty_folder(installed, tmp_path / "a", "-m", "renderer", "--version")
    assert version.returncode == 0 and version.stdout.strip() == f"rayfold {__version__}"
    doctor = in_empty_folder(installed, tmp_path / "a", "-m", "renderer", "doctor")
    assert doctor.returncode == 0, doctor.stderr
    words = ["-m", "renderer", "export", "cornell", "-o", "box.png", "--size", "32x24", "--samples", "1"]
    export = in_empty_folder(installed, tmp_path / "a", *words)
    assert export.returncode == 0 and (tmp_path / "a" / "box.png").exists(), export.stderr
    listed = in_empty_folder(installed, tmp_path / "a", "-m", "renderer", "bench", "list")
    assert listed.returncode == 0 and "mirrors" in listed.stdout, listed.stderr


def test_the_api_works_from_an_empty_folder(installed, tmp_path):
    answer = in_empty_folder(installed, tmp_path / "b", "-c", CODE)
    assert answer.returncode == 0, answer.stderr
    assert "(24, 32, 4) float32" in answer.stdout and str(installed) in answer.stdout


def test_a_home_that_cannot_be_written_is_said_and_does_no_harm(installed, tmp_path):
    words = ["-m", "renderer", "export", "mandelbrot", "-o", "m.png", "--size", "32x24", "--samples", "1"]
    variables = {"HOME": "/dev/null/none", "TMPDIR": str(tmp_path)}
    answer = in_empty_folder(installed, tmp_path / "c", *words, XDG_CACHE_HOME="", **variables)
    assert answer.returncode == 0, answer.stderr
    assert "compiled kernels go to" in answer.stderr
