"""Prepares the files of a tagged release, in the workflow's checkout: `python .ci/prepare_release.py URL TAG`.

The index shows README.md away from the repository, so its links become absolute, at the tag. URL is the repository's
address, which becomes [project.urls]. Ends with a sentence if tag, version and changelog do not agree.
"""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(```.*?```)", re.DOTALL)


def absolute_links(text: str, url: str, tag: str) -> str:
    """The Markdown text with links to files of the repository made absolute; blocks of code stay."""

    def absolute(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        if not re.match(r"[a-z]+:|#", target):
            target = f"{url}/{'raw' if mark else 'blob'}/{tag}/{target}"
        return f"{mark}[{LINK.sub(absolute, label)}]({target})"

    return "".join(part if part.startswith("```") else LINK.sub(absolute, part) for part in CODE.split(text))


def with_urls(project: str, url: str, tag: str) -> str:
    """The text of pyproject.toml with the table [project.urls]."""
    urls = {
        "Source": url,
        "Documentation": f"{url}/blob/{tag}/README.md",
        "Changelog": f"{url}/blob/{tag}/CHANGELOG.md",
    }
    table = "[project.urls]\n" + "".join(f'{name} = "{address}"\n' for name, address in urls.items())
    return project.replace("[project.scripts]\n", f"{table}\n[project.scripts]\n", 1)


def disagreement(tag: str, version: str, changelog: str) -> str:
    """What keeps the tag from being released, or ""."""
    if tag != f"v{version}":
        return f"the tag is {tag}, but renderer/__init__.py has the version {version}: the tag must be v{version}"
    if not re.search(rf"(?m)^## \[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d$", changelog):
        return f"CHANGELOG.md has no line `## {version} - YYYY-MM-DD`"
    return ""


def main(url: str, tag: str) -> None:
    """Rewrites README.md and pyproject.toml of the current folder."""
    version = re.search(r'__version__ = "(.+)"', Path("renderer/__init__.py").read_text(encoding="utf-8"))[1]
    if reason := disagreement(tag, version, Path("CHANGELOG.md").read_text(encoding="utf-8")):
        sys.exit(reason)
    for name, change in (("README.md", absolute_links), ("pyproject.toml", with_urls)):
        path = Path(name)
        path.write_text(change(path.read_text(encoding="utf-8"), url, tag), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
