"""Frames, tiles, samples and views over processes and machines on `distributed`: one machine's bits, whoever drew what.

A task says all that its part of the picture depends on, the contents of mesh and image files included, so a worker
needs nothing but this program (worker.py is what it runs). A worker that dies has its tasks drawn by another; a
straggler is drawn by another too, and the first answer counts. The only user of distributed.
"""

import hashlib
import json
import re
import signal
import statistics
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from renderer.errors import UnavailableError, UserError
from renderer.export.farm_worker import work
from renderer.export.frames import Manifest, numbered
from renderer.export.light_field import Array, Views
from renderer.export.plan import recipe_of_frames
from renderer.export.render import WHOLE_PIXELS, Job, Sheet, write
from renderer.formats.images import atomic_write
from renderer.gpu import DeviceContext, open_context
from renderer.pictures import open_picture, recipe_of
from renderer.progress import Progress
from renderer.scene.scene import Scene
from renderer.scene.schema import referenced_files
from renderer.scene.schema import to_table as table_of

FARM_TILE = 512
DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)"  # what a worker of this machine begins with
SILENT = 60  # above every level of a log: what matters is raised
LARGEST_INPUT = 256 << 20  # bytes of files that travel with the tasks
STRAGGLER = 3.0  # times the median
PATIENCE = 1.0  # seconds that are no straggling yet
FETCHING = 20.0  # seconds that an answer may take from its worker to here
TRIES = 3
PARTS_A_WORKER = 2
MOST_PARTS = 256  # that the samples of one picture are dealt into


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
    """A connected client; UnavailableError where the package or the scheduler is not there."""
    try:
        import distributed  # optional: the extra [farm]
    except ImportError as error:
        raise UnavailableError(f"--farm needs distributed: pip install distributed ({error})") from error
    # Ctrl-C may come while the library is about to wait for an answer, which then nobody wants.
    warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
    if farm.address:
        if (
            farm.address.startswith("tls://")
            and not distributed.Security().get_connection_args("client")["ssl_context"]
        ):
            raise UnavailableError(
                f"--farm {farm.address}: no certificates; dask takes them from DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "..._TLS__CLIENT__CERT and ..._TLS__CLIENT__KEY, or from its configuration file"
            )
        try:
            client = distributed.Client(farm.address, timeout="5s", set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UnavailableError(f"--farm {farm.address}: no scheduler answers there: {error}") from error
        with client:
            yield client
        return
    options = dict(n_workers=farm.workers, threads_per_worker=1, processes=True, dashboard_address=None)
    with _deaf_to_interrupts():  # which workers take over until they load DEAF themselves
        cluster = distributed.LocalCluster(**options, silence_logs=SILENT, preload=[DEAF])
    with cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            yield client


@contextmanager
def _deaf_to_interrupts():
    """Processes that are started meanwhile do not hear Ctrl-C, which is for this one to answer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def render_on_farm(farm: Farm, plan, args) -> tuple[int, str, bool]:
    """Renders the plan; returns samples, the devices' names, and True."""
    refuse_time_limit(args)
    with client_of(farm) as client:
        if plan.numbers is not None:
            return render_frames(client, farm, plan, args)
        return (_by_samples if args.split == "samples" else _by_tiles)(client, farm, plan)


def refuse_time_limit(args) -> None:
    if args.time_limit:
        raise UserError("--time-limit: not together with --farm, whose workers do not share a clock")


def _by_tiles(client, farm: Farm, plan) -> tuple[int, str, bool]:
    """One picture, tile by tile."""
    tiles = Job(plan.scene, plan.size, 1, plan.moment, plan.tile or FARM_TILE).tiles()
    base = _base(farm, plan.scene, plan.size, plan.samples) | {"layers": plan.layers}
    tasks = [{"kind": "tile", "moment": plan.moment, "tile": tile} for tile in tiles]
    sheet, devices = Sheet(plan.size), set()
    with Progress(len(tasks), f"{plan.scene.title}, {len(tasks)} tiles") as progress:
        for index, answer in answers(client, base, tasks):
            sheet.put(tiles[index], answer["linear"], answer["layers"])
            devices.add(answer["device"])
            progress.advance()
    like, device = _like(answer["texture"], open_context(farm.device)), ", ".join(sorted(devices))
    rendered = sheet.rendered(answer["samples"], device, like)
    write(plan.output, rendered, Job(plan.scene, plan.size, answer["samples"], plan.moment), plan.bits)
    return answer["samples"], device, True


def _like(texture: bool, gpu: DeviceContext):
    """A frame of the kind that the workers drew, for tone mapping here."""
    return gpu.gl.texture((1, 1)) if texture else gpu.device.buffer((1, 1, 4))


def _by_samples(client, farm: Farm, plan) -> tuple[int, str, bool]:
    """One picture whose samples are dealt to the workers, to the same bits whatever the number of parts."""
    picture = open_picture(plan.scene, open_context(farm.device))
    job = Job(plan.scene, plan.size, 1, plan.moment, layers=plan.layers)
    settings, size = job.settings(), plan.size
    samples = plan.samples or picture.sample_count(settings, size)
    parts = _dealt(picture, plan, settings, samples, min(PARTS_A_WORKER * max(1, len(_workers(client))), MOST_PARTS))
    base = _base(farm, plan.scene, size, samples) | {"layers": plan.layers}
    devices, more = set(), ()
    with Progress(len(parts), f"{plan.scene.title}, {len(parts)} parts") as progress:
        while True:
            tasks = [{"kind": "part", "moment": plan.moment, "part": part, "more": more} for part in parts]
            picture.start_merge(settings, size, plan.moment)
            for _, answer in answers(client, base, tasks):
                picture.merge(answer["part"])
                devices.add(answer["device"])
                progress.advance()
            missing = picture.missing_steps(more)
            if not missing:
                break
            more = (*more, missing)
    frame, device, sheet = picture.merged_frame(more), ", ".join(sorted(devices)), Sheet(size)
    sheet.put((0, 0, *size), frame.read(), picture.layers(settings, size) if plan.layers else {})
    rendered = sheet.rendered(samples, device, frame)
    write(plan.output, rendered, Job(plan.scene, size, samples, plan.moment), plan.bits)
    return samples, device, True


def _dealt(picture, plan, settings, samples: int, count: int) -> list[tuple]:
    """The parts that the samples of the plan's picture are dealt into; UserError where they cannot be."""
    width, height = plan.size
    if plan.tile:
        raise UserError(f"--tile {plan.tile}: not together with --split samples")
    if width * height > WHOLE_PIXELS:
        raise UserError(f"--split samples: {width} x {height} pixels are more than the {WHOLE_PIXELS} of one part")
    parts = picture.chunks(settings, plan.size, samples, count)
    if not parts:
        raise UserError(f"--split samples: this {plan.scene.picture} picture is split into tiles")
    return parts


def render_frames(client, farm: Farm, plan, args) -> tuple[int, str, bool]:
    """The frames that are not done yet, one a task."""
    plan.pattern.parent.mkdir(exist_ok=True)
    manifest = Manifest(plan.pattern, recipe_of_frames(plan))
    wanted = [number for number in plan.numbers if args.overwrite or not manifest.done(number)]
    base = _base(farm, plan.scene, plan.size, plan.samples) | {"tile": plan.tile, "bits": plan.bits}
    names = [numbered(plan.pattern, number).name for number in wanted]
    moments = [plan.moment_of(number) for number in wanted]
    tasks = [{"kind": "frame", "moment": m, "name": name} for m, name in zip(moments, names, strict=True)]
    samples, devices = plan.samples or 0, set()
    with Progress(len(tasks), f"{plan.scene.title}, {len(tasks)} frames") as progress:
        for index, answer in answers(client, base, tasks):
            _keep(numbered(plan.pattern, wanted[index]), answer["file"])
            manifest.add(wanted[index], answer["seconds"], answer["device"])
            samples = answer["samples"]
            devices.add(answer["device"])
            progress.advance()
    return samples, ", ".join(sorted(devices)) or "none: every frame was done", True


def render_field_on_farm(farm: Farm, job: Job, views: Views, args) -> tuple[int, str]:
    """Every view of a light field that is not done, one a task; returns the samples of one and the devices' names."""
    refuse_time_limit(args)
    array, middle = views.array, views.array.views()[0]
    asked = args.samples or job.scene.samples
    base = _base(farm, job.scene, job.size, asked) | _table_of_array(array)
    cells, devices, samples = views.wanted(args.overwrite), set(), asked or 0
    with client_of(farm) as client, Progress(len(cells), f"{job.scene.title}, {len(cells)} views") as progress:
        rounds = [[middle], [cell for cell in cells if cell != middle]] if middle in cells else [cells]
        ev = None if middle in cells else views.exposure() if cells else 0.0
        for cells_of_round in rounds:  # the middle view's exposure serves all
            tasks = [
                {"kind": "view", "moment": job.moment, "cell": cell, "ev": ev, "name": array.name(*cell)}
                for cell in cells_of_round
            ]
            for index, answer in answers(client, base, tasks):
                _keep(views.path(cells_of_round[index]), answer["file"])
                views.add(cells_of_round[index], answer["seconds"], answer["device"])
                ev, samples = answer["ev"], answer["samples"]
                devices.add(answer["device"])
                progress.advance()
    return samples, ", ".join(sorted(devices)) or "none: every view was done"


def _table_of_array(array: Array) -> dict:
    return {"grid": [array.rows, array.columns], "baseline": array.baseline}


def _keep(path: Path, data: bytes) -> None:
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)


def answers(client, base: dict, tasks: list[dict]):
    """(index, answer) of every task as they come; a straggler is submitted again and the first answer counts."""
    import distributed

    run = hashlib.sha256(repr((time.time_ns(), id(tasks))).encode()).hexdigest()[:16]
    attempts = [0] * len(tasks)
    files = base["files"]
    if files:  # they travel to each worker once, and are there again when a worker that held them died
        files = client.submit(dict, files, key=f"rayfold-{run}-files", pure=False, retries=TRIES)
        client.replicate([files])
    base = {name: value for name, value in base.items() if name != "files"}

    def submit(index: int, workers=None):
        key = f"rayfold-{run}-{index}-{attempts[index]}"
        attempts[index] += 1
        options = dict(workers=workers, allow_other_workers=True) if workers else {}
        return client.submit(work, base, files, tasks[index], key=key, pure=False, retries=TRIES, **options)

    waiting = {submit(index): index for index in range(len(tasks))}
    missing, took = set(range(len(tasks))), []
    alone_since = None  # when every part that is missing was at work
    try:
        while missing:
            for future in _finished(client, waiting):
                index = waiting.pop(future)
                if index not in missing:
                    continue
                try:
                    answer = future.result(timeout=FETCHING)
                except distributed.scheduler.KilledWorker as error:
                    raise UnavailableError(f"--farm: every worker that drew part {index} died: {error}") from error
                except TimeoutError:  # its worker hangs with the answer in its hands
                    waiting[submit(index, _idle(client)) if attempts[index] < TRIES else future] = index
                    continue
                missing.discard(index)
                took.append(answer["seconds"])
                yield index, answer
            if missing and took and len(missing) <= max(1, len(_workers(client))):
                alone_since = alone_since or time.monotonic()
                late = PATIENCE + STRAGGLER * statistics.median(took)
                if time.monotonic() - alone_since > late and max(attempts[i] for i in missing) < TRIES:
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


def _workers(client) -> list[str]:
    return list(client.scheduler_info(n_workers=-1)["workers"])


def _idle(client) -> list[str]:
    """The workers that have nothing to do; none where all are at work."""
    return [address for address, keys in client.processing().items() if not keys]


def _base(farm: Farm, scene: Scene, size: tuple[int, int], samples: int | None) -> dict:
    """What all parts have in common: the scene as a table, the contents of its files, size, samples, device."""
    files: dict[str, bytes] = {}
    for path in sorted(set(referenced_files(scene.settings))) if farm.address else ():
        if Path(path).is_dir() or path.lower().endswith(".gltf"):
            whole = "a .glb" if path.lower().endswith(".gltf") else "a .zip"
            raise UnavailableError(f"--farm {farm.address}: {path} is more than one file; {whole} can travel")
        files[path] = Path(path).read_bytes()
        if sum(map(len, files.values())) > LARGEST_INPUT:
            raise UnavailableError(
                f"--farm: the scene's files are larger than the {LARGEST_INPUT >> 20} MiB that travel"
            )
    tables = recipe_of(scene, Path("."))["scene"] | {"settings": table_of(scene.settings)}
    return {
        "scene": json.dumps(tables),
        "path": scene.path.name,
        "files": files,
        "size": size,
        "samples": samples,
        "device": farm.device,
    }
