"""What the release workflow does to the files: links become absolute, and tag, version and changelog agree."""

import importlib.util
import re
import tomllib

from renderer import __version__
from renderer.paths import ROOT

spec = importlib.util.spec_from_file_location("prepare_release", ROOT / ".ci/prepare_release.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)
URL = "https://example.org/a/b"


def test_links_of_the_readme_are_absolute_at_the_tag():
    text = release.absolute_links((ROOT / "README.md").read_text(encoding="utf-8"), URL, "v1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.S))
    assert len(targets) > 20 and all(target.startswith("https://") for target in targets)
    for target in targets:
        kind, tag, path = target.removeprefix(URL + "/").split("/", 2)
        assert kind == ("raw" if path.endswith((".png", ".jpg")) else "blob") and tag == "v1.2.3"
        assert (ROOT / path).exists(), path
    one = "[![a [b]](p.png)](g.md) `[x](y)` [s](https://c.d) [t](#e)\n```\n[k](l)\n```\n"
    assert release.absolute_links(one.replace("a [b]", "a"), "U", "t") == (
        "[![a](U/raw/t/p.png)](U/blob/t/g.md) `[x](U/blob/t/y)` [s](https://c.d) [t](#e)\n```\n[k](l)\n```\n"
    )


def test_the_project_gets_its_urls():
    project = tomllib.loads(release.with_urls((ROOT / "pyproject.toml").read_text(encoding="utf-8"), URL, "v1"))
    assert project["project"]["urls"]["Source"] == URL and project["project"]["scripts"]


def test_tag_version_and_changelog_agree():
    assert release.disagreement("v1.2.3", "1.2.3", "## Unreleased\n\n## 1.2.3 - 2026-01-02\n") == ""
    assert "must be v1.2.3" in release.disagreement("v1.2.4", "1.2.3", "")
    assert "no line" in release.disagreement("v1.2.3", "1.2.3", "## 1.2.3\n## 1.2.30 - 2026-01-02\n")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {__version__}\n" in citation
