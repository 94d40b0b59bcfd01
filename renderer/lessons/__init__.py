"""Lessons that repeat a paper's experiment on the reader's machine and show both results side by side.

A lesson is a folder with lesson.toml and lesson.md (assets/guides/lessons.md says how to write one). `lesson` reads
these files. `measurements` runs the measurements of the steps, `programs` evaluates their C$ programs and `drawing`
draws their pictures. `page` writes one HTML file, and `command` is `rayfold lesson`. The window shows a lesson in a
column of text (renderer/window/app/lesson_column.py).
"""
