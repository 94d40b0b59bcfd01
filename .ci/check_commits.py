"""Checks commits: a subject that says what the commit does, a body that says why, no conflict marks in the tree.

check_commits.py FILE    the message in FILE, for the staged changes (pre-commit's stage commit-msg)
check_commits.py         every commit since this check exists (`make lint`)
"""

import re
import subprocess
import sys
from pathlib import Path

MAX_SUBJECT = 72
MAX_LINES_WITHOUT_BODY = 50  # changed lines, added and removed
NO_VERBS = {"a", "an", "the", "this", "that", "these", "some", "no", "not", "one", "what", "where", "how", "of", "and"}
IMPERATIVES = {"bring", "embed", "feed", "need", "shed", "speed", "string", "seed", "spring", "wed"}
MARKS = "^(<{7}|>{7}|[|]{7}) "
HERE = ".ci/check_commits.py"


def git(*words: str) -> str:
    """Standard output of a git command; the empty text where git or the history is missing."""
    answer = subprocess.run(["git", *words], capture_output=True, text=True, cwd=Path(__file__).resolve().parents[1])
    return answer.stdout


def problems_of_message(message: str, changed_lines: int) -> list[str]:
    """What is wrong with a commit message, as sentences."""
    lines = [line.rstrip() for line in message.splitlines() if not line.startswith("#")]
    subject, body = (lines or [""])[0], [line for line in lines[1:] if line]
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return []
    problems = []
    verb = (re.sub(r"^[^:]{1,40}: ", "", subject).split() or [""])[0].lower()
    if not subject or len(subject) > MAX_SUBJECT:
        problems.append(f"the subject has {len(subject)} characters; allowed are 1 to {MAX_SUBJECT}")
    if subject.endswith("."):
        problems.append("the subject ends with a period")
    past = verb.endswith(("ed", "ing")) and verb not in IMPERATIVES
    if past or verb in NO_VERBS:
        problems.append(f"the subject is no imperative: it begins with {verb!r}; say what the commit does, as in 'Add'")
    if len(lines) > 1 and lines[1]:
        problems.append("the second line is not empty")
    if changed_lines > MAX_LINES_WITHOUT_BODY and not body:
        problems.append(f"{changed_lines} lines change and no body says why")
    return problems


def changed_lines(numstat: str) -> int:
    """Added and removed lines of text files in the output of `git diff --numstat`."""
    counts = [row.split("\t")[:2] for row in numstat.splitlines() if row.count("\t") == 2]
    return sum(int(count) for row in counts for count in row if count != "-")


def check_staged(message: str) -> list[str]:
    """Problems of the commit that is about to be made."""
    marks = git("grep", "--cached", "-lE", MARKS).split()
    return problems_of_message(message, changed_lines(git("diff", "--cached", "--numstat", "-M"))) + [
        f"{name} holds conflict marks" for name in marks
    ]


def check_history() -> list[str]:
    """Problems of all commits after the one that added this file; none where there is no history."""
    first = git("log", "--diff-filter=A", "--format=%H", "--", HERE).split()
    problems = []
    for commit in git("rev-list", "--no-merges", f"{first[-1]}..HEAD").split() if first else []:
        numstat = git("show", "--numstat", "-M", "--format=", commit)
        found = problems_of_message(git("show", "-s", "--format=%B", commit), changed_lines(numstat))
        found += [f"{row.split(':', 1)[1]} holds conflict marks" for row in git("grep", "-lE", MARKS, commit).split()]
        problems += [f"{commit[:10]}: {problem}" for problem in found]
    return problems


if __name__ == "__main__":
    found = check_staged(Path(sys.argv[1]).read_text(encoding="utf-8")) if sys.argv[1:] else check_history()
    for problem in found:
        print(f"commit: {problem}", file=sys.stderr)
    sys.exit(bool(found))
