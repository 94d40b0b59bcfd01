"""The actions `bench ab`, `bench aa` and `bench reanalyze`: A/B experiments on the speed of two source trees.

An experiment has two arms: "base", a commit checked out as a git worktree, and "head", usually the working tree. Each
pair times a case in two fresh processes, one an arm, in random order; the pairs give a verdict for each case
(verdict.py). Each arm runs its tree's `bench sample` and `bench list` with the same interpreter and drivers. The
options and JSON keys of these two actions never change, so that commits far apart can be compared.
"""

import argparse
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from renderer.bench import MAX_PAIRS
from renderer.bench.answer import compute_verdicts, print_verdicts
from renderer.bench.command_runner import CommandRunner
from renderer.bench.counting import measure_nothing
from renderer.bench.experiment import read_experiment
from renderer.bench.machine import git
from renderer.bench.runner import ExperimentOptions, Runner, head_of
from renderer.bench.verdict import DecisionRule
from renderer.errors import InputError, UnavailableError, UserError
from renderer.host import is_running
from renderer.paths import A_CHECKOUT, PACKAGE
from renderer.plain import Json

# Author of the temporary commit of a working tree's changes.
IDENTITY = ("-c", "user.name=rayfold", "-c", "user.email=rayfold@localhost")


def ab(args: argparse.Namespace) -> int:
    """Runs `bench ab --base REF`: compares the working tree, or --head REF, with a commit; returns the exit code.

    With --command the head is a worktree too: of --head, else of the last commit with the changes of tracked files.
    Without --base, as for `bench aa`, the base is another worktree of the head.
    """
    options, head_ref, dirty = ExperimentOptions.from_arguments(args), getattr(args, "head", None), False
    if args.program and not head_ref:  # program: the line of --command
        dirty = bool(git("status", "--porcelain", "--untracked-files=no", tree=args.repo))
        # `git stash create` makes a commit of the changes, to which no branch refers, and leaves the files as they are.
        head_ref = git(*IDENTITY, "stash", "create", tree=args.repo) if dirty else "HEAD"
    with ExitStack() as stack:
        base, base_sha = stack.enter_context(worktree(args.repo, getattr(args, "base", None) or str(head_ref), "base"))
        head, refs = args.repo, head_of(args.repo)  # refs: the head's commit and whether its tree has changes
        if head_ref:
            head, head_sha = stack.enter_context(worktree(args.repo, head_ref, "head"))
            refs = {"head": head_sha, "dirty": dirty}
        return open_runner(options, {"base": base, "head": head}, {"base": base_sha, **refs}).run()


def open_runner(options: ExperimentOptions, trees: dict[str, Path], refs: Json) -> Runner:
    """Opens the experiment of --command, or of cases, on the trees of both arms."""
    return (CommandRunner if options.program else Runner)(options, trees, refs)


def aa(args: argparse.Namespace) -> int:
    """Runs `bench aa`: compares the working tree with itself, which measures the harness's false alarms."""
    if args.program:
        return ab(args)
    refs = head_of(args.repo)
    trees = {"base": args.repo, "head": args.repo}
    return Runner(ExperimentOptions.from_arguments(args), trees, {"base": refs["head"], **refs}).run()


def reanalyze(args: argparse.Namespace) -> int:
    """Runs `bench reanalyze AB.jsonl`: computes a file's verdicts again with this command's --alpha and --min-effect.

    InputError for a file whose header lacks the numbers of pairs.
    """
    experiment = read_experiment(args.file)
    settings = experiment.header.get("settings", {})
    counts = [settings.get(key) for key in ("pairs", "max_pairs")]
    if not all(type(count) is int and 1 <= count <= MAX_PAIRS for count in counts):
        raise InputError(f"{args.file}: its header does not say how many pairs there were to be")
    rule = DecisionRule(counts[0], counts[1], args.alpha, args.min_effect)
    verdicts = compute_verdicts(experiment, experiment.names(), rule, measure_nothing)
    return print_verdicts(experiment, verdicts, rule, args.json, args.fail_on_undecided)


def commit_hash(tree: Path, ref: str) -> str:
    """The hash of a commit of the repository `tree`; UserError for an unknown one."""
    try:
        return git("rev-parse", "--verify", "--end-of-options", f"{ref}^{{commit}}", tree=tree)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"bench ab: {ref}: git knows no such commit in {tree}") from error


@contextmanager
def worktree(tree: Path, ref: str, arm: str) -> Iterator[tuple[Path, str]]:
    """Checks out the commit `ref` as a git worktree in the repository's .bench/; yields its folder and commit hash.

    Removes the worktree at the end, and at the start any worktrees that killed runs left behind. UserError for an
    unknown commit, and for an installed program, which has no commits; UnavailableError if git cannot add the worktree.
    """
    if tree == PACKAGE:
        raise UserError(f"bench ab: compares commits, which takes {A_CHECKOUT}; or time any command by --command LINE")
    sha = commit_hash(tree, ref)
    for folder in (tree / ".bench").glob("*-*"):
        owner = folder.name.rpartition("-")[2]  # the id of the process that made the worktree: see `path`
        if owner.isdigit() and not is_running(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)
    path = tree / ".bench" / f"{arm}-{sha[:12]}-{os.getpid()}"
    try:
        git("worktree", "prune", tree=tree)  # git forgets the worktrees whose folders were removed above
        git("worktree", "add", "--detach", "--force", str(path), sha, tree=tree)
    except subprocess.CalledProcessError as error:
        raise UnavailableError(f"bench ab: git cannot lay out {sha[:12]}: {error.stderr.strip()}") from error
    try:
        yield path, sha
    finally:
        shutil.rmtree(path, ignore_errors=True)
        git("worktree", "prune", tree=tree)
