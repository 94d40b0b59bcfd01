"""What child processes of tests get of the environment."""

import os

from renderer.paths import ROOT


def python_path() -> str:
    """PYTHONPATH with this tree in front of what the environment names, where a machine may keep its packages."""
    return os.pathsep.join([str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
