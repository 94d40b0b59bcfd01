"""Tools for people who write C$: the formatter and the language server."""
