"""What a command and a first picture import: each third-party module by its name, so that a new one is a decision."""

import json
import os
import subprocess
import sys
from functools import cache

import pytest

from renderer.gpu import list_devices
from renderer.paths import ROOT
from tests.children import python_path

OURS = {"greenlet", "moderngl", "numpy", "pyopencl"}  # greenlet and moderngl together take 2 ms
OF_PYOPENCL = {"attr", "attrs", "mako", "markupsafe", "platformdirs", "pytools", "siphash24", "typing_extensions"}
REPORT = """
import json, sys
{code}
tops = {{name.partition(".")[0] for name, module in sys.modules.items() if getattr(module, "__file__", None)}}
tops = {{name for name in tops - sys.stdlib_module_names - {{"renderer"}} if name.strip("_") == name}}
print(json.dumps(sorted(tops - {{"cython_runtime"}})))
"""


NEEDLESS = {  # read files that Cornell does not name, or serve other commands
    "renderer.formats.gltf.container", "renderer.formats.gltf.nodes", "renderer.formats.meshes.obj",
    "renderer.formats.npy", "renderer.images.inspection", "renderer.export.farm", "PIL", "matplotlib",
}  # fmt: skip


def imported_by(code: str, folder) -> set[str]:
    """The third-party packages that are imported when a fresh process has run the code."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(":")}
    words = [sys.executable, "-c", REPORT.format(code=code)]
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@cache
def of_this_machine(folder) -> set[str]:
    """What an empty program imports, by a sitecustomize module."""
    return imported_by("", folder)


@pytest.mark.skipif(not any(d.device_type == "cpu" for d in list_devices()[0]), reason="no processor shows OpenCL")
@pytest.mark.parametrize(
    "code",
    [
        "from renderer.cli import main; "
        "assert main('export cornell -o c.png --size 8x6 --samples 1 --device cpu'.split()) == 0",
        "import renderer; renderer.render('cornell', size=(8, 6), samples=1, device='cpu').save('c.png')",
    ],
    ids=["export", "render"],
)
def test_a_first_picture_imports_these_packages(code, tmp_path):
    code += f"; import sys; assert not {NEEDLESS!r} & set(sys.modules), {NEEDLESS!r} & set(sys.modules)"
    assert imported_by(code, tmp_path) - OF_PYOPENCL - of_this_machine(tmp_path.parent) == OURS


def test_help_and_the_names_of_the_api_import_none(tmp_path):
    code = "import renderer; dir(renderer); from renderer.cli import build_parser; build_parser().format_help()"
    assert imported_by(code, tmp_path) == of_this_machine(tmp_path.parent)


def test_the_quiet_end_of_a_signal_is_installed_before_typing_is_imported():
    """Until then Ctrl-C prints Python's traceback; the import of typing was 24 ms of 27."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import renderer.__main__; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=300)
    assert not {"typing", "re", "collections.abc"} & {*answer.stdout.split()}, answer


ONE_FAMILY = """
import pickle, pydoc, sys
import rayfold.flames.interpolation, rayfold.cdollar
from rayfold.gpu import open_device
from rayfold.numerics import sums
import renderer
assert rayfold is renderer and rayfold.flames is sys.modules["renderer.flames"] is sys.modules["rayfold.flames"]
assert renderer.flames.__spec__.name == renderer.flames.__name__ == "renderer.flames"
for module in list(sys.modules):  # no module is loaded twice
    same = sys.modules.get("renderer" + module[7:]) if module.startswith("rayfold.") else sys.modules[module]
    assert sys.modules[module] is same, module
assert pickle.loads(pickle.dumps(rayfold.UserError("a"))).__class__ is renderer.UserError
from rayfold import *
assert render is renderer.render and Scene is renderer.Scene
try:
    import rayfold.nothing.below
except ModuleNotFoundError as error:
    assert str(error) == "No module named 'rayfold.nothing'", error
"""


def test_rayfold_and_renderer_are_one_family_of_modules(tmp_path):
    words, variables = [sys.executable, "-c", ONE_FAMILY], os.environ | {"PYTHONPATH": python_path()}
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # An import hook of setuptools 65 reads the __file__ of every frame, so of __main__ too, where pip is looked for.
    words = [sys.executable, "-m", "rayfold", "sum", "--help"]
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.startswith("usage: rayfold sum"), done.stderr
