"""What keys and the mouse do to where panels stand: they are put elsewhere, swapped, docked, or in a grid again."""

from renderer.window.app.state import Studio
from renderer.window.panels import layout


def put_panel(studio: Studio, index: int, target: int, side: str) -> None:
    """Puts a panel at a side of another one, or for the "middle" into its place, which takes its own."""
    place = studio.layout_at_hand()
    swaps = side == "middle"
    studio.layout = layout.swapped(place, index, target) if swaps else layout.put(place, index, target, side)


def swap_panel(studio: Studio, side: str) -> None:
    """Swaps the active panel with its neighbour on a side."""
    cells = layout.rectangles(studio.layout_at_hand(), studio.area, studio.gap)
    other = layout.nearest(cells, studio.active, side)
    if other is None or studio.solo:
        studio.tell("no panel is there")
    else:
        put_panel(studio, studio.active, other, "middle")


def dock_panel(studio: Studio, side: str) -> None:
    """Puts the active panel along a side of the window."""
    if len(studio.panels) > 1 and not studio.solo:
        studio.layout = layout.docked(studio.layout_at_hand(), studio.active, side)


def stand_in_grid(studio: Studio) -> None:
    studio.layout = None
    studio.tell("panels in a grid")
