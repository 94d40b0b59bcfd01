"""Mesh and glTF files as scenes: shapes, materials, default camera and light, animations and variants."""
