"""The window's parts, from below: toolkit (GLFW, Dear ImGui), theme, counter, panel, actions, controls, session, app
(the state), table (its keys), interface and overlays (what is drawn around and over the panels), screen, remote."""
