"""Carries out an export, in this process or on a farm, and prints the written files. command.py calls run().

Modules that only some exports need (farms, videos, flames) are imported late: they would add 0.2 s to a still of 1 s.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from renderer.errors import IncompleteError, InputError, UserError
from renderer.export import render
from renderer.export.frames import frame_path, is_of, joint_digest, manifest_path
from renderer.export.options import ExportOptions
from renderer.export.plan import DEFAULT_SIZE, Drawn, ExportPlan, FrameManifest, load_scene, make_plan, time_of
from renderer.formats.images import read_digest, read_recipe
from renderer.gpu import open_context
from renderer.host import peak_memory
from renderer.images.denoise import install_line, is_installed
from renderer.images.metrics import noise_level
from renderer.images.tone_mapping import LUMINANCE_WEIGHTS
from renderer.pictures import make_recipe, open_picture, picture_class
from renderer.pictures.picture import AnyPicture
from renderer.plain import Json, format_ignored, printable
from renderer.scene.scene import Scene
from renderer.system.files import resolve
from renderer.system.outputs import claimed
from renderer.system.profile import measured, stage
from renderer.system.progress import Progress, is_cancelled

HINT_SIDE = 1024  # side in pixels of the central square whose noise is estimated
VISIBLE_NOISE = 0.012  # standard deviation as a fraction of white, above which --denoise is offered
NOISE_SAMPLES = 100  # --noise gives up after this many times the file's samples


def run(options: ExportOptions) -> int:
    """Export; returns the exit code.

    3 if --time-limit ended it before all samples were drawn, 130 if Ctrl-C did. Both write the samples of a still.
    UserError if another process writes the output, or frames with the same manifest.
    """
    with nullcontext(list[str]()) if options.dry_run else _claimed(options.output, options.force) as others:
        return _run(options, others)  # `others`: sentences about other processes that write the same output


def _claimed(output: Path, force: bool = False) -> AbstractContextManager[list[str]]:
    """Claims the output, and the manifest of numbered frames."""
    return claimed(output, manifest_path(output) if "#" in output.name else None, force=force)


def _run(options: ExportOptions, others: list[str]) -> int:
    """Exports by the options: all flames of a file, a light field, or the picture or film of a plan."""
    start = time.monotonic()
    if options.flame == "all":
        from renderer.export.flames import export_flames

        return export_flames(options, carry_out)
    if options.light_field:
        return export_light_field(options)
    if options.baseline is not None:
        raise UserError(f"--baseline {options.baseline:g}: needs --light-field ROWSxCOLUMNS, the array of cameras")
    if options.split and not options.farm:
        raise UserError(f"--split {options.split}: needs --farm CLUSTER")
    with stage("reading"):
        plan = make_plan(options)
    if options.dry_run:
        return print_plan(plan)
    interrupt = render.InterruptHandler()
    try:
        drawn = carry_out(plan, start, interrupt)
        digest = _encode(plan) if plan.is_video and drawn.is_complete else None
    except (OSError, UserError) as error:
        # With --force another process may write the same output. Its fault is an error about this output.
        if not others or str(plan.output).partition("#")[0] not in str(error):
            raise
        raise IncompleteError(f"{others[0]}, too, and changed what this run needs: {error}") from error
    print_result(plan, drawn, time.monotonic() - start, digest)
    return 0 if drawn.is_complete else 130 if interrupt.requested else 3


def draw_film(plan: ExportPlan) -> None:
    """Draw and write a plan's frames, and encode a film of them, for the Python API.

    IncompleteError if `plan.report` asked to stop before the last frame.
    """
    assert plan.numbers is not None
    with _claimed(plan.output, plan.options.force):
        if not carry_out(plan, time.monotonic(), render.InterruptHandler()).is_complete:
            left = len(FrameManifest(plan).missing(plan.numbers, overwrite=False))
            kept = f"{len(plan.numbers) - left} of {len(plan.numbers)} frames are kept in {plan.pattern.parent}"
            raise IncompleteError(f"{plan.output}: cancelled; {kept}, and the same call goes on with the next one")
        if plan.is_video:
            _encode(plan)


def carry_out(
    plan: ExportPlan, start: float, interrupt: render.InterruptHandler, all_or_nothing: bool = False
) -> Drawn:
    """Draw and write the plan's still or frames.

    `all_or_nothing`: write no still without all its samples, give no hints for other options, and end as soon as it
    will take longer than --time-limit.
    """
    options = plan.options
    if options.farm:
        from renderer.export.farm import chosen_farm, render_on_farm

        samples, device = render_on_farm(chosen_farm(options), plan)
        return Drawn(samples, device, True, {})
    picture = open_picture(plan.scene, open_context(options.device))
    settings, animation = plan.scene.settings, plan.scene.animation
    moves = settings.is_animated or bool(animation and animation.tracks) or picture.depends_on_time(settings)
    if plan.numbers is not None and len(plan.numbers) > 1 and not moves:
        text = "nothing moves, so all frames are alike; [[animation.keyframes]] move settings"
        print(f"rayfold: {plan.scene.path}: {text}", file=sys.stderr)
    samples = plan.samples or picture.sample_count(settings, plan.size)
    if options.noise is not None and options.samples is None:
        samples *= NOISE_SAMPLES
    deadline = start + options.time_limit if options.time_limit else float("inf")
    if plan.numbers is None:
        device, samples, is_complete = _export_still(plan, picture, samples, deadline, interrupt, all_or_nothing)
    else:
        device, is_complete = _export_frames(plan, picture, samples, deadline)
    report: Json = picture.report() | {"hints": picture.hints()} if options.json else {}
    return Drawn(samples, device, is_complete, report)


def export_light_field(options: ExportOptions) -> int:
    """Export a light field of a scene; returns the exit code."""
    from renderer.export.light_field import LightFieldViews, camera_array, check_folder, render_light_field

    start = time.monotonic()
    assert options.light_field is not None
    options.refuse("--light-field", "frames", "split", "tile", "time_limit", "dry_run", "denoise")
    if options.bit_depth != 8 or options.transfer != "srgb":
        raise UserError(f"--bit-depth {options.bit_depth}: the views of a light field have 8 bits per channel, in sRGB")
    with stage("reading"):
        scene = load_scene(options)
    size = options.size or scene.size or DEFAULT_SIZE
    folder, array = options.output, camera_array(scene, size, options.light_field, options.baseline)
    check_folder(folder, array)
    scene_time = time_of(options, scene)
    facts: Json = dict(size=list(size), samples=options.samples, time=scene_time)
    views = LightFieldViews(folder, array, scene, facts, options.force)
    if options.farm:
        from renderer.export.farm import chosen_farm, render_light_field_on_farm

        job = render.RenderJob(scene, size, options.samples or 1, scene_time)  # the workers find the number of samples
        samples, device = render_light_field_on_farm(chosen_farm(options), job, views, options)
    else:
        picture = open_picture(scene, open_context(options.device))
        samples = options.samples or scene.samples or picture.sample_count(scene.settings, size)
        job = render.RenderJob(scene, size, samples, scene_time)
        title = f"{scene.title}, {array.rows} x {array.columns} views"
        with Progress(samples * len(views.missing(views.array.views(), options.overwrite)), title) as progress:
            device = render_light_field(picture, job, views, options.overwrite, progress)
    views.check_written(array.views())
    seconds, count = time.monotonic() - start, len(array.views())
    print_remarks(scene)
    if options.json:
        digest = joint_digest([views.file(number) for number in range(count)])
        shape: Json = dict(output=str(folder), size=list(size), device=device, digest=digest, baseline=array.baseline)
        shape |= {"light_field": [array.rows, array.columns], "target_disparity": array.disparity} | measured()
        print(json.dumps(_answer(scene, samples, count, seconds, **shape)))
        return 0
    print(folder)
    text = f"cameras {array.baseline:g} apart, the target in focus at disparity {array.disparity:.3f}"
    print(f"{count} views of {samples} samples in {seconds:.2f} s on {device}; {text}", file=sys.stderr)
    return 0


def _export_still(
    plan: ExportPlan,
    picture: AnyPicture,
    samples: int,
    deadline: float,
    interrupt: render.InterruptHandler,
    all_or_nothing: bool,
) -> tuple[str, int, bool]:
    """Render and write a still; returns the device's name, the samples drawn, and True if it is complete."""
    noise = None if plan.options.noise is None else render.NoiseTarget(plan.options.noise)
    job = replace(plan.job(samples, deadline=deadline), stop=interrupt, noise=noise, gives_up=all_or_nothing)
    with Progress(samples * len(job.tiles), plan.title) as progress, interrupt:
        rendered = render.render(picture, job, progress)
    if all_or_nothing and rendered.samples < samples:
        return rendered.device, rendered.samples, False
    is_done = rendered.samples == samples if noise is None else noise.reached
    output = plan.output if is_done or plan.options.force else _unfinished_path(plan, rendered.samples)
    render.write(output, rendered, job, plan.frame_depth)
    plan.written.append(output)
    if all_or_nothing:
        return rendered.device, rendered.samples, True
    if output != plan.output:
        text = f"is kept; the unfinished picture of {rendered.samples} samples is {output}"
        print(f"rayfold: {plan.output}: {text}", file=sys.stderr)
    print_denoise_hint(plan, rendered)
    for hint in () if plan.options.json else picture.hints():
        print(f"rayfold: {plan.output}: {hint}", file=sys.stderr)
    if noise is None:
        return rendered.device, rendered.samples, is_done
    shown = "unknown" if noise.estimate is None else f"{100 * noise.estimate:.2g} %"
    of = "each pixel's luminance" if plan.scene.picture == "raytrace" else "white"
    print(f"rayfold: {plan.output}: estimated noise {shown} of {of}", file=sys.stderr)
    return rendered.device, rendered.samples, is_done


def _unfinished_path(plan: ExportPlan, samples: int) -> Path:
    """The output path, or the first free numbered name; a picture of this plan with no more samples counts as free."""
    output, facts = plan.output, plan.options.picture_facts()
    facts |= make_recipe(plan.scene, resolve(output).parent, size=plan.size, time=plan.time)
    names = (output.with_stem(f"{output.stem}.unfinished-{number}") for number in itertools.count(1))
    for path in itertools.chain([output], names):
        try:
            if not os.path.lexists(path):
                return path
            recipe = read_recipe(path)
            if recipe["samples"] <= samples and is_of(recipe, facts):
                return path
        except (InputError, KeyError, TypeError):  # no picture of this program, or one of parts
            continue
    raise AssertionError("the names never end")


def print_denoise_hint(plan: ExportPlan, rendered: render.RenderResult) -> None:
    """Print on stderr how to denoise, if the noise in the middle of a still is visible."""
    if plan.scene.picture != "raytrace" or plan.options.denoise or plan.options.json:
        return
    (width, height), side = plan.size, HINT_SIDE
    top, left = max(0, (height - side) // 2), max(0, (width - side) // 2)
    middle = np.asarray(rendered.linear[top : top + side])[:, left : left + side, :3]
    radiance = np.maximum(middle @ LUMINANCE_WEIGHTS * rendered.meter.exposure(plan.scene.tone), 0)
    noise = noise_level(np.sqrt(np.minimum(radiance, 1)))  # the square root stands for the display's curve
    if noise > VISIBLE_NOISE and np.isfinite(noise):
        install = "" if is_installed() else f" ({install_line()})"
        text = f"noise of {100 * noise:.2g} % of white: --denoise filters it{install}, more --samples draw less of it"
        print(f"rayfold: {plan.output}: {text}", file=sys.stderr)


def _export_frames(plan: ExportPlan, picture: AnyPicture, samples: int, deadline: float) -> tuple[str, bool]:
    """Render the frames that the manifest does not list; returns the device's name and True if all are done.

    A file is complete before the manifest lists it.
    """
    assert plan.numbers is not None
    manifest = FrameManifest(plan)
    wanted = manifest.to_draw(plan.numbers, plan.options.overwrite)
    device, done = "none: every frame was done", len(plan.numbers) - len(wanted)
    with Progress(len(wanted) * samples * len(plan.job().tiles), plan.title) as progress:
        for number in wanted:
            start, progress.title = time.monotonic(), f"{plan.title}, frame {number}"
            job = plan.job(samples, plan.time_of(number), deadline)
            rendered = render.render(picture, job, progress)
            if rendered.samples < samples:
                return rendered.device, False
            render.write(frame_path(plan.pattern, number), rendered, job, plan.frame_depth)
            manifest.add(number, time.monotonic() - start, rendered.device)
            device, done = rendered.device, done + 1
            is_stopped = plan.report is not None and is_cancelled(plan.report(done, len(plan.numbers)))
            if is_stopped or time.monotonic() > deadline:
                break
    if done == len(plan.numbers):
        manifest.check_written(plan.numbers)
    return device, done == len(plan.numbers)


def _encode(plan: ExportPlan) -> str:
    """Encode the video of the plan's frames, then remove these frames; returns the joint digest of the frames."""
    assert plan.numbers is not None
    from renderer.export.video import encode_video

    frames = [frame_path(plan.pattern, number) for number in plan.numbers]
    facts: Json = dict(size=list(plan.size), fps=plan.options.fps)
    recipe = make_recipe(plan.scene, resolve(plan.output).parent, **facts)
    encode_video(frames, plan.output, plan.options.fps, recipe, plan.options.bit_depth, plan.options.transfer)
    digest = joint_digest(frames)
    if kept := FrameManifest(plan).remove(plan.numbers):
        print(f"rayfold: {plan.pattern.parent}: keeps {kept} frames, which are not in this film", file=sys.stderr)
    return digest


def print_plan(plan: ExportPlan) -> int:
    """Print the plan and an estimate of its memory, for --dry-run."""
    options, (width, height) = plan.options, plan.size
    untiled, tiles = width * height <= render.MAX_UNTILED_PIXELS, plan.job().tiles
    picture, settings = picture_class(plan.scene.picture), plan.job().settings()
    # The part of the picture that is on the device at once: all of it, or (width, height) of the first tile.
    tile = plan.size if tiles[0] is None or picture.fits_whole(settings, plan.size) else tiles[0][2:]
    pixels_in_memory = width * height if untiled else render.ROW_BLOCK_PIXELS  # the others are in a file
    facts = {
        "output": str(plan.output),
        "size": list(plan.size),
        "frames": 1 if plan.numbers is None else len(plan.numbers),
        "tiles": len(tiles),
        "samples": plan.samples or picture.planned_samples(settings, plan.size) or "from the scene file",
        "host_bytes": peak_memory() + picture.scene_bytes(settings) + 16 * pixels_in_memory,
        "disk_bytes": 0 if untiled else 16 * width * height,
        "device_bytes_per_frame": picture.device_bytes(settings, tile),
    }
    said = {"ignored": ignored_statements(plan.scene), "notes": list(plan.scene.notes)}
    if options.json:
        print(json.dumps(facts | said | picture.choices(plan.scene.settings) | measured()))
    else:
        print_remarks(plan.scene)
        for key, value in facts.items():
            print(f"{key.replace('_', ' '):24s} {value}")
    return 0


def print_result(plan: ExportPlan, drawn: Drawn, seconds: float, digest: str | None) -> None:
    """Print the paths, or one JSON object; statistics for people go to stderr. `digest`: a film's, by its frames."""
    samples, device, facts = drawn.samples, drawn.device, dict(drawn.report)
    if plan.numbers is None:
        written, count = [str(plan.written[-1] if plan.written else plan.output)], 1
    elif plan.is_video and drawn.is_complete:
        written, count = [str(plan.output)], len(plan.numbers)
    else:
        manifest = FrameManifest(plan)
        done = [number for number in plan.numbers if drawn.is_complete or manifest.done(number)]
        written, count = [str(frame_path(plan.pattern, number)) for number in done], len(done)
        if not drawn.is_complete:
            text = f"{count} of {len(plan.numbers)} frames are done; the same command resumes with the others"
            print(f"rayfold: {text}", file=sys.stderr)
    digests = [read_digest(Path(path)) for path in written] if digest is None else [digest]
    shown: Json = dict(output=_one(written), size=list(plan.size), device=device, digest=_one(digests))
    answer = _answer(plan.scene, samples, count, seconds, **shown)
    answer["notes"] += facts.pop("hints", [])
    print_remarks(plan.scene)
    if plan.options.json:
        print(json.dumps(answer | {"report": facts} | measured(), default=_to_json))
        return
    print("\n".join(written))
    rate = answer["samples_per_second"]
    print(f"{samples * count} samples in {seconds:.2f} s ({rate:.1f} a second) on {device}", file=sys.stderr)
    if len(digests) == 1:
        print(f"digest {digests[0]}", file=sys.stderr)


def _one(values: Sequence[object]) -> object:
    """The only value of a list of one, else the list."""
    return values[0] if len(values) == 1 else values


def ignored_statements(scene: Scene) -> list[str]:
    """Statements of the input's files that the picture does not honor, a phrase each: the key `ignored` of --json."""
    return format_ignored(picture_class(scene.picture).ignored(scene.settings))


def print_ignored(path: Path, phrases: list[str]) -> None:
    """Print the phrases of ignored_statements() in one line on stderr, if there are any; `path` is the input."""
    if phrases:
        print(printable(f"rayfold: {path}: ignored: {', '.join(phrases)}"), file=sys.stderr)


def print_remarks(scene: Scene) -> None:
    """Print what is ignored of the scene's files, and its notes (choices made for the input), a line each on stderr."""
    print_ignored(scene.path, ignored_statements(scene))
    if scene.notes:
        print(printable(f"rayfold: {scene.path}: {'; '.join(scene.notes)}"), file=sys.stderr)


def _answer(scene: Scene, samples: int, frames: int, seconds: float, **facts: object) -> Json:
    """The keys of --json that every export has."""
    return facts | {
        "samples": samples, "frames": frames, "seconds": seconds, "samples_per_second": samples * frames / seconds,
        "ignored": ignored_statements(scene), "notes": list(scene.notes),
        **picture_class(scene.picture).choices(scene.settings),
    }  # fmt: skip


def _to_json(value: object) -> object:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
