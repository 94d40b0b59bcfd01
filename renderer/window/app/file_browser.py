"""Draws a file dialog: the folder, its entries, the name, and the sentence of a refused choice."""

from pathlib import Path

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_ctx
from renderer.window.state.file_dialog import FileDialog

ROWS = 14  # of the list, at most


def draw(dialog: FileDialog, width: float, height: float, scale: float) -> None:
    """Draws a dialog over a window of width x height units."""
    size = min(width * 0.94, 680 * scale), min(height * 0.9, (ROWS * 24 + 170) * scale)
    imgui.set_next_window_pos((width / 2, height / 2), imgui.Cond_.always, (0.5, 0.5))
    imgui.set_next_window_size(size)
    flags = imgui.WindowFlags_.no_saved_settings | imgui.WindowFlags_.no_collapse | imgui.WindowFlags_.no_resize
    if not imgui.is_popup_open("###file dialog"):
        imgui.open_popup("###file dialog")
    visible, is_open = imgui.begin_popup_modal(f"{dialog.title}###file dialog", True, flags)
    if visible:
        appearing = imgui.is_window_appearing()
        _folder_row(dialog, scale)
        _entries(dialog, scale)
        _name_row(dialog, appearing, scale)
        if not dialog.is_open or imgui.is_key_pressed(imgui.Key.escape):
            dialog.is_open = False
            imgui.close_current_popup()
        imgui.end_popup()
    if not is_open:
        dialog.cancel()


def _folder_row(dialog: FileDialog, scale: float) -> None:
    if imgui.button("Up"):
        dialog.up()
    imgui.same_line(0, 4 * scale)
    if imgui.button("Home"):
        dialog.enter(Path.home())
    imgui.same_line(0, 4 * scale)
    if imgui.button("Here"):
        dialog.enter(Path.cwd())
    imgui.set_item_tooltip("the folder that the program was started in")
    imgui.same_line(0, 8 * scale)
    text, room = str(dialog.folder), imgui.get_content_region_avail().x
    while len(text) > 8 and imgui.calc_text_size(text).x > room:
        text = "..." + text[5:]
    imgui.align_text_to_frame_padding()
    imgui.text_disabled(text)


def _entries(dialog: FileDialog, scale: float) -> None:
    below = 3 * imgui.get_frame_height_with_spacing() + 4 * scale
    with imgui_ctx.begin_child("entries", (0, max(imgui.get_content_region_avail().y - below, 40 * scale))):
        entries = dialog.entries()
        clipper = imgui.ListClipper()
        clipper.begin(len(entries))
        while clipper.step():
            for entry in entries[clipper.display_start : clipper.display_end]:
                label = f"{entry.name}/" if entry.is_folder else entry.name
                flags = imgui.SelectableFlags_.allow_double_click
                if imgui.selectable(f"{label}##{entry.name}", entry.name == dialog.name, flags)[0]:
                    twice = imgui.is_mouse_double_clicked(0)
                    dialog.pick(entry)
                    if twice and not entry.is_folder:
                        dialog.accept()
        clipper.end()
        if not entries:
            imgui.text_disabled(f"no folder and no {', '.join(dialog.suffixes)} here")


def _name_row(dialog: FileDialog, appearing: bool, scale: float) -> None:
    dialog.shows_all = imgui.checkbox("all files", dialog.shows_all)[1]
    imgui.same_line(0, 12 * scale)
    if dialog.message:
        with imgui_ctx.push_text_wrap_pos(0.0):
            imgui.text_colored(theme.WARNING, dialog.message)
    else:
        imgui.text_disabled(", ".join(dialog.suffixes))
    accept = "Save" if dialog.saves else "Open"
    buttons = imgui.calc_text_size(accept + "Cancel").x + 60 * scale
    imgui.set_next_item_width(-buttons)
    if appearing:
        imgui.set_keyboard_focus_here()
    entered, dialog.name = imgui.input_text("##name", dialog.name, imgui.InputTextFlags_.enter_returns_true)
    imgui.same_line(0, 6 * scale)
    if imgui.button(accept) or entered:
        dialog.accept()
    imgui.same_line(0, 6 * scale)
    if imgui.button("Cancel"):
        dialog.cancel()
