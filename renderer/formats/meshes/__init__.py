"""Readers of untrusted mesh files, one module a format, each returning a MeshFile; formats/mesh.py dispatches."""
