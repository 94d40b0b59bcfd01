"""Size: lines of product code, files of a folder, modules in the package's root. Each cap is raised only with a reason.

As tinygrad's sz.py: the commit that raises MAX_CODE_LINES says in its message what the lines are for.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from subprocess import run

from renderer.paths import ROOT

MAX_CODE_LINES = 83_300  # of renderer/, shaders/ and main.py
MAX_FILES = 24  # of one folder
MAX_ROOT_MODULES = 12
# Catalogs of data whose flat paths users and tests name: scenes; programs beside the error that each shows.
CATALOGS = {"scenes", "tests/cdollar/language/diagnostics"}
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def tracked() -> list[str]:
    """Paths of the files that git tracks, as in the working tree."""
    listed = run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in listed if (ROOT / name).exists()]


def python_lines(text: str) -> int:
    """Lines of Python that hold code: no blank lines, comments or docstrings."""
    docstrings: set[int] = set()
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:  # which grows: the statements alone
        nodes += (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                docstrings |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = text.splitlines()
    outside = [line for number, line in enumerate(lines, 1) if number not in docstrings]
    if not any('"""' in line or "'''" in line for line in outside):  # no blank line or # lies in a text
        return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in outside)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def c_lines(text: str) -> int:
    """Lines of C or GLSL that hold code: no blank lines or comments."""
    text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    return sum(bool(re.sub(r"//.*", "", line).strip()) for line in text.splitlines())


def code_lines() -> dict[str, int]:
    """Code lines by package: `renderer/gpu`, `shaders/bvh`, `main.py`."""
    total: Counter[str] = Counter()
    for name in tracked():
        if name.startswith(("renderer/", "shaders/")) or name == "main.py":
            path = ROOT / name
            if path.suffix == ".py":
                total["/".join(name.split("/")[:2])] += python_lines(path.read_text(encoding="utf-8"))
            elif path.suffix in (".cu", ".h", ".frag"):
                total["/".join(name.split("/")[:2])] += c_lines(path.read_text(encoding="utf-8"))
    return dict(total)


def test_counting_leaves_out_blanks_comments_and_docstrings():
    text = '"""Module.\n\nTwo."""\n# comment\n\ndef f():\n    """Doc."""\n    return """a\nb"""  # why\n'
    assert python_lines(text) == 3
    assert c_lines("// a\n\nint x;  // b\n/* c\n d */ int y;\n}\n") == 3


def test_product_code_stays_below_its_cap():
    lines = code_lines()
    rows = "\n".join(f"{count:7,} {name}" for name, count in sorted(lines.items()))
    assert sum(lines.values()) <= MAX_CODE_LINES, f"{sum(lines.values()):,} lines of product code\n{rows}"


def test_no_folder_is_too_full():
    folders = Counter(name.rpartition("/")[0] for name in tracked() if "/" in name)
    full = {folder: count for folder, count in folders.items() if count > MAX_FILES and folder not in CATALOGS}
    assert not full


def test_few_modules_lie_in_the_root_of_the_package():
    modules = [name for name in tracked() if re.fullmatch(r"renderer/\w+\.py", name)]
    assert len(modules) <= MAX_ROOT_MODULES, modules
