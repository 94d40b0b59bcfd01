"""Running programs: arguments, calls from Python, recorded calls, explanations, `rayfold run` and its prompt."""
