"""Self-contained HTML pages with embedded pictures and figures, for `rayfold lesson` and `rayfold bench report`.

`plot` holds the data of a figure, `figures` draws it as SVG, `markdown` converts text, and `page` builds the HTML file.
"""
