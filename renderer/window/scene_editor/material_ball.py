"""The ball in the controls that shows a material: a ray traced scene of 128 x 128 pixels with the very material.

The main loop draws it as it draws panels, at most one of its samples between two of theirs. It is drawn anew only when
the material or its textures differ, after the user has let go, so a drag costs the panels nothing.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from renderer.paths import ASSETS
from renderer.pictures import load
from renderer.raytracing.settings import Material, Settings
from renderer.scene.scene import Scene
from renderer.window.controls import imgui, theme
from renderer.window.document.items import reference_fields
from renderer.window.panels.panel import Panel
from renderer.window.state.app_state import AppState
from renderer.window.state.open_panels import BALL_SIZE


@cache
def _stage() -> Scene:
    """The scene of the ball, whose last material is replaced."""
    return load(ASSETS / "material_ball.toml")


def ball_scene(settings: Settings, index: int) -> Scene:
    """The scene that shows material number `index` of the settings on a ball.

    Raises ValueError for a material that a ball cannot show, such as a shadow catcher's.
    """
    stage, material = _stage(), settings.materials[index]
    named = {getattr(material, key) for key, group in reference_fields(Material).items() if group == "textures"}
    textures = tuple(texture for texture in settings.textures if texture.name in named)
    materials = (*stage.settings.materials[:-1], replace(material, name=stage.settings.materials[-1].name))
    return replace(stage, settings=replace(stage.settings, materials=materials, textures=textures))


def draw(app: AppState, panel: Panel, index: int, scale: float) -> None:
    """Draws the ball of material number `index`, as it was drawn last; shows the material once the panel rests."""
    # While it plays, a material with key frames would differ in each frame
    settings: Any = panel.scene.settings if panel.is_playing else panel.settings()
    ball, wanted, side = app.panels.ball, None, (BALL_SIZE * scale,) * 2
    with app.errors_as_messages("drawing the ball of the material", ValueError):
        wanted = ball_scene(settings, index)
        if panel.draw_loop.shows_full_sample and not panel.is_interacting(app.now()):
            ball = app.show_ball(wanted)
    if ball is None or ball.display.texture is None or ball.error:
        imgui.dummy(side)
    else:
        imgui.image(imgui.ImTextureRef(ball.display.texture.texture.glo), side)
    is_wanted = ball is not None and wanted is not None and ball.scene.settings == wanted.settings
    is_drawn = is_wanted and ball is not None and ball.draw_loop.shows_full_sample
    if wanted is not None and not is_drawn:
        (left, top), size = imgui.get_item_rect_min(), theme.FONT_SIZE * scale
        theme.caption(imgui.get_window_draw_list(), imgui.get_font(), size, left + 8, top + 8, "drawn next")
    theme.hint((ball and ball.error) or "the selected material, ray traced on a ball of radius 1")
