"""Files of strangers: kept inputs that once failed, and short random runs, end in an answer or in one sentence."""

import json
import re
import subprocess
import sys

import pytest

from renderer.paths import ROOT
from tests.children import run_here
from tests.fuzz.known import KNOWN
from tests.fuzz.large import LARGE
from tests.fuzz.run import CORPUS, corpus_names
from tests.fuzz.targets import TARGETS
from tests.seeds import seed_of

QUICK_INPUTS, SLOW_INPUTS = 8, 20_000
CASES = [f"{target}/{name}" for target in TARGETS for name in corpus_names(target)]
SLOW = {f"{target}/{name}" for target, names in LARGE.items() for name in names}


def fuzz(*arguments: str, timeout: float) -> dict:
    """The answer of the runner, in a process of its own: readers may crash, and threads of tests must not be forked."""
    command = [sys.executable, "-m", "tests.fuzz.run", *arguments, "--json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
    assert result.returncode in (0, 1) and result.stdout.strip(), result.stderr[-3000:]
    return json.loads(result.stdout)


@pytest.fixture(scope="session")
def quick():
    """The findings of every kept input but the large ones, and of some random ones, by target; of one process."""
    some = "--inputs", str(QUICK_INPUTS), "--seed", str(seed_of("random files"))
    return fuzz("all", "--corpus", "--kept", *some, timeout=1500)


@pytest.fixture(scope="session")
def kept(quick):
    """The findings of every kept input, by target and name; the large ones are left to the slow tests."""
    return {target: answer["kept"] for target, answer in quick.items()}


@pytest.fixture(scope="session")
def large():
    """The findings of the large inputs and of pipes and endless files."""
    return fuzz("all", "--corpus", "--large", timeout=3600)


def case(name: str):
    marks = [pytest.mark.slow] if name in SLOW else []
    if name in KNOWN:
        marks.append(pytest.mark.xfail(strict=True, reason=KNOWN[name]))
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [case(name) for name in CASES])
def test_kept_inputs_are_read_or_refused_in_one_sentence(name, request):
    target, file = name.split("/", 1)
    found = request.getfixturevalue("large" if name in SLOW else "kept")[target][file]
    assert not found, "; ".join(f"{each['signature']} ({each['detail'][:200]})" for each in found)


def test_kept_inputs_are_small_and_known_ones_exist():
    for path in CORPUS.glob("*/*"):
        assert path.parent.name in TARGETS and path.stat().st_size < 4096, path
    known = {name.removeprefix("command: ") for name in KNOWN}
    assert known <= {*CASES, *COMMANDS, *MISTAKES}, known - {*CASES, *COMMANDS, *MISTAKES}


LOCAL = ("hang", "slow", "memory", "killed", "exit")  # signatures that name no place


def new_findings(answer: dict, kept: dict) -> list[str]:
    """The findings of a random run whose mechanism no kept input that is known to fail has."""
    known = {
        (target, each["signature"])
        for target, files in kept.items()
        for name, found in files.items()
        if f"{target}/{name}" in KNOWN
        for each in found
    }
    placed = {signature for _, signature in known if not signature.startswith(LOCAL)}
    return [
        f"{target}: {each['signature']} (input {each['index']}): {each['detail'][:200]}"
        for target, result in answer.items()
        for each in result["findings"]
        if (target, each["signature"]) not in known and each["signature"] not in placed
    ]


def test_random_files_are_read_or_refused_in_one_sentence(quick, kept):
    assert quick.keys() == TARGETS.keys()
    assert not new_findings(quick, kept)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_random_files_are_read_or_refused_in_one_sentence(target, kept, large):
    count = max(200, round(SLOW_INPUTS * TARGETS[target].weight))
    answer = fuzz(target, "--inputs", str(count), "--seed", str(seed_of(target)), timeout=3600)
    both = {name: {**kept[name], **large[name]} for name in kept}
    assert not new_findings(answer, both)


# ---- the command line: the same inputs, as a user would name them

COMMANDS = {
    "scene/integer_of_400_digits.toml": ("export", "{}", "-o", "a.png"),
    "recipe/ends_in_a_chunk.png": ("export", "{}", "-o", "a.png"),
    "gltf/number_of_1e999.glb": ("export", "{}", "-o", "a.png"),
    "flame/unknown_encoding.flame": ("export", "{}", "-o", "a.png"),
    "field_array/short_by_a_byte.npy": ("export", "{}", "-o", "a.png"),
    "mtx_band/exponent_cut_at_the_end.mtx": ("solve", "{}", "b.npy", "-o", "x.npy"),
    "band_npz/encrypted.npz": ("solve", "{}", "b.npy", "-o", "x.npy"),
    "sum_npy/header_cut_in_a_bracket.npy": ("sum", "{}"),
    "bench/refs_is_a_number.jsonl": ("bench", "reanalyze", "{}"),
    "cdollar/many_unary.cb": ("run", "{}"),
}
MISTAKES = {
    "a name of 300 characters": (("export", "mandelbrot", "-o", "x" * 300 + ".png", "--size", "8x8"), 2),
    "a time of 1e308 seconds": (("export", "mandelbrot", "-o", "a.png", "--size", "8x8", "--time", "1e308"), 2),
    "a time of 1e308 seconds in an animation": (
        ("export", "orrery", "-o", "a.png", "--size", "8x8", "--samples", "1", "--time", "1e308"), 2),
    "a size of 5000 digits": (("export", "mandelbrot", "-o", "a.png", "--size", "9" * 5000 + "x9"), 2),
    "a size of superscripts": (("export", "mandelbrot", "-o", "a.png", "--size", "\u00b2x\u00b2"), 2),
    "a number of 5000 digits": (("export", "mandelbrot", "-o", "a.png", "--set", "iterations=" + "9" * 5000), 2),
    "a number of 400 digits": (("export", "cornell", "-o", "a.png", "--set", "view.position=0,1," + "9" * 400), 2),
    "samples of 5000 digits": (("export", "mandelbrot", "-o", "a.png", "--samples", "9" * 5000), 2),
}  # fmt: skip


def assert_one_sentence(result: subprocess.CompletedProcess, code: int) -> None:
    assert result.returncode == code, (result.returncode, result.stderr[-2000:])
    assert "Traceback" not in result.stderr
    if code:
        assert re.fullmatch(r"rayfold: [^\n]{1,1200}\n", result.stderr), result.stderr[:3000]


def command_case(name: str, known: str):
    marks = [pytest.mark.xfail(strict=True, reason=KNOWN[known])] if known in KNOWN else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [command_case(name, f"command: {name}") for name in COMMANDS])
def test_commands_refuse_kept_inputs_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [word.format(CORPUS / name) for word in COMMANDS[name]]
    result = run_here(*words)
    if name.endswith(".cb"):  # C$ shows the line of the source too
        assert result.returncode == 5 and ": error CS0105: " in result.stderr and "Traceback" not in result.stderr
    else:
        assert_one_sentence(result, 5)


@pytest.mark.parametrize("name", [command_case(name, f"command: {name}") for name in MISTAKES])
def test_commands_refuse_mistakes_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, code = MISTAKES[name]
    assert_one_sentence(run_here(*words), code)
