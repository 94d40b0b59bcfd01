"""Readers of untrusted mesh files, one module a format, as MeshFile; renderer/formats/mesh.py chooses among them."""
