"""The structure: imports go downwards and never in circles, each binding has its one place, the tree is as agreed."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from subprocess import run

import pytest

from renderer.paths import ROOT

FILES = sorted(ROOT.glob("renderer/**/*.py"))
TOP = {"renderer", "rayfold", "shaders", "scenes", "assets", "tests"}
# Packages from the ground up. A module imports from its own package and from the layers below it, never sideways.
LAYERS = [
    {"plain"},
    {"lazy", "records"},
    {"errors", "host"},
    {"paths"},
    {"system"},
    {"gpu", "scene"},
    {"formats"},
    {"pages"},
    {"numerics"},
    {"bvh", "cdollar", "flames", "fractals", "lightfields"},
    {"images"},
    {"raytracing", "toys"},
    {"pictures"},
    {"bench", "doctor", "export"},
    {"lessons"},
    {"window"},
]
SIDEWAYS = {("gpu", "scene"), ("gpu", "formats"), ("formats", "gpu"), ("scene", "gpu")}  # the two ground floors
# Packages whose sub-packages may not import each other in a circle either.
ROOMS = ["renderer.cdollar", "renderer.flames", "renderer.formats", "renderer.gpu", "renderer.window"]
BINDINGS = {
    "pycuda": {"gpu"}, "pyopencl": {"gpu"}, "cuda": {"gpu"}, "moderngl": {"gpu"}, "glfw": {"window"},
    "imgui_bundle": {"window"}, "PIL": {"formats"}, "OpenEXR": {"formats"},
    "defusedxml": {"flames", "pictures", "lightfields", "formats"}, "matplotlib": {"pages", "raytracing"},
    "pyoidn": {"images"},
    "pxr": {"formats"},
    "DracoPy": {"formats"}, "opengl_basisu": {"formats"}, "zstandard": {"formats"}, "tomlkit": {"cdollar", "scene"},
    "markdown_it": {"pages"},
}  # fmt: skip


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Every node of a module's syntax tree, breadth first."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@cache
def imports_of(module: str) -> set[str]:
    """The modules that one imports, at its top or inside a function."""
    path, names = MODULES[module], set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: relative import"
            whole = {f"{node.module}.{alias.name}" for alias in node.names} - {"renderer.__version__"}
            names |= whole & MODULES.keys()
            if whole - MODULES.keys():
                names.add(node.module)
    return names


def graph(package: str = "") -> dict[str, set[str]]:
    """The modules whose name begins so, and which of them each imports."""
    inside = [module for module in MODULES if module.startswith(package)]
    return {module: {name for name in imports_of(module) if name.startswith(package)} for module in inside}


def package_of(module: str) -> str:
    """`gpu` of renderer.gpu.cuda.device; the empty text for the root's own modules that are no layer."""
    return module.split(".")[1] if "." in module else ""


def layer_of(package: str) -> int | None:
    return next((i for i, layer in enumerate(LAYERS) if package in layer), None)


def circles_of(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of two or more nodes that reach one another."""
    reach = {node: set(targets) & graph.keys() for node, targets in graph.items()}
    for middle in graph:
        for node in graph:
            if middle in reach[node]:
                reach[node] |= reach[middle]
    circles = {tuple(sorted({m for m in reach[n] if n in reach[m]} | {n})) for n in graph if n in reach[n] - {n}}
    circles |= {tuple(sorted(m for m in reach[n] if n in reach[m])) for n in graph if n in reach[n]}
    return [list(circle) for circle in sorted(circles) if len(circle) > 1]


def grouped(graph: dict[str, set[str]], parts: int) -> dict[str, set[str]]:
    """The graph between the packages that the first `parts` parts of the names tell."""
    out: dict[str, set[str]] = {}
    for module, targets in graph.items():
        home = ".".join(module.split(".")[:parts])
        ends = {".".join(target.split(".")[:parts]) for target in targets}
        out.setdefault(home, set()).update(ends - {home})
    return out


def test_every_package_has_its_layer():
    known = set().union(*LAYERS) | {"", "api", "cli", "__main__"}
    assert {package_of(module) for module in MODULES} <= known


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_downwards(module):
    home = package_of(module)
    if layer_of(home) is None:
        return  # the public API and the command line import what they offer
    for target in imports_of(module):
        package = package_of(target)
        if not target.startswith("renderer") or package == home:
            continue
        assert layer_of(package) is not None, f"{module} imports {target}, which is above every layer"
        assert layer_of(package) < layer_of(home), f"{module} imports {target}, which lies beside or above it"
        assert (home, package) not in SIDEWAYS, f"{module} imports {target}: plain data and devices are strangers"


def test_no_module_imports_itself_by_way_of_others():
    assert circles_of(graph()) == []


@pytest.mark.parametrize("package", ROOMS)
def test_no_circles_between_the_rooms_of_a_package(package):
    assert circles_of(grouped(graph(package), package.count(".") + 2)) == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_each_binding_has_its_one_place(module):
    for name in {name.split(".")[0] for name in imports_of(module)} & BINDINGS.keys():
        if module != "renderer.doctor":
            assert package_of(module) in BINDINGS[name], f"{module} imports {name}, which belongs to {BINDINGS[name]}"


def test_top_level_is_as_agreed():
    listed = run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    folders = {name.split("/")[0] for name in listed if "/" in name}
    assert folders <= TOP | {".ci", ".github"}, folders - TOP


@pytest.mark.parametrize("path", sorted(ROOT.glob("scenes/*.toml")), ids=lambda path: path.name)
def test_every_scene_says_how_it_is_tested(path):
    assert "test" in tomllib.loads(path.read_text(encoding="utf-8")), f"{path.name} has no [test] table"


# Where a path is made of a folder and a name that is not written in the code, below the window and the exports. Files
# of strangers name files by system/trust.named_file() alone; these are names of the program's or the user's.
JOINED = {
    "renderer.formats.archive": {"self.path / name"},  # for messages
    "renderer.formats.codecs": {"folder / f'{number}.error'", "folder / f'{number}.npz'"},  # a temporary folder
    "renderer.formats.gltf.container": {"folder / name"},  # whether it is missing
    "renderer.formats.meshes.mtl": {"folder / part", "folder / (name.replace('\\\\', '/').replace('\\x00', '')"
                                    ".rpartition('/')[2] or 'missing')"},  # found, then judged; watched for
    "renderer.lessons.command": {"LESSONS / name"}, "renderer.cdollar.runtime.explain": {"SHADERS / match[1]"},
    "renderer.lessons.lesson": {"folder / panel.scene", "LESSONS / name"},  # found, then judged; bundled
    "renderer.lessons.page": {"lesson.path / target.partition('#')[0]"},  # an address of a page
}  # fmt: skip
BELOW = ("scene", "formats", "flames", "lightfields", "images", "cdollar", "raytracing", "pictures", "lessons")


def joins_of(module: str) -> set[str]:
    found = set()
    for node in nodes_of(MODULES[module]):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant):
            if re.search(r"(folder|parent|path|Path\(.*\)|SCENES|ASSETS|SHADERS|LESSONS)$", ast.unparse(node.left)):
                found.add(ast.unparse(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name in ("joinpath", "is_relative_to") or name == "join" and ast.unparse(node.func) == "os.path.join":
                found.add(ast.unparse(node.func))
    return found


def test_files_name_files_by_one_function():
    """A key, link or statement that names a file goes through system/trust.py, which keeps it in its folder."""
    found = {module: joins_of(module) for module in MODULES if package_of(module) in BELOW}
    found["renderer.formats.gltf.container"] -= {"target.is_relative_to"}
    assert {module: joins for module, joins in found.items() if joins} == JOINED
    sources = (MODULES[module].read_text(encoding="utf-8") for module in found)
    assert not [text for text in sources if "file=True" in text]
