"""Pages that people read: one HTML file with its pictures and figures inside, for lessons and reports.

`plot` says what a figure shows, `figures` draws it as SVG, `markdown` reads the text, `page` puts all in one file.
"""
