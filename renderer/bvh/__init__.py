"""Bounding volume hierarchies: builders, node layouts, and the choice of a traversal."""
