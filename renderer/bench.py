"""Frame rates and kernel rates, checked first and then timed."""


def add_arguments(parser) -> None:
    """The arguments of `main.py bench`."""
    parser.add_argument("action", choices=("list", "run", "ab", "aa", "report"))
