"""The action `bench find`: the commit that made a case, or a command, slower; bisection by the rule of `bench ab`."""

import argparse
import json
from collections.abc import Callable
from dataclasses import replace

from renderer.bench import MAX_PAIRS
from renderer.bench.ab import commit_hash, open_runner, worktree
from renderer.bench.answer import shown_interval, verdict_facts
from renderer.bench.machine import git
from renderer.bench.records import MAX_NAME, RecordFile
from renderer.bench.runner import ExperimentOptions
from renderer.bench.verdict import Verdict
from renderer.errors import UserError
from renderer.plain import printable

MOST_SHOWN = 20  # commits that are left


def find(args: argparse.Namespace) -> int:
    """Runs `bench find`: prints the first commit at which the case is slower than at --base; returns the exit code.

    Searches the line of first parents from --base to --head by bisection. Each step is an experiment of a commit
    against --base, at the level --alpha. A commit counts as slower if it has at least half of the head's slowdown. 0:
    the commit is known; 1: the head is not slower; 3: a step was undecided or invalid; a range is left.
    """
    if not (args.program or args.case):
        raise UserError("bench find: wants --case CASE or --command LINE")
    args.cases = [args.case] if args.case else []
    if args.by == "time":
        args.counts = "none"  # only the quantity that decides is measured
    options = ExperimentOptions.from_arguments(args)
    with worktree(args.repo, args.base, "base") as (base, base_sha):
        between = f"{base_sha}..{commit_hash(args.repo, args.head)}"
        commits = git("rev-list", "--first-parent", "--reverse", between, tree=args.repo).split()
        if not commits:
            raise UserError(f"bench find: {args.head} has no commit that {args.base} lacks")

        def judge(sha: str, midpoint: float) -> Verdict:
            with worktree(args.repo, sha, "head") as (head, _sha):
                refs = {"base": base_sha, "head": sha, "dirty": False}  # dirty: with uncommitted changes
                step = replace(options, rule=replace(options.rule, midpoint=midpoint))
                verdicts = open_runner(step, {"base": base, "head": head}, refs).verdicts()
            if len(verdicts) != 1:
                raise UserError(f"bench find: {args.case} names {len(verdicts)} cases of both commits; wanted is one")
            return next(iter(verdicts.values()))

        left, verdicts = bisect(commits, judge)
        RecordFile(args.output).add({"head": commits[-1], "found": _found(args, left, verdicts)})  # for bench report
        return print_answer(args, left, verdicts)


def bisect(commits: list[str], judge: Callable[[str, float], Verdict]) -> tuple[list[str], dict[str, Verdict]]:
    """The commits, oldest first, among which the first slower one is, and the verdict of each commit judged.

    One commit that is SLOWER: it is the first slower one; otherwise the search ended undecided. No commit: the last
    one is not slower than the base. judge(commit, midpoint) gets half of the last commit's log ratio to the base, or 0
    for the last one itself.
    """
    verdicts = {commits[-1]: judge(commits[-1], 0.0)}
    if verdicts[commits[-1]].label in ("SAME", "FASTER"):
        return [], verdicts
    fast, slow = -1, len(commits) - 1  # indices of the last fast and the first slow commit known; -1 is the base
    while slow - fast > 1 and verdicts[commits[slow]].label == "SLOWER":
        middle = (fast + slow) // 2
        verdicts[commits[middle]] = judge(commits[middle], verdicts[commits[-1]].shift / 2)
        label = verdicts[commits[middle]].label
        if label == "SLOWER":
            slow = middle
        elif label in ("SAME", "FASTER"):
            fast = middle
        else:
            break
    return commits[fast + 1 : slow + 1], verdicts


def _is_found(left: list[str], verdicts: dict[str, Verdict]) -> bool:
    return len(left) == 1 and verdicts[left[0]].label == "SLOWER"


def _found(args: argparse.Namespace, left: list[str], verdicts: dict[str, Verdict]) -> str:
    """The commit that was found, or what is left, as a line of text."""
    if _is_found(left, verdicts):
        return printable(f"first slower commit: {_title(args, left[0])}", MAX_NAME)
    return f"undecided among {len(left)} commits up to {left[-1][:12]}" if left else "the head is not slower"


def _title(args: argparse.Namespace, sha: str) -> str:
    return git("log", "-1", "--format=%h %an: %s", sha, tree=args.repo)


def print_answer(args: argparse.Namespace, left: list[str], verdicts: dict[str, Verdict]) -> int:
    """Prints the commits that are left and the verdicts of the steps; returns the exit code."""
    is_found = _is_found(left, verdicts)
    steps = {sha: verdict_facts(v) | {"reason": v.reason} for sha, v in verdicts.items()}
    if args.json:
        print(json.dumps({"commit": left[0] if is_found else None, "range": left, "steps": steps}))
    else:
        head = next(iter(verdicts.values()))  # judged first, with the midpoint 0
        for sha, v in verdicts.items():
            change = f"{v.percent:+6.2f}% of the {args.by} ({shown_interval(v)})"
            limit = f"judged by half of the head's slowdown, {replace(v, shift=head.shift / 2).percent:+.2f}% "
            print(f"{sha[:12]} {v.label:10s} {change}, {v.pairs} pairs {limit if v is not head else ''}{v.reason}")
        print(_found(args, left, verdicts))
        if left and not is_found:
            for sha in left[:MOST_SHOWN]:
                print(f"  {_title(args, sha)}")
            print(_advice(args, *list(verdicts.items())[-1]))
    return 0 if is_found else 3 if left else 1


def _advice(args: argparse.Namespace, sha: str, verdict: Verdict) -> str:
    """A sentence that says what to do after the step that ended the search."""
    if verdict.label == "INVALID":
        return f"next: {sha[:12]} cannot be judged: name a --base after it, or a --head before it"
    if args.by != "time":
        return f"next: {sha[:12]} varies too much by its {args.by}: try --by time"
    more = f"--max-pairs {min(MAX_PAIRS, 2 * args.max_pairs)}"
    kept = f"-o {args.output}, which keeps the pairs so far" if args.output else "-o F.jsonl, which keeps pairs"
    other = "--by instructions" if args.clock == "cpu" else "--clock cpu"
    idle = f"on an idle machine{f', or with {other}' if args.program else ''}"
    return f"next: the same command with {more} and {kept}; or {idle}"
