"""What the window writes: pictures of panels and of itself, and scene files."""

from pathlib import Path

from renderer.errors import UserError
from renderer.formats.images import atomic_write, write_png
from renderer.pictures import recipe_of
from renderer.window.state.app_state import AppState
from renderer.window.state.session import to_toml


def screenshot(app: AppState) -> None:
    """Writes what the active panel shows, with its recipe, into this folder, as soon as a sample is whole."""
    panel = app.panel
    if panel.display_texture is None:
        app.show_message("nothing is drawn yet")
        return
    app.pending_screenshot = panel
    write_pending_screenshot(app)


def write_pending_screenshot(app: AppState) -> None:
    """Writes the picture that is wanted, once it is whole."""
    panel = app.pending_screenshot
    if panel is None or not panel.shows_full_sample and panel in app.panels and not panel.error:
        return
    app.pending_screenshot = None
    if not panel.shows_full_sample:
        return
    pixels = panel.display_texture.read()
    pixels = pixels[..., :3] if (pixels[..., 3] == 255).all() else pixels
    path = unused_path(Path.cwd(), panel.original.path.stem)
    facts = dict(size=list(panel.display_texture.size), samples=panel.samples, time=panel.drawn_time)
    facts |= {"denoise": True} if panel.denoised else {}
    try:
        write_png(path, pixels, recipe_of(panel.scene, path.parent, **facts))
        app.show_message(f"wrote {path.name}")
    except UserError as error:
        app.show_message(str(error))


def save_scene(app: AppState) -> None:
    """Writes the active panel's scene, settings and key frames as they are, as a scene file into this folder."""
    path = unused_path(Path.cwd(), app.panel.original.path.stem, ".toml")
    try:
        with atomic_write(path) as temporary:
            temporary.write_text(to_toml(recipe_of(app.panel.scene, path.parent)["scene"]), encoding="utf-8")
        app.show_message(f"wrote {path.name}")
    except UserError as error:
        app.show_message(str(error))


def screenshot_window(app: AppState) -> None:
    app.pending_window_screenshot = unused_path(Path.cwd(), "window")


def unused_path(folder: Path, stem: str, suffix: str = ".png") -> Path:
    """The first of stem-001.png, stem-002.png, ... that is not there."""
    return next(p for n in range(1, 10**6) if not (p := folder / f"{stem}-{n:03}{suffix}").exists())
