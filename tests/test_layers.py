"""The structure: imports go downwards only, each binding has its one place, every scene says how it is tested."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(ROOT.glob("renderer/**/*.py"))
TOP = {"renderer", "shaders", "scenes", "assets", "tests", "main.py"}
# Layers from the ground; a module may import from lower layers, and from its own package.
LAYERS = [
    {"renderer"},
    {
        "renderer.gpu",
        "renderer.scene",
        "renderer.view",
        "renderer.mesh",
        "renderer.image",
        "renderer.progress",
        "renderer.animation",
        "renderer.microfacet",
        "renderer.procedural",
        "renderer.denoise",
        "renderer.gltf",
    },
    {
        "renderer.compute",
        "renderer.cdollar",
        "renderer.bvh",
        "renderer.bvh_instances",
        "renderer.bvh_processor",
        "renderer.bvh_sah",
        "renderer.bvh_splits",
        "renderer.bvh_walks",
        "renderer.flames",
        "renderer.lightfields",
    },
    {"renderer.raytracing"},
    {"renderer.tone", "renderer.pictures"},
    {"renderer.export", "renderer.bench", "renderer.doctor"},
    {"renderer.viewer", "renderer.window"},
]
BINDINGS = {
    "pycuda": {"gpu"}, "pyopencl": {"gpu"}, "cuda": {"gpu"}, "moderngl": {"gpu"},
    "glfw": {"viewer", "window"}, "imgui_bundle": {"viewer", "window"}, "PIL": {"image"}, "OpenEXR": {"image"},
    "trimesh": {"mesh"}, "defusedxml": {"flames", "pictures", "lightfields"}, "matplotlib": {"bench"},
    "pyoidn": {"denoise"},
}  # fmt: skip
PLAIN = ("renderer.scene", "renderer.view", "renderer.mesh", "renderer.image")
SIBLINGS = [(plain, "renderer.gpu") for plain in PLAIN] + [("renderer.gpu", plain) for plain in PLAIN]


def module_of(path: Path) -> str:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return name.removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def layer_of(module: str) -> int:
    best = max((prefix for layer in LAYERS for prefix in layer if f"{module}.".startswith(prefix + ".")), key=len)
    return next(i for i, layer in enumerate(LAYERS) if best in layer)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_downwards(path):
    module, package = module_of(path), ".".join(module_of(path).split(".")[:2])
    for name in imports_of(path):
        if not name.startswith("renderer") or name.startswith(package):
            continue
        if not any((ROOT / (name.replace(".", "/") + end)).exists() for end in (".py", "/__init__.py")):
            continue  # a name inside a module, which was looked at as the module itself
        assert layer_of(name) <= layer_of(module), f"{module} imports {name}, which lies above it"
        pair = f"{module}.", f"{name}."
        assert not any(pair[0].startswith(f"{a}.") and pair[1].startswith(f"{b}.") for a, b in SIBLINGS), pair


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_binding_has_its_one_place(path):
    place = module_of(path).split(".")[1] if "." in module_of(path) else ""
    for name in {name.split(".")[0] for name in imports_of(path)} & BINDINGS.keys():
        if module_of(path) != "renderer.doctor":
            assert place in BINDINGS[name], f"{module_of(path)} imports {name}, which belongs to {BINDINGS[name]}"


def test_top_level_is_as_agreed():
    from subprocess import run

    listed = run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    folders = {name.split("/")[0] for name in listed if "/" in name}
    assert folders <= TOP | {".ci", ".github"}, folders - TOP


def test_the_map_names_every_package_and_module():
    text = (ROOT / "renderer/__init__.py").read_text(encoding="utf-8")
    for path in (ROOT / "renderer").iterdir():
        if path.suffix == ".py" and path.stem != "__init__" or (path / "__init__.py").exists():
            assert re.search(rf"\b{path.stem}\b", text), f"the map in renderer/__init__.py does not name {path.name}"


@pytest.mark.parametrize("path", sorted(ROOT.glob("scenes/*.toml")), ids=lambda path: path.name)
def test_every_scene_says_how_it_is_tested(path):
    assert "test" in tomllib.loads(path.read_text(encoding="utf-8")), f"{path.name} has no [test] table"


def test_long_files_are_told(capsys):
    long = [(len(path.read_text(encoding="utf-8").splitlines()), path.name) for path in FILES]
    with capsys.disabled():
        for lines, name in sorted(long, reverse=True):
            if lines > 450:
                print(f"\n  long file: {name} {lines} lines", end="")
