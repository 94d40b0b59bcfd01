"""`rayfold demo`: one picture of what the program does, with the rate at which this machine drew each part.

A mesh in the studio's light, a flame, the active-ray stencil by bounce, and the passes of a reduction over a fractal.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from renderer.export.render import RenderJob, render, tonemapped_blocks
from renderer.formats.images import draw_text, write_png
from renderer.gpu import DeviceContext, open_context
from renderer.pictures import load, open_picture
from renderer.plain import Json
from renderer.records import dataclass, replace
from renderer.scene.scene import COLOR
from renderer.system import arguments
from renderer.system.outputs import own_outputs
from renderer.system.progress import Progress

SIZE = (1600, 900)  # width and height of the picture in pixels
CAPTION = 26  # height in pixels of the line below a panel
MESH_SECONDS = 1.5  # enough for a GPU to draw the mesh without grain; two cores draw 3 samples in it
BACKGROUND, INK = (9, 11, 15), (214, 220, 230)


@dataclass(frozen=True)
class DemoPanel:
    """A rectangle (x, y, width, height) that shows a scene, or step number `step` of a view of its algorithm."""

    scene: str
    text: str
    rectangle: tuple[int, int, int, int]
    # 0: as many samples as the scene says. Above 1: as many as MESH_SECONDS has time for, from this number to 16 times.
    samples: int = 0
    view: str = COLOR
    step: int = 0


PANELS = (
    DemoPanel("cloth", "Path tracing: a glTF mesh in studio light", (0, 0, 1064, 598), 16),
    DemoPanel("filigree", "A fractal flame", (1070, 0, 530, 598)),
    DemoPanel("mirrors", "Mirrors", (0, 604, 262, 296)),
    DemoPanel("mirrors", "Rays alive at bounce 2", (268, 604, 262, 296), 1, "stencil", 1),
    DemoPanel("mirrors", "Rays alive at bounce 3", (536, 604, 262, 296), 1, "stencil", 2),
    DemoPanel("julia", "A GLSL pass", (804, 604, 395, 296)),
    DemoPanel("reduction", "Its mean, pass by pass", (1205, 604, 395, 296)),
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of `rayfold demo`."""
    command.add_argument("-o", "--output", default="demo.png", metavar="OUT", help="default: demo.png")
    command.add_argument("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    command.add_argument("--json", action="store_true", help="print exactly one JSON object")
    command.add_argument("--force", action="store_true", help=arguments.FORCE)


def command(args: argparse.Namespace) -> int:
    """Draw the demo picture to `args.output`; returns the exit code."""
    output, start, gpu = Path(args.output), time.monotonic(), open_context(args.device)
    canvas = np.full((SIZE[1], SIZE[0], 3), BACKGROUND, "u1")
    rows: list[Json] = []
    with own_outputs(output, force=args.force):
        for panel in PANELS:
            row = draw_panel(panel, gpu, canvas)
            rows.append({"scene": panel.scene, "view": panel.view} | row)
            if not args.json:
                print(f"{panel.text}: {row['draws_per_second']:.3g} draws a second on {row['device']}", file=sys.stderr)
        write_png(output, canvas)
    answer = {"output": str(output), "size": list(SIZE), "seconds": time.monotonic() - start, "panels": rows}
    print(json.dumps(answer) if args.json else output)
    return 0


def draw_panel(panel: DemoPanel, gpu: DeviceContext, canvas: np.ndarray) -> Json:
    """Draw a panel and its caption into the canvas (height, width, 3) uint8; returns device and rate for --json."""
    x, y, width, height = panel.rectangle
    size, scene = (width, height - CAPTION), load(Path(panel.scene))
    if panel.samples > 1:  # few samples of the glass's caustic are specks
        scene = replace(scene, settings=replace(scene.settings, clamp_indirect=1.0))
    picture = open_picture(scene, gpu)
    job = RenderJob(scene, size, panel.samples or picture.sample_count(scene.settings, size), is_command=False)
    picture.draw(job.settings(), size, 0.0).device.finish()  # compiles, so that the rate does not count it
    start = time.perf_counter()
    if panel.samples > 1:
        picture.draw(job.settings(), size, 0.0).device.finish()
        more = int(MESH_SECONDS / (time.perf_counter() - start))  # samples that one sample's time leaves room for
        job, start = replace(job, samples=min(max(job.samples, more), 16 * job.samples)), time.perf_counter()
    with Progress(job.samples, panel.text) as progress:
        rendered = render(picture, job, progress)
    rate = job.samples / (time.perf_counter() - start)
    if panel.view == COLOR:
        pixels = np.concatenate(list(tonemapped_blocks(rendered, scene)))[..., :3]
    else:
        shown = picture.algorithm(panel.view, scene.settings, size).step(panel.step).pixels
        assert shown is not None
        # The view has a pixel for each of its elements: enlarged to the panel by the nearest one.
        rows, columns = (np.arange(n) * m // n for n, m in zip((size[1], size[0]), shown.shape[:2], strict=True))
        pixels = shown[rows][:, columns, :3]
    canvas[y : y + size[1], x : x + width] = pixels
    caption = panel.text if panel.view != COLOR else f"{panel.text}, {rate:.3g} draws a second"
    draw_text(canvas, (x + 8, y + size[1] + 4), caption, INK, CAPTION - 11)
    return {"device": rendered.device, "samples": job.samples, "draws_per_second": rate}
