"""The window's parts: toolkit (GLFW and Dear ImGui), theme, panel, actions, controls, studio, screen. See renderer/viewer.py."""
