"""Actions that compare the active panel's picture with a kept one, or with another panel's."""

from renderer.window.state.app_state import AppState


def set_reference(app: AppState) -> None:
    """Keeps the displayed picture as the reference of comparisons."""
    if app.panel.display_texture is not None:
        app.panel.comparison.set_reference(app.panel.display_texture)
        app.show_message("kept as reference; W compares")


def compare_with_next(app: AppState) -> None:
    """Makes the next panel the reference."""
    if len(app.panels) > 1:
        other = app.panels[(app.active + 1) % len(app.panels)]
        app.panel.comparison.set_reference_panel(other)
        app.show_message(f"reference: {other.scene.title}; W changes the comparison")


def compare(app: AppState) -> None:
    """Switches to the next mode of comparison; without a reference the next panel becomes it."""
    comparison = app.panel.comparison
    if comparison.reference() is None:
        compare_with_next(app)
    if comparison.reference() is None:
        app.show_message("nothing to compare with: S keeps the displayed picture")
    else:
        app.show_message(f"compare: {comparison.cycle()}")
