"""Panels: pictures drawn live, their layout, the mouse and inspection."""
