"""The application: back ends (GLFW, headless), the main window with its regions and overlays, keys, mouse, docking."""
