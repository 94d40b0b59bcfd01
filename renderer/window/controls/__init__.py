"""Controls that know no panel: settings editors, file dialogs, shortcuts, the theme, and the imports of Dear ImGui."""
