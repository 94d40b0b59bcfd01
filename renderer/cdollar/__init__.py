"""The array language C$: frontend, checker, intermediate representation, targets and runtime."""
