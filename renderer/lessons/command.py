"""The command `rayfold lesson` without its window: lists lessons, writes one as an HTML page, or runs one step.

window/command.py calls needs_window() and, if the answer is no, command(). The window runs `--step N --json` in a child
process to carry out a step.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.errors import KernelError, UnavailableError, UserError
from renderer.plain import Json
from renderer.system import arguments, trust
from renderer.system.outputs import own_outputs, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from renderer.lessons.lesson import Lesson
    from renderer.lessons.measurements import Bench
    from renderer.lessons.page import StepResult
    from renderer.scene.scene import Scene

DEFAULT_WIDTH = 640  # pixels of a page's pictures
MAX_WIDTH = 2048
TRIAL_WIDTH = 128  # pixels: a smaller --width also limits the pictures and matrices of measurements


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Declare the options of `rayfold lesson`."""
    add = command.add_argument
    add("lesson", metavar="NAME", nargs="?", help="a lesson, or a folder with lesson.toml; without one, the list")
    add("--html", metavar="FOLDER", type=Path, help="write NAME.html there, one page that needs no other file")
    step_help = "begin with this step; with --json, carry out only this one"
    add("--step", type=arguments.positive, metavar="N", help=step_help)
    add("--device", default="auto", help="cuda:INDEX, opencl:PLATFORM:INDEX, cpu or auto")
    add("--size", type=arguments.size, default=(1600, 900), metavar="WxH", help="of the window (1600x900)")
    width_help = "of the page's pictures, pixels (640); below 128 a trial, whose experiments are as small"
    add("--width", type=arguments.positive, default=DEFAULT_WIDTH, metavar="N", help=width_help)
    add("--samples", type=arguments.positive, metavar="N", help="of the page's pictures (default: as the lesson says)")
    add("--seconds", type=arguments.duration, default=10.0, help="of each measurement, at most 10 (10)")
    add("--json", action="store_true", help="print exactly one JSON object")
    add("--force", action="store_true", help=arguments.FORCE)
    trust.add_arguments(command, ("lesson", "html"))


def needs_window(args: argparse.Namespace) -> bool:
    """True if the options ask for the window; raises UserError for options that exclude each other."""
    _check(args)
    return args.lesson is not None and args.html is None and not args.json


def requested_lesson(args: argparse.Namespace) -> "Lesson":
    """Reads the lesson that the options name; UserError for an unknown lesson or for a --step that it lacks."""
    from renderer.lessons.lesson import find_lesson, read_lesson

    lesson = read_lesson(find_lesson(args.lesson))
    if args.step is not None and args.step > len(lesson.steps):
        raise UserError(f"--step {args.step}: {lesson.name} has {len(lesson.steps)} steps")
    return lesson


def command(args: argparse.Namespace) -> int:
    """Runs `rayfold lesson` without its window; returns the exit code, 3 if this machine cannot run some step."""
    if args.lesson is None:
        return _list(args.json)
    lesson = requested_lesson(args)
    if args.html is not None:
        # refuses a file that another program wrote, unless --force
        with own_outputs(args.html / f"{lesson.name}.html", force=args.force):
            return write_lesson(lesson, args)
    return _carry_out(lesson, args) if args.step else _describe(lesson)


def _check(args: argparse.Namespace) -> None:
    """Raises UserError for options that do not fit together."""
    if args.lesson is None and (args.html or args.step):
        raise UserError("lesson: --html and --step need the name of a lesson")
    if (args.untrusted or args.max_memory) and args.html is None and not args.json:
        raise UserError("lesson: --untrusted and --max-memory need --html or --json; a window has no such limits")
    if args.html is not None and args.step is not None:
        raise UserError("lesson: --html writes all steps; not together with --step")
    if not 16 <= args.width <= MAX_WIDTH:
        raise UserError(f"--width {args.width}; it must be 16 to {MAX_WIDTH}")
    if not 0 < args.seconds <= 10:
        raise UserError(f"--seconds {args.seconds:g}; it must be above 0 and at most 10")


def _list(as_json: bool) -> int:
    """Prints the bundled lessons; returns the exit code 0."""
    from renderer.lessons.lesson import LESSONS, bundled_lessons, read_lesson

    lessons = [read_lesson(LESSONS / name) for name in bundled_lessons()]
    if as_json:
        rows = [{"name": each.name, "title": each.title, "steps": len(each.steps)} for each in lessons]
        print(json.dumps({"lessons": rows}))
        return 0
    for each in lessons:
        print(f"{each.name:14s} {each.title} ({len(each.steps)} steps)\n{'':14s} {each.summary}")
    return 0


def _describe(lesson: "Lesson") -> int:
    steps = [step.title for step in lesson.steps]
    print(json.dumps({"name": lesson.name, "title": lesson.title, "paper": lesson.paper, "steps": steps}))
    return 0


def _open_bench(args: argparse.Namespace, scenes: "Mapping[str, Scene] | None" = None) -> "Bench":
    from renderer.gpu import open_context
    from renderer.lessons.measurements import Bench

    trial = args.width if args.width < TRIAL_WIDTH else 0
    return Bench(open_context(args.device), scenes or {}, args.seconds, trial)


def _carry_out(lesson: "Lesson", args: argparse.Namespace) -> int:
    """Prints the result of step --step as one JSON object: its measurement and its program's value."""
    number = args.step - 1
    bench = _open_bench(args, lesson.scenes(number))
    result = carry_out(lesson, number, bench)
    facts: Json = {"step": args.step, "title": lesson.steps[number].title}
    facts["finding"] = asdict(result.finding) if result.finding else None
    facts["program"] = asdict(result.program) if result.program else None
    print(json.dumps(facts | {"problem": result.problem}))
    return 3 if result.problem else 0


def carry_out(lesson: "Lesson", number: int, bench: "Bench") -> "StepResult":
    """Evaluates the program and runs the measurement of step `number`, counted from 0.

    If this machine cannot run them, StepResult.problem is a sentence with the reason.
    """
    from renderer.lessons.page import StepResult
    from renderer.lessons.programs import evaluate

    step, result = lesson.steps[number], StepResult()
    bench.scenes, bench.spent = lesson.scenes(number), 0.0
    try:
        if step.program is not None:
            result.program = evaluate(step.program, bench.gpu.device)
        if step.measure is not None:
            result.finding = step.measure.run(bench)
    except (UnavailableError, KernelError) as error:
        result.problem = f"This machine cannot do this step: {error}."
    return result


def write_lesson(lesson: "Lesson", args: argparse.Namespace) -> int:
    """Runs all steps and writes the lesson's page into the folder --html; returns the exit code."""
    from renderer.bench.machine import host
    from renderer.lessons.drawing import draw_step
    from renderer.lessons.page import lesson_page

    try:
        args.html.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--html {args.html}: cannot be made: {error.strerror}") from error
    output, bench, results = args.html / f"{lesson.name}.html", _open_bench(args), []
    for number, step in enumerate(lesson.steps):
        if not args.json:
            print(f"{number + 1} of {len(lesson.steps)}: {step.title}", file=sys.stderr)
        result = carry_out(lesson, number, bench)
        try:
            if step.show or step.set or step.view:  # other steps keep the pictures of the step before
                result.pictures = draw_step(lesson, number, bench, args.width, args.samples or 0)
        except (UnavailableError, KernelError) as error:
            result.problem = f"This machine cannot draw this step: {error}."
        results.append(result)
    cpu = host()
    machine = f"{bench.gpu.device.name}, in a computer with {cpu['cores']} cores ({cpu['cpu']})"
    page = lesson_page(lesson, results, output, machine)
    write_text(output, page, is_sealed=True)  # ends with a checksum, by which own_outputs() knows the file
    problems = [result.problem for result in results if result.problem]
    for problem in problems:
        print(f"rayfold: {problem}", file=sys.stderr)
    if args.json:
        facts = {"output": str(output), "bytes": output.stat().st_size, "steps": len(results), "problems": problems}
        print(json.dumps(facts | {"device": bench.gpu.device.name}))
    else:
        print(output)
    return 3 if problems else 0
