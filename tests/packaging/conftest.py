"""The wheel of this checkout, unpacked once a session, and processes that see nothing else of it."""

import os
import subprocess
import sys
import zipfile

import pytest

from renderer.paths import ROOT


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The folder that the wheel, built from this checkout, was unpacked into."""
    build = pytest.importorskip("build", reason="building a wheel needs the package build")
    pytest.importorskip("hatchling", reason="the build back end is hatchling")
    from build import ProjectBuilder

    assert build
    folder = tmp_path_factory.mktemp("wheel")
    wheel = ProjectBuilder(ROOT).build("wheel", folder)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def in_empty_folder(installed, folder, *words, **environment):
    """A process that sees the wheel and its dependencies, not this checkout."""
    folder.mkdir(exist_ok=True)
    given = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-P", *words]
    variables = {**given, "PYTHONPATH": str(installed), **environment}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
