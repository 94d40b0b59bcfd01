"""Flame files: reading and writing flam3's XML."""
