"""The window: live panels, controls and keys.

Imports run one way: remote -> app -> flame_editor, scene_editor, timeline -> state -> panels -> document, controls.
"""
