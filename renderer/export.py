"""Pictures to files, without a window: draw n samples, read, write. Stills (.png, .exr) and numbered frames."""

import json
import re
import sys
import tempfile
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from renderer import MachineCannot, UserError
from renderer.gpu import open_gpu
from renderer.image import write_exr, write_png
from renderer.pictures import load, open_picture, recipe_of
from renderer.progress import Progress
from renderer.scene import Scene, assign
from renderer.tone import pixels

DEFAULT_SIZE = (1280, 720)
FILMS = (".mp4", ".webm", ".gif", ".mkv")
PATTERN = re.compile(r"#+")


def export(args) -> int:
    """`main.py export`: one picture, or one a frame where the output is numbered; returns the exit code."""
    output = Path(args.output)
    frames = frame_numbers(args.frames, output)
    check_output(output)
    scene = overridden(load(Path(args.input)), args.set, args.seed)
    size = args.size or scene.size or DEFAULT_SIZE
    gpu = open_gpu(args.device)
    start = time.perf_counter()
    picture = open_picture(scene, gpu)
    samples = args.samples or picture.draws(scene.settings, size)
    written = []
    with Progress(len(frames) * samples, f"{scene.title}, {size[0]} x {size[1]}") as progress:
        for number in frames:
            moment = args.time or 0.0
            path = output
            if number is not None:
                path, moment = numbered(output, number), moment + (number - frames[0]) / args.rate
            frame = drawn(picture, scene, size, samples, moment, progress)
            write(path, frame, scene, dict(size=list(size), samples=samples, time=moment, device=device_of(frame)))
            written.append(str(path))
    seconds = time.perf_counter() - start
    report(args, picture, frame, written, size, samples, seconds)
    return 0


def drawn(picture, scene: Scene, size, samples: int, moment: float, progress):
    """The frame after `samples` draws; waits for the device now and then, so that the progress is true and Ctrl-C is
    heard.
    """
    waited = time.perf_counter()
    for _ in range(samples):
        frame = picture.draw(scene.settings, size, moment)
        progress.advance()
        if time.perf_counter() - waited > 0.1:
            finish(frame)
            waited = time.perf_counter()
    finish(frame)
    return frame


def finish(frame) -> None:
    """Waits for the device or the GL that holds the frame."""
    (frame.device if hasattr(frame, "device") else frame.gl).finish()


def device_of(frame) -> str:
    """The name of the device that drew the frame."""
    return frame.device.name if hasattr(frame, "device") else frame.gl.renderer


def write(path: Path, frame, scene: Scene, facts: dict) -> None:
    """Writes the frame by the path's suffix: .png displayed and with its recipe, .exr linear."""
    recipe = recipe_of(scene, path.resolve().parent, **facts)
    if path.suffix.lower() == ".exr":
        linear = frame.read()
        write_exr(path, {"RGBA": linear}, recipe)
    else:
        write_png(path, displayed(frame, scene), recipe)


def displayed(frame, scene: Scene) -> np.ndarray:
    """(height, width, 3 or 4) uint8 pixels; alpha only where the frame is not opaque."""
    shown = pixels(frame, scene.tone)
    return shown[..., :3] if (shown[..., 3] == 255).all() else shown


def overridden(scene: Scene, assignments: list[str], seed: int | None) -> Scene:
    """The scene with --set and --seed applied to its settings; keys that begin with `tone.` change its tone."""
    settings, tone = scene.settings, scene.tone
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment}: must be KEY=VALUE")
        if key.startswith("tone."):
            tone = assign(tone, key[5:], text)
        else:
            settings = assign(settings, key, text)
    if seed is not None:
        names = [f.name for f in fields(settings)]
        if "seed" not in names:
            raise UserError(f"--seed {seed}: a {scene.picture} picture has no random numbers")
        settings = assign(settings, "seed", str(seed), "--seed")
    return replace(scene, settings=settings, tone=tone)


def frame_numbers(text: str | None, output: Path) -> list[int | None]:
    """The frame numbers that --frames asks for; [None] for a still."""
    marks = PATTERN.findall(output.name)
    if text is None:
        if marks:
            raise UserError(f"-o {output}: numbered frames need --frames A-B")
        return [None]
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first > 10**6:
            raise UserError(f"--frames {text}: must be numbers and ranges such as 1-48 or 1-30,47")
        numbers += range(first, last + 1)
    if output.suffix.lower() not in FILMS and len(marks) != 1:
        raise UserError(f"-o {output}: frames need one run of # in the name, such as out_####.png")
    return list(numbers)


def numbered(output: Path, number: int) -> Path:
    """out_####.png and 7 make out_0007.png."""
    return output.with_name(PATTERN.sub(lambda marks: str(number).zfill(len(marks[0])), output.name))


def check_output(output: Path) -> None:
    """Tells what is wrong with an output before any work is done for it."""
    suffix = output.suffix.lower()
    if suffix in FILMS:
        raise MachineCannot(f"-o {output}: this version writes no films; write frames (out_####.png) and encode them")
    if suffix not in (".png", ".exr"):
        raise UserError(
            f"-o {output}: unknown kind {suffix or '(none)'}; allowed are .png, .exr and frames as out_####.png"
        )
    if not output.parent.is_dir():
        raise UserError(f"-o {output}: there is no folder {output.parent}")
    if output.is_dir():
        raise UserError(f"{output}: is a folder; an output file is wanted")
    try:
        with tempfile.TemporaryFile(dir=output.parent):
            pass
    except OSError as error:
        raise UserError(f"-o {output}: cannot be written: {error.strerror}") from error


def report(args, picture, frame, written: list[str], size, samples: int, seconds: float) -> None:
    """The paths on stdout, or one JSON object; figures for people on stderr."""
    rate = samples * len(written) / seconds
    if args.json:
        facts = {
            "output": written[0] if len(written) == 1 else written,
            "size": list(size),
            "samples": samples,
            "seconds": seconds,
            "frames_per_second": rate,
            "device": device_of(frame),
            "report": picture.report(),
        }
        print(json.dumps(facts, default=_plain))
        return
    for path in written:
        print(path)
    told = f"{samples} samples in {seconds:.2f} s ({rate:.1f} a second) on {device_of(frame)}"
    print(told, file=sys.stderr)


def _plain(value):
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
