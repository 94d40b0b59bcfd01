"""The guides name what exists: files of the tree, links, scenes and commands.

tests/packaging/test_blocks.py runs their Python.
"""

import re
import shutil

import numpy as np
import pytest

from renderer import cli, pictures
from renderer.formats.images import read_pixels
from renderer.gpu import kernel_source
from renderer.paths import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "assets").glob("**/*.md"))]
PLACES = ("renderer/", "shaders/", "scenes/", "tests/", "assets/")


def ids(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://")):
            assert (page.parent / link).exists(), f"{page.name} links {link}"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_paths_of_the_tree_exist(page):
    """Every `folder/file` in code quotes is there; capitals (NAME.py) and marks (*, #) stand for many files."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for quoted in re.findall(r"`([^`\n]+)`", text):
        if "rings" not in quoted and quoted.startswith(PLACES) and not re.search(r"[A-Z*#{ ]{2,}|\*", quoted):
            assert (ROOT / quoted.split(":")[0]).exists(), f"{page.name} names {quoted}"


def test_every_guide_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in sorted((ROOT / "assets/guides").glob("*.md")):
        assert f"assets/guides/{page.name}" in text, f"README.md does not link {page.name}"


def test_the_first_scene_of_the_ray_tracing_guide_is_drawn(tmp_path):
    text = (ROOT / "assets/guides/raytracing.md").read_text(encoding="utf-8")
    (tmp_path / "ball.toml").write_text(re.search(r"```toml\n(.*?)```", text, re.S)[1])
    shutil.copy(ROOT / "assets/orrery/ring.obj", tmp_path)
    words = [
        "export",
        str(tmp_path / "ball.toml"),
        "-o",
        str(tmp_path / "ball.png"),
        "--size",
        "48x30",
        "--samples",
        "1",
    ]
    assert cli.main(words) == 0
    drawn = read_pixels(tmp_path / "ball.png")[..., :3]
    clay, studio = drawn[13:17, 22:26].mean((0, 1)), drawn[:4].mean((0, 1))
    assert clay[0] > 1.5 * clay[2] and abs(studio[0] - studio[2]) < 20


def test_the_panel_of_the_pictures_guide_works(tmp_path, monkeypatch):
    """The guide's three files, as a newcomer would write them: drawn whole and in tiles with the same bits."""
    text = (ROOT / "assets/guides/pictures.md").read_text(encoding="utf-8")
    shader, module, scene = (re.search(rf"```{kind}\n(.*?)```", text, re.S)[1] for kind in ("glsl", "python", "toml"))
    shaders = tmp_path / "shaders"
    shutil.copytree(kernel_source.SHADERS, shaders)
    (shaders / "images/rings.frag").write_text(shader)
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures/rings.py").write_text(module)
    (tmp_path / "rings.toml").write_text(scene)
    monkeypatch.setattr(kernel_source, "SHADERS", shaders)
    monkeypatch.setattr(pictures, "__path__", [*pictures.__path__, str(tmp_path / "pictures")])
    drawn = []
    for more in ([], ["--tile", "13"]):
        words = ["export", str(tmp_path / "rings.toml"), "-o", str(tmp_path / "rings.png"), "--size", "48x30", *more]
        assert cli.main(words) == 0
        drawn.append(read_pixels(tmp_path / "rings.png"))
    assert np.array_equal(*drawn) and drawn[0].std() > 10
