"""`bench ab --command` and `bench find` in a repository of strangers, and what reports conclude."""

import json
import sys
from argparse import Namespace
from xml.etree import ElementTree

import numpy as np
import pytest

from renderer.bench import answer, experiment, find
from renderer.bench.answer import print_verdicts
from renderer.bench.command_runner import CommandRunner, expand_parameters
from renderer.bench.conclusions import _advice, as_text, conclude
from renderer.bench.counting import Counter
from renderer.bench.experiment import SAME_HOST, Experiment, open_experiment, read_experiment, read_experiments
from renderer.bench.find import bisect, print_answer
from renderer.bench.machine import git
from renderer.bench.runner import Runner
from renderer.bench.verdict import DecisionRule, Verdict
from renderer.cli import main
from renderer.errors import UserError
from renderer.system.progress import Progress
from tests.bench.helpers import bench, commit_all, repository

WORK = """import sys
x = 0
for k in range(int(open("count.txt").read())):
    x = (x * 31 + k) % 1000003
print(x, file=sys.stderr)
"""
PYTHON = f"{sys.executable} -I -S work.py"
NAME = PYTHON.rpartition("/")[2]  # of the case: without the folder of the interpreter


def foreign(folder, count):
    """A repository with a pure Python script, which knows nothing of this program; its first commit has the tag v1."""
    tree = repository(folder, work_py=WORK, **{"count.txt": str(count)})
    git("tag", "v1", tree=tree)
    return tree


def slow_down(tree, count):
    (tree / "count.txt").write_text(str(count))
    commit_all(tree)


def test_a_command_is_timed_in_worktrees_of_both_commits(tmp_path):
    tree, path = foreign(tmp_path / "own", 10), tmp_path / "ab.jsonl"
    (tree / "count.txt").write_text("20")  # not committed, and timed all the same
    options = [
        "--repo",
        tree,
        "--base",
        "v1",
        "--pairs",
        "1",
        "--max-pairs",
        "1",
        "--seconds",
        "0.01",
        "--counts",
        "none",
        "--json",
    ]
    facts = json.loads(bench("ab", "--command", PYTHON, *options, "-o", path, code=3).stdout)
    assert facts["verdicts"] == {NAME: "UNDECIDED"} and facts["refs"]["dirty"]
    rows = [row for row in map(json.loads, path.read_text().splitlines()) if "arm" in row]
    assert len(rows) == 2 and all(row["wall_ns"][0] > 1e6 and row["cpu_ns"][0] > 1e6 for row in rows)
    assert not list((tree / ".bench").glob("*")) and git("worktree", "list", tree=tree).count("\n") == 0
    slow_down(tree, "ten")
    answer = bench("ab", "--command", PYTHON, *options, code=1)
    assert "invalid literal for int" in json.loads(answer.stdout)["reasons"][NAME]


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["ab", "--command", "a 'b", "--base", "v1"], "No closing quotation"),
        (["ab", "--command", " ", "--base", "v1"], "must name a program"),
        (["aa", "--command", "python work.py | cat"], "without the shell that | needs"),
        (["aa", "--command", "python work.py 2>log"], "without the shell that 2>log needs"),
        (["ab", "--command", "a", "--base", "v9"], "git knows no such commit"),
        (["ab", "test_perf.py", "--base", "v1"], '--command "pytest test_perf.py" its tests'),
        (["ab", "--command", f"{sys.executable} missing.py", "--base", "v1"], "fails in both commits: "),
        (
            ["ab", "--command", f"{sys.executable} no.py", "--base", "v1", "--warmup", "0"],
            "no.py': [Errno 2] No such file",
        ),
        (["ab", "--command", "a", "--base", "v1", "mirrors"], "cases are not named beside it"),
        (["ab", "--base", "v1"], "--command times any repository's command"),
        (["find", "--base", "v1"], "--command times any repository's command"),
        (["ab", "--command", "a", "--base", "v1", "--parameter", "n"], "must be NAME=A,B"),
        (["ab", "--command", "true", "--base", "v1", "--parameter", "n=1"], "the command has no {n}"),
        (["ab", "--base", "v1", "--by", "cycles"], "invalid choice: 'cycles'"),
        (["find", "--base", "v1", "--command", "true", "--case", "b"], "has no commit that v1 lacks"),
        (["find", "--base", "v1", "--command", "a"], "has no commit that v1 lacks"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, capsys, arguments, words):
    tree = foreign(tmp_path / "own", 10)
    try:
        code = main(["bench", *arguments, "--repo", str(tree)])
    except SystemExit as end:
        code = end.code
    err = capsys.readouterr().err
    assert code == 2 and words in err and "Traceback" not in err


@pytest.mark.parametrize("arguments", [["aa"], ["list"], ["ab", "--base", "v1"], ["find", "--base", "v1"]])
def test_another_repository_is_not_measured_by_the_cases_of_this_one(tmp_path, capsys, monkeypatch, arguments):
    """`bench aa` there ran the 42 cases of this program, for hours."""
    tree = foreign(tmp_path / "own", 10)
    (tree / "deep").mkdir()
    monkeypatch.chdir(tree / "deep")
    assert main(["bench", *arguments]) == 2
    err = capsys.readouterr().err
    assert f"{tree} is another repository" in err and '--command "python work.py" times its command' in err


def test_a_command_is_compared_with_itself(tmp_path, capfd, monkeypatch):
    tree, path = foreign(tmp_path / "own", 10), tmp_path / "bin/python3"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    path.chmod(0o755)
    words = ["--pairs", "1", "--max-pairs", "1", "--seconds", "0.01", "--counts", "none", "--json"]
    assert main(["bench", "aa", "--command", f"{path} -I -S work.py", "--repo", str(tree), *words]) == 3
    out, err = capfd.readouterr()
    facts = json.loads(out)
    assert facts["verdicts"] == {"python3 -I -S work.py": "UNDECIDED"}
    assert facts["refs"]["base"] == facts["refs"]["head"]
    assert facts["detectable_percent"] and f"it starts {sys.executable}" in err
    assert not list((tree / ".bench").glob("*"))


def test_what_decides_an_undecided_command_is_said(tmp_path, capsys):
    """No -o was given, so that nothing was kept; the processor's clock decided what the wall's did not."""
    header = {"settings": {"program": "x", "clock": "wall"}, "refs": {"base": "a", "head": "b"}}
    print_verdicts(Experiment(header), {"x": verdict("UNDECIDED")}, DecisionRule(), False, False)
    out = capsys.readouterr().out
    assert "undecided: --clock cpu" in out and "--max-pairs 80 (-o F.jsonl keeps pairs)" in out


def test_the_command_of_a_report_finds_by_what_decided(tmp_path):
    settings = {"program": "/opt/bin/python work.py", "clock": "cpu", "setup": "make x", "by": "time"}
    experiment = Experiment({"settings": settings, "refs": {"base": "a" * 40}})
    advice = _advice(experiment, "python work.py", verdict("SLOWER"), DecisionRule())
    assert "--command '/opt/bin/python work.py' --setup 'make x' --clock cpu` names" in advice
    settings["counts"] = "none"
    advice = _advice(experiment, "fit", verdict("SLOWER"), DecisionRule())
    assert "--command '/opt/bin/python work.py' --case fit --setup 'make x' --clock cpu --counts none`" in advice


def test_a_case_has_the_name_of_its_program():
    names = {"/a b/python x": "/a b/python x", "/opt/b/python x/y.py": "python x/y.py", "./run /x": "./run /x"}
    assert {line: experiment.case_of_command(line) for line in names} == names


@pytest.mark.parametrize(
    ("low", "counted", "label", "code"),
    [(-0.01, "SAME", "SAME", 0), (-0.01, "SLOWER", "SLOWER", 1), (0.01, "SAME", "UNDECIDED", 3),
     (0.01, "SLOWER", "SLOWER", 1), (-0.01, "UNDECIDED", "UNDECIDED", 3), (-0.01, None, "UNDECIDED", 3)],
)  # fmt: skip
def test_instructions_decide_where_the_time_is_undecided(monkeypatch, capsys, low, counted, label, code):
    """But not that a program is no slower whose time is certainly longer: it may wait."""
    fact = {"verdict": counted, "percent": 0.0, "interval": [0.0, 0.0], "pairs": 8}
    monkeypatch.setattr(answer, "count_facts", lambda *_: {"x": {"instructions": fact} if counted else {}})
    experiment = Experiment({"settings": {"program": "x"}, "refs": {"base": "a", "head": "b"}})
    time = Verdict("UNDECIDED", 0.0, low, 0.02, 1.0, 1.0, 40)
    assert print_verdicts(experiment, {"x": time}, DecisionRule(), False, False) == code
    out = capsys.readouterr().out
    assert (f"the instructions decide: {label}" in out) == (label != "UNDECIDED") == ("--max-pairs" not in out)


def verdict(label):
    return Verdict(label, 0.0, 0.0, 0.0, 1.0, 1.0, 10)


@pytest.mark.parametrize("first", range(9))
def test_bisection_finds_the_first_slower_commit(first):
    """Against a search from the start; and an undecided commit leaves a range that holds the first one."""
    commits = [f"c{k}" for k in range(8)]
    labels = {commit: "SLOWER" if k >= first else "SAME" for k, commit in enumerate(commits)}
    found, judged = bisect(commits, lambda commit, _midpoint: verdict(labels[commit]))
    assert found == commits[first : first + 1] and len(judged) <= 4
    labels |= {"c3": "UNDECIDED"}
    left, _judged = bisect(commits, lambda commit, _midpoint: verdict(labels[commit]))
    assert first >= 8 and not left or commits[first] in left if first < 8 else True


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("labels", "code", "words"),
    [
        (["SAME", "SLOWER", "SLOWER"], 0, "first slower commit: abc Ada: subject"),
        (["SAME", "UNDECIDED", "SLOWER"], 3, "undecided among 2 commits up to c2"),
        (["INVALID"], 3, "undecided among 1 commits up to c0"),
        (["SAME", "SAME", "FASTER"], 1, "the head is not slower"),
    ],
)
def test_find_says_what_it_found(monkeypatch, capsys, labels, code, words, as_json):
    """The exit code, and the commit in a sentence or as JSON, which names a commit only if one alone is slower."""
    monkeypatch.setattr(find, "git", lambda *arguments, tree: f"abc Ada: subject {arguments[-1]} {tree}")
    commits = [f"c{k}" for k in range(len(labels))]
    by_commit = dict(zip(commits, map(verdict, labels), strict=True))
    args = Namespace(json=as_json, repo="tree", by="time", max_pairs=40, output="f.jsonl", program="x", clock="cpu")
    assert print_answer(args, *bisect(commits, lambda commit, _midpoint: by_commit[commit])) == code
    out = capsys.readouterr().out
    if as_json:
        facts = json.loads(out)
        assert facts["commit"] == ("c1" if code == 0 else None) and len(facts["range"]) == {1: 0, 0: 1}.get(
            code, labels.count("UNDECIDED") + 1
        )
        step = {"verdict": labels[-1], "percent": 0.0, "interval": [0.0, 0.0], "pairs": 10, "reason": ""}
        assert facts["steps"][commits[-1]] == step
    else:
        assert words in out and ("c1 tree" in out) == (code == 0 or "UNDECIDED" in labels)
        advice = "idle machine, or with --by instructions" if "UNDECIDED" in labels else "c0 cannot be judged"
        assert (advice in out) == (code == 3)
        assert f"{labels[-1]:10s}  +0.00% of the time (+0.00% to +0.00%), 10 pairs" in out


def test_find_says_the_limit_that_it_judges_by(monkeypatch, capsys):
    """Half of a slowdown of 44 % is one of 20 %, since 1.2 * 1.2 is 1.44; the head itself is judged as by `ab`."""
    monkeypatch.setattr(find, "git", lambda *arguments, tree: "abc Ada: subject")
    steps = {"c1": Verdict("SLOWER", np.log(1.44), 0.3, 0.4, 0, 1, 10), "c0": verdict("UNDECIDED")}
    args = Namespace(json=False, repo="tree", by="time", max_pairs=40, output=None, program="x", clock="cpu")
    print_answer(args, ["c0"], steps)
    head, step, *_ = capsys.readouterr().out.splitlines()
    assert "judged" not in head and "10 pairs judged by half of the head's slowdown, +20.00% " in step


def test_the_progress_of_counted_pairs_names_valgrind_and_the_way_out(monkeypatch):
    """Under cachegrind they took half an hour for a command of 0.2 s, whose time's verdict stood."""
    titles, runner = [], Runner.__new__(Runner)
    monkeypatch.setattr(Progress, "__init__", lambda self, _total, title: titles.append(title))
    monkeypatch.setattr(Progress, "__enter__", lambda self: self)
    monkeypatch.setattr(Progress, "__exit__", lambda *_: None)
    for by in ("time", "instructions"):
        runner._options, runner._counter = Namespace(by=by, action="aa"), Counter(tool="cachegrind")
        runner._measure("count", ["x"], 0)
    timed, counted = titles
    assert timed.startswith("1 case, 0 counted pairs by valgrind (cachegrind), slowly; the time's verdict is ready")
    assert "--counts none" in timed and "--counts none" not in counted and "valgrind" in counted


def experiment_of(path, ratio, crash=None, counters=(3, 3)):
    """A file of 20 pairs in both stages; the head takes `ratio` times as long."""
    refs = {"base": "b" * 40, "head": "h" * 40, "dirty": False}
    lines = [{"schema": "bench/1", "refs": refs, "settings": {"pairs": 10, "max_pairs": 10}}]
    for pair in range(10):
        for stage in ("screen", "confirm"):
            for arm, factor, count in (("base", 1.0, counters[0]), ("head", ratio, counters[1])):
                time = round((1e6 + 37 * pair) * factor)
                row = {
                    "case": "a|b",
                    "arm": arm,
                    "stage": stage,
                    "pair": pair,
                    "attempt": 0,
                    "counters": {"launches": count},
                }
                lines.append(
                    row | ({"crash": crash} if crash and arm == "head" else {"clock": "wall", "wall_ns": [time]})
                )
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return read_experiment(path)


def test_an_undecided_experiment_says_its_figures_and_goes_on_with_other_limits(tmp_path, capsys):
    experiment_of(tmp_path / "ab.jsonl", 1.02)
    assert main(["bench", "reanalyze", str(tmp_path / "ab.jsonl")]) == 3
    out = capsys.readouterr().out
    assert "+2.00% of the time (+" in out and "pairs in all\n" in out and "(-o F.jsonl keeps pairs)" in out
    refs, kept = {"base": "b", "head": "h"}, tmp_path / "kept.jsonl"
    header = {"schema": "bench/1", "refs": refs, "host": dict.fromkeys(SAME_HOST),
              "settings": {"action": "ab", "pairs": 10, "max_pairs": 40, "seed": 0}}  # fmt: skip
    row = {"case": "a", "arm": "head", "stage": "screen", "pair": 0, "attempt": 0, "clock": "wall", "wall_ns": [1]}
    open_experiment(kept, header).add(row)
    more = header | {"settings": header["settings"] | {"max_pairs": 80}}
    assert open_experiment(kept, more).rows == [row]
    assert read_experiment(kept).rows == [row] and read_experiment(kept).header["settings"]["max_pairs"] == 80
    for wrong, key in ((header | {"refs": {"base": "b", "head": "i"}}, "refs"),
                       (header | {"settings": header["settings"] | {"seed": 1}}, "settings")):  # fmt: skip
        with pytest.raises(UserError, match=f"another experiment: its {key} differ"):
            open_experiment(kept, wrong)


@pytest.mark.parametrize(
    "label,ratio,words",
    [
        ("SLOWER", 1.05, "bench find --base bbbbbbbbbbbb --case 'a|b'"), ("FASTER", 0.9, "keep the change"),
        ("SAME", 1.001, "2 % or more is ruled out"), ("UNDECIDED", 1.02, "more pairs by --max-pairs 20 (the same -o"),
        ("INVALID", 1.0, "head crashed: exit code 3"),
    ],
)  # fmt: skip
def test_reports_conclude_and_say_what_to_do_next(tmp_path, label, ratio, words):
    path = tmp_path / "ab.jsonl"
    experiment = experiment_of(path, ratio, "exit code 3" if label == "INVALID" else None)
    (row,) = conclude(experiment)
    assert row.label == label and words in row.advice and row.counters == "not more"
    text = as_text([experiment])
    assert f"1 {label}" in text.splitlines()[0] and r"| a\|b |" in text
    if label == "SLOWER":
        assert main(["bench", "report", str(path), "-o", str(tmp_path / "page.html")]) == 0
        page = (tmp_path / "page.html").read_text()
        assert page.index(f"1 {label}") < page.index("Recorded rates")
    assert main(["bench", "report", str(path), "--text", "-o", str(tmp_path / "comment.md")]) == 0
    sealed = (tmp_path / "comment.md").read_text()
    assert sealed.startswith(text) and sealed[len(text) :].startswith("<!-- Rayfold ")
    assert main(["bench", "report", str(path), "--text", "-o", str(tmp_path / "comment.md")]) == 0
    (tmp_path / "comment.md").write_text(sealed.replace("SLOWER", "slow") + "My words.\n")
    assert main(["bench", "report", str(path), "--text", "-o", str(tmp_path / "comment.md")]) == 2


def test_a_counter_that_rose_is_said(tmp_path):
    (row,) = conclude(experiment_of(tmp_path / "ab.jsonl", 1.0, counters=(3, 4)))
    assert row.label == "SAME" and row.counters == "launches 3 -> 4" and "a counter rose" in row.advice


@pytest.mark.slow
@pytest.mark.parametrize("percent,allowed", [(0, {"SAME", "UNDECIDED"}), (3, {"SLOWER", "UNDECIDED"}),
                                             (5, {"SLOWER"}), (10, {"SLOWER"})])  # fmt: skip
def test_a_slowdown_planted_in_a_foreign_project_is_seen(tmp_path, percent, allowed):
    """A pure Python script, by the processor's clock; prints what was seen."""
    tree = foreign(tmp_path / "own", 1_500_000)
    slow_down(tree, 1_500_000 * (100 + percent) // 100 + (percent == 0))
    options = ["--repo", tree, "--base", "v1", "--clock", "cpu", "--counts", "none", "--json"]
    facts = json.loads(bench("ab", "--command", PYTHON, *options, code=None, timeout=600).stdout)
    print(percent, facts["verdicts"], facts["percent"], facts["interval"], facts["pairs"])
    assert facts["verdicts"][NAME] in allowed


@pytest.mark.slow
def test_the_commit_that_slowed_a_foreign_project_down_is_found(tmp_path):
    tree = foreign(tmp_path / "own", 400_000)
    for count in (400_001, 400_002, 460_000, 460_001, 460_002):
        slow_down(tree, count)
    options = ["--repo", tree, "--base", "v1", "--clock", "cpu", "--counts", "none", "--json"]
    facts = json.loads(bench("find", "--command", PYTHON, *options, timeout=600).stdout)
    assert facts["commit"] == git("rev-parse", "HEAD~2", tree=tree)


def test_a_badge_says_the_worst_verdict(tmp_path):
    path, svg, shield = tmp_path / "ab.jsonl", tmp_path / "b.svg", tmp_path / "b.json"
    experiment_of(path, 1.05)
    assert main(["bench", "report", str(path), "--badge", str(svg)]) == 0
    assert main(["bench", "report", str(path), "--badge", str(shield)]) == 0
    texts = [element.text for element in ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert texts == ["bench", "1 SLOWER"]
    assert json.loads(shield.read_text()) == {
        "schemaVersion": 1, "label": "bench", "message": "1 SLOWER", "color": "#c0392b",
    }  # fmt: skip


REPORTING = """import json, os, time
steps = int(open("count.txt").read())
with open(os.environ["RAYFOLD_BENCH"], "a") as file:
    for case in ("fit", "save")[: 1 + (steps > 1)]:
        if os.environ["RAYFOLD_BENCH_CASE"] in ("", case):
            row = {"case": case, "wall_ns": [1000 * steps, 1001 * steps], "counters": {"steps": steps}}
            file.write(json.dumps(row) + "\\n")
    file.write("not JSON\\n" + json.dumps({"case": "bad", "wall_ns": [0.5]}) + "\\n")
"""


def test_a_command_reports_its_own_cases(tmp_path):
    """Its times are taken as they are; a case that the base lacks is skipped; a counter that rises fails."""
    tree = repository(tmp_path / "own", work_py=REPORTING, **{"count.txt": "1"})
    git("tag", "v1", tree=tree)
    slow_down(tree, 2)
    options = ["--repo", tree, "--base", "v1", "--pairs", "1", "--max-pairs", "1", "--seconds", "0.01", "--json"]
    facts = json.loads(bench("ab", "--command", PYTHON, *options, code=1).stdout)
    assert facts["verdicts"] == {"fit": "UNDECIDED"} and facts["percent"]["fit"] == 100
    assert facts["skipped"] == {"save": "the base has no such case"}
    assert facts["counter_increases"] == {"fit": {"steps": [1, 2]}} and "reports its cases" in facts["counter"]


def test_find_keeps_its_steps_in_one_file_and_goes_on_with_other_limits(tmp_path, capsys):
    """Steps of a find, the last with a docs commit before it; the same file again takes no process; nor do reports."""
    tree, path = repository(tmp_path / "own", work_py=REPORTING, **{"count.txt": "1"}), tmp_path / "find.jsonl"
    git("tag", "v1", tree=tree)
    (tree / "docs").write_text("docs")
    commit_all(tree)
    slow_down(tree, 2)
    options = [
        "--repo",
        str(tree),
        "--base",
        "v1",
        "--case",
        "fit",
        "--seconds",
        "0.01",
        "--alpha",
        "0.6",
        "--json",
        "--warmup",
        "0",
    ]
    command = ["bench", "find", "--command", PYTHON, *options, "-o", str(path), "--pairs", "2", "--max-pairs"]
    sizes = []
    for most in ("2", "3"):
        assert main([*command, most]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["commit"] == git("rev-parse", "HEAD", tree=tree)
        sizes.append(sum("arm" in json.loads(line) for line in path.read_text().splitlines()))
    assert [step["verdict"] for step in facts["steps"].values()] == ["SLOWER", "SAME"] and len(set(sizes)) == 1
    assert [row.header["refs"]["head"] for row in read_experiments(path)] == list(facts["steps"])
    assert main(["bench", "report", str(path), "--text"]) == 0
    text = capsys.readouterr().out
    title = f"first slower commit: {git('rev-parse', '--short', 'HEAD', tree=tree)} a: x"
    assert text.startswith(f"**head {facts['commit'][:12]} against base ") and f": 1 SLOWER; {title}**" in text
    assert text.count("| verdict |") == 1 and f"; {title} |" in text and "less than half of the slowdown" in text
    assert "bench find" not in text and all(f"| {sha[:12]}: fit |" in text for sha in facts["steps"])


def test_parameters_make_a_case_each(tmp_path):
    assert list(expand_parameters("a {n} {m}", [("n", ["1", "2"]), ("m", ["x"])])) == ["a 1 x", "a 2 x"]
    with pytest.raises(UserError, match="has no {k}"):
        list(expand_parameters("a {n}", [("k", ["1"])]))


def test_the_name_that_two_cases_would_have_is_said(monkeypatch):
    """Of the cases that a command reports for a parameter's value, the one that another value has too."""
    runner = object.__new__(CommandRunner)
    runner._commands = {}
    runner._options = Namespace(
        by="time", counts="none", setup=None, program="true {n}", parameter=[("n", ["1", "1"])], cases=[]
    )
    reports = iter([{"b": {}}, {"a": {}, "b": {}}])
    monkeypatch.setattr(CommandRunner, "_warm_up", lambda self, words: (next(reports), 1))
    with pytest.raises(UserError, match=r"would be named 'b \(true 1\)'"):
        runner._list_cases()
