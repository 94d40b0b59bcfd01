"""Scene files as frozen dataclasses: settings, cameras, animation."""
