"""The only place that imports GLFW and Dear ImGui.

GLFW is imported first: the library loaded first serves both, and imgui-bundle's own build is older or lacks Wayland on
some systems.
"""

# ruff: noqa: I001  (the order of these imports matters)
from pathlib import Path

from renderer.errors import UnavailableError
from renderer.system.install import pip_install

try:
    import glfw
    import imgui_bundle
    from imgui_bundle import imgui, imgui_color_text_edit, imgui_ctx, implot
    from imgui_bundle import portable_file_dialogs as file_dialogs
    from imgui_bundle.imguizmo import im_guizmo as imguizmo
except ImportError as error:
    raise UnavailableError(
        f"the window needs glfw and imgui-bundle: {pip_install('glfw', 'imgui-bundle')} ({error})"
    ) from error

FONTS = Path(imgui_bundle.__file__).parent / "assets" / "fonts"  # part of the wheel

__all__ = ["FONTS", "file_dialogs", "glfw", "imgui", "imgui_color_text_edit", "imgui_ctx", "imguizmo", "implot"]
