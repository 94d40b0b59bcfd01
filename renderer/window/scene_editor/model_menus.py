"""The menus of the models in a scene: animation, material variant, and the file's cameras.

SceneEditor draws them above the list of items.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from renderer.raytracing.models import choices as model_choices
from renderer.raytracing.models.choices import Choices, choices_of
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.scene.scene import Scene
from renderer.window.controls.choices import NONE, choose_index
from renderer.window.controls.settings import label
from renderer.window.controls.toolkit import imgui, imgui_ctx
from renderer.window.panels.panel import Panel
from renderer.window.state.app_state import AppState

MAX_MODELS = 16  # models beyond these have no menus
REST = "(at rest)"
OWN_MATERIALS = "(the file's own)"


def draw(app: AppState, panel: Panel) -> None:
    """Draws the section of the controls; nothing if no model has anything to choose from."""
    if panel.picture is None:  # the files are read with the picture, not on the window's thread
        return
    shapes = enumerate(panel.scene.settings.models[:MAX_MODELS])
    offered = [(number, shape, choices_of(shape)) for number, shape in shapes if shape.file]
    offered = [(number, shape, choices) for number, shape, choices in offered if any(choices)]
    if not offered or not imgui.collapsing_header("Models", imgui.TreeNodeFlags_.default_open):
        return
    for number, shape, choices in offered:
        with imgui_ctx.push_id(number):
            if len(offered) > 1:
                imgui.text_disabled(shape.name or Path(shape.file).name)
            with app.errors_as_messages("choosing of a model", ValueError):
                _menus(app, panel, number, shape, choices)
    imgui.spacing()


def _menus(app: AppState, panel: Panel, number: int, shape: ModelShape, choices: Choices) -> None:
    if choices.animations:
        names = ("", *choices.animations)
        at = names.index(model_choices.chosen_animation(shape))
        if (new := _menu("animation", "what the model plays", at, (REST, *names[1:]))) is not None:
            edit(app, panel, partial(model_choices.choose_animation, number=number, name=names[new]))
    if choices.variants:
        names = ("", *choices.variants)
        at = names.index(shape.variant) if shape.variant in names else -1
        if (new := _menu("variant", "the model's materials", at, (OWN_MATERIALS, *names[1:]))) is not None:
            edit(app, panel, partial(model_choices.choose_variant, number=number, name=names[new]))
    if choices.cameras:
        at = model_choices.chosen_camera(panel.scene, number)
        labels = tuple(f"{k + 1}  {camera.name}".rstrip() for k, camera in enumerate(choices.cameras))
        if (new := _menu("camera", "of the file, through which it is seen", at, labels)) is not None:
            time = panel.scene_time
            edit(app, panel, partial(model_choices.choose_camera, number=number, camera=new, time=time))


def _menu(name: str, help_text: str, chosen: int, labels: Sequence[str]) -> int | None:
    """A labeled list of choices; returns the index of a newly clicked choice, otherwise None."""
    label(name)
    shown = labels[chosen] if 0 <= chosen < len(labels) else NONE
    new = choose_index(f"##{name}", shown, labels, chosen, [help_text])
    return None if new == chosen else new


def edit(app: AppState, panel: Panel, choose: Callable[[Scene], Scene]) -> None:
    """Shows the scene that a choice makes of the panel's, as one step of undo."""
    with app.undo_step():
        panel.show(choose(panel.scene))
