"""Structured inputs: scenes of every kind of picture by the fields of its Settings, flames, models, C$ programs.

A scene is made from the declarations that the reader reads (types, ranges, references), so a new setting is fuzzed
without a line here. Most values are allowed ones, at the ends of their ranges more often than between; one scene in
three has one or two values that are not.
"""

import contextlib
import json
import math
import os
import types
import typing
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin

import numpy as np

from renderer.errors import InputError
from renderer.scene.schema import field_types, from_table
from tests.fuzz.mutate import TEXT, mutate, odd_value

ROOT = Path(__file__).parents[2]
HOSTILE = 1 / 3  # of the inputs have a value that is not allowed
# Largest values of settings whose work grows with them: a time limit of a draw is for hangs, not for much work.
COSTLY = {
    "level": 3, "grid": 24, "columns": 20, "rows": 20, "iterations": 12, "max_iterations": 2000, "supersample": 3,
    "n": 80, "plane_count": 6, "samples": 64, "guiding_photons": 512, "cells": 24, "temporal_samples": 9, "passes": 3,
    "max_depth": 6, "estimator_minimum": 3.0,
    "quality": 2000.0, "radius_samples": 4, "azimuth_samples": 4, "filter_radius": 6.0, "estimator_radius": 5.0,
    "antialias_radius": 3.0, "search_radius": 5.0,
}  # fmt: skip
LONG = {"xforms": 5, "layers": 3, "maps": 4, "points": 6}  # items of a list at most; of others 2
NAMES = {"variations": "renderer.flames.variations.catalog:variation_table",
         "parameters": "renderer.flames.variations.catalog:parameter_owners"}  # fmt: skip
LENGTHS = {"affine": (6, 6, 12), "post": (6, 6, 6, 12), "matrix": (0, 12), "shutter": (0,), "colors": (0, 0, 0, 256),
           "alphas": (0, 0, 0, 256), "curves": (0, 0, 4), "shutter_close": (0,), "keyframes": (0,)}  # fmt: skip


# Files that fields take, by the class and name of the field or by its name alone; pool() writes them.
FILES = {
    "MeshShape.file": ("mesh.obj", "mesh.ply", "mesh.stl", "mesh.off"),
    "ModelShape.file": ("model.glb", "moved.glb", "lines.glb", "mesh.obj"),
    "TextureFile.file": ("picture.png", "gray.png"), "Environment.file": ("", "around.hdr"),
    "Volume.file": ("", "grid.npy"),
    "PointLight.file": ("", "", "lamp.ies"), "lut": ("", "look.cube"), "program": ("picture.cb", "numbers.cb"),
    "light_field": ("field.npy",), "image": ("", "picture.png"), "panels": ("spheres.toml", "set.toml", "flame.toml"),
    "source": ("spheres.toml",), "SourceSettings.source": ("spheres.toml", "set.toml", "picture.png"),
    "Settings.source": ("spheres.toml", "set.toml", "picture.png"), "Settings.file": ("flames.flame",),
}  # fmt: skip
ODD_FILES = ("missing.xyz", "mesh.obj", "picture.png", "set.toml", "", "pipe", "folder", "loop.png", "empty.npy")


def pool(folder: Path) -> None:
    """Writes the files that scenes name: good ones, a pipe, a folder, a loop of links, an empty one."""
    from renderer.formats.images import write_png
    from tests.fuzz import targets

    names = {
        "mesh.obj": targets.mesh_seeds()["cube.obj"], "mesh.ply": targets.mesh_seeds()["mixed.ply"],
        "mesh.stl": targets.mesh_seeds()["binary.stl"], "mesh.off": targets.mesh_seeds()["colors.off"],
        "model.glb": targets.model_seeds()["scene.glb"], "moved.glb": targets.model_seeds()["moved.glb"],
        "lines.glb": targets.points_lines_and_plain_ktx2(), "around.hdr": targets.hdr_seeds()["flat.hdr"],
        "grid.npy": targets.npy(np.ones((2, 3, 4), "f4")), "lamp.ies": targets.ies_seeds()["quadrant.ies"],
        "look.cube": targets.cube_seeds()["three.cube"], "field.npy": targets.field_seeds()["color.npy"],
        "flames.flame": targets.flame_seeds()["jwildfire.flame"], "empty.npy": b"",
        "picture.cb": b"float3 main(int x, int y, int width, float time, float size = 2.0) {"
                      b" return float3(x * size / width, y + time, 0.5); }",
        "numbers.cb": b"float main(int x, int y, int n = 3, bool b = true, float3 c) {"
                      b" return b ? x * n + c.x : c.y; }",
        "spheres.toml": b'picture = "raytrace"\n[settings]\nspheres = [{material = "plain"}]\nhorizon = [1, 1, 1]\n',
        "set.toml": b'picture = "fractal"\n', "flame.toml": b'picture = "flame"\n',
    }  # fmt: skip
    for name, data in names.items():
        (folder / name).write_bytes(data)
    ramp = np.arange(48, dtype="u1").reshape(4, 4, 3)
    write_png(folder / "picture.png", ramp)
    write_png(folder / "gray.png", ramp[..., :1].repeat(3, 2))
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "loop.png").symlink_to("pool.png")
    (folder / "pool.png").symlink_to("loop.png")


class Reference(str):
    """A place for the name of an item of the list that the text names."""


class Schema:
    """Makes plain tables that from_table() reads."""

    def __init__(self, rng: Random, folder: Path) -> None:
        self.rng, self.folder, self.count = rng, folder, 0

    def table(self, Settings: type, keep: float = 0.25) -> dict[str, Any]:
        """A table of some of the fields of a class, and of all that have no default; one that it accepts, mostly."""
        for _ in range(6):
            out = self.fields(Settings, keep)
            with contextlib.suppress(InputError):
                from_table(Settings, out, "", self.folder)
                break
        return out

    def fields(self, Settings: type, keep: float) -> dict[str, Any]:
        out, hints = {}, field_types(Settings)
        for f in fields(Settings):
            required = f.default is MISSING and f.default_factory is MISSING
            if required or f.name == "name" or self.rng.random() < keep:
                metadata = {**f.metadata, "owner": Settings.__name__}
                out[f.name] = self.value(hints[f.name], metadata, f.name)
        return out

    def value(self, kind: Any, metadata: Any, name: str) -> Any:
        rng, origin, inner = self.rng, get_origin(kind), get_args(kind)
        if origin in (typing.Union, types.UnionType):
            return self.value(next(k for k in inner if k is not type(None)), metadata, name)
        if origin is Literal:
            return rng.choice(inner)
        if is_dataclass(kind):
            return self.table(typing.cast(type, kind))
        if origin is dict:
            keys = known_names(name) if name in NAMES else ["a", "b"]
            return {
                k: self.value(inner[1], metadata, name) for k in rng.sample(keys, rng.randint(0, min(3, len(keys))))
            }
        if origin is tuple:
            if len(inner) == 2 and inner[1] is Ellipsis:
                count = rng.choice(LENGTHS[name]) if name in LENGTHS else rng.randint(0, LONG.get(name, 2))
                inner = (inner[0],) * count
            return [self.value(each, metadata, name) for each in inner]
        if kind is bool:
            return rng.random() < 0.5
        if kind in (int, float):
            return self.number(kind, metadata, name)
        if kind is str:
            return self.text(metadata, name)
        return rng.choice((0, 1.5, "a", [1, 2]))

    def text(self, metadata: Any, name: str) -> str:
        if metadata.get("file"):
            good = FILES.get(f"{metadata['owner']}.{name}") or FILES.get(name, ("missing.xyz",))
            return self.rng.choice(good) if self.rng.random() < 0.97 else self.rng.choice(ODD_FILES)
        if refers_to := metadata.get("refers_to"):
            return Reference(refers_to)
        if name == "name":
            self.count += 1
            return f"n{self.count}"
        if name == "palette":
            return self.rng.choice(known_names(name))
        return self.rng.choice(("", "", "a", "plain"))

    def number(self, kind: type, metadata: Any, name: str) -> Any:
        rng, low, high = self.rng, metadata.get("low"), metadata.get("high")
        if name in COSTLY:
            high = COSTLY[name] if high is None else min(high, COSTLY[name])
        edges = [each for each in (low, high) if each is not None]
        if edges and rng.random() < 0.25:
            return kind(rng.choice(edges))
        if low is None or high is None:
            number = rng.choice(
                (0.0, 1.0, -1.0, rng.gauss(0, 1), rng.gauss(0, 3), rng.gauss(0, 3), 10 ** rng.uniform(-9, 9))
            )
            number = number if low is None else max(number, low)
        elif high > 1000 * max(low, 1e-9) and rng.random() < 0.9:
            number = min(max(math.exp(rng.gauss(0.5, 1.5)), low), high)
        else:
            number = rng.uniform(low, high)
        return kind(round(number)) if kind is int else number


def known_names(name: str) -> list[str]:
    if name == "palette":
        from renderer.flames.palettes import builtin_names

        return builtin_names()
    module, _, function = NAMES[name].partition(":")
    return sorted(getattr(__import__(module, fromlist=["x"]), function)())


def resolved(node: Any, named: dict[str, list[str]], rng: Random) -> Any:
    """The tables with names in place of references."""
    if isinstance(node, dict):
        return {k: resolved(v, named, rng) for k, v in node.items()}
    if isinstance(node, list):
        return [resolved(v, named, rng) for v in node]
    if isinstance(node, Reference):
        return rng.choice(named.get(node) or [""])
    return node


def item_names(table: dict[str, Any]) -> dict[str, list[str]]:
    """Names of the items of each list of a table; "shapes" are those of any list but materials and textures."""
    out: dict[str, list[str]] = {}
    for key, items in table.items():
        if isinstance(items, list) and items and all(isinstance(item, dict) and "name" in item for item in items):
            out[key] = [item["name"] for item in items]
            if key not in ("materials", "textures"):
                out.setdefault("shapes", []).extend(name for name in out[key] if name)
    return out


def odd(node: Any, rng: Random) -> Any:
    """The tree with one value that is not allowed, or a missing, doubled or unknown key, anywhere."""
    if isinstance(node, (dict, list)) and node and rng.random() < 0.9:
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        out: Any = dict(node) if isinstance(node, dict) else list(node)
        kind = rng.random()
        if kind < 0.85:
            out[key] = odd(out[key], rng)
        elif kind < 0.92:
            del out[key]
        elif isinstance(out, dict):
            out[rng.choice((*out, "x", "view", "name"))] = node[key]
        else:
            out += [out[key]] * rng.choice((1, 2, 40))
        return out
    return odd_value(node, rng)


def toml(table: dict[str, Any]) -> bytes:
    """A TOML text: a line for each key, the tables inside in braces."""
    return "".join(f"{json.dumps(str(k))} = {toml_value(v)}\n" for k, v in table.items()).encode(
        "utf-8", "surrogatepass"
    )


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return (
        '""'
        if value is None
        else json.dumps(value)
        if not isinstance(value, int) or isinstance(value, bool)
        else digits(value)
    )


def digits(value: int) -> str:
    return str(value) if abs(value) < 10**4000 else "9" * 5000


# ---- scenes


def scene_table(kind: str, rng: Random, folder: Path) -> dict[str, Any]:
    """A scene file's tables of a kind of picture, which from_table() accepts, mostly."""
    from renderer.pictures import picture_class
    from renderer.scene.animation import AnimationTable
    from renderer.scene.scene import Inspect, ToneMapping

    schema, picture = Schema(rng, folder), picture_class(kind)
    make = ray_settings if kind == "raytrace" else Schema.fields
    for _ in range(8):
        settings = make(schema, picture.settings_type, rng.choice((0.1, 0.3, 0.6)))
        settings = resolved(settings, item_names(settings), rng)
        with contextlib.suppress(InputError):
            picture.read_settings(settings, "", folder)
            break
    out: dict[str, Any] = {"picture": kind, "settings": settings}
    if rng.random() < 0.2:
        out["tone"] = schema.table(ToneMapping, 0.4)
    if rng.random() < 0.1:
        out["inspect"] = schema.table(Inspect, 0.4) | {"view": rng.choice(picture.view_names())}
    if rng.random() < 0.2:
        out["animation"] = schema.table(AnimationTable, 0.8)
        for row in out["animation"].get("keyframes", []):
            paths = dict(leaves(settings))
            row["set"] = {path: another(paths[path], rng) for path in rng.sample(sorted(paths), min(2, len(paths)))}
    if rng.random() < 0.1:
        out["size"] = [rng.randint(1, 64), rng.randint(1, 64)]
    return out


# What the ray tracer's kernels are compiled for: a variant takes seconds, so most scenes have few of them.
COMPILED = ("projection", "lens_shift", "clamp_indirect", "integrator", "sampler", "direct_lighting", "variance",
            "noise_threshold", "guiding_photons", "stencil", "schedule", "bvh", "builder",
            "exposure_seconds")  # fmt: skip
FEATURES = ("environment", "sky", "fog", "volumes", "suns", "point_lights", "textures", "models", "distance_fields",
            "instances", "scattered", "spheres", "procedural", "attractors", "quads", "solids",
            "meshes")  # fmt: skip


def ray_settings(schema: Schema, Settings: type, keep: float) -> dict[str, Any]:
    """Settings of the ray tracer with a material or more; nine in ten have two features that kernels are built for."""
    rng, out = schema.rng, schema.fields(Settings, keep)
    kinds = [file.stem for file in sorted((ROOT / "shaders/raytracing/materials").glob("*.h"))]
    kind = rng.choice(("diffuse", "diffuse", rng.choice(kinds)))
    Material = typing.cast(type, get_args(field_types(Settings)["materials"])[0])
    out["materials"] = [schema.table(Material, 0.1) | {"kind": kind} for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.9:
        hints, kept = field_types(Settings), rng.sample(FEATURES, 2)
        metadata = {f.name: f.metadata for f in fields(Settings)}
        out = {k: v for k, v in out.items() if k not in (*COMPILED, *FEATURES)}
        pairs = {"instances": ("spheres", "instances"), "scattered": ("quads", "scattered")}
        for name in pairs.get(kept[0], kept):
            tries = [schema.value(hints[name], metadata[name], name) for _ in range(2)]
            out[name] = tries[0] or tries[1]
    for item in [each for group in SHAPES for each in out.get(group, []) if rng.random() < 0.6]:
        item["name"] = ""
    return out


SHAPES = ("spheres", "quads", "solids", "meshes", "procedural", "attractors", "models")


def leaves(node: Any, path: str = ""):
    """Paths and values of the numbers and lists of numbers of a table, as key frames name them."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}".removeprefix("."))
    elif isinstance(node, list) and node and isinstance(node[0], (dict, list)):
        for index, value in enumerate(node):
            yield from leaves(value, f"{path}[{index}]")
    elif path:
        yield path, node


def another(value: Any, rng: Random) -> Any:
    """A value like this one."""
    if isinstance(value, list):
        return [another(each, rng) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(value)(value * rng.choice((0, 0.5, 1, 2)))
    return value


def scene_text(kind: str, rng: Random, folder: Path) -> bytes:
    """A scene file; one in three has a value that is not allowed."""
    table = scene_table(kind, rng, folder)
    if rng.random() < HOSTILE:
        for _ in range(rng.choice((1, 1, 2))):
            table["settings"] = odd(table["settings"], rng)
    return toml(table)


# ---- flames


def flame_text(rng: Random) -> bytes:
    """A .flame file of one to three flames; the attributes are those that the reader makes of KeyFrame and Flame."""
    version = rng.choice(("", "Apophysis 7x", "EMBER-1.0", "JWildfire V7.00", "JWildfire 8"))
    schema = Schema(rng, ROOT)
    flames = [flame_element(schema, version, k) for k in range(rng.choice((1, 1, 2, 3)))]
    text = "".join(flames) if len(flames) == 1 else f"<flames>{''.join(flames)}</flames>"
    data = text.encode()
    return mutate(data, rng, TEXT) if rng.random() < HOSTILE else data


def flame_element(schema: Schema, version: str, index: int) -> str:
    from renderer.flames.xml.read import FLAME_ATTRIBUTES

    rng = schema.rng
    attributes = {"version": version, "name": f"f{index}", "time": str(index * rng.choice((1, 1, 10)))}
    for name, attribute in FLAME_ATTRIBUTES.items():
        if name != "time" and rng.random() < 0.12:
            limits = {"low": attribute.low, "high": attribute.high} if math.isfinite(attribute.low) else {}
            value = schema.value(attribute.hint, limits, name)
            attributes[name] = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    attributes |= {"size": "16 12", "scale": str(rng.choice((4, 0.1, 100)))} if rng.random() < 0.9 else {}
    jwildfire = version.startswith("JWildfire")
    layers = rng.choice((0, 1, 2)) if jwildfire else 0
    inside = "".join(f'<layer weight="{rng.choice((1, 0.5, 2, 0))}" density="{rng.choice((1, 0.3))}">'
                     f"{flame_body(schema)}</layer>" for _ in range(layers)) or flame_body(schema)  # fmt: skip
    tag = "jwf-flame" if jwildfire and rng.random() < 0.5 else "flame"
    return f"<{tag}{xml_attributes(attributes)}>{inside}</{tag}>"


def flame_body(schema: Schema) -> str:
    rng = schema.rng
    parts = [xform_element(schema, "xform") for _ in range(rng.randint(1, 4))]
    parts += [xform_element(schema, "finalxform") for _ in range(rng.choice((0, 0, 1, 2)))]
    if rng.random() < 0.2:
        parts.append(f'<symmetry kind="{rng.randint(-4, 4)}"/>')
    kind = rng.randrange(4)
    if kind == 0:
        parts.append(
            "<palette format='RGB'>" + "".join(f"{rng.randrange(1 << 24):06X}" for _ in range(256)) + "</palette>"
        )
    elif kind == 1:
        rows = (f'<color index="{i}" rgb="{rng.randrange(256)} {rng.randrange(256)} 9"/>' for i in range(0, 256, 32))
        parts.append("".join(rows))
    return "".join(parts)


def xform_element(schema: Schema, tag: str) -> str:
    from renderer.flames.variations.catalog import variation_table

    rng, table = schema.rng, variation_table()

    def numbers(count: int) -> str:
        return " ".join(f"{rng.choice((rng.gauss(0, 0.6), rng.gauss(0, 0.6), 0.0, 1.0)):g}" for _ in range(count))

    names = rng.sample(sorted(table), rng.randint(0, 2)) + ["linear"]
    out = {"weight": f"{rng.choice((0, 0.5, 1, 2, rng.random()))}", "coefs": numbers(6)}
    for name in names:
        out[name] = f"{rng.gauss(0, 1):g}"
        for parameter in list(table[name].parameters)[:6]:
            if rng.random() < 0.4:
                out[parameter] = f"{rng.choice((0, 1, -1, 2, rng.gauss(0, 2), 1e9)):g}"
    for name, value in (("post", numbers(6)), ("color", f"{rng.random()}"), ("symmetry", "0.5"), ("opacity", "0.5"),
                        ("chaos", numbers(3).replace("-", "")), ("yzCoefs", numbers(6)), ("animate", "0"),
                        ("var_color", "0.5"), ("mod_gamma", "0.2"), ("color_type", "DISTANCE")):  # fmt: skip
        if rng.random() < 0.15:
            out[name] = value
    return f"<{tag}{xml_attributes(out)}/>"


def xml_attributes(table: dict[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in table.items())


# ---- models


def model_bytes(rng: Random) -> bytes:
    """A .glb: meshes of any size with odd numbers among the vertices, materials, lights, a camera, an animation."""
    from assets.makers.gltf_builder import Maker
    from tests.fuzz import mutate as mutations
    from tests.fuzz.targets import animated_model, skinned_model

    maker = Maker()

    def fraction() -> float:
        return rng.choice((0, 1, 0.5, rng.random()))

    texture = {"index": maker.texture(np.full((2, 2, 3), rng.randrange(256), "u1"), wrapS=rng.choice((33071, 10497)))}
    for _ in range(rng.randint(1, 3)):
        entry: dict[str, Any] = {
            "pbrMetallicRoughness": {
                "baseColorFactor": [fraction() for _ in range(4)],
                "metallicFactor": fraction(),
                "roughnessFactor": fraction(),
            }
        }
        extensions = {"KHR_materials_ior": {"ior": rng.choice((1, 1.5, 0, 3))}, "KHR_materials_unlit": {},
                      "KHR_materials_transmission": {"transmissionFactor": fraction()},
                      "KHR_materials_clearcoat": {"clearcoatFactor": fraction()},
                      "KHR_materials_volume": {"thicknessFactor": fraction(), "attenuationDistance": 1},
                      "KHR_materials_sheen": {"sheenColorFactor": [fraction()] * 3},
                      "KHR_materials_emissive_strength": {"emissiveStrength": rng.choice((0, 1, 1e9))}}  # fmt: skip
        entry["extensions"] = {
            name: extensions[name] for name in rng.sample(sorted(extensions), rng.choice((0, 0, 1, 2)))
        }
        if rng.random() < 0.4:
            entry["emissiveFactor"] = [fraction() for _ in range(3)]
        if rng.random() < 0.4:
            entry["pbrMetallicRoughness"]["baseColorTexture"] = texture
        entry |= {"alphaMode": rng.choice(("OPAQUE", "MASK", "BLEND")), "doubleSided": rng.random() < 0.5}
        maker.add("materials", entry)
    for _ in range(rng.randint(1, 3)):
        count, scale = rng.randint(3, 20), 10 ** rng.choice((0, 0, 0, -20, 20, 3))
        vertices = np.array([[rng.gauss(0, scale) for _ in range(3)] for _ in range(count)], "f4")
        if rng.random() < 0.15:
            vertices[rng.randrange(count), rng.randrange(3)] = rng.choice((np.nan, np.inf, 3e38, 1e-42))
        faces = [[rng.randrange(count + (rng.random() < 0.005)) for _ in range(3)] for _ in range(rng.randint(1, 12))]
        uv = np.random.default_rng(rng.randrange(1 << 30)).normal(size=(count, 2)) if rng.random() < 0.6 else None
        mesh = maker.mesh(vertices, faces, uv=uv, material=rng.randrange(len(maker.tree["materials"])))
        node: dict[str, Any] = {"mesh": mesh}
        if rng.random() < 0.5:
            node["scale"] = [rng.choice((1, 0, -1, 1e-9, 1e9, 2)) for _ in range(3)]
            node["rotation"] = [rng.gauss(0, 1) for _ in range(4)]
        elif rng.random() < 0.3:
            node["matrix"] = [rng.gauss(0, 1) if k % 4 < 3 else float(k == 15) for k in range(16)]
        maker.node(**node)
    if rng.random() < 0.4:
        kind = rng.choice(("point", "spot", "directional"))
        spot = {"spot": {"innerConeAngle": 0.1, "outerConeAngle": 0.5}} if kind == "spot" else {}
        maker.node(extensions=maker.light(type=kind, intensity=rng.choice((0, 1, 1e9)), **spot))
    if rng.random() < 0.3:
        lens = {"yfov": rng.choice((0.5, 3.1)), "aspectRatio": 1.5, "znear": 0.1}
        maker.node(camera=maker.add("cameras", {"type": "perspective", "perspective": lens}), translation=[0, 0, 5])
    if rng.random() < 0.15:
        maker = animated_model(skinned_model())
    data = maker.glb()
    return mutate(data, rng, (mutations.glb_json,)) if rng.random() < HOSTILE else data


# ---- C$ programs


# ---- toys

TOY_CHANNELS = ("keyboard", "noise", "picture.png nearest", "gray.png cube", "picture.png mipmap repeat", "none")
ODD_CHANNELS = ("pipe", "folder", "missing.png", "../picture.png", "", "music.mp3", "Buffer D")
TOY_UNIFORMS = ("float speed = 0.5;  // 0 to 1", "int count = 3;  // 1 to 9", "bool flips = true;", "vec2 offset;",
                "vec3 tint = vec3(1, 0, 0.5);  // color", "vec4 four = vec4(1);", "float lambda = 1e30;  // -1 to 1e38",
                "float mouse = 2.0;", "float size = 3.0;", "vec3 iResolution;", "mat3 turns;")  # fmt: skip
TOY_VALUES = ("p.x", "p.y", "iTime", "float(iFrame)", "iResolution.x", "iMouse.z", "iDate.w", "0.0", "1.0",
              "-1.0", "1e38", "1e-38", "texture(iChannel0, p / iResolution.xy).x", "iChannelResolution[0].y",
              "texelFetch(iChannel1, ivec2(p), 0).y", "texelFetch(iChannel3, ivec2(65, 0), 0).x")  # fmt: skip


def toy_text(rng: Random) -> bytes:
    """A fragment shader of a tab or more, with channels, uniforms and loops of few turns."""

    def value(depth: int) -> str:
        if depth == 0:
            return rng.choice(TOY_VALUES)
        a, b = value(depth - 1), value(depth - 1)
        return rng.choice((f"({a} + {b})", f"({a} * {b})", f"({a} / {b})", f"pow({a}, {b})", f"sin({a})", f"sqrt({a})",
                           f"mod({a}, {b})", f"atan({a}, {b})", f"({a} < {b} ? {b} : {a})", f"fract({a})"))  # fmt: skip

    parts = []
    buffers = rng.sample(("A", "B", "C", "D"), rng.choice((0, 0, 1, 2)))
    tabs = [*(f"Buffer {name}" for name in sorted(buffers)), "Image"]
    for tab in ["Common", *tabs] if rng.random() < 0.2 else tabs:
        parts += [f"// {tab}"] * (len(tabs) > 1 or rng.random() < 0.3)
        if tab == "Common":
            parts.append("float common_value(float a) { return a * 0.5; }")
            continue
        channels = (*TOY_CHANNELS, *(name for name in tabs if name != "Image"))
        for k in range(4):
            if rng.random() < 0.3:
                chosen = rng.choice(ODD_CHANNELS if rng.random() < 0.05 else channels)
                parts.append(f"// iChannel{k}: {chosen}")
        parts += [f"uniform {each}" for each in rng.sample(TOY_UNIFORMS, rng.choice((0, 0, 1, 2)))]
        loop = f"for (int k = 0; k < {rng.randint(0, 9)}; k++) c += vec4({value(1)});" if rng.random() < 0.3 else ""
        colors = ", ".join(value(rng.randint(0, 2)) for _ in range(4))
        parts.append(f"void mainImage(out vec4 c, in vec2 p) {{\n    c = vec4({colors});\n    {loop}\n}}")
    data = "\n".join(parts).encode()
    return mutate(data, rng, TEXT) if rng.random() < HOSTILE and b"for (" not in data else data


class Program:
    """A C$ program that draws a picture: statements and expressions by their types, names that are in scope."""

    TYPES = ("float", "int", "bool", "float2", "float3")
    UNARY = ("sin", "cos", "sqrt", "abs", "exp", "log", "floor", "tan", "log2")

    def __init__(self, rng: Random) -> None:
        self.rng, self.names, self.count = rng, {"x": "int", "y": "int", "width": "int", "time": "float"}, 0

    def text(self) -> bytes:
        rng = self.rng
        given = [self.declared(rng.choice(self.TYPES)) for _ in range(rng.randint(0, 2))]
        kind = rng.choice(("float", "float3", "float4"))
        body = "".join(self.statement(2) for _ in range(rng.randint(0, 5)))
        result = self.vector(4, 2) if kind == "float4" else self.expression(kind, 3)
        parameters = ", ".join(["int x", "int y", "int width", "float time", *given])
        data = f"{kind} main({parameters}) {{\n{body}    return {result};\n}}\n".encode()
        return mutate(data, rng, TEXT) if rng.random() < HOSTILE else data

    def declared(self, kind: str) -> str:
        self.count += 1
        self.names[f"v{self.count}"] = kind
        value = {"float": "1.5", "int": "3", "bool": "true"}.get(kind)
        return f"{kind} v{self.count}" + (f" = {value}" if value and self.rng.random() < 0.7 else "")

    def vector(self, width: int, depth: int) -> str:
        return f"float{width}({', '.join(self.expression('float', depth - 1) for _ in range(width))})"

    def expression(self, kind: str, depth: int) -> str:
        rng = self.rng
        known = [name for name, each in self.names.items() if each == kind]
        if depth <= 0 or rng.random() < 0.15:
            literals = {"float": "0.5 2.0 -1.0 0.0 1e9 1e-9 3.0", "int": "0 1 2 -1 7 100000", "bool": "true false"}
            if known and rng.random() < 0.7:
                return rng.choice(known)
            return rng.choice(literals[kind].split()) if kind in literals else self.vector(int(kind[-1]), 1)

        def inner(each: str) -> str:
            return self.expression(each, depth - 1)

        if kind == "bool":
            return rng.choice((f"({inner('float')} < {inner('float')})", f"({inner('bool')} && {inner('bool')})",
                               f"!{inner('bool')}", f"({inner('int')} == {inner('int')})"))  # fmt: skip
        options = [f"({inner(kind)} {op} {inner(kind)})" for op in rng.sample("+-*/", 2)]
        options += [f"({inner('bool')} ? {inner(kind)} : {inner(kind)})", f"-{inner(kind)}"]
        if kind == "int":
            options += [f"min({inner('int')}, {inner('int')})", f"abs({inner('int')})", f"({inner('int')} % 5)",
                        f"+(l * {inner('int')}, l : 0..{rng.randint(0, 6)})"]  # fmt: skip
        elif kind == "float":
            vector = rng.choice(("float2", "float3"))
            options += [f"{rng.choice(self.UNARY)}({inner('float')})", f"pow({inner('float')}, {inner('float')})",
                        f"max({inner('float')}, {inner('float')})", f"dot({inner(vector)}, {inner(vector)})",
                        f"length({inner(vector)})", f"float({inner('int')})",
                        f"mod({inner('float')}, {inner('float')})",
                        f"+({inner('float')} / (l + 1), l : 0..{rng.randint(0, 6)})",
                        f"max({inner('float')} + l, l : 0..{rng.randint(1, 4)})"]  # fmt: skip
        else:
            options += [
                self.vector(int(kind[-1]), depth),
                f"({inner('float')} * {inner(kind)})",
                f"normalize({inner(kind)})",
            ]
        return rng.choice(options)

    def statement(self, depth: int) -> str:
        rng, kind = self.rng, self.rng.choice(self.TYPES)
        changeable = [name for name in self.names if name.startswith("v")]
        choice = rng.randrange(5)
        if choice < 2 or not changeable or depth <= 0:
            value = self.expression(kind, depth)
            name = self.declared(kind).split()[1]
            return f"    {kind} {name} = {value};\n"
        name = rng.choice(changeable)
        assignment = f"{name} = {self.expression(self.names[name], depth)};"
        if choice == 2:
            return f"    {assignment}\n"
        if choice == 3:
            return f"    if ({self.expression('bool', depth)}) {{ {assignment} }}\n"
        k = f"k{self.count}"
        return f"    for (int {k} = 0; {k} < {rng.randint(0, 5)}; {k}++) {{ {assignment} }}\n"


# ---- sessions and lessons


def session_text(rng: Random, folder: Path) -> bytes:
    """A session of the window with one to three panels of any kind."""
    panels = []
    for k in range(rng.randint(1, 3)):
        table = scene_table(rng.choice(SHOWN), rng, folder)
        panels.append({"path": f"{k}.toml", "time": rng.choice((0.0, 1.5)), **table})
    table = {
        "rayfold_session": 1,
        "panels": panels,
        "active": 0,
        "columns": rng.randint(0, 2),
        "solo": False,
        "clean": True,
    }
    if rng.random() < HOSTILE:
        table = odd(table, rng)
    return json.dumps(table, default=str).encode()


SHOWN = ("flame", "fractal", "raytrace", "lightfield", "reduction", "laplacian", "band_lu", "flame3d")


def lesson_files(rng: Random, folder: Path) -> bytes:
    """The two files of a lesson: panels of bundled scenes, steps that change settings and views."""
    from renderer.pictures import load, picture_class
    from tests.fuzz.targets import LESSON_PARTS

    scenes = {f"p{k}": rng.choice(("mandelbrot", "cornell", "koch", "band_factors", "lightfield")) for k in range(2)}
    steps = []
    for index in range(rng.randint(1, 3)):
        step: dict[str, Any] = {"title": f"Step {index}"}
        if index == 0 or rng.random() < 0.4:
            step["show"] = rng.sample(sorted(scenes), rng.randint(1, 2))
        name = rng.choice(sorted(scenes))
        scene = load(Path(scenes[name]))
        if rng.random() < 0.6:
            schema = Schema(rng, folder)
            found = schema.table(type(scene.settings), 0.05)
            step["set"] = {name: {k: v for k, v in found.items() if not isinstance(v, (dict, list))}}
        if rng.random() < 0.5:
            step["view"] = {name: rng.choice(picture_class(scene.picture).view_names())}
            step["view_steps"] = {name: [rng.randint(0, 9)]}
        if rng.random() < 0.2:
            step["question"] = {"ask": "Which?", "answers": ["a", "b"], "right": rng.randint(0, 2), "because": "So."}
        if rng.random() < 0.2:
            step["paper"] = {"source": "Table 1", "x": [1, 2], "series": {"a": [rng.random(), 1e30]}}
        steps.append(step)
    table: Any = {"title": "A lesson", "paper": "A paper", "summary": "A summary.", "steps": steps}
    table["panels"] = {name: {"scene": scene} for name, scene in scenes.items()}
    if rng.random() < HOSTILE:
        table = odd(table, rng)
    table = table if isinstance(table, dict) else {}
    words = "# A lesson\n\nIntro.\n" + "".join(f"\n## {step['title']}\n\nText.\n" for step in steps)
    return toml(table) + LESSON_PARTS + words.encode()
