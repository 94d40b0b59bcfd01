"""What runs in the workers of a farm: parts of pictures, each from a task that says all that it depends on.

All drawing of a process happens on one thread: a GL context belongs to the thread that made it, and a worker that runs
several tasks at once must not draw two of them with one picture.
"""

import functools
import hashlib
import json
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from renderer.export.light_field import array_of, tone_of, view_scene
from renderer.export.render import Job, device_of, draw, render, write
from renderer.gpu import list_devices, open_context
from renderer.gpu.gl import Texture
from renderer.pictures import open_picture, scene_of_table
from renderer.progress import Progress
from renderer.scene.scene import ToneMapping


def work(base: dict, files: dict, task: dict) -> dict:
    """The answer to a task: `base` is what all tasks of a picture or film have in common, `files` what it reads."""
    import distributed

    base = base | {"files": files, "number": distributed.get_worker().name}
    return _thread().submit(_done, base, task).result()


def _done(base: dict, task: dict) -> dict:
    began = time.monotonic()
    answer = {"tile": _tile, "frame": _frame, "view": _view, "part": _part}[task["kind"]](base, task)
    return answer | {"seconds": time.monotonic() - began}


def _tile(base: dict, task: dict) -> dict:
    """The linear values of one tile."""
    scene, picture, samples = _opened_for(base)
    job = Job(scene, tuple(base["size"]), samples, task["moment"], layers=base["layers"])
    with Progress(samples, "") as progress:
        frame, _ = draw(picture, job, tuple(task["tile"]), progress)
    facts = {"linear": frame.read(), "samples": samples, "device": device_of(frame)}
    layers = picture.layers(job.settings(), job.size, tuple(task["tile"])) if job.layers else {}
    return facts | {"texture": isinstance(frame, Texture), "layers": layers}


def _frame(base: dict, task: dict) -> dict:
    """The file of one frame, as bytes."""
    scene, picture, samples = _opened_for(base)
    layers = task["name"].endswith(".exr")
    job = Job(scene, tuple(base["size"]), samples, task["moment"], base["tile"], layers=layers)
    with Progress(samples, "") as progress:
        rendered = render(picture, job, progress)
    return {"file": _file_of(task["name"], rendered, job, base["bits"]), "samples": samples, "device": rendered.device}


def _view(base: dict, task: dict) -> dict:
    """The file of one view of a light field, as bytes, and the exposure that it has."""
    scene, picture, samples = _opened_for(base)
    size = tuple(base["size"])
    array = array_of(scene, size, tuple(base["grid"]), base["baseline"])
    scene = view_scene(scene, array, *task["cell"])
    job = Job(scene, size, samples, task["moment"])
    with Progress(samples, "") as progress:
        rendered = render(picture, job, progress)
    tone = tone_of(rendered, scene.tone) if task["ev"] is None else ToneMapping("manual", task["ev"], "none")
    file = _file_of(task["name"], rendered, replace(job, scene=replace(scene, tone=tone)), 8)
    return {"file": file, "ev": tone.ev, "samples": samples, "device": rendered.device}


def _part(base: dict, task: dict) -> dict:
    """What one of the parts leaves that the samples of a picture are dealt into."""
    scene, picture, samples = _opened_for(base)
    job = Job(scene, tuple(base["size"]), samples, task["moment"], layers=base["layers"])
    part = picture.draw_chunk(job.settings(), job.size, job.moment, tuple(task["part"]), tuple(task["more"]))
    return {"part": part, "device": picture.device.name}


def _file_of(name: str, rendered, job: Job, bits: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(path, rendered, job, bits)
        return path.read_bytes()


@functools.cache
def _thread() -> ThreadPoolExecutor:
    """The thread that draws, one a process."""
    return ThreadPoolExecutor(1, "drawing")


def _opened_for(base: dict):
    """The scene, its picture and its number of samples."""
    device = device_here(base["device"], base["number"])
    scene, picture = _opened(base["scene"], base["path"], _kept(base["files"]), device)
    return scene, picture, base["samples"] or picture.sample_count(scene.settings, tuple(base["size"]))


@functools.lru_cache(maxsize=2)
def _opened(tables: str, name: str, files: tuple[tuple[str, str], ...], device: str):
    """The scene and its picture, kept from task to task."""
    for sent, here in files:
        tables = tables.replace(json.dumps(sent), json.dumps(here))
    scene = scene_of_table(json.loads(tables), Path(name))
    return scene, open_picture(scene, open_context(device))


def _kept(files: dict[str, bytes]) -> tuple[tuple[str, str], ...]:
    """Writes the files that travelled, once each, by content; pairs of the path as sent and the path here."""
    folder = Path(tempfile.gettempdir(), f"rayfold-farm-{getattr(os, 'getuid', int)()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    pairs = []
    for name, data in files.items():
        path = folder / (hashlib.sha256(data).hexdigest() + Path(name).suffix)
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(data)
            Path(file.name).replace(path)
        pairs.append((name, str(path)))
    return tuple(pairs)


@functools.cache
def device_here(device_id: str, number) -> str:
    """The worker's own device: its number picks among the GPUs of this machine when --device is auto."""
    gpus = [found.device_id for found in list_devices()[0] if found.device_type == "gpu"]
    kinds = {gpu.split(":")[0] for gpu in gpus}
    gpus = [gpu for gpu in gpus if gpu.startswith("cuda")] if "cuda" in kinds else gpus
    if device_id != "auto" or len(gpus) < 2 or not isinstance(number, int):
        return device_id
    return gpus[number % len(gpus)]
