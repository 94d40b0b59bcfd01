"""Text to syntax trees: lexer, parser, diagnostics."""
