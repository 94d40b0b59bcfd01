"""The .flame format, flam3's XML: reading and writing key frames."""
