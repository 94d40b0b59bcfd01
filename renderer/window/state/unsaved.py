"""Asks before work is lost: about unsaved panels and the code panel's text, to save, discard or cancel.

Closing a panel, opening a scene over one, restoring a session and quitting go through ask(). Overlays draws the
question; undo still brings back what was discarded from a window that stays open. Saving goes through write_over(),
which asks about a file that was changed outside of its panel since it was read.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from renderer.paths import is_bundled
from renderer.plain import printable
from renderer.records import dataclass
from renderer.system.files import file_stamp
from renderer.window.panels.panel import Panel
from renderer.window.state.app_state import AppState

Choice = Literal["save", "discard", "cancel"]


@dataclass
class Question:
    """One of two questions, before unsaved work or a file is lost.

    Without `write`: save or discard the unsaved documents in `lost`, one after the other; once none is left, then()
    does what the user asked for. With `write`: the only file in `lost` was changed by others since its panel read it;
    write() replaces it, load() shows what it holds. Before either, then() brings back the question that the saving
    answered, if there was one.
    """

    lost: list[Panel | Path]  # a panel; or the file whose text in the code panel is not saved
    then: Callable[[], None]
    doing: str = "Save"  # why it is asked, such as "Quit"
    write: Callable[[], None] | None = None
    load: Callable[[], None] = lambda: None

    @property
    def labels(self) -> tuple[str, str, str]:
        """The labels of the three choices."""
        names = ("Overwrite", "Load the file") if self.write else ("Save", "Discard")
        return f"{names[0]} (Enter)", f"{names[1]} (D)", "Cancel (Esc)"

    def name(self, title: Callable[[Panel], str]) -> str:
        """The name of the document that is asked about; `title` gives a panel's."""
        first = self.lost[0]
        return printable(first.name if isinstance(first, Path) else title(first))

    def text(self, title: Callable[[Panel], str]) -> str:
        """The sentence of the question."""
        if self.write:
            return f"{self.name(title)} was changed outside of this panel since it was read."
        more = f"\n{len(self.lost) - 1} more after this one" if len(self.lost) > 1 else ""
        first = self.lost[0]
        path = first if isinstance(first, Path) else first.file.path
        kept = f"Saving writes {printable(path.name)}." if path and not is_bundled(path) else "Saving asks for a name."
        return f"{self.name(title)} has changes that are not saved. {kept}{more}"


def has_work(app: AppState, panel: Panel) -> bool:
    """True if closing the panel would lose work: of its scene, or of the code of its files."""
    return panel.has_unsaved_work or app.code_changed in (panel.original.path, *panel.scene.files)


def ask(app: AppState, panels: Sequence[Panel], then: Callable[[], None], doing: str, with_code: bool = False) -> None:
    """Does then(), which is `doing`, at once if the panels hold no unsaved work; otherwise asks first.

    The question is also about the code panel's text, if it is of a file of the panels, or `with_code`.
    """
    file = app.code_changed  # of the code panel's text, if that is not saved
    # A panel's own file is asked about once, as code: its text has the panel's changes too
    lost: list[Panel | Path] = [p for p in panels if p.has_unsaved_work and p.original.path != file]
    if file is not None and (with_code or any(file in (p.original.path, *p.scene.files) for p in panels)):
        lost.append(file)
    if lost:
        app.overlays.question = Question(lost, then, doing)
    else:
        then()


def write_over(
    app: AppState, path: Path, stamp: tuple[int, int] | None, write: Callable[[], None], load: Callable[[], None]
) -> None:
    """Calls write(), at once if the file has this file_stamp() or is gone; otherwise asks first."""
    if file_stamp(path) in (stamp, None):
        write()
    else:
        ask_again = partial(setattr, app.overlays, "question", app.overlays.question)
        app.overlays.question = Question([path], ask_again, "Save", write, load)


def poll(app: AppState) -> Question | None:
    """The open question, called in each frame: drops documents that were saved; after the last, does what was asked."""
    question = app.overlays.question
    if question is None or question.write:
        return question
    question.lost = [item for item in question.lost if _is_unsaved(app, item)]
    if question.lost:
        return question
    app.overlays.question = None
    question.then()
    return None


def _is_unsaved(app: AppState, item: Panel | Path) -> bool:
    return item == app.code_changed if isinstance(item, Path) else item in app.panels and item.has_unsaved_work


def answer(app: AppState, choice: Choice, save: Callable[[AppState, Panel], None]) -> None:
    """Takes the answer about the first document; save(app, panel) writes a panel's scene, or asks for its name."""
    question = app.overlays.question
    if question is None:
        return
    if choice == "cancel":
        app.overlays.question = None
    elif question.write:
        question.then()
        (question.write if choice == "save" else question.load)()
    elif choice == "save":
        first = question.lost[0]
        app.save_code(None) if isinstance(first, Path) else save(app, first)
    else:
        if isinstance(question.lost[0], Path):
            app.revert_code()
        question.lost = question.lost[1:]  # poll() asks about the next


def undo(app: AppState) -> None:
    """Undoes a step, after the question about work in a document that it replaces."""
    ask(app, app.replaced_by_undo(), app.undo, "Undo")


def close_panel(app: AppState) -> None:
    """Closes the active panel, after the question about its scene."""
    panels = [app.panel] if len(app.panels) > 1 else []
    ask(app, panels, app.close_panel, "Close the panel")


def quit(app: AppState) -> None:
    """Ends the window, after the questions about all panels and the code."""
    ask(app, list(app.panels), app.loop.quit, "Quit", with_code=True)


def restore(app: AppState, path: Path | None = None) -> None:
    """Restores a kept session, the newest if none is given, after the questions about all panels."""
    ask(app, list(app.panels), lambda: app.restore(path), "Restore a session")
