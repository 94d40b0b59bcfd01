"""Distribute frames, tiles, samples and light-field views to local processes or remote workers with dask.distributed.

The files have the same bits as those of a single machine.

A task contains all that its part of the picture depends on, the contents of mesh and image files included, so a worker
needs nothing but this program (it runs farm_worker.py). A worker that dies has its tasks drawn by another; a
straggler is drawn by another too, and the first answer counts.
"""

import hashlib
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from renderer.errors import IncompleteError, UnavailableError, UserError
from renderer.export.farm_worker import run_task
from renderer.export.frames import frame_path
from renderer.export.light_field import LightFieldViews
from renderer.export.options import ExportOptions
from renderer.export.plan import ExportPlan, open_manifest
from renderer.export.render import MAX_UNTILED_PIXELS, RenderJob, TiledImage, write
from renderer.farm import KEPT, Farm, Watch, open_client, workers
from renderer.formats.images import atomic_write
from renderer.gpu import open_context
from renderer.pictures import open_picture, recipe_of, tone_table
from renderer.progress import Progress
from renderer.scene.scene import Scene
from renderer.scene.schema import to_table

FARM_TILE = 512
MAX_INPUT_BYTES = 256 << 20  # bytes of files that are sent with the tasks
STRAGGLER_FACTOR = 3.0  # times the median
STRAGGLER_GRACE = 1.0  # seconds more
RESULT_TIMEOUT = 20.0  # seconds for an answer to arrive from its worker
MAX_ATTEMPTS = 3
CHUNKS_PER_WORKER = 2
MAX_CHUNKS = 256  # that the samples of one picture are divided into


def render_on_farm(farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """Render the plan; returns samples and the devices' names."""
    if plan.options.time_limit:
        raise UserError("--time-limit: not together with --farm, whose workers do not share a clock")
    with open_client(farm) as client:
        if plan.numbers is not None:
            return render_frames(client, farm, plan)
        return (_render_samples if plan.options.split == "samples" else _render_tiles)(client, farm, plan)


def _render_tiles(client, farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """One picture, tile by tile."""
    tiles = RenderJob(plan.scene, plan.size, 1, plan.time, plan.options.tile or FARM_TILE).tiles()
    common = _common(farm, plan.scene, plan.size, plan.samples) | {"layers": plan.layers}
    tasks = [{"kind": "tile", "time": plan.time, "tile": tile} for tile in tiles]
    image, devices, gpu = TiledImage(plan.size), set[str](), open_context(farm.device)
    with Progress(len(tasks), f"{plan.scene.title}, {len(tasks)} tiles") as progress:
        for index, answer in _counted_results(client, common, tasks, devices, progress):
            image.merge_tile(tiles[index], answer["linear"], answer["layers"])
    # A frame of the kind that the workers drew, for tone mapping here.
    prototype = gpu.gl.texture((1, 1)) if answer["texture"] else gpu.device.buffer((1, 1, 4))
    device = ", ".join(sorted(devices))
    rendered = image.result(answer["samples"], device, prototype)
    write(plan.output, rendered, _job_of(plan, answer["samples"]), plan.frame_depth)
    return answer["samples"], device


def _render_samples(client, farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """One picture whose samples are divided among the workers; its bits do not depend on the number of chunks."""
    picture = open_picture(plan.scene, open_context(farm.device))
    job = RenderJob(plan.scene, plan.size, 1, plan.time, layers=plan.layers)
    settings, size = job.settings(), plan.size
    samples = plan.samples or picture.sample_count(settings, size)
    count = min(CHUNKS_PER_WORKER * max(1, len(workers(client))), MAX_CHUNKS)
    chunks = _chunks(picture, plan, settings, samples, count)
    common = _common(farm, plan.scene, size, samples) | {"layers": plan.layers}
    devices: set[str] = set()
    extra: tuple = ()
    with Progress(len(chunks), f"{plan.scene.title}, {len(chunks)} chunks") as progress:
        while True:
            tasks = [{"kind": "chunk", "time": plan.time, "chunk": chunk, "extra_steps": extra} for chunk in chunks]
            picture.start_merge(settings, size, plan.time)
            for _, answer in _counted_results(client, common, tasks, devices, progress):
                picture.merge(answer["chunk"])
            missing = picture.missing_steps(extra)
            if not missing:
                break
            extra = (*extra, missing)
    frame, device, image = picture.merged_frame(extra), ", ".join(sorted(devices)), TiledImage(size)
    image.merge_tile((0, 0, *size), frame.read(), picture.layers(settings, size) if plan.layers else {})
    rendered = image.result(samples, device, frame)
    write(plan.output, rendered, _job_of(plan, samples), plan.frame_depth)
    return samples, device


def _chunks(picture, plan, settings, samples: int, count: int) -> list[tuple]:
    """The chunks that the samples of the picture are divided into; UserError if they cannot be."""
    width, height = plan.size
    if plan.options.tile:
        raise UserError(f"--tile {plan.options.tile}: not together with --split samples")
    if width * height > MAX_UNTILED_PIXELS:
        raise UserError(
            f"--split samples: {width} x {height} pixels are more than the {MAX_UNTILED_PIXELS} of one part"
        )
    chunks = picture.chunks(settings, plan.size, samples, count)
    if not chunks:
        raise UserError(f"--split samples: this {plan.scene.picture} picture is split into tiles")
    return chunks


def _job_of(plan: ExportPlan, samples: int) -> RenderJob:
    """What write() asks of the plan's still."""
    return RenderJob(plan.scene, plan.size, samples, plan.time, transfer=plan.options.transfer)


def render_stills(farm: Farm, plans: Sequence[ExportPlan]) -> Iterator[tuple[int, dict]]:
    """(index, answer) of pictures of scenes without files, one a task, as their files are written.

    An answer has `samples`, `device` and `seconds`.
    """
    own = ("scene", "path", "size", "samples")
    with open_client(farm) as client:
        tasks = []
        for plan in plans:
            job = _common(farm, plan.scene, plan.size, plan.samples)
            more = {"bit_depth": plan.frame_depth, "transfer": plan.options.transfer, "tile": plan.options.tile}
            task = {"kind": "frame", "time": plan.time, "name": plan.output.name, "layers": plan.layers}
            tasks.append(task | {"own": {name: job[name] for name in own} | more})
        common, devices = {"files": {}, "device": farm.device}, set[str]()
        with Progress(len(tasks), f"{len(tasks)} pictures") as progress:
            for index, answer in _counted_results(client, common, tasks, devices, progress):
                _store(plans[index].output, answer["file"])
                yield index, answer


def render_frames(client, farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """The frames that are not done yet, one a task."""
    assert plan.numbers is not None
    manifest = open_manifest(plan)
    wanted = manifest.missing(plan.numbers, plan.options.overwrite)
    common = _common(farm, plan.scene, plan.size, plan.samples)
    common |= {"tile": plan.options.tile, "bit_depth": plan.frame_depth, "transfer": plan.options.transfer}
    paths = [frame_path(plan.pattern, number) for number in wanted]
    tasks = [
        {"kind": "frame", "time": plan.time_of(number), "name": path.name}
        for number, path in zip(wanted, paths, strict=True)
    ]
    samples, devices = plan.samples or 0, set[str]()
    with Progress(len(tasks), f"{plan.scene.title}, {len(tasks)} frames") as progress:
        for index, answer in _counted_results(client, common, tasks, devices, progress):
            _store(paths[index], answer["file"])
            manifest.add(wanted[index], answer["seconds"], answer["device"])
            samples = answer["samples"]
    return samples, ", ".join(sorted(devices)) or "none: every frame was done"


def render_light_field_on_farm(
    farm: Farm, job: RenderJob, views: LightFieldViews, options: ExportOptions
) -> tuple[int, str]:
    """Every view of a light field that is not done, one a task; returns the samples of one and the devices' names."""
    array, middle = views.array, views.array.views()[0]
    asked = options.samples or job.scene.samples
    common = _common(farm, job.scene, job.size, asked)
    common |= {"grid": [array.rows, array.columns], "baseline": array.baseline}
    cells, devices, samples = views.wanted(options.overwrite), set[str](), asked or 0
    with open_client(farm) as client, Progress(len(cells), f"{job.scene.title}, {len(cells)} views") as progress:
        rounds = [[middle], [cell for cell in cells if cell != middle]] if middle in cells else [cells]
        ev = views.exposure_before(cells)
        for cells_of_round in rounds:  # the middle view's exposure serves all
            tasks = [
                {"kind": "view", "time": job.time, "cell": cell, "ev": ev, "name": array.name(*cell)}
                for cell in cells_of_round
            ]
            for index, answer in _counted_results(client, common, tasks, devices, progress):
                _store(views.path(cells_of_round[index]), answer["file"])
                views.add(cells_of_round[index], answer["seconds"], answer["device"])
                ev, samples = answer["ev"], answer["samples"]
    return samples, ", ".join(sorted(devices)) or "none: every view was done"


def _store(path: Path, data: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)


def _counted_results(client, common: dict, tasks: list[dict], devices: set[str], progress: Progress):
    """The results() of the tasks; collects the names of devices and advances the progress bar."""
    for index, answer in results(client, common, tasks):
        yield index, answer
        devices.add(answer["device"])
        progress.advance()


def results(client, common: dict, tasks: list[dict]):
    """(index, answer) of every task as they come; a straggler is submitted again and the first answer counts."""
    import distributed

    run = hashlib.sha256(repr((time.time_ns(), id(tasks))).encode()).hexdigest()[:16]
    attempts = [0] * len(tasks)
    files = common["files"]
    if files:  # sent once to each worker; sent again if a worker that has them dies
        files = client.submit(dict, files, key=f"rayfold-{run}-files", pure=False, retries=MAX_ATTEMPTS)
        client.replicate([files])
    common = {name: value for name, value in common.items() if name != "files"}

    def submit(index: int, workers=None):
        key = f"rayfold-{run}-{index}-{attempts[index]}"
        attempts[index] += 1
        options = dict(workers=workers, allow_other_workers=True) if workers else {}
        options |= dict(key=key, pure=False, retries=MAX_ATTEMPTS)
        return client.submit(run_task, common, files, tasks[index], **options)

    waiting = {submit(index): index for index in range(len(tasks))}
    missing, took = set(range(len(tasks))), []
    alone_since = None  # when every part that is missing was at work
    watch = Watch(client)
    try:
        while missing:
            finished = _finished(client, waiting)
            if not finished:
                watch.check()
            for future in finished:
                index = waiting.pop(future)
                if index not in missing:
                    continue
                try:
                    answer = future.result(timeout=RESULT_TIMEOUT)
                except distributed.scheduler.KilledWorker as error:
                    raise IncompleteError(f"--farm: every worker that drew part {index} died; {KEPT}") from error
                except TimeoutError:  # its worker hangs before it sent the answer
                    waiting[submit(index, _idle(client)) if attempts[index] < MAX_ATTEMPTS else future] = index
                    continue
                missing.discard(index)
                took.append(answer["seconds"])
                yield index, answer
            if missing and took and len(missing) <= max(1, len(workers(client))):
                alone_since = alone_since or time.monotonic()
                late = STRAGGLER_GRACE + STRAGGLER_FACTOR * statistics.median(took)
                if time.monotonic() - alone_since > late and max(attempts[i] for i in missing) < MAX_ATTEMPTS:
                    waiting |= {submit(index, _idle(client)): index for index in missing}
                    alone_since = time.monotonic()
    finally:
        client.cancel(list(waiting))


def _finished(client, waiting: dict) -> list:
    """The futures that are done, after a wait of at most some time."""
    import distributed

    try:
        with client.as_current():
            distributed.wait(list(waiting), timeout=0.5, return_when="FIRST_COMPLETED")
    except TimeoutError:
        return []
    return [future for future in waiting if future.done()]


def _idle(client) -> list[str]:
    """The workers that have nothing to do; none where all are at work."""
    return [address for address, keys in client.processing().items() if not keys]


def _common(farm: Farm, scene: Scene, size: tuple[int, int], samples: int | None) -> dict:
    """What all tasks have in common: the scene as a table, the contents of its files, size, samples, device."""
    files: dict[str, bytes] = {}
    for path in sorted(map(str, scene.files)) if farm.address else ():
        if Path(path).is_dir() or path.lower().endswith(".gltf"):
            whole = "a .glb" if path.lower().endswith(".gltf") else "a .zip"
            raise UnavailableError(f"--farm {farm.address}: {path} is more than one file; {whole} can be sent")
        files[path] = Path(path).read_bytes()
        if sum(map(len, files.values())) > MAX_INPUT_BYTES:
            limit = f"the {MAX_INPUT_BYTES >> 20} MiB that can be sent"
            raise UnavailableError(f"--farm: the scene's files are larger than {limit}")
    tables = recipe_of(scene, Path("."))["scene"] | {"settings": to_table(scene.settings), "tone": tone_table(scene)}
    return {
        "scene": json.dumps(tables), "path": scene.path.name, "files": files, "size": size, "samples": samples,
        "device": farm.device,
    }  # fmt: skip
