"""Draws the pictures of a lesson's step for its HTML page: the panels that the window would show, each in its view.

Called by command.py; page.py puts the pictures into the page.
"""

import numpy as np

from renderer.errors import InputError
from renderer.export.render import RenderJob, render, tonemapped_blocks
from renderer.images.algorithm_view import CHANNELS, Mark
from renderer.images.inspection import channel_picture, layer_picture
from renderer.images.tone_mapping import SRGB_8
from renderer.lessons.lesson import Lesson
from renderer.lessons.measurements import Bench
from renderer.records import dataclass
from renderer.scene.scene import COLOR, Scene
from renderer.system.progress import Progress

DEFAULT_SIZE = (1280, 720)


@dataclass(frozen=True)
class DrawnPicture:
    """One picture of a step: `pixels` (height, width, 3) uint8 sRGB, the panel's name and a caption."""

    pixels: np.ndarray
    panel: str
    caption: str
    meaning: str = ""  # what the colors mean; the same for all steps of an algorithm: the page prints it once
    marks: tuple[Mark, ...] = ()  # points with texts over the picture


def draw_step(lesson: Lesson, number: int, bench: Bench, width: int, samples: int = 0) -> list[DrawnPicture]:
    """Draws the pictures of step `number`, `width` pixels wide; `samples` 0 takes the counts of panels and scenes.

    InputError for a view that a picture does not offer.
    """
    step, out = lesson.steps[number], []
    for name in lesson.shown(number):
        scene = lesson.scene(number, name)
        count = samples or lesson.samples.get(name, 0)
        context = f"{lesson.path / 'lesson.toml'}: steps[{number}]: view: {name}"
        out += draw_panel(scene, name, bench, width, count, step.view_steps.get(name, ()), context)
    return out


def draw_panel(
    scene: Scene, name: str, bench: Bench, width: int, samples: int, steps: tuple[int, ...], context: str
) -> list[DrawnPicture]:
    """Draws one panel in its view: the picture, one of its layers or channels, or `steps` of its algorithm.

    `context` begins the message of an InputError.
    """
    picture, full, view = bench.picture(scene), scene.size or DEFAULT_SIZE, scene.inspect.view
    size = width, max(1, round(width * full[1] / full[0]))
    settings = scene.settings
    if view in picture.algorithm_names:
        algorithm = picture.algorithm(view, settings, size, scene.inspect.pixel)
        # Different steps in the given order; the last one stands for numbers beyond it.
        numbers = dict.fromkeys(min(number, algorithm.count - 1) for number in (steps or (algorithm.first,)))
        step_pictures = [(number, algorithm.step(number)) for number in numbers]
        if any(step.pixels is not None for _, step in step_pictures):
            out = []
            for number, step in step_pictures:
                if step.pixels is not None:
                    head, _, rest = step.meaning.partition("; ")
                    caption = f"{name}, {algorithm.unit} {number}: {head}"
                    out.append(DrawnPicture(step.pixels[..., :3], name, caption, _sentence(rest), step.marks))
            return out
        view = COLOR  # the steps are only marks, which the window draws over the picture itself
    count = samples or scene.samples or picture.sample_count(settings, size)
    job = RenderJob(scene, size, count, scene.time, layers=view in picture.layer_names)
    with Progress(count * len(job.tiles), f"{name}, {size[0]} x {size[1]}") as progress:
        rendered = render(picture, job, progress)
    if view != COLOR:
        if view not in (*rendered.layers, *CHANNELS):
            raise InputError(f"{context}: the view {view!r} is not kept by these settings")
        is_layer = view in rendered.layers
        shown = layer_picture(view, rendered.layers[view]) if is_layer else channel_picture(view, rendered.linear[:])
        assert shown.pixels is not None, "layers and channels have colors"
        pixels = np.ascontiguousarray(shown.pixels[..., :3])
        return [DrawnPicture(pixels, name, f"{name}, {view}", _sentence(shown.meaning))]
    pixels = np.concatenate(list(tonemapped_blocks(rendered, scene, SRGB_8)))[..., :3]
    quality = "1 sample" if rendered.samples == 1 else f"{rendered.samples} samples"
    return [DrawnPicture(np.ascontiguousarray(pixels), name, f"{name}, {quality} a pixel, drawn on {rendered.device}.")]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words else ""
