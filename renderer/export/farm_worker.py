"""The code that the workers of a farm run: parts of pictures, each from a task with all that it depends on.

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

from renderer.export.light_field import camera_array, render_view
from renderer.export.render import RenderJob, draw, render, write
from renderer.gpu import list_devices, open_context
from renderer.gpu.gl import Texture
from renderer.paths import private_folder, temporary_directory
from renderer.pictures import open_picture, scene_of_table
from renderer.pictures.picture import Picture
from renderer.progress import Progress


def run_task(common: dict, files: dict, task: dict) -> dict:
    """The answer to a task: `common` is what all tasks of an export share, `files` the contents of input files."""
    import distributed

    common = common | {"files": files, "number": distributed.get_worker().name}
    return _thread().submit(_run_task, common, task).result()


def _run_task(common: dict, task: dict) -> dict:
    start = time.monotonic()
    common = common | task.get("own", {})  # of tasks whose scenes differ
    device = worker_device(common["device"], common["number"])
    scene, picture = _open_scene_picture(common["scene"], common["path"], _store_files(common["files"]), device)
    samples = common["samples"] or picture.sample_count(scene.settings, tuple(common["size"]))
    layers = common.get("layers", task.get("name", "").endswith(".exr"))
    job = RenderJob(scene, tuple(common["size"]), samples, task["time"], common.get("tile", 0), layers=layers)
    job = replace(job, transfer=common.get("transfer", "srgb"))
    draw_part = {"tile": _tile, "frame": _frame, "view": _view, "chunk": _chunk}[task["kind"]]
    with Progress(samples, "") as progress:
        answer = draw_part(picture, job, common, task, progress)
    return {"samples": samples, "seconds": time.monotonic() - start} | answer


def _tile(picture: Picture, job: RenderJob, common: dict, task: dict, progress: Progress) -> dict:
    """The linear values of one tile."""
    tile = tuple(task["tile"])
    frame, _ = draw(picture, job, tile, progress)
    layers = picture.layers(job.settings(), job.size, tile) if job.layers else {}
    texture = isinstance(frame, Texture)
    return {"linear": frame.read(), "device": frame.device.name, "texture": texture, "layers": layers}


def _frame(picture: Picture, job: RenderJob, common: dict, task: dict, progress: Progress) -> dict:
    """The file of one frame, as bytes."""
    rendered = render(picture, job, progress)
    return {"file": _file_of(task["name"], rendered, job, common["bit_depth"]), "device": rendered.device}


def _view(picture: Picture, job: RenderJob, common: dict, task: dict, progress: Progress) -> dict:
    """The file of one view of a light field, as bytes, and its exposure."""
    array = camera_array(job.scene, job.size, tuple(common["grid"]), common["baseline"])
    rendered, drawn = render_view(picture, job, array, tuple(task["cell"]), task["ev"], progress)
    file = _file_of(task["name"], rendered, drawn, 8)
    return {"file": file, "ev": drawn.scene.tone.ev, "device": rendered.device}


def _chunk(picture: Picture, job: RenderJob, common: dict, task: dict, progress: Progress) -> dict:
    """The state of a picture after one chunk of its samples."""
    chunk = picture.draw_chunk(job.settings(), job.size, job.time, tuple(task["chunk"]), tuple(task["extra_steps"]))
    return {"chunk": chunk, "device": picture.gpu.device.name}


def _file_of(name: str, rendered, job: RenderJob, bit_depth: int) -> bytes:
    with temporary_directory("frame") as folder:
        path = Path(folder, name)
        write(path, rendered, job, bit_depth)
        return path.read_bytes()


@functools.cache
def _thread() -> ThreadPoolExecutor:
    """The thread that draws, one a process."""
    return ThreadPoolExecutor(1, "drawing")


@functools.lru_cache(maxsize=2)
def _open_scene_picture(tables: str, name: str, files: tuple[tuple[str, str], ...], device: str):
    """The scene and its picture, kept from task to task."""
    for sent, here in files:
        tables = tables.replace(json.dumps(sent), json.dumps(here))
    scene = scene_of_table(json.loads(tables), Path(name))
    return scene, open_picture(scene, open_context(device))


def _store_files(files: dict[str, bytes]) -> tuple[tuple[str, str], ...]:
    """Write the files that were sent, each once by its content; returns pairs of the path as sent and the path here."""
    folder = private_folder() / "farm"
    folder.mkdir(exist_ok=True)
    pairs = []
    for name, data in files.items():
        path = folder / (hashlib.sha256(data).hexdigest() + Path(name).suffix)
        try:
            os.utime(path)  # used now, so not pruned
        except FileNotFoundError:
            with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
                file.write(data)
            Path(file.name).replace(path)
        pairs.append((name, str(path)))
    return tuple(pairs)


@functools.cache
def worker_device(device_id: str, number) -> str:
    """The worker's own device: its number picks among the GPUs of this machine when --device is auto."""
    gpus = [found.device_id for found in list_devices()[0] if found.device_type == "gpu"]
    gpus = [gpu for gpu in gpus if gpu.startswith("cuda")] or gpus
    if device_id != "auto" or len(gpus) < 2 or not isinstance(number, int):
        return device_id
    return gpus[number % len(gpus)]
