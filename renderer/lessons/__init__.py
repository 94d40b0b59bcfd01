"""Lessons: a paper's experiment, run by the reader, its figure beside the reader's own.

A lesson is a folder of plain files, lesson.toml and lesson.md (assets/guides/lessons.md says how to write one).
`lesson` reads it, `measurements` runs what its steps measure, `programs` what they evaluate, `drawing` draws what they
show, `page` makes one HTML file of it, `command` is `rayfold lesson`. The window shows it in a column of text
(renderer/window/lesson).
"""
