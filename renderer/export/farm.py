"""Frames and tiles over processes and machines on `distributed`: the same bits as one machine's, whoever drew what.

A task says all that its part of the picture depends on, the contents of mesh and image files included, so a worker
needs nothing but this program. A worker that dies has its tasks drawn by another; a straggler is drawn twice and the
first answer counts. The only user of distributed.
"""

import functools
import hashlib
import json
import re
import statistics
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

import numpy as np

from renderer import MachineCannot, UserError
from renderer.export.frames import Manifest, numbered
from renderer.export.render import Job, Rendered, device_of, draw, render, room, write
from renderer.gpu import Gpu, find_devices, open_gpu
from renderer.gpu.gl import Texture
from renderer.pictures import open_picture, recipe_of, scene_of_table
from renderer.progress import Progress
from renderer.scene import write as table_of
from renderer.tone import Meter

FARM_TILE = 512
LARGEST_INPUT = 256 << 20  # bytes of files that travel with the tasks
STRAGGLER = 3.0  # times the median
TRIES = 3


@dataclass(frozen=True)
class Farm:
    """Where tasks go: a scheduler's address, or `workers` processes of this machine."""

    address: str
    workers: int
    device: str


def farm_of(text: str, device: str) -> Farm:
    """The Farm of `--farm local:N` or `--farm tcp://HOST:PORT` (tls:// with dask's TLS configuration)."""
    local = re.fullmatch(r"local:(\d{1,3})", text)
    if local and int(local[1]) > 0:
        return Farm("", int(local[1]), device)
    if re.fullmatch(r"(tcp|tls)://[^\s:/]+:\d{1,5}", text):
        return Farm(text, 0, device)
    raise UserError(f"--farm {text}: must be local:N with N of at least 1, tcp://HOST:PORT or tls://HOST:PORT")


@contextmanager
def client_of(farm: Farm):
    """A connected client; MachineCannot where the package or the scheduler is not there."""
    try:
        import distributed  # optional: the extra [farm]
    except ImportError as error:
        raise MachineCannot(f"--farm needs distributed: pip install 'rayfold[farm]' ({error})") from error
    if farm.address:
        try:
            client = distributed.Client(farm.address, timeout="5s", set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise MachineCannot(f"--farm {farm.address}: no scheduler answers there: {error}") from error
        with client:
            yield client
        return
    options = dict(n_workers=farm.workers, threads_per_worker=1, processes=True, dashboard_address=None)
    with distributed.LocalCluster(**options, silence_logs=50) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            yield client


def render_on_farm(farm: Farm, plan, args, start: float) -> tuple[int, str, bool]:
    """Renders the plan; returns samples, the devices' names, and True."""
    if args.time_limit:
        raise UserError("--time-limit: not together with --farm, whose workers do not share a clock")
    with client_of(farm) as client:
        if plan.numbers is None:
            return _still(client, farm, plan, args.samples)
        return _frames(client, farm, plan, args)


def _still(client, farm: Farm, plan, samples: int | None) -> tuple[int, str, bool]:
    """One picture, tile by tile."""
    job = Job(plan.scene, plan.size, samples or 1, plan.moment, plan.tile or FARM_TILE)
    tiles = job.tiles()
    base = _task(farm, plan, samples)
    tasks = [base | {"moment": plan.moment, "tile": tile} for tile in tiles]
    linear, meter, devices = room((plan.size[1], plan.size[0], 4)), Meter(), set()
    opaque = True
    with Progress(len(tasks), f"{plan.scene.title}, {len(tasks)} tiles") as progress:
        for index, answer in _answers(client, draw_tile, tasks):
            left, top, width, height = tiles[index]
            part = np.frombuffer(answer["linear"], "f4").reshape(height, width, 4)
            linear[top : top + height, left : left + width] = part
            meter.add(part)
            opaque = opaque and bool((part[..., 3] >= 1).all())
            devices.add(answer["device"])
            progress.advance()
    like = _like(answer["texture"], open_gpu(farm.device))
    job = Job(plan.scene, plan.size, answer["samples"], plan.moment)
    device = ", ".join(sorted(devices))
    write(plan.output, Rendered(linear, meter, opaque, answer["samples"], device, like), job, plan.bits)
    return answer["samples"], device, True


def _like(texture: bool, gpu: Gpu):
    """A frame of the kind that the workers drew, for tone mapping here."""
    return gpu.gl.texture((1, 1)) if texture else gpu.device.buffer((1, 1, 4))


def _frames(client, farm: Farm, plan, args) -> tuple[int, str, bool]:
    """The frames that are not done yet, one a task."""
    from renderer.export import recipe_of_frames  # the package defines it above this module

    plan.pattern.parent.mkdir(exist_ok=True)
    manifest = Manifest(plan.pattern, recipe_of_frames(plan, args.samples))
    wanted = [number for number in plan.numbers if args.overwrite or not manifest.done(number)]
    base = _task(farm, plan, args.samples)
    tasks = [
        base | {"moment": plan.moment_of(number), "name": numbered(plan.pattern, number).name, "bits": plan.bits}
        for number in wanted
    ]
    samples, devices = args.samples or 0, set()
    with Progress(len(tasks), f"{plan.scene.title}, {len(tasks)} frames") as progress:
        for index, answer in _answers(client, draw_frame, tasks):
            path = numbered(plan.pattern, wanted[index])
            temporary = path.with_name(f".{path.name}.part")
            temporary.write_bytes(answer["file"])
            temporary.replace(path)
            manifest.add(wanted[index], answer["seconds"], answer["device"])
            samples = answer["samples"]
            devices.add(answer["device"])
            progress.advance()
    return samples, ", ".join(sorted(devices)) or "none: every frame was done", True


def _answers(client, function, tasks: list[dict]):
    """(index, answer) of every task as they come; a straggler is submitted again and the first answer counts."""
    import distributed

    def submit(index: int, attempt: int):
        key = f"rayfold-{hashlib.sha256(repr((time.time_ns(), index, attempt)).encode()).hexdigest()[:16]}"
        return client.submit(function, tasks[index], key=key, pure=False, retries=TRIES)

    waiting = {submit(index, 0): (index, time.monotonic()) for index in range(len(tasks))}
    missing, took = set(range(len(tasks))), []
    last = time.monotonic()
    while missing:
        with client.as_current():
            done, _ = distributed.wait(list(waiting), return_when="FIRST_COMPLETED")
        for future in done:
            index, _began = waiting.pop(future)
            if index not in missing:
                continue
            try:
                answer = future.result()
            except distributed.scheduler.KilledWorker as error:
                raise MachineCannot(f"--farm: every worker that drew part {index} died: {error}") from error
            missing.discard(index)
            now = time.monotonic()
            took.append(now - last)
            last = now
            yield index, answer
        _help_stragglers(submit, waiting, missing, took)
    client.cancel(list(waiting))


def _help_stragglers(submit, waiting: dict, missing: set, took: list[float]) -> None:
    """Submits again what is still missing when only a few parts are left and they take much longer than the others."""
    if len(took) < 4 or len(missing) > 2:
        return
    late = STRAGGLER * statistics.median(took)
    twice = [index for index, _ in waiting.values()]
    for index in list(missing):
        if twice.count(index) == 1 and time.monotonic() - max(b for i, b in waiting.values() if i == index) > late:
            waiting[submit(index, 1)] = (index, time.monotonic())


def _task(farm: Farm, plan, samples: int | None) -> dict:
    """What all parts have in common: the scene as a table, the contents of its files, size, samples, device."""
    folder = plan.scene.path.resolve().parent
    files: dict[str, bytes] = {}
    for path in sorted(set(_files_of(plan.scene.settings))):
        files[path] = Path(path).read_bytes()
        if sum(map(len, files.values())) > LARGEST_INPUT:
            raise MachineCannot(f"--farm: the scene's files are larger than the {LARGEST_INPUT >> 20} MiB that travel")
    tables = recipe_of(plan.scene, folder)["scene"] | {"settings": table_of(plan.scene.settings)}
    return {
        "scene": json.dumps(tables),
        "path": plan.scene.path.name,
        "files": files,
        "size": plan.size,
        "samples": samples,
        "device": farm.device,
        "tile": plan.tile,
    }


def _files_of(settings):
    """The paths of every file that the settings name."""
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.metadata.get("file") and value:
            yield from (value,) if isinstance(value, str) else value
        for inner in (value,) if is_dataclass(value) else _inner(value):
            if is_dataclass(inner):
                yield from _files_of(inner)


def _inner(value):
    return value if isinstance(value, tuple) else value.values() if hasattr(value, "values") else ()


# What follows runs in the workers.


def draw_tile(task: dict) -> dict:
    """The linear values of one tile."""
    scene, picture = _opened(task["scene"], task["path"], _kept(task["files"]), _device(task["device"]))
    samples = task["samples"] or picture.draws(scene.settings, task["size"])
    job = Job(scene, tuple(task["size"]), samples, task["moment"])
    with Progress(samples, "") as progress:
        frame, _ = draw(picture, job, tuple(task["tile"]), progress)
    facts = {"linear": frame.read().tobytes(), "samples": samples, "device": device_of(frame)}
    return facts | {"texture": isinstance(frame, Texture)}


def draw_frame(task: dict) -> dict:
    """The file of one frame, as bytes."""
    began = time.monotonic()
    scene, picture = _opened(task["scene"], task["path"], _kept(task["files"]), _device(task["device"]))
    samples = task["samples"] or picture.draws(scene.settings, task["size"])
    job = Job(scene, tuple(task["size"]), samples, task["moment"], task["tile"], layers=task["name"].endswith(".exr"))
    with Progress(samples, "") as progress, tempfile.TemporaryDirectory() as folder:
        rendered = render(picture, job, progress)
        path = Path(folder, task["name"])
        write(path, rendered, job, task["bits"])
        data = path.read_bytes()
    return {"file": data, "samples": samples, "device": rendered.device, "seconds": time.monotonic() - began}


def _kept(files: dict[str, bytes]) -> tuple[tuple[str, str], ...]:
    """Writes the files that travelled, once each, by content; pairs of the path as sent and the path here."""
    folder = Path(tempfile.gettempdir(), "rayfold-farm")
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


def _device(spelling: str) -> str:
    """The worker's own device: its number picks among the GPUs of this machine when --device is auto."""
    import distributed

    gpus = [found.spelling for found in find_devices()[0] if found.processor == "gpu"]
    kinds = {spelling.split(":")[0] for spelling in gpus}
    gpus = [gpu for gpu in gpus if gpu.startswith("cuda")] if "cuda" in kinds else gpus
    number = distributed.get_worker().name
    if spelling != "auto" or len(gpus) < 2 or not isinstance(number, int):
        return spelling
    return gpus[number % len(gpus)]


@functools.lru_cache(maxsize=2)
def _opened(tables: str, name: str, files: tuple[tuple[str, str], ...], device: str):
    """The scene and its picture, kept from task to task."""
    for sent, here in files:
        tables = tables.replace(json.dumps(sent), json.dumps(here))
    scene = scene_of_table(json.loads(tables), Path(name))
    return scene, open_picture(scene, open_gpu(device))
