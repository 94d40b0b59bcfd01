"""The document: a scene with the TOML text that it is saved as, and the commands that change its items."""
