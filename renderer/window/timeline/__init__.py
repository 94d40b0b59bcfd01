"""The timeline: key frames of the active panel's scene, and their tracks."""
