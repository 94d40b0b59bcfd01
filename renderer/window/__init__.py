"""The window's parts, from below: toolkit (GLFW and Dear ImGui), theme, counter, panel, actions, controls, studio (the
state), interface (what is drawn around the panels), screen (a window, or a texture for tests and remote use)."""
