"""What the window writes: pictures of panels and of itself, and scene files."""

from pathlib import Path

from renderer.errors import UserError
from renderer.formats.images import atomic_write, write_png
from renderer.pictures import recipe_of
from renderer.window.app.session import toml_of
from renderer.window.app.state import Studio


def screenshot(studio: Studio) -> None:
    """Writes what the active panel shows, with its recipe, into this folder, as soon as a sample is whole."""
    panel = studio.panel
    if panel.shown is None:
        studio.tell("nothing is drawn yet")
        return
    studio.wanted_shot = panel
    take_screenshot(studio)


def take_screenshot(studio: Studio) -> None:
    """Writes the picture that is wanted, once it is whole."""
    panel = studio.wanted_shot
    if panel is None or not panel.whole and panel in studio.panels and not panel.error:
        return
    studio.wanted_shot = None
    if not panel.whole:
        return
    pixels = panel.shown.read()
    pixels = pixels[..., :3] if (pixels[..., 3] == 255).all() else pixels
    path = free_name(Path.cwd(), panel.original.path.stem)
    facts = dict(size=list(panel.shown.size), samples=panel.samples, time=panel.moment)
    facts |= {"denoise": True} if panel.denoised else {}
    try:
        write_png(path, pixels, recipe_of(panel.scene, path.parent, **facts))
        studio.tell(f"wrote {path.name}")
    except UserError as error:
        studio.tell(str(error))


def save_scene(studio: Studio) -> None:
    """Writes the active panel's scene, settings and key frames as they are, as a scene file into this folder."""
    path = free_name(Path.cwd(), studio.panel.original.path.stem, ".toml")
    try:
        with atomic_write(path) as temporary:
            temporary.write_text(toml_of(recipe_of(studio.panel.scene, path.parent)["scene"]), encoding="utf-8")
        studio.tell(f"wrote {path.name}")
    except UserError as error:
        studio.tell(str(error))


def screenshot_window(studio: Studio) -> None:
    studio.screenshot_of_window = free_name(Path.cwd(), "window")


def free_name(folder: Path, stem: str, suffix: str = ".png") -> Path:
    """The first of stem-001.png, stem-002.png, ... that is not there."""
    return next(p for n in range(1, 10**6) if not (p := folder / f"{stem}-{n:03}{suffix}").exists())
