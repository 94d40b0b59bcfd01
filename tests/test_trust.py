"""Files of strangers: which files they may name. Witnesses: what the system opened, and what was said."""

import argparse
import contextlib
import json
import os
import sys
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from renderer import cli
from renderer.cdollar.runtime.evaluate import load_program
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import InputError, UserError
from renderer.formats.gltf import load as load_gltf
from renderer.formats.images import read_recipe, write_png
from renderer.formats.mesh import load_model, load_part
from renderer.lessons.lesson import Step, read_lesson
from renderer.lightfields.light_field import read_light_field
from renderer.paths import ASSETS, SCENES
from renderer.pictures import load, picture_class, picture_kinds, scene_of_table
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import field_types, from_table, set_from_text
from renderer.system import trust

SECRET = "hunter2"
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"


@pytest.fixture(autouse=True)
def nothing_is_allowed(monkeypatch):
    monkeypatch.setattr(trust, "_allowed", set())
    monkeypatch.setattr(trust, "_chosen", [])
    monkeypatch.setattr(trust.Limits, "memory", None)
    monkeypatch.setattr(trust.Limits, "refuses_programs", False)
    monkeypatch.setattr(trust.Limits, "refuses_links", False)


OPENED: list[str] | None = None  # paths that this process opens for reading, while a test asks


def _note(event: str, arguments: tuple) -> None:
    if event == "open" and OPENED is not None and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        OPENED.append(os.path.realpath(str(arguments[0])))


@cache
def watch_opens():
    sys.addaudithook(_note)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The folder of a stranger's files, and a secret beside it; afterwards the secret was never opened."""
    global OPENED
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    monkeypatch.chdir(tmp_path)
    watch_opens()
    OPENED = []
    yield inside, outside
    opened, OPENED = OPENED, None
    assert not [path for path in opened if path.startswith((str(outside), "/proc/self/environ"))]


def secret(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text(f"{SECRET}\nnewmtl {SECRET}\n")
    return path


def owners() -> dict[tuple[type, str], tuple[str, ...]]:
    """Every setting of every picture and lesson that names a file, with its suffixes."""
    found, seen, left = {}, set(), [ToneMapping, Step, *(picture_class(kind).settings_type for kind in picture_kinds())]
    while left:
        kind = left.pop()
        if kind in seen:
            continue
        seen.add(kind)
        found |= {(kind, f.name): f.metadata["file"] for f in fields(kind) if f.metadata.get("file")}
        for hint in field_types(kind).values():
            left += [inner for inner in chain([hint], *parts_of(hint)) if is_dataclass(inner)]
    return found


def parts_of(hint: Any) -> list[list[Any]]:
    arguments = [a for a in get_args(hint) if a is not Ellipsis]
    return [arguments, *(inner for a in arguments for inner in parts_of(a))]


OWNERS = owners()


def table_of(owner: type, key: str, name: str) -> dict[str, Any]:
    """A table of `owner` that names a file, with a text for each required key."""
    required = [f.name for f in fields(owner) if f.default is MISSING and f.default_factory is MISSING]
    value = [name] if "tuple" in str(field_types(owner)[key]) else name
    texts = {required_key: "own.frag" if (owner, required_key) in OWNERS else "x" for required_key in required}
    return {**texts, key: value}


def test_the_schema_knows_the_kind_of_every_file():
    assert {key for _, key in OWNERS} >= {"file", "program", "source", "panels", "image", "lut", "light_field"}
    for suffixes in OWNERS.values():
        assert isinstance(suffixes, tuple) and all(s == "" or s.startswith(".") and s == s.lower() for s in suffixes)


@pytest.mark.parametrize(("owner", "key"), OWNERS, ids=lambda value: getattr(value, "__name__", value))
def test_no_key_reaches_out_of_its_folder(places, owner, key):
    inside, outside = places
    suffix = max(OWNERS[owner, key])  # not a folder
    target = secret(outside, f"secret{suffix}")
    (inside / f"link{suffix}").symlink_to(target)
    (inside / "folder").symlink_to(outside)
    (inside / f"harmless{suffix}").symlink_to(secret(inside, "secret.env"))
    (inside / "own.frag").write_text("void main() {}\n")  # for a required key beside the one that is tried
    words = [str(target), f"../outside/secret{suffix}", f"a/../../outside/secret{suffix}", f"link{suffix}"]
    words += [f"folder/secret{suffix}", "/proc/self/environ", "/dev/zero", "secret.env", f"harmless{suffix}"]
    for word in words:
        with pytest.raises(InputError) as error:
            from_table(owner, table_of(owner, key, word), "scene.toml", inside)
        assert SECRET not in str(error.value) and "\n" not in str(error.value)
        rule = (
            "must lie in" if "env" not in word and "harmless" not in word or word[0] == "/" else "has the suffix .env"
        )
        assert rule in str(error.value), word
    assert trust._allowed <= {(inside / "own.frag").resolve()}


def test_what_the_user_names_is_not_asked_about(places):
    inside, outside = places
    (outside / "a.obj").write_text(TRIANGLE + "f 1 2 3\n")
    settings = from_table(
        picture_class("raytrace").settings_type, {"meshes": [{"material": "plain", "file": "a.obj"}]}, "x", outside
    )
    trust._allowed.clear()
    again = set_from_text(settings, "meshes[0].file", str(outside / "a.obj"))
    assert again == settings
    table = {"picture": "raytrace", "settings": {"meshes": [{"material": "plain", "file": "../outside/a.obj"}]}}
    assert scene_of_table(table, inside / "saved.toml").settings.meshes == settings.meshes  # the user chose it before
    trust._allowed.clear()
    with pytest.raises(InputError, match="--allow FOLDER"):
        scene_of_table(table, inside / "a.toml")
    table["settings"]["meshes"][0]["file"] = "https://example.com/a.obj"
    with pytest.raises(
        InputError, match='"https://example.com/a.obj", an address; files of this machine alone are read'
    ):
        scene_of_table(table, inside / "a.toml")
    table["settings"]["meshes"][0]["file"] = "../outside/a.obj"
    with trust.trusting():  # as sessions
        assert scene_of_table(table, inside / "a.toml").settings.meshes == settings.meshes
    trust._allowed.clear()
    trust.allow("outside")
    assert scene_of_table(table, inside / "a.toml").settings.meshes == settings.meshes
    assert trust.options() == ["--allow", str(outside)]
    with pytest.raises(UserError, match="--allow nowhere: there is no such folder"):
        trust.allow("nowhere")
    global OPENED
    OPENED = []  # the file is no secret


def test_the_programs_own_files_may_be_named(tmp_path):
    mesh = next((ASSETS / "meshes").glob("*.*"), None) or next(ASSETS.glob("**/*.obj"))
    table = {"picture": "layout", "settings": {"panels": [str(SCENES / "cornell.toml")]}}
    assert len(picture_class("layout").panels(scene_of_table(table, tmp_path / "a.toml"))) == 1
    assert trust.named_file(str(mesh), tmp_path, (mesh.suffix,), "x") == mesh.resolve()


def run(capfd, *words) -> tuple[int, str]:
    code = cli.main([str(word) for word in words])
    printed = capfd.readouterr()
    return code, printed.out + printed.err


def scene(kind: str, settings: str) -> str:
    return f'picture = "{kind}"\nsize = [4, 3]\n[settings]\n{settings}\n'


def test_a_program_is_not_the_environment(places, capfd, monkeypatch):
    inside, _ = places
    monkeypatch.setenv("TOKEN", SECRET)
    (inside / "a.toml").write_text(scene("cdollar", 'program = "/proc/self/environ"'))
    code, said = run(capfd, "export", inside / "a.toml", "-o", inside / "a.png")
    assert code == 5 and SECRET not in said and said.count("\n") == 1
    assert f"{inside}/a.toml: settings: program is" in said and "must lie in" in said


GLTF = {
    "asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
    "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "material": 0}]}],
    "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
    "textures": [{"source": 0}], "images": [{"uri": "a.png"}],
    "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
    "bufferViews": [{"buffer": 0, "byteLength": 36}], "buffers": [{"byteLength": 36, "uri": "a.bin"}],
}  # fmt: skip


def test_an_untrusted_input_is_no_link_out_of_its_folder(tmp_path, capfd):
    (tmp_path / "archive").mkdir()
    (tmp_path / "secret.toml").write_text('picture = "hunter2"')
    for name, target in (("link.toml", "../secret.toml"), ("folder", "..")):
        (tmp_path / "archive" / name).symlink_to(target)
        words = ["export", str(tmp_path / "archive" / name), "--untrusted", "-o", str(tmp_path / "a.png")]
        code, said = run(capfd, *words)
        assert code == 5 and "is a link out of its folder" in said and "hunter2" not in said and "secret" not in said
    code, said = run(capfd, *words[:1], str(tmp_path / "archive" / "link.toml"), *words[2:], "--allow", str(tmp_path))
    assert code == 5 and 'picture is "hunter2"' in said


def has_limits(parser) -> bool:
    """True if the options of a command or of one of its actions include --untrusted."""
    parser.parse_known_args([], argparse.Namespace()) if parser._declare else None
    words = {word for action in parser._actions for word in action.option_strings}
    inner = [p for a in parser._actions if isinstance(a, argparse._SubParsersAction) for p in a.choices.values()]
    return "--untrusted" in words or any(map(has_limits, inner))


def test_every_command_that_reads_files_and_ends_has_limits(capsys):
    parser = cli.build_parser()
    (commands,) = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    found = set()
    for name, command in commands.choices.items():
        with contextlib.suppress(SystemExit):  # a required argument is missing
            found |= {name} if has_limits(command) else set()
        found |= {name} if has_limits(command) else set()
    capsys.readouterr()
    assert found == {"export", "verify", "run", "cdollar", "sum", "solve", "lesson", "bench"}
    assert set(cli.COMMANDS) - found == {"demo", "gallery", "warm", "doctor", "view", "serve"}  # bundled files, windows


LINKED = (
    "export l.toml -o x.png", "export mine.toml -o x.png --environment l.exr", "verify l.png", "run l.cb",
    "export mine.toml -o x.png --set environment.file=l.exr", "run mine.cb --in a=l.npy", "run mine.cb --in a=d/s.npy",
    "sum mine.npy l.npy", "sum mine.npy --by l.npy", "sum d/s.npy", "solve l.npz mine.npy -o x.npy",
    "solve mine.npz l.npy -o x.npy", "cdollar format --check mine.cb l.cb", "lesson d --html x",
    "bench report l.jsonl -o x.html", "bench history d", "run mine.cb -o l.npy", "run mine.cb --graph d/x.svg",
    "export mine.toml -o l.png", "export mine.toml -o d/x --light-field 1x2", "lesson stencil --html d/x",
    "solve mine.npz mine.npy -o l.npy", "solve mine.npz mine.npy -o x.npy --certified d/x.npy",
)  # fmt: skip


@pytest.mark.parametrize("words", LINKED)
def test_an_untrusted_link_is_followed_by_no_command(places, capfd, words):
    inside, outside = places
    os.chdir(inside)
    for suffix in ("toml", "png", "exr", "cb", "npy", "npz", "jsonl"):
        (inside / f"l.{suffix}").symlink_to(secret(outside, f"s.{suffix}"))
        (inside / f"mine.{suffix}").write_text(SECRET)
    (inside / "d").symlink_to(outside)
    before = {path: path.stat().st_ino for path in outside.iterdir()}
    code, said = run(capfd, *words.split(), "--untrusted")
    assert {path: path.stat().st_ino for path in outside.iterdir()} == before  # an output would be another file
    assert code == 5 and said.count("\n") == 1 and SECRET not in said
    assert f"{inside}/{'d' if ' d' in words or '=d' in words else 'l'}" in said and "is a link out of its" in said


def test_an_untrusted_program_is_interpreted(tmp_path, capfd):
    (tmp_path / "p.cb").write_text("float main(float[] a) { return sum(a); }")
    np.save(tmp_path / "a.npy", np.arange(5, dtype="f4"))
    words = ["run", tmp_path / "p.cb", "--in", f"a={tmp_path}/a.npy", "--untrusted"]
    assert run(capfd, *words) == (0, "10.0\n")
    code, said = run(capfd, *words, "--target", "glsl")
    assert (code, said) == (2, "rayfold: --target glsl: --untrusted runs a program by numpy alone\n")


def test_folders_of_records_and_lessons_hold_no_links_out_of_them(places, capfd):
    inside, outside = places
    (inside / "a.jsonl").symlink_to(secret(outside, "s.jsonl"))
    code, said = run(capfd, "bench", "history", inside)
    assert code == 5 and "must lie in" in said and SECRET not in said
    (inside / "lesson.toml").symlink_to(secret(outside, "lesson.toml"))
    with pytest.raises(InputError, match="must lie in"):
        read_lesson(inside)
    code, said = run(capfd, "lesson", "stencil", "--untrusted")
    assert code == 2 and "need --html or --json" in said


def test_a_refusal_does_not_tell_whether_a_file_exists(tmp_path):
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "link").symlink_to("..")
    (tmp_path / "there.png").touch()
    for name in ("link/there.png", "link/absent.png", "../there.png", "../absent.png"):
        with pytest.raises(InputError, match="it must lie in"):
            trust.named_file(name, tmp_path / "archive", (".png",), "source")
    with pytest.raises(InputError, match="there is no"):
        trust.named_file("a/" * 5000, tmp_path / "archive", (".png",), "source")


def gltf(inside: Path, **uris: str) -> Path:
    (inside / "a.bin").write_bytes(np.eye(3, dtype="f4").tobytes())
    write_png(inside / "a.png", np.zeros((2, 2, 4), "u1"))
    tree = GLTF | {group: [{**GLTF[group][0], "uri": uri}] for group, uri in uris.items()}
    path = inside / "a.gltf"
    path.write_text(json.dumps(tree))
    return path


@pytest.mark.parametrize("group", ["buffers", "images"])
def test_a_model_reads_its_own_folder_only(places, group):
    inside, outside = places
    assert len(load_gltf(gltf(inside)).meshes) == 1
    suffix = ".bin" if group == "buffers" else ".png"
    target = secret(outside, f"secret{suffix}")
    (inside / f"link{suffix}").symlink_to(target)
    secret(inside, "secret.env")
    for uri in (f"../outside/secret{suffix}", str(target), f"link{suffix}", "/proc/self/environ", "secret.env"):
        with pytest.raises(InputError) as error:
            load_gltf(gltf(inside, **{group: uri}))
        assert SECRET not in str(error.value) and f"{group}[0]" in str(error.value)


def test_libraries_and_maps_lie_beside_their_mesh(places):
    inside, outside = places
    target = secret(outside, "secret.mtl")
    (inside / "link.mtl").symlink_to(target)
    (inside / "linked").symlink_to(outside)
    secret(inside, "secret.env")
    for name in ("../outside/secret.mtl", str(target), "link.mtl", "linked/secret.mtl", "secret.env"):
        (inside / "a.obj").write_text(f"mtllib {name}\nusemtl a\n{TRIANGLE}f 1 2 3\n")
        assert SECRET not in str(load_model(inside / "a.obj").ignored)
    (inside / "own.mtl").write_text("newmtl a\nmap_Kd ../outside/secret.png\nmap_Ks link.png\n")
    (inside / "link.png").symlink_to(secret(outside, "secret.png"))
    (inside / "a.obj").write_text(f"mtllib own.mtl\nusemtl a\n{TRIANGLE}f 1 2 3\n")
    outside_map = "outside of the folder, without --allow: ../outside/secret.png files"
    assert {outside_map, "missing link.png files"} <= set(load_model(inside / "a.obj").ignored)
    head = "ply\nformat ascii 1.0\ncomment TextureFile ../outside/secret.png\nelement vertex 3\nproperty float x\n"
    head += "property float y\nproperty float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
    (inside / "a.ply").write_text(head + "0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    assert len(load_part(inside / "a.ply").faces) == 1


def test_allow_admits_libraries_and_their_maps(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "box.mtl").write_text("newmtl a\nmap_Kd box.png\n")
    write_png(outside / "box.png", np.full((2, 2, 3), 9, "u1"))
    for name in ("a.obj", "b.obj"):
        (inside / name).write_text(f"mtllib ../outside/box.mtl\nusemtl a\n{TRIANGLE}f 1 2 3\n")
    library = "outside of the folder, without --allow: ../outside/box.mtl files"
    assert load_model(inside / "a.obj").ignored == {library: 1, "usemtl a statements": 1}
    trust.allow(outside)
    model = load_model(inside / "b.obj")
    assert not model.ignored and model.textures[0].pixels[0, 0].tolist() == [9, 9, 9, 255]


def test_a_program_opens_arrays_of_its_own_folder_only(places):
    inside, outside = places
    np.save(inside / "a.npy", np.arange(3.0))
    np.save(outside / "b.npy", np.arange(3.0))
    secret(inside, "secret.env")
    (inside / "link.npy").symlink_to(outside / "b.npy")
    (inside / "p.cb").write_text('double main() { var a = file("a.npy"); return a(1); }')
    load_program(inside / "p.cb", NumpyTarget)
    for name in (
        "../outside/b.npy",
        str(outside / "b.npy"),
        "outside/b.npy",
        "link.npy",
        "/proc/self/environ",
        "secret.env",
    ):
        (inside / "p.cb").write_text(f'double main() {{ var a = file("{name}"); return a(1); }}')
        with pytest.raises(InputError) as error:
            load_program(inside / "p.cb", NumpyTarget)
        assert SECRET not in str(error.value) and "CS0502" in str(error.value)


def test_key_frames_recipes_and_lessons_are_held_to_the_same_rule(places, capfd):
    inside, outside = places
    target = secret(outside, "secret.exr")
    settings = 'environment.strength = 1.0\n[[animation.keyframes]]\ntime = 0\nset = {"environment.file" = "%s"}\n'
    (inside / "a.toml").write_text(scene("raytrace", settings % target))
    with pytest.raises(InputError, match="keyframes.*must lie in"):
        load(inside / "a.toml")
    plain = load(SCENES / "cornell.toml")
    recipe = {"rayfold": 2, "size": [4, 3], "samples": 1}
    recipe["scene"] = {"picture": "laplacian", "settings": {"source": "../outside/secret.exr"}}
    write_png(inside / "a.png", np.zeros((3, 4, 4), "u1"), recipe)
    assert read_recipe(inside / "a.png") == recipe and isinstance(replace(plain, title=""), Scene)
    code, said = run(capfd, "verify", inside / "a.png")
    assert code == 5 and "source is" in said and SECRET not in said and said.count("\n") == 1
    lesson = (
        'title = "T"\npaper = "P"\nsummary = "S"\n[panels.a]\nscene = "%s"\n[[steps]]\ntitle = "One"\nshow = ["a"]\n'
    )
    (inside / "lesson.md").write_text("# T\n\nWords.\n\n## One\n\nMore.\n")
    for name in (str(secret(outside, "secret.toml")), "../outside/secret.toml", "/proc/self/environ"):
        (inside / "lesson.toml").write_text(lesson % name)
        with pytest.raises(InputError, match="must lie in|allowed is a file of") as error:
            read_lesson(inside)
        assert SECRET not in str(error.value)
    program = '[steps.program]\nfile = "../outside/secret.cb"\n'
    secret(outside, "secret.cb")
    (inside / "lesson.toml").write_text(lesson % "cornell" + program)
    with pytest.raises(InputError, match="must lie in"):
        read_lesson(inside)
    change = lesson.replace("[panels.a]", '[panels.a]\nset = {"environment.file" = "../outside/secret.exr"}')
    (inside / "lesson.toml").write_text(change % "cornell")
    with pytest.raises(InputError, match="must lie in"):
        read_lesson(inside)


def test_views_of_a_light_field_are_no_links_to_other_folders(places):
    inside, outside = places
    views = inside / "views"
    views.mkdir()
    for row in range(2):
        for column in range(2):
            write_png(views / f"out_{row:02d}_{column:02d}_{row}_{column}_.png", np.zeros((4, 4, 4), "u1"))
    assert read_light_field(views).size == (4, 4)
    write_png(outside / "mine.png", np.zeros((4, 4, 4), "u1"))
    for view in views.iterdir():
        view.unlink()
        view.symlink_to(outside / "mine.png")
    global OPENED
    OPENED = []
    with pytest.raises(InputError):
        read_light_field(views)
