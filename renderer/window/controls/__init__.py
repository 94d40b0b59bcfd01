"""Controls that know no panel: settings editors, file dialogs, shortcuts, the theme, and the imports of Dear ImGui."""

from renderer.window.controls.toolkit import *  # noqa: F403  (its __all__)
