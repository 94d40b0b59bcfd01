"""What the window writes: screenshots of panels and of itself, and texts. documents.py writes scene files."""

from pathlib import Path

from renderer.formats.images import atomic_write, write_png
from renderer.pictures import recipe_of
from renderer.window.state.app_state import AppState


def screenshot(app: AppState) -> None:
    """Writes the active panel's picture with its recipe to the current folder, once it shows a whole sample."""
    if app.panel.display_texture is None:
        app.show_message("nothing is drawn yet")
        return
    app.pending_screenshot = app.panel
    write_pending_screenshot(app)


def write_pending_screenshot(app: AppState) -> None:
    """Writes the requested screenshot if its panel shows a whole sample; drops it if the panel closed or failed."""
    panel = app.pending_screenshot
    if panel is None or not panel.shows_full_sample and panel in app.panels and not panel.error:
        return
    app.pending_screenshot = None
    if panel.display_texture is None or not panel.shows_full_sample:
        return
    pixels = panel.display_texture.read()
    pixels = pixels[..., :3] if (pixels[..., 3] == 255).all() else pixels
    path = unused_path(Path.cwd(), panel.original.path.stem)
    facts = {"size": list(panel.display_texture.size), "samples": panel.samples, "time": panel.drawn_time}
    facts |= {"denoise": True} if panel.denoiser.displayed else {}
    with app.errors_as_messages("writing a screenshot"):
        write_png(path, pixels, recipe_of(panel.scene, path.parent, **facts))
        app.show_message(f"wrote {path.name}")


def write_text(app: AppState, suffix: str, text: str) -> None:
    """Writes a text file, named after the active panel's scene file, to the current folder."""
    path = unused_path(Path.cwd(), app.panel.original.path.stem, suffix)
    with app.errors_as_messages("writing a file"):
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        app.show_message(f"wrote {path.name}")


def screenshot_window(app: AppState) -> None:
    """Writes the next frame of the window to the current folder."""
    app.pending_window_screenshot = unused_path(Path.cwd(), "window")


def unused_path(folder: Path, stem: str, suffix: str = ".png") -> Path:
    """The first of stem-001.png, stem-002.png, ... that does not exist."""
    return next(p for n in range(1, 10**6) if not (p := folder / f"{stem}-{n:03}{suffix}").exists())
