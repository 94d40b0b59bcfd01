"""The A/B experiment on real processes and git repositories."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from renderer import cli
from renderer.bench.experiment import Experiment, read_experiment
from renderer.bench.machine import git
from renderer.bench.runner import visually_equal
from renderer.paths import ROOT
from tests.bench.helpers import METRONOME, bench, commit_all, needs_git, repository


def test_pictures_are_visually_equal_within_the_tolerance(rng):
    picture = rng.random((20, 30, 4)).astype("f4")
    assert visually_equal(picture, picture * np.float32(1.0001))["equal"]
    wrong = picture.copy()
    wrong[7, 9, 1] = 1 - wrong[7, 9, 1].round()
    compared = visually_equal(picture, wrong)
    assert not compared["equal"] and "1 pixels by more than 1 of 255" in compared["message"]
    assert not visually_equal(picture, picture[1:])["equal"]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_gl")
def test_aa_says_same_or_undecided_and_counters_are_exact(tmp_path):
    options = ["--pairs", "4", "--max-pairs", "4", "--seconds", "0.05", "--min-effect", "15%", "--json"]
    answer = bench("aa", "harness/pass", *options, "-o", tmp_path / "aa.jsonl", code=None)
    facts = json.loads(answer.stdout)
    assert facts["verdicts"]["harness/pass"] in ("SAME", "UNDECIDED") and not facts["counter_increases"]
    assert 0 <= facts["false_positive_rate"] <= 0.03 and "harness/pass" in facts["detectable_percent"]
    assert answer.returncode == (0 if facts["verdicts"]["harness/pass"] == "SAME" else 3)
    rows = [row for row in map(json.loads, (tmp_path / "aa.jsonl").read_text().splitlines()) if "arm" in row]
    assert len(rows) == 8 and len({json.dumps(row["counters"]) for row in rows}) == 1
    again = json.loads(bench("reanalyze", tmp_path / "aa.jsonl", "--min-effect", "15%", "--json", code=None).stdout)
    assert again["verdicts"] == facts["verdicts"] and again["percent"] == facts["percent"]


@needs_git
@pytest.mark.usefixtures("shared_gl")
def test_an_injected_pixel_is_invalid():
    options = ["--base", "HEAD", "--head", "HEAD", "--pairs", "1", "--max-pairs", "1", "--seconds", "0.02", "--json"]
    facts = json.loads(bench("ab", "harness/pass", *options, "--inject", "pixel", code=1).stdout)
    assert facts["verdicts"] == {"harness/pass": "INVALID"}
    assert "1 pixels by more than 1 of 255" in facts["reasons"]["harness/pass"]


@pytest.mark.slow
@pytest.mark.usefixtures("shared_gl")
@needs_git
def test_an_injected_slowdown_of_a_pass_is_slower():
    options = ["--base", "HEAD", "--pairs", "10", "--max-pairs", "40", "--seconds", "0.2", "--json"]
    facts = json.loads(bench("ab", "harness/pass", *options, "--inject", "slowdown=8%", code=1).stdout)
    assert facts["verdicts"] == {"harness/pass": "SLOWER"}


QUICK = ["--pairs", "6", "--max-pairs", "6", "--seconds", "0.02", "--alpha", "0.02"]


@pytest.mark.slow
def test_an_injected_slowdown_is_slower_and_the_file_says_so(tmp_path):
    """In a user's own repository, with this one's harness; the working tree is dirty."""
    tree = repository(tmp_path / "own", tests__fps__mine_py=METRONOME)
    (tree / "note").write_text("not committed")
    path = tmp_path / "ab.jsonl"
    options = ["ab", "--repo", tree, "--base", "HEAD", *QUICK, "-o", path]
    facts = json.loads(bench(*options, "--inject", "slowdown=8%", "--json", code=1).stdout)
    assert facts["verdicts"] == {"mine/beat": "SLOWER"} and facts["percent"]["mine/beat"] == pytest.approx(8, abs=2)
    header = json.loads(path.read_text().splitlines()[0])
    assert header["refs"]["dirty"] and header["refs"]["diff_digest"] and not list((tree / ".bench").glob("*"))
    assert "another experiment: its settings differ" in bench(*options, code=2).stderr
    assert "SLOWER" in bench("reanalyze", path, "--alpha", "0.02", code=1).stdout


CRASH = {"case": "a", "arm": "head", "stage": "screen", "pair": 0, "attempt": 0, "crash": "exit code 70: KeyError"}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (CRASH, 70),
        (CRASH | {"wrong": True}, 1),
        (CRASH | {"arm": "base"}, 1),
        ({"case": "a", "equal": False, "message": "m"}, 1),
    ],
)
def test_a_crash_of_the_head_is_never_a_verdict(row, code, tmp_path, capsys):
    """Exit code 1 says that the head is worse: slower, or wrong."""
    header = {"schema": "bench/1", "refs": {"base": "b", "head": "h"}, "settings": {"pairs": 1, "max_pairs": 1}}
    path = tmp_path / "ab.jsonl"
    path.write_text("\n".join(map(json.dumps, (header, row))))
    assert cli.main(["bench", "reanalyze", str(path)]) == code and "INVALID" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_commit_changes_in_its_cases_is_reported(tmp_path):
    """A counter that rises, a case that crashes in one arm, a new case, another result."""
    cases = "\n\ndef cases(gpu):\n    made = [metronome_case() for _ in range(4)]\n"
    names = "    for name, case in zip(('more', 'crash', 'new', 'other'), made):\n        case.name = name\n"
    body = METRONOME.split("def cases(gpu)")[0] + METRONOME[METRONOME.index("class Metronome") :] + cases + names
    change = (
        "    run, counters = made[0].run, made[0].device.counters\n"
        "    made[0].run = lambda: (run(), setattr(counters, 'uploads', counters.uploads + 1))\n"
        "    made[1].run = lambda: 1 / 0\n    made[3].check = lambda: b'other'\n"
    )
    tree = repository(tmp_path, tests__fps__mine_py=body + "    return [case for case in made if case.name != 'new']\n")
    (tree / "tests/fps/mine.py").write_text(body + change + "    return made\n")
    options = ["--base", "HEAD", "--pairs", "2", "--max-pairs", "2", "--seconds", "0.01", "--json"]
    facts = json.loads(bench("ab", "--repo", tree, *options, code=1).stdout)
    assert facts["verdicts"] == {"mine/more": "UNDECIDED", "mine/crash": "INVALID", "mine/other": "INVALID"}
    assert "head crashed" in facts["reasons"]["mine/crash"] and "division" in facts["reasons"]["mine/crash"]
    assert facts["reasons"]["mine/other"] == "the results differ" and facts["skipped"] == {
        "mine/new": "the base has no such case"
    }
    assert facts["counter_increases"] == {"mine/more": {"uploads": [0, 1]}}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_experiment_resumes(tmp_path):
    """And a pair that the kill broke is measured again as a whole: its arms must be neighbors in time."""
    path = tmp_path / "aa.jsonl"
    options = ["aa", "metronome", "--pairs", "3", "--max-pairs", "3", "--seconds", "0.02", "-o", path, "--json"]
    command = [sys.executable, str(ROOT / "main.py"), "bench", *map(str, options)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and (not path.exists() or path.read_text().count("\n") < 4):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with open(path, "a") as file:
        file.write('{"case": "metronome/be')  # the line that the kill tore
    before = path.read_text()
    subprocess.run(command, capture_output=True, timeout=120)
    assert path.read_text().startswith(before)
    experiment = read_experiment(path)
    pairs = experiment.pairs("metronome/beat", "screen")
    assert sorted(pairs) == [0, 1, 2] and all(
        len({row["attempt"] for row in arms.values()}) == 1 for arms in pairs.values()
    )
    assert 6 <= len(experiment.processes("metronome/beat")) <= 7


@needs_git
def test_mistakes_in_arguments():
    assert "no such commit" in bench("ab", "--base", "no-such-ref", code=2).stderr
    assert "must be slowdown" in bench("ab", "--base", "HEAD", "--inject", "gremlins", code=2).stderr
    bench("run", "--seconds", "soon", code=2)
    bench("ab", "--base", "HEAD", "--pairs", "0", code=2)
    bench("run", "--repo", "/nowhere", code=2)
    assert "no case warp" in bench("aa", "warp", code=2).stderr
    assert "cannot be written" in bench("run", "metronome", "-o", "/no/such/folder/r.jsonl", code=2).stderr


@pytest.mark.slow
def test_the_hook_of_the_guide_refuses_a_slower_push(tmp_path):
    guide = (ROOT / "assets/guides/bench.md").read_text()
    (hook,) = [text.split("```")[0] for text in guide.split("```sh\n") if "merge-base" in text]
    tree = repository(tmp_path / "own", tests__fps__mine_py=METRONOME)
    git("init", "-q", "--bare", str(tmp_path / "server"), tree=tmp_path)
    git("remote", "add", "origin", str(tmp_path / "server"), tree=tree)
    git("branch", "-M", "main", tree=tree)
    git("push", "-q", "origin", "main", tree=tree)
    rayfold = tmp_path / "rayfold"
    rayfold.write_text(f'#!/bin/sh\nexec {sys.executable} {ROOT / "main.py"} "$@"\n')
    rayfold.chmod(0o755)
    (tree / ".git/hooks/pre-push").write_text(hook)
    (tree / ".git/hooks/pre-push").chmod(0o755)
    environment = {**os.environ, "RAYFOLD": str(rayfold), "CASES": "mine/beat"}

    def push():
        command = ["git", "push", "origin", "main"]
        return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)

    (tree / "note").write_text("the same speed")
    commit_all(tree)
    same = push()
    assert same.returncode == 0 and "SAME" in same.stdout, same
    (tree / "tests/fps/mine.py").write_text(METRONOME.replace("BEAT = 0.002", "BEAT = 0.0023"))
    commit_all(tree)
    slower = push()
    assert slower.returncode != 0 and "SLOWER" in slower.stdout, slower
    assert git("rev-parse", "origin/main", tree=tree) == git("rev-parse", "main~1", tree=tree)


def test_the_guide_compares_a_pull_request_without_its_merge(tmp_path):
    """The commits that `find` searches are those of the pull request, though `main` moved on meanwhile."""
    guide = (ROOT / "assets/guides/bench.md").read_text()
    assert 'ref: "${{ github.event.pull_request.head.sha }}"' in guide and guide.count('--base "$BASE" --head') == 2
    (line,) = [line.strip() for line in guide.splitlines() if line.strip().startswith("- run: echo")]
    tree = repository(tmp_path / "own", note="a")
    git("branch", "-M", "main", tree=tree)
    git("checkout", "-q", "-b", "change", tree=tree)
    shas = [git("rev-parse", "HEAD", tree=tree)]
    for text in ("b", "c"):
        (tree / "note").write_text(text)
        commit_all(tree)
        shas.append(git("rev-parse", "HEAD", tree=tree))
    git("checkout", "-q", "main", tree=tree)
    (tree / "other").write_text("main moves on")
    commit_all(tree)
    git("clone", "-q", str(tree), str(tmp_path / "runner"), tree=tmp_path)
    git("checkout", "-q", "origin/change", tree=tmp_path / "runner")  # as actions/checkout by `ref`
    environment = os.environ | {"GITHUB_ENV": str(tmp_path / "variables")}
    subprocess.run(["sh", "-c", line.removeprefix("- run: ")], cwd=tmp_path / "runner", env=environment, check=True)
    base = (tmp_path / "variables").read_text().strip().removeprefix("BASE=")
    between = git("rev-list", "--first-parent", "--reverse", f"{base}..HEAD", tree=tmp_path / "runner").split()
    assert [base, *between] == shas


@pytest.mark.slow
def test_a_case_that_this_machine_cannot_run_is_skipped(tmp_path):
    cannot = METRONOME.replace("return [metronome_case()]", "return [cannot_case(), metronome_case()]") + (
        "\n\ndef cannot_case():\n    from renderer import UnavailableError\n    case = metronome_case()\n"
        "    case.name = 'big'\n    def check():\n        raise UnavailableError('needs two GPUs')\n"
        "    case.check = check\n    return case\n"
    )
    tree = repository(tmp_path, tests__fps__mine_py=cannot)
    options = ["--repo", tree, "--seconds", "0.02"]
    assert "mine/big: cannot run here: needs two GPUs" in bench("run", *options, code=3).stderr
    assert bench("run", "mine/big", *options, code=4).stdout == ""
    facts = json.loads(bench("aa", *options, "--pairs", "1", "--max-pairs", "1", "--json", code=3).stdout)
    assert facts["skipped"] == {"mine/big": "cannot run here: needs two GPUs"} and list(facts["verdicts"]) == [
        "mine/beat"
    ]


def test_results_that_differ_are_invalid_and_equal_ones_are_not():
    def process(case, arm, digest):
        return {"case": case, "arm": arm, "stage": "first", "pair": 0, "attempt": 0, "digest": digest}

    rows = [process("same", "base", "a"), process("same", "head", "a"), process("other", "base", "a"),
            process("other", "head", "b")]  # fmt: skip
    experiment = Experiment({}, rows)
    assert experiment.invalid("same") == "" and experiment.invalid("other") == "the results differ"
