"""The timeline: key frames of the active panel's scene, their tracks, and the export of films."""
