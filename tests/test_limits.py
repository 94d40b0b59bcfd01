"""Memory and time that files of strangers ask for: refused before they are taken. The witness is the system's count."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from renderer import cli
from renderer.errors import InputError, UnavailableError
from renderer.formats.images import write_png
from renderer.host import peak_memory, used_memory
from renderer.paths import ROOT
from renderer.pictures import scene_of_table
from renderer.pictures.ink import Settings as Ink
from renderer.pictures.ink import assemble_matrix, flow_grid
from renderer.raytracing import procedural
from renderer.raytracing.settings import Attractor, Instance, Procedural, Scattered, Settings
from renderer.raytracing.shapes import check_generated
from renderer.raytracing.solids import Solid
from renderer.scene.schema import field_types
from renderer.system import trust

PLAIN = Settings()


@pytest.fixture
def limit(monkeypatch):
    def set_limit(count):
        monkeypatch.setattr(trust.Limits, "memory", used_memory() + count)

    return set_limit


@pytest.mark.parametrize("kind", procedural.GENERATORS)
def test_shapes_are_counted_before_they_are_made(kind):
    for level in range(3):
        assert procedural.COUNTS[kind](level) == len(procedural.generate(kind, level))
    assert procedural.COUNTS.keys() == procedural.MAX_LEVELS.keys()


@pytest.mark.parametrize("kind", procedural.GENERATORS)
def test_rows_of_the_largest_shapes_are_refused_at_once(limit, kind):
    """No primitive is made: the process's peak does not rise."""
    limit(100 << 20)
    rows = (Procedural("plain", kind, procedural.MAX_LEVELS[kind]),) * 1000
    before = peak_memory()
    with pytest.raises(
        InputError, match=r"settings: procedural\[\d+\] and 999 other shapes and instances: takes about"
    ):
        check_generated(replace(PLAIN, procedural=rows))
    assert peak_memory() - before < 32 << 20


def test_other_generators_are_counted_too(limit):
    half = (0.5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.5, 0)
    limit(100 << 20)
    for many in (
        dict(attractors=(Attractor("plain", (half, half), 17),) * 10),
        dict(solids=(Solid("plain", "torus", sides=128),) * 20),
        dict(procedural=(Procedural("plain", "tree", 1, name="a"),), scattered=(Scattered(("a",), 1024, 1024),) * 10),
        dict(procedural=(Procedural("plain", "tree", 1, name="a"),), instances=(Instance("a"),) * (1 << 17)),
    ):
        few = {name: rows[:1] for name, rows in many.items() if name != "scattered"}
        check_generated(replace(PLAIN, **few))
        with pytest.raises(InputError, match="other shapes and instances"):
            check_generated(replace(PLAIN, **many))


def test_what_the_machine_lacks_is_another_matter(monkeypatch):
    monkeypatch.setattr(trust.host, "available_memory", lambda: 1 << 30)
    trust.check_memory(1 << 30, "x")
    with pytest.raises(UnavailableError, match=r"x: takes about 1.5 GiB of memory; 1.0 GiB are free"):
        trust.check_memory(3 << 29, "x")


def test_the_largest_grid_is_refused_before_its_matrix(limit):
    limit(256 << 20)
    high = next(f for f in Ink.__dataclass_fields__.values() if f.name == "grid").metadata["high"]
    assert field_types(Ink)["grid"] is int
    before = peak_memory()
    with pytest.raises(InputError, match=r"settings: grid is 1024; a band matrix of \d+ unknowns"):
        assemble_matrix(flow_grid((131072, 1), high), replace(Ink(), grid=high))
    assert peak_memory() - before < 32 << 20
    assert assemble_matrix(flow_grid((64, 64), 16), Ink(grid=16)).shape == (33, 256)


def test_a_picture_is_measured_before_it_is_decoded(limit, tmp_path):
    write_png(tmp_path / "a.png", np.zeros((2500, 2500, 3), "u1"))
    from renderer.formats.images import read_pixels

    limit(64 << 20)
    with pytest.raises(InputError, match=r"a.png: 2500 x 2500 pixels: takes about 95.4 MiB"):
        read_pixels(tmp_path / "a.png")


CHILD = """
import sys
import numpy as np
from renderer import cli
from renderer.export import command
from renderer.host import used_memory
def export(args):
    blocks = []
    while len(blocks) < 4000:  # 4 GB, in blocks that no check sees
        blocks.append(np.ones(1 << 20, "u1"))
    return 0
command.export = export
cli.run_process()
"""


def test_a_process_that_takes_more_is_ended(tmp_path):
    """The child counts nothing and allocates for ever; the peak of all children is the system's."""
    words = ["export", "cornell", "-o", str(tmp_path / "a.png"), "--max-memory", "300M"]
    code = f"import sys; sys.argv[1:] = {words!r}\n" + CHILD
    outer = (
        "import resource, subprocess, sys\nanswer = subprocess.run([sys.executable, '-c', sys.argv[1]])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)\nsys.exit(answer.returncode)"
    )
    answer = subprocess.run([sys.executable, "-c", outer, code], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert answer.returncode == 5, answer
    assert answer.stderr == "rayfold: the run takes more than the 300.0 MiB of --max-memory; it was ended\n"
    assert 250 < int(answer.stdout) < 2500  # MiB; without a limit it takes 4000


def test_layers_of_a_picture_count(limit, tmp_path):
    """A texture of software GL, the picture and its layers on the host, and an EXR file's channels."""
    from renderer.export.render import TiledImage
    from renderer.formats.images import read_exr, write_exr
    from renderer.gpu.gl import GlContext

    gl = GlContext.headless()
    values = np.zeros((2100, 2100, 4), "f4")  # 67 MiB
    write_exr(tmp_path / "a.exr", {"RGBA": values[:, :, :2].repeat(2, 2)})
    limit(60 << 20)
    image = TiledImage((2000, 2000))
    image.merge_tile((0, 0, 4, 4), values[:4, :4], {})
    on_host = [(lambda: gl.texture((2100, 2100)), "a texture of 2100 x 2100")] if gl.software else []
    for take, what in (
        *on_host,
        (lambda: TiledImage((2100, 2100)), "a picture of 2100 x 2100"),
        (
            lambda: image.merge_tile((0, 0, 2, 2), values[:2, :2], {"albedo": np.zeros((2, 2, 9), "f4")}),
            "the layer albedo",
        ),
        (lambda: write_exr(tmp_path / "b.exr", {"RGBA": values}), "the 1 layers"),
        (lambda: read_exr(tmp_path / "a.exr"), "2100 x 2100 pixels"),
    ):
        before = peak_memory()
        with pytest.raises(InputError, match=f"{what}.*: takes about .* of memory; .* of --max-memory"):
            take()
        assert peak_memory() - before < 8 << 20
    assert not (tmp_path / "b.exr").exists()


WORKERS = """
import subprocess, sys
from renderer import cli
from renderer.export import command
def export(args):
    child = "import sys, numpy as np; blocks = [np.ones(1 << 20, 'u1') for _ in range(%s)]; print(1); sys.stdin.read()"
    command = [sys.executable, "-c", child % sys.argv[-1]]
    children = [subprocess.Popen(command, stdin=-1, stdout=-1) for _ in (1, 2)]
    print([process.stdout.readline() for process in children], flush=True)
    sys.stdin.read()
    return 0
command.export = export
sys.exit(cli.main(sys.argv[1:-1]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory of processes is read from /proc")
def test_the_memory_of_its_children_counts(tmp_path):
    """Two processes of 150 MiB each, neither of which is too large alone."""
    code = WORKERS.replace("sys.exit(", "cli.process.Supervision.allowed = True\nsys.exit(")
    words = ["export", "cornell", "-o", str(tmp_path / "a.png"), "--max-memory", "300M", "150"]
    command = [sys.executable, "-c", code, *words]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert answer.returncode == 5 and "more than the 300.0 MiB of --max-memory" in answer.stderr, answer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_watched_command_gets_every_signal(tmp_path, number):
    """SIGINT too, which `kill -INT` sends to the process that watches alone."""
    code = WORKERS.replace("sys.exit(", "cli.process.Supervision.allowed = True\nsys.exit(")
    words = ["export", "cornell", "-o", str(tmp_path / "a.png"), "--max-memory", "2G", "1"]
    command = [sys.executable, "-c", code, *words]
    with subprocess.Popen(command, cwd=ROOT, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout.readline().startswith("[b'1")
        process.send_signal(number)
        assert process.wait(20) == 130 and process.stderr.read() == "rayfold: interrupted\n"


WATCHED = """
import os, sys, time
from renderer import cli
from renderer.export import command
from renderer.system import trust
trust.GRACE_SECONDS = trust.COMPILE_SECONDS = 0.5
def export(args):
    print("ready", flush=True)
    {body}
    return 0
command.export = export
cli.run_process()
"""
NO_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="a second process watches where there is fork")


def watched(body, *options):
    """A command in a child that is watched, whose export() is `body`."""
    words = ["export", "cornell", "-o", "a.png", *options]
    code = f"import sys; sys.argv[1:] = {words!r}\n" + WATCHED.format(body=body)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=-1, stderr=-1, text=True)


@NO_FORK
@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("time.sleep(60)", 3, "rayfold: the run takes longer than the 0.2 s of --time-limit; it was ended\n"),
        ("with trust.doing(trust.DRAWING): time.sleep(60)", 3, "it was ended\n"),
        ("with trust.doing(trust.DRAWING): pass\n    time.sleep(1.5)", 0, ""),  # what is drawn is developed and written
        ("for _ in 1, 2:\n        with trust.doing(trust.DRAWING): time.sleep(60 * _ - 60)", 3, "it was ended\n"),
    ],
)
def test_a_time_limit_ends_a_pass_that_never_ends(body, code, said):
    """An endless kernel of a program was drawn for ever: no code of Python runs beside it."""
    with watched(body, "--time-limit", "0.2") as process:
        errors = process.communicate(timeout=40)[1]
    assert process.returncode == code and errors.endswith(said) and bool(errors) == bool(said)


@NO_FORK
def test_a_time_limit_ends_a_program_at_once():
    """`run` had no --time-limit; nothing is drawn that would have to be written first."""
    code = WATCHED.replace("renderer.export", "renderer.cdollar.runtime").replace("command.export", "command.run")
    code = code.replace("= 0.5", "= 60").format(body="time.sleep(60)")
    words = ["run", "p.cb", "--time-limit", "0.2"]
    command = [sys.executable, "-c", f"import sys; sys.argv[1:] = {words!r}\n{code}"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=40)
    assert answer.returncode == 3
    assert answer.stderr == "rayfold: the run takes longer than the 0.2 s of --time-limit; it was ended\n"


@NO_FORK
@pytest.mark.parametrize(
    ("work", "code"), [("time.sleep(60)", 5), ("x = bytearray(1 << 26); time.sleep(60)", 5), ("pass", 0)]
)
def test_a_shader_that_never_compiles_is_ended(tmp_path, work, code):
    """24 macros, each of which names another twice, took 3 GiB and longer than any limit."""
    scene = tmp_path / "a.toml"
    scene.write_text('picture = "toy"\n[settings]\nimage = "a.frag"\n')
    body = f"with trust.doing(trust.COMPILING): {work}"
    memory = 1 << (24 if "byte" in work else 40)
    words = ["export", str(scene if "byte" in work else scene.with_suffix(".frag")), "-o", "a.png"]
    source = WATCHED.replace("trust.GRACE", f"trust.COMPILE_MEMORY = {memory}\ntrust.GRACE").format(body=body)
    command = [sys.executable, "-c", f"import sys; sys.argv[1:] = {words!r}\n{source}"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == code
    assert ("that a shader may take to compile; it was ended\n" in answer.stderr) == bool(code)


@NO_FORK
@pytest.mark.slow
@pytest.mark.parametrize("count", [22, 0])
def test_shaders_that_a_driver_cannot_compile(tmp_path, count):
    """Macros that double 22 times, and a sum of 60,000 terms, at which Mesa's parser overflows its stack."""
    macros = "".join(f"#define A{k} A{k - 1} A{k - 1}\n" for k in range(1, count))
    total = f"A{count - 1}" if count else "p.x + " * 60_000
    shader = tmp_path / "a.frag"
    shader.write_text(
        f"#define A0 sin(p.x)+\n{macros}void mainImage(out vec4 c, in vec2 p) {{ c = vec4({total} 1.0); }}\n"
    )
    words = ["export", str(shader), "-o", str(tmp_path / "a.png"), "--size", "8x6"]
    answer = subprocess.run([sys.executable, "main.py", *words], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert answer.returncode in (0, 4, 5) and len(answer.stderr.splitlines()) <= 3 and "Traceback" not in answer.stderr


@NO_FORK
def test_a_killed_child_is_one_sentence_and_a_documented_exit_code():
    """The exit code was 247, in silence."""
    with watched("os.kill(os.getpid(), 9)", "--untrusted") as process:
        errors = process.communicate(timeout=40)[1]
    sentence = "rayfold: the run was ended by signal 9 (Killed): a driver failed, or memory was exhausted\n"
    assert (process.returncode, errors) == (4, sentence)


@NO_FORK
def test_a_watching_process_that_is_stopped_goes_on():
    """A SIGCONT in sigtimedwait() made Python return an arbitrary number, which kill() refused: exit code 70."""
    with watched("time.sleep(1)", "--untrusted") as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(10):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.03)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        errors = process.communicate(timeout=40)[1]
    assert (process.returncode, errors) == (0, "")


def test_a_stranger_runs_no_program(tmp_path, capsys, monkeypatch):
    (tmp_path / "a.cb").write_text("float main(int x, int y) => x;")
    (tmp_path / "a.toml").write_text('picture = "cdollar"\n[settings]\nprogram = "a.cb"\n')
    monkeypatch.setattr(trust.Limits, "memory", None)
    monkeypatch.setattr(trust.Limits, "refuses_programs", False)
    monkeypatch.setattr(trust.Limits, "refuses_links", False)
    for name in ("a.cb", "a.toml"):
        assert cli.main(["export", str(tmp_path / name), "-o", str(tmp_path / "a.png"), "--untrusted"]) == 5
        assert capsys.readouterr().err == f"rayfold: {tmp_path}/a.cb: is a program, and --untrusted runs none\n"


def test_sizes_of_memory_are_read():
    assert [trust.memory(text) for text in ("1M", "500m", "2G")] == [1 << 20, 500 << 20, 2 << 30]
    for text in ("", "G", "2", "-1G", "1.5G", "2T", "9" * 400 + "G"):
        with pytest.raises(Exception, match="is not a size such as 500M or 2G"):
            trust.memory(text)


def test_verify_compares_sizes_first_and_gives_up_early(tmp_path, capsys):
    recipe = {"rayfold": 2, "scene": {"picture": "fractal", "settings": {"max_iterations": 50}}, "samples": 1}
    path = tmp_path / "a.png"
    write_png(path, np.zeros((3, 4, 3), "u1"), recipe | {"size": [131072, 131072]})
    assert cli.main(["verify", str(path)]) == 1
    assert "[3, 4, 3], drawn again [131072, 131072, 3]" in capsys.readouterr().out
    write_png(path, np.zeros((3, 4, 3), "u1"), recipe | {"size": [4, 3], "samples": 1 << 30})
    assert cli.main(["verify", str(path)]) == 3
    said = capsys.readouterr().err
    assert "this will take about" in said
    assert f"{path}: its 1073741824 samples take longer to draw again; --time-limit is 600 s" in said
    assert scene_of_table(recipe["scene"], path).picture == "fractal"
