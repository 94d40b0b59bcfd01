"""The flame editor: triangles, variations, gradient, mutants."""
