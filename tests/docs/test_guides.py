"""The guides name what exists: files of the tree, links, scenes and commands."""

import re

import pytest

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
        if quoted.startswith(PLACES) and not re.search(r"[A-Z*#{ ]{2,}|\*", quoted):
            assert (ROOT / quoted.split(":")[0]).exists(), f"{page.name} names {quoted}"


def test_every_guide_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in sorted((ROOT / "assets/guides").glob("*.md")):
        assert f"assets/guides/{page.name}" in text, f"README.md does not link {page.name}"
