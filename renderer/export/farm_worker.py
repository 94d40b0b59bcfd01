"""The code that the workers of a farm run: run_task() draws a tile, frame, view or chunk of samples (see farm.py).

Each process draws on one thread: a GL context belongs to the thread that made it, and a worker that runs several tasks
at once must not draw two of them with one picture.
"""

import functools
import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from renderer.export.frames import file_hash
from renderer.export.light_field import camera_array, render_view
from renderer.export.render import RenderJob, RenderResult, draw, render, write
from renderer.gpu import list_devices, open_context
from renderer.gpu.gl import Texture
from renderer.paths import private_folder, temporary_directory
from renderer.pictures import open_picture, scene_of_table
from renderer.pictures.picture import AnyPicture
from renderer.plain import Json
from renderer.scene.scene import Scene
from renderer.system.outputs import claimed, write_bytes
from renderer.system.progress import Progress
from renderer.system.trust import trusting

STORE_SECONDS = 600.0  # time limit of the wait for another worker that writes the same file


def run_task(common: Json, task: Json) -> Json:
    """Draws a task and returns the answer; `common`: arguments of all tasks, with the input files by path."""
    import distributed

    common = common | {"number": distributed.get_worker().name}
    return _thread().submit(_run_task, common, task).result()


def _run_task(common: Json, task: Json) -> Json:
    """Draws a task of a farm on this worker; `common` holds what all tasks share."""
    start = time.monotonic()
    common = common | task.get("overrides", {})  # in tasks whose scenes differ
    device = worker_device(common["device"], common["number"])
    scene, picture = _open_scene_picture(common["scene"], common["path"], _store_files(common["files"]), device)
    samples = common["samples"] or picture.sample_count(scene.settings, tuple(common["size"]))
    layers = common.get("layers", task.get("name", "").endswith(".exr"))  # frames and views: .exr files have layers
    transfer, tile = common.get("transfer", "srgb"), common.get("tile", 0)
    job = RenderJob(scene, tuple(common["size"]), samples, task["time"], tile, layers=layers, transfer=transfer)
    draw_task = {"tile": _tile, "frame": _frame, "view": _view, "chunk": _chunk}[task["kind"]]
    with Progress(samples, "") as progress:
        answer = draw_task(picture, job, common, task, progress)
    return {"samples": samples, "seconds": time.monotonic() - start} | answer


def _tile(picture: AnyPicture, job: RenderJob, common: Json, task: Json, progress: Progress) -> Json:
    """Draws one tile; the answer holds its linear values and layers."""
    tile = tuple(task["tile"])
    frame, _ = draw(picture, job, tile, progress)
    layers = picture.layers(job.settings(), job.size, tile) if job.layers else {}
    texture = isinstance(frame, Texture)
    return {"linear": frame.read(), "device": frame.device.name, "texture": texture, "layers": layers}


def _frame(picture: AnyPicture, job: RenderJob, common: Json, task: Json, progress: Progress) -> Json:
    """Draws one frame; the answer holds its file as bytes."""
    rendered = render(picture, job, progress)
    return {"file": _encode_file(task["name"], rendered, job, common["bit_depth"]), "device": rendered.device}


def _view(picture: AnyPicture, job: RenderJob, common: Json, task: Json, progress: Progress) -> Json:
    """Draws one view of a light field; the answer holds its file as bytes and its exposure in stops."""
    array = camera_array(job.scene, job.size, tuple(common["grid"]), common["baseline"])
    # `drawn`: the job with this view's camera and exposure
    rendered, drawn = render_view(picture, job, array, task["number"], task["ev"], progress)
    file = _encode_file(task["name"], rendered, drawn, 8)
    return {"file": file, "ev": drawn.scene.tone.ev, "device": rendered.device}


def _chunk(picture: AnyPicture, job: RenderJob, common: Json, task: Json, progress: Progress) -> Json:
    """Draws one chunk of samples; the answer holds the accumulated state for Picture.merge()."""
    chunk = picture.draw_chunk(job.settings(), job.size, job.time, tuple(task["chunk"]), tuple(task["extra_steps"]))
    return {"chunk": chunk, "device": picture.gpu.device.name}


def _encode_file(name: str, rendered: RenderResult, job: RenderJob, bit_depth: int) -> bytes:
    with temporary_directory("frame") as folder:
        path = Path(folder, name)
        write(path, rendered, job, bit_depth)
        return path.read_bytes()


@functools.cache
def _thread() -> ThreadPoolExecutor:
    """The thread that draws all tasks of this process."""
    return ThreadPoolExecutor(1, "drawing")


@functools.lru_cache(maxsize=2)
def _open_scene_picture(
    tables: str, name: str, files: tuple[tuple[str, str], ...], device: str
) -> tuple[Scene, AnyPicture]:
    """Opens the scene and its picture; the cache keeps the last two for later tasks."""
    for sent, here in files:
        tables = tables.replace(json.dumps(sent), json.dumps(here))
    with trusting():  # the client sent these files with the task
        scene = scene_of_table(json.loads(tables), Path(name))
    return scene, open_picture(scene, open_context(device))


def _store_files(files: dict[str, bytes]) -> tuple[tuple[str, str], ...]:
    """Write the files that were sent, unless they are whole here; returns pairs of the path as sent and that here."""
    folder = private_folder() / "farm"
    folder.mkdir(exist_ok=True)
    pairs = []
    for name, data in files.items():
        digest = hashlib.sha256(data).hexdigest()
        path = folder / (digest + Path(name).suffix)
        with claimed(path, seconds=STORE_SECONDS):  # one worker of this machine writes the file, the others find it
            if path.is_file() and file_hash(path) == digest:
                os.utime(path)  # used now, so not pruned
            else:
                write_bytes(path, data)
        pairs.append((name, str(path)))
    return tuple(pairs)


@functools.cache
def worker_device(device_id: str, number: object) -> str:
    """Returns the device of worker `number`; --device auto assigns the GPUs of this machine in turn."""
    gpus = [device.device_id for device in list_devices()[0] if device.device_type == "gpu"]
    gpus = [gpu for gpu in gpus if gpu.startswith("cuda")] or gpus
    if device_id != "auto" or len(gpus) < 2 or not isinstance(number, int):
        return device_id
    return gpus[number % len(gpus)]
