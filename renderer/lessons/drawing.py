"""The pictures of a step: its panels as the window shows them, each in its view, as pixels for a page."""

from dataclasses import dataclass

import numpy as np

from renderer.errors import InputError
from renderer.export.render import RenderJob, render, tonemapped_blocks
from renderer.images.inspection import layer_picture
from renderer.images.tone_mapping import SRGB_8
from renderer.lessons.lesson import Lesson
from renderer.lessons.measurements import Bench
from renderer.progress import Progress
from renderer.scene.scene import Scene

DEFAULT_SIZE = (1280, 720)
COLOR = "color"  # the view of the picture itself


@dataclass(frozen=True)
class DrawnPicture:
    """One picture of a step: (height, width, 3) uint8 sRGB, what it shows and what it was drawn with."""

    pixels: np.ndarray
    panel: str
    caption: str
    meaning: str = ""  # of the colors, the same for all steps of an algorithm


def draw_step(lesson: Lesson, number: int, bench: Bench, width: int, samples: int = 0) -> list[DrawnPicture]:
    """The pictures of step `number`, `width` pixels wide; `samples` 0: as many as panels and scenes say.

    InputError for a view that a picture has not.
    """
    step, out = lesson.steps[number], []
    for name in lesson.shown(number):
        scene = lesson.scene(number, name)
        count = samples or lesson.samples.get(name, 0)
        context = f"{lesson.path / 'lesson.toml'}: steps[{number}]: view: {name}"
        view, steps = step.view.get(name, COLOR), step.view_steps.get(name, ())
        out += draw_panel(scene, name, bench, width, count, view, steps, context)
    return out


def draw_panel(
    scene: Scene, name: str, bench: Bench, width: int, samples: int, view: str, steps: tuple[int, ...], context: str
) -> list[DrawnPicture]:
    """The pictures of one panel: itself, a layer of it, or steps of its algorithm."""
    picture, full = bench.picture(scene), scene.size or DEFAULT_SIZE
    size = width, max(1, round(width * full[1] / full[0]))
    settings = scene.settings
    if view in picture.algorithm_names:
        found = picture.algorithm(view, settings, size)
        last = len(found.pictures) - 1
        numbers = dict.fromkeys(min(each, last) for each in (steps or (0,)))
        return [
            DrawnPicture(found.pictures[each], name, f"{name}, {found.unit} {each}", f"{found.meaning.capitalize()}.")
            for each in numbers
        ]
    if view != COLOR and view not in picture.layer_names:
        allowed = ", ".join((COLOR, *picture.layer_names, *picture.algorithm_names))
        raise InputError(f"{context}: the view is {view!r}; allowed are {allowed}")
    count = samples or scene.samples or picture.sample_count(settings, size)
    job = RenderJob(scene, size, count, scene.time, layers=view != COLOR)
    with Progress(count * len(job.tiles()), f"{name}, {size[0]} x {size[1]}") as progress:
        rendered = render(picture, job, progress)
    if view != COLOR:
        if view not in rendered.layers:
            raise InputError(f"{context}: the view {view!r} is not kept by these settings")
        pixels, meaning = layer_picture(view, rendered.layers[view])
        return [DrawnPicture(pixels, name, f"{name}, {view}: {meaning}.")]
    pixels = np.concatenate(list(tonemapped_blocks(rendered, scene, SRGB_8)))[..., :3]
    drawn = "1 sample" if rendered.samples == 1 else f"{rendered.samples} samples"
    return [DrawnPicture(np.ascontiguousarray(pixels), name, f"{name}, {drawn} a pixel, drawn on {rendered.device}.")]
