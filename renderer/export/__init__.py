"""Pictures to files, without a window: stills, posters in tiles, numbered frames, films. `export` is the command.

The steps: `plan_of` checks everything that can be wrong before any work; `render.render` draws; `render.write` writes;
`frames.Manifest` lets a killed run resume; `video.encode` makes the film of the frames; `farm` spreads the work.
"""

import json
import shutil
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from renderer.errors import UserError
from renderer.export import video
from renderer.export.farm import farm_of, render_field_on_farm, render_on_farm
from renderer.export.frames import FILMS, MARKS, Manifest, frame_numbers, numbered
from renderer.export.light_field import Views, array_of, check_folder, render_field
from renderer.export.plan import Plan, recipe_of_frames
from renderer.export.render import TILE, WHOLE_PIXELS, Job, Rendered, Stop, render, write
from renderer.gpu import open_context
from renderer.images import denoise
from renderer.pictures import load, open_picture, recipe_of
from renderer.progress import Progress
from renderer.scene.scene import Scene
from renderer.scene.schema import set_from_text

DEFAULT_SIZE = (1280, 720)


def export(args) -> int:
    """`rayfold export`; returns the exit code: 3 when --time-limit ended it before all samples were drawn, 130 when
    Ctrl-C did. Both keep what was drawn of a still.
    """
    start = time.monotonic()
    if args.grid:
        return export_field(args)
    if args.baseline is not None:
        raise UserError(f"--baseline {args.baseline:g}: needs --grid ROWSxCOLUMNS, the array of cameras")
    if args.split and not args.farm:
        raise UserError(f"--split {args.split}: needs --farm WHERE")
    plan = plan_of(args)
    if args.dry_run:
        return show_plan(plan, args)
    if args.farm:
        farm = farm_of(args.farm, args.device)
        samples, device, finished = render_on_farm(farm, plan, args)
        facts = {}
    else:
        picture = open_picture(plan.scene, open_context(args.device))
        samples = plan.samples or picture.sample_count(plan.scene.settings, plan.size)
        stop = Stop()
        device, samples, finished = export_here(plan, picture, samples, args, start, stop)
        facts = picture.report()
    if plan.is_film and finished:
        encode_film(plan)
    report(args, plan, samples, device, time.monotonic() - start, facts, finished)
    return 0 if finished else 130 if not args.farm and stop.asked else 3


def export_field(args) -> int:
    """`rayfold export --grid`: a light field of a scene; returns the exit code."""
    began = time.monotonic()
    for name in ("frames", "split", "tile", "time_limit", "dry_run", "denoise"):
        if getattr(args, name):
            raise UserError(f"--{name.replace('_', '-')}: not together with --grid")
    if args.bits != 8:
        raise UserError("--bits 16: the views of a light field have 8")
    scene = overridden(load(Path(args.input)), args.set, args.seed)
    size = args.size or scene.size or DEFAULT_SIZE
    folder, array = Path(args.output), array_of(scene, size, args.grid, args.baseline)
    check_folder(folder, array)
    moment = moment_of(args, scene)
    recipe = recipe_of(scene, folder.resolve(), size=list(size), samples=args.samples, moment=moment)
    views = Views(folder, array, recipe)
    if args.farm:
        job = Job(scene, size, args.samples or 1, moment)
        samples, device = render_field_on_farm(farm_of(args.farm, args.device), job, views, args)
    else:
        picture = open_picture(scene, open_context(args.device))
        samples = args.samples or scene.samples or picture.sample_count(scene.settings, size)
        title = f"{scene.title}, {args.grid[0]} x {args.grid[1]} views"
        with Progress(samples * len(views.wanted(args.overwrite)), title) as progress:
            device = render_field(picture, Job(scene, size, samples, moment), views, args.overwrite, progress)
    seconds, count = time.monotonic() - began, len(array.views())
    facts = {"grid": list(args.grid), "baseline": array.baseline, "disparity_of_target": array.disparity}
    if args.json:
        rate = samples * count / seconds
        facts |= {"output": str(folder), "size": list(size), "samples": samples, "frames": count, "seconds": seconds}
        print(json.dumps(facts | {"frames_per_second": rate, "device": device}))
        return 0
    print(folder)
    told = f"cameras {array.baseline:g} apart, the target in focus at disparity {array.disparity:.3f}"
    print(f"{count} views of {samples} samples in {seconds:.2f} s on {device}; {told}", file=sys.stderr)
    return 0


def plan_of(args) -> Plan:
    """Everything the command says, checked; UserError or InputError tells what is wrong."""
    output = Path(args.output)
    numbers = numbers_of(args, output)
    check_output(output, numbers)
    if args.bits == 16 and output.suffix.lower() != ".png":
        raise UserError(f"--bits 16: only .png files have it, not {output.suffix}")
    scene = overridden(load(Path(args.input)), args.set, args.seed)
    if numbers is None and output.suffix.lower() in FILMS:
        seconds = scene.animation.duration if scene.animation else 0
        if not seconds:
            raise UserError(f"-o {output}: a film needs --frames A-B, or a scene with an [animation] of some seconds")
        numbers = list(range(1, max(1, round(seconds * args.rate)) + 1))
    size = args.size or scene.size or DEFAULT_SIZE
    if args.denoise:
        check_denoise(args, scene, size)
    moment = moment_of(args, scene)
    samples = args.samples or scene.samples
    return Plan(scene, output, size, numbers, moment, args.rate, args.bits, args.tile or 0, args.denoise, samples)


def check_denoise(args, scene: Scene, size: tuple[int, int]) -> None:
    """Tells what keeps a picture from being denoised before any work is done for it."""
    if args.farm:
        raise UserError("--denoise: not together with --farm, whose workers draw only parts")
    if scene.picture != "raytrace":
        raise UserError(f"--denoise: a {scene.picture} picture has no albedo and normal; allowed is raytrace")
    if size[0] * size[1] > WHOLE_PIXELS:
        raise UserError(f"--denoise: {size[0]} x {size[1]} pixels are more than the {WHOLE_PIXELS} that fit in memory")
    denoise.check_installed()


def moment_of(args, scene: Scene) -> float:
    """The moment that --time asks for; without it that of the picture that is the input, or 0."""
    return scene.time if args.time is None else args.time


def numbers_of(args, output: Path) -> list[int] | None:
    """The frames that --frames and the output's name ask for; None for a still, or a film as long as its scene."""
    marks = MARKS.findall(output.name)
    is_film = output.suffix.lower() in FILMS
    if args.frames is None:
        if marks:
            raise UserError(f"-o {output}: numbered frames need --frames A-B")
        return None
    numbers = frame_numbers(args.frames)
    if not is_film and len(marks) != 1:
        raise UserError(f"-o {output}: frames need one run of # in the name, such as out_####.png")
    return numbers


def check_output(output: Path, numbers) -> None:
    """Tells what is wrong with an output before any work is done for it."""
    suffix = output.suffix.lower()
    if suffix not in (".png", ".exr", *FILMS):
        allowed = ".png, .exr, .mp4, .webm, .mkv, .gif, and frames as out_####.png"
        raise UserError(f"-o {output}: unknown kind {suffix or '(none)'}; allowed are {allowed}")
    if suffix in FILMS:
        video.check_installed()
    if not output.parent.is_dir():
        raise UserError(f"-o {output}: there is no folder {output.parent}")
    if output.is_dir():
        raise UserError(f"-o {output}: is a folder; an output file is wanted")
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise UserError(f"-o {output}: cannot be written: {error.strerror}") from error


def overridden(scene: Scene, assignments: list[str], seed: int | None) -> Scene:
    """The scene with --set and --seed applied to its settings; keys that begin with `tone.` change its tone."""
    settings, tone = scene.settings, scene.tone
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: must be KEY=VALUE")
        if key.startswith("tone."):
            tone = set_from_text(tone, key[5:], text)
        else:
            settings = set_from_text(settings, key, text)
    if seed is not None:
        names = [f.name for f in fields(settings)]
        if "seed" not in names:
            raise UserError(f"--seed {seed}: a {scene.picture} picture has no random numbers")
        settings = set_from_text(settings, "seed", str(seed), "--seed")
    return replace(scene, settings=settings, tone=tone)


def export_here(plan: Plan, picture, samples: int, args, start: float, stop: Stop) -> tuple[str, int, bool]:
    """Renders the plan in this process; returns the device's name, the samples of each picture, and whether all of
    them were drawn.
    """
    deadline = start + args.time_limit if args.time_limit else float("inf")
    if plan.numbers is None:
        job = Job(plan.scene, plan.size, samples, plan.moment, plan.tile, deadline, plan.layers, stop, plan.denoise)
        with Progress(samples * len(job.tiles()), title_of(plan)) as progress, stop:
            rendered = render(picture, job, progress)
        write(plan.output, rendered, job, plan.bits)
        return rendered.device, rendered.samples, rendered.samples == samples
    device, finished = export_frames(plan, picture, samples, args.overwrite, deadline)
    return device, samples, finished


def export_frames(plan: Plan, picture, samples: int, overwrite: bool, deadline: float) -> tuple[str, bool]:
    """Renders the frames that are not done yet; each file is complete before the manifest says so."""
    plan.pattern.parent.mkdir(exist_ok=True)
    manifest = Manifest(plan.pattern, recipe_of_frames(plan))
    wanted = [number for number in plan.numbers if overwrite or not manifest.done(number)]
    device = "none: every frame was done"
    with Progress(len(wanted) * samples, title_of(plan)) as progress:
        for number in wanted:
            began = time.monotonic()
            moment = plan.moment_of(number)
            job = Job(plan.scene, plan.size, samples, moment, plan.tile, deadline, plan.layers, denoise=plan.denoise)
            rendered: Rendered = render(picture, job, progress)
            if rendered.samples < samples:
                return rendered.device, False
            write(numbered(plan.pattern, number), rendered, job, plan.bits)
            manifest.add(number, time.monotonic() - began, rendered.device)
            device = rendered.device
    return device, True


def encode_film(plan: Plan) -> None:
    """The film of the plan's frames; the frames are removed once it is complete."""
    frames = [numbered(plan.pattern, number) for number in plan.numbers]
    recipe = recipe_of(plan.scene, plan.output.resolve().parent, size=list(plan.size), rate=plan.rate)
    video.encode(frames, plan.output, plan.rate, recipe)
    shutil.rmtree(plan.pattern.parent)


def title_of(plan: Plan) -> str:
    return f"{plan.scene.title}, {plan.size[0]} x {plan.size[1]}"


def show_plan(plan: Plan, args) -> int:
    """What --dry-run prints: the plan, and an estimate of the memory it takes."""
    width, height = plan.size
    tiles = len(Job(plan.scene, plan.size, 1, tile=plan.tile).tiles())
    whole = width * height <= WHOLE_PIXELS
    step = plan.tile or (0 if whole else TILE)
    device_bytes = 16 * (min(step, width) * min(step, height) if step else width * height)
    facts = {
        "output": str(plan.output),
        "size": list(plan.size),
        "frames": 1 if plan.numbers is None else len(plan.numbers),
        "tiles": tiles,
        "samples": args.samples or "what the input says",
        "host_bytes": 16 * width * height if whole else 16 * min(4 << 20, width * height),
        "disk_bytes": 0 if whole else 16 * width * height,
        "device_bytes_of_a_frame": device_bytes,
    }
    if args.json:
        print(json.dumps(facts))
    else:
        for key, value in facts.items():
            print(f"{key.replace('_', ' '):24s} {value}")
    return 0


def report(args, plan: Plan, samples: int, device: str, seconds: float, facts: dict, finished: bool) -> None:
    """The paths on stdout, or one JSON object; figures for people on stderr. What is not `finished` has some frames."""
    if plan.numbers is None:
        written, count = [str(plan.output)], 1
    elif plan.is_film and finished:
        written, count = [str(plan.output)], len(plan.numbers)
    else:
        manifest = Manifest(plan.pattern, recipe_of_frames(plan))
        done = [number for number in plan.numbers if finished or manifest.done(number)]
        written, count = [str(numbered(plan.pattern, number)) for number in done], len(done)
    if not finished and plan.numbers is not None:
        told = f"{count} of {len(plan.numbers)} frames are done; the same command goes on with the others"
        print(f"rayfold: {told}", file=sys.stderr)
    rate = samples * count / seconds
    if args.json:
        answer = {
            "output": written[0] if len(written) == 1 else written,
            "size": list(plan.size),
            "samples": samples,
            "frames": count,
            "seconds": seconds,
            "frames_per_second": rate,
            "device": device,
            "report": facts,
        }
        print(json.dumps(answer, default=_plain))
        return
    for path in written:
        print(path)
    print(f"{samples * count} samples in {seconds:.2f} s ({rate:.1f} a second) on {device}", file=sys.stderr)


def _plain(value):
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
