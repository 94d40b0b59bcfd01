"""Panels: a scene each, its picture drawn live within a time budget, with inspection, comparison and statistics."""
