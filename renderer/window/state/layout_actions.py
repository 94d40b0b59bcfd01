"""Actions on the panel layout: move, swap and dock panels, and reset to a grid."""

from renderer.window.state import layout
from renderer.window.state.app_state import GAP, AppState


def move_panel(app: AppState, index: int, target: int, side: str) -> None:
    """Moves a panel to a side of panel `target`; "middle" swaps the two."""
    root = app.current_layout()
    app.layout = layout.swap(root, index, target) if side == "middle" else layout.insert(root, index, target, side)


def swap_panel(app: AppState, side: str) -> None:
    """Swaps the active panel with its neighbor on a side."""
    rects = layout.rectangles(app.current_layout(), app.area, GAP)
    other = layout.nearest(rects, app.active, side)
    if other is None or app.solo:
        app.show_message("no panel on that side")
    else:
        move_panel(app, app.active, other, "middle")


def dock_panel(app: AppState, side: str) -> None:
    """Moves the active panel along a whole side of the window."""
    if len(app.panels) > 1 and not app.solo:
        app.layout = layout.dock(app.current_layout(), app.active, side)


def reset_to_grid(app: AppState) -> None:
    """Arranges the panels in a grid again."""
    app.layout = None
    app.show_message("panels in a grid")
