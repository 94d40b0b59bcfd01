"""The window: live panels, controls and keys.

Imports run one way: app -> flame_editor, timeline -> state -> panels -> controls; remote knows state and controls.
"""
