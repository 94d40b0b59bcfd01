"""Pictures to files, without a window: stills, posters in tiles, numbered frames, videos, light fields.

command.py holds the options of `rayfold export`; plan.py checks everything that can be wrong before any work; run.py
carries the plan out; render.py draws and writes one picture; frames.py keeps the manifest with which an interrupted
export resumes; video.py encodes frames; farm.py distributes the work.
"""
