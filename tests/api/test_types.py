"""Types: mypy and pyright accept scripts in the manner of the API guide; a misspelled name is an error."""

import os
import re
import subprocess
import sys

import pytest

from renderer.paths import ROOT

SCRIPTS = {
    "settings": """image = renderer.render("cornell", size=(64, 48), max_depth=2, tone={"ev": 1.0})
image.save("box.png", bits=16)
print(image.samples, image.device, image.scene.title)""",
    "mesh": """mesh = renderer.Mesh(np.eye(3), np.array([[0, 1, 2]]), colors=np.eye(3))
renderer.render(mesh, samples=1)
renderer.Scene(materials=[{"name": "a"}], meshes=[{"material": "a", "file": mesh}])""",
    "animation": """with renderer.open("julia", device="cpu") as opened:
    frames = [opened.render(time=n / 24).displayed() for n in range(3)]
path = renderer.film("julia", "julia.mp4", frames=(1, 24))
print(path.name)""",
    "layers": """image = renderer.render("cornell", layers=True)
albedo = image.layers["albedo"]
print(albedo.shape, image[:24].samples)""",
    "dlpack": """total = renderer.sum(np.arange(5.0), "exact")
print(total)""",
    "band": """x = renderer.solve(np.eye(4), np.ones(4))
print(x)""",
    "cdollar": """function = renderer.cdollar.function("float main(float x) => 2 * x;")
print(float(function(2.0)), function.names)


@renderer.cdollar.function
def twice(x: float) -> float:
    \"\"\"float twice(float x) => 2 * x;\"\"\"
    return 0.0


print(twice.grad)""",
    "flame": """from renderer import flames

first = flames.read("pack.flame")[0]
renderer.render(first, quality=5.0).save("flame.png")""",
    "submodule": """from rayfold.flames import read
from rayfold.gpu import open_device

print(read("pack.flame"), open_device("cpu"))""",
    "progress": """for image in renderer.refine("mirrors", samples=8):
    print(image.samples)
renderer.render("mirrors", progress=lambda done, steps: done < 4)""",
    "kind": """cornell = renderer.load("cornell")
assert isinstance(cornell.settings, renderer.RaytraceSettings)
darker = replace(cornell, settings=replace(cornell.settings, max_depth=1))
print(darker.title, cornell.settings.max_depth + 1)""",
    "errors": """try:
    renderer.render(renderer.load("cornell"), device="cuda:0")
except (renderer.UserError, renderer.UnavailableError, renderer.KernelError) as error:
    print(error)""",
}
TYPOS = {
    "settings": ("image.samples", "image.sampels"),
    "mesh": ("colors=", "colrs="),
    "animation": ("opened.render", "opened.rendr"),
    "layers": ("layers=True", 'layers="all"'),
    "dlpack": ("renderer.sum", "renderer.summ"),
    "band": ("renderer.solve", "renderer.slove"),
    "cdollar": ("function.names", "function.nams"),
    "flame": ("flames.read", "flames.raed"),
    "submodule": ("import read", "import raed"),
    "progress": ("renderer.refine", "renderer.refin"),
    "kind": ("cornell.settings.max_depth", "cornell.settings.max_dept"),
    "errors": ("renderer.UserError", "renderer.UsrError"),
}


CHECKERS = {
    "mypy": ("--strict", "--allow-untyped-defs", "--ignore-missing-imports", "--follow-imports=silent", "."),
    "pyright": (".",),
}


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.parametrize("name", ["renderer", "rayfold"])
def test_type_checkers_accept_the_scripts_and_no_typo(tmp_path, name, checker):
    pytest.importorskip(checker)  # pyright is not among the developers' packages: it brings Node.js
    guide = re.findall(r"(?s)```python\n(.*?)```", (ROOT / "assets/guides/api.md").read_text(encoding="utf-8"))
    (tmp_path / "guide.py").write_text("\n".join(guide), encoding="utf-8")
    for script, text in SCRIPTS.items():
        before, after = TYPOS[script]
        assert before in text
        for kind, body in (("right", text), ("wrong", text.replace(before, after))):
            whole = f"from dataclasses import replace\n\nimport numpy as np\n\nimport {name} as renderer\n\n{body}\n"
            (tmp_path / f"{kind}_{script}.py").write_text(
                whole.replace("import renderer as renderer", "import renderer").replace("from renderer", f"from {name}")
            )
    words = [sys.executable, "-m", checker, *CHECKERS[checker]]
    paths = {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=os.environ | paths, capture_output=True, text=True)
    faulty = {match[1] for match in re.finditer(r"(?m)^(?: *.*/)?(\w+)\.py:\d+(?::\d+ -|:) error", done.stdout)}
    assert faulty == {f"wrong_{script}" for script in SCRIPTS}, done.stdout + done.stderr
