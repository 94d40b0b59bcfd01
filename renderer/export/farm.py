"""Distribute frames, tiles, samples and light-field views to local processes or remote workers with dask.distributed.

The files have the same bits as an export on a single machine.

run.py calls render_on_farm() and render_light_field_on_farm(), flames.py calls render_stills(). A task carries all
that its result depends on, for remote workers the contents of mesh and image files too, so a worker needs only this
program; it runs farm_worker.py. renderer/system/farm_tasks.py distributes the tasks.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from renderer.errors import UnavailableError, UserError
from renderer.export.farm_worker import run_task
from renderer.export.frames import Manifest
from renderer.export.light_field import LightFieldViews
from renderer.export.options import ExportOptions
from renderer.export.plan import ExportPlan, FrameManifest
from renderer.export.render import MAX_UNTILED_PIXELS, RenderJob, TiledImage, write
from renderer.gpu import open_context
from renderer.pictures import make_recipe, open_picture, tone_table
from renderer.pictures.picture import AnyPicture, Chunk
from renderer.plain import Json
from renderer.scene.scene import Scene
from renderer.scene.schema import to_table
from renderer.system.farm import Client, Farm, open_client, parse_farm, workers
from renderer.system.farm_tasks import run_tasks
from renderer.system.outputs import write_bytes
from renderer.system.progress import Progress

FARM_TILE = 512
MAX_INPUT_BYTES = 256 << 20  # bytes of files that are sent with the tasks
CHUNKS_PER_WORKER = 2
MAX_CHUNKS = 256  # most chunks that the samples of one picture are divided into


def chosen_farm(options: ExportOptions) -> Farm:
    """The farm of --farm; raises UserError."""
    return parse_farm(options.farm or "", options.device, options.insecure)


def render_on_farm(farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """Render the plan; returns the samples per picture and the devices' names."""
    if plan.options.time_limit:
        raise UserError("--time-limit: not together with --farm, whose workers do not share a clock")
    with open_client(farm) as client:
        if plan.numbers is not None:
            return render_frames(client, farm, plan)
        return (_render_samples if plan.options.split == "samples" else _render_tiles)(client, farm, plan)


def _render_tiles(client: Client, farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """Render and write one picture, a tile a task; returns the samples and the devices' names."""
    tiles = replace(plan.job(), tile=plan.options.tile or FARM_TILE).tiles
    common = _common(farm, plan.scene, plan.size, plan.samples) | {"layers": plan.layers}
    tasks = [{"kind": "tile", "time": plan.time, "tile": tile} for tile in tiles]
    image, work, gpu = TiledImage(plan.size), FarmWork(client, common), open_context(farm.device)
    for index, answer in work.results(tasks, f"{plan.scene.title}, {len(tasks)} tiles"):
        image.merge_tile(tiles[index] or (0, 0, *plan.size), answer["linear"], answer["layers"])
    # A 1 x 1 frame, a texture or a buffer as on the workers, selects the tone mapping that they would have used.
    prototype = gpu.gl.texture((1, 1)) if answer["texture"] else gpu.device.buffer((1, 1, 4))
    rendered = image.result(answer["samples"], work.device, prototype)
    write(plan.output, rendered, plan.job(answer["samples"]), plan.frame_depth)
    return answer["samples"], work.device


def _render_samples(client: Client, farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """Render and write one picture, a chunk of its samples a task; returns the samples and the devices' names.

    The bits of the picture do not depend on the number of chunks.
    """
    picture = open_picture(plan.scene, open_context(farm.device))
    settings, size = plan.job().settings(), plan.size
    samples = plan.samples or picture.sample_count(settings, size)
    count = min(CHUNKS_PER_WORKER * max(farm.workers, len(workers(client))), MAX_CHUNKS)
    chunks = _chunks(picture, plan, settings, samples, count)
    work = FarmWork(client, _common(farm, plan.scene, size, samples) | {"layers": plan.layers})
    extra: tuple[tuple[int, ...], ...] = ()
    while True:
        tasks = [{"kind": "chunk", "time": plan.time, "chunk": chunk, "extra_steps": extra} for chunk in chunks]
        picture.start_merge(settings, size, plan.time)
        for _, answer in work.results(tasks, f"{plan.scene.title}, {len(chunks)} chunks"):
            picture.merge(answer["chunk"])
        # Only the merged chunks of a flame tell how many of its points were bad and need further steps in their place:
        # every chunk is rendered again with them.
        missing = picture.missing_steps(extra)
        if not missing:
            break
        extra = (*extra, missing)
    frame, image = picture.merged_frame(extra), TiledImage(size)
    image.merge_tile((0, 0, *size), frame.read(), picture.layers(settings, size) if plan.layers else {})
    write(plan.output, image.result(samples, work.device, frame), plan.job(samples), plan.frame_depth)
    return samples, work.device


def _chunks(picture: AnyPicture, plan: ExportPlan, settings: Any, samples: int, count: int) -> list[Chunk]:
    """The picture's samples as at most `count` chunks (Picture.chunks); UserError if it cannot be divided."""
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


def render_stills(farm: Farm, plans: Sequence[ExportPlan]) -> Iterator[tuple[int, Json]]:
    """Render the stills of the plans, one a task; yields (index of the plan, answer) when its file is written.

    The scenes must name no input files. An answer has the keys samples, device and seconds.
    """
    scene_keys = ("scene", "path", "size", "samples")
    with open_client(farm) as client:
        tasks = []
        for plan in plans:
            facts = _common(farm, plan.scene, plan.size, plan.samples)
            encoding = {"bit_depth": plan.frame_depth, "transfer": plan.options.transfer, "tile": plan.options.tile}
            task = {"kind": "frame", "time": plan.time, "name": plan.output.name, "layers": plan.layers}
            tasks.append(task | {"overrides": {name: facts[name] for name in scene_keys} | encoding})
        # The scenes differ, so each task overrides the arguments that tasks of one scene share.
        work = FarmWork(client, {"files": {}, "device": farm.device})
        for index, answer in work.results(tasks, f"{len(tasks)} pictures"):
            write_bytes(plans[index].output, answer["file"])
            yield index, answer


def render_frames(client: Client, farm: Farm, plan: ExportPlan) -> tuple[int, str]:
    """Render the frames that the manifest does not list, one a task; returns the samples and the devices' names."""
    assert plan.numbers is not None
    manifest = FrameManifest(plan)
    wanted = manifest.to_draw(plan.numbers, plan.options.overwrite)
    common = _common(farm, plan.scene, plan.size, plan.samples)
    common |= {"tile": plan.options.tile, "bit_depth": plan.frame_depth, "transfer": plan.options.transfer}
    tasks = [{"kind": "frame", "time": plan.time_of(number)} for number in wanted]
    samples, work = plan.samples or 0, FarmWork(client, common)
    for answer in work.write_files(manifest, wanted, tasks, f"{plan.scene.title}, {len(tasks)} frames"):
        samples = answer["samples"]
    manifest.check_written(plan.numbers)
    return samples, work.device or "none: every frame was done"


def render_light_field_on_farm(
    farm: Farm, job: RenderJob, views: LightFieldViews, options: ExportOptions
) -> tuple[int, str]:
    """Render the views that the manifest does not list, one a task; returns samples per view and the devices' names."""
    array, center = views.array, views.array.views()[0]
    target_samples = options.samples or job.scene.samples
    common = _common(farm, job.scene, job.size, target_samples)
    common |= {"grid": [array.rows, array.columns], "baseline": array.baseline}
    wanted, samples = views.to_draw(views.array.views(), options.overwrite), target_samples or 0
    with open_client(farm) as client:
        work = FarmWork(client, common)
        rounds = [[center], [number for number in wanted if number != center]] if center in wanted else [wanted]
        ev = views.exposure_before(wanted)
        for numbers in rounds:  # the center view comes first: its exposure is used for all views
            tasks = [{"kind": "view", "time": job.time, "ev": ev, "number": number} for number in numbers]
            title = f"{job.scene.title}, {len(tasks)} of {len(wanted)} views"
            for answer in work.write_files(views, numbers, tasks, title):
                ev, samples = answer["ev"], answer["samples"]
    return samples, work.device or "none: every view was done"


class FarmWork:
    """The tasks of an export on a farm; `common` goes to each worker once, and `device` names all that drew."""

    def __init__(self, client: Client, common: Json) -> None:
        self._client, self._common, self._devices = client, common, set[str]()

    @property
    def device(self) -> str:
        """The names of the devices, separated by commas."""
        return ", ".join(sorted(self._devices))

    def results(self, tasks: list[Json], title: str) -> Iterator[tuple[int, Json]]:
        """Yields (index, answer) of each task in the order of completion, and shows a progress bar."""
        with Progress(len(tasks), title) as progress:
            for index, answer in results(self._client, self._common, tasks):
                yield index, answer
                self._devices.add(answer["device"])
                progress.advance()

    def write_files(self, manifest: Manifest, numbers: list[int], tasks: list[Json], title: str) -> Iterator[Json]:
        """Writes and lists the file of each task, whose number in the manifest is in `numbers`; yields its answer."""
        paths = [manifest.file(number) for number in numbers]
        named = [task | {"name": path.name} for task, path in zip(tasks, paths, strict=True)]
        for index, answer in self.results(named, title):
            write_bytes(paths[index], answer["file"])
            manifest.add(numbers[index], answer["seconds"], answer["device"])
            yield answer


def results(client: Client, common: Json, tasks: list[Json]) -> Iterator[tuple[int, Json]]:
    """Yield (index, answer) of every task in the order of completion."""
    return run_tasks(client, run_task, common, tasks)


def _common(farm: Farm, scene: Scene, size: tuple[int, int], samples: int | None) -> Json:
    """The arguments that all tasks share: the scene as JSON, the contents of its files, size, samples, device."""
    files: dict[str, bytes] = {}  # none for processes of this machine, which read the files themselves
    for path in sorted(map(str, scene.files)) if farm.address else ():
        if Path(path).is_dir() or path.lower().endswith(".gltf"):
            single = "a .glb" if path.lower().endswith(".gltf") else "a .zip"
            raise UnavailableError(f"--farm {farm.address}: {path} is more than one file; {single} can be sent")
        files[path] = Path(path).read_bytes()
        if sum(map(len, files.values())) > MAX_INPUT_BYTES:
            limit = f"the {MAX_INPUT_BYTES >> 20} MiB that can be sent"
            raise UnavailableError(f"--farm: the scene's files are larger than {limit}")
    # The recipe's tables, but with the paths of files as they are here, not relative to a folder.
    tables = make_recipe(scene, Path("."))["scene"] | {"settings": to_table(scene.settings), "tone": tone_table(scene)}
    return {
        "scene": json.dumps(tables), "path": scene.path.name, "files": files, "size": size, "samples": samples,
        "device": farm.device,
    }  # fmt: skip
