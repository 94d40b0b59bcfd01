"""The notebooks: valid files without outputs, whose cells run one after the other and hold what they assert."""

import ast
import json

import pytest

from renderer.paths import ASSETS

NOTEBOOKS = {path.stem: path for path in sorted((ASSETS / "notebooks").glob("*.ipynb"))}


def cells_of(name: str) -> list[dict]:
    return json.loads(NOTEBOOKS[name].read_text(encoding="utf-8"))["cells"]


def code_of(name: str) -> list[str]:
    return ["".join(cell["source"]) for cell in cells_of(name) if cell["cell_type"] == "code"]


def test_there_are_five_short_ones():
    assert sorted(NOTEBOOKS) == ["band_lu", "cdollar", "flames", "pictures", "sums"]
    for name, path in NOTEBOOKS.items():
        notebook, cells = json.loads(path.read_text(encoding="utf-8")), cells_of(name)
        assert notebook["nbformat"] == 4 and len(cells) <= 12 and path.stat().st_size < 10_000
        assert len({cell["id"] for cell in cells}) == len(cells) and cells[0]["cell_type"] == "markdown"
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
        assert "assert " in "".join(code_of(name)) and "".join(cells[0]["source"]).startswith("# ")
        for source in code_of(name):
            ast.parse(source)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "band_lu" else pytest.mark.slow) for name in NOTEBOOKS]
)
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for number, source in enumerate(code_of(name), 1):
        exec(compile(source, f"{name}.ipynb, cell {number}", "exec"), names)
