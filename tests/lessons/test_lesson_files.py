"""Lessons' files: the bundled ones are whole and lead somewhere, mistakes are one sentence with file and key."""

import re
from pathlib import Path

import pytest

from renderer.errors import InputError, UserError
from renderer.lessons.lesson import LESSONS, MAX_STEPS, LessonTable, bundled_lessons, find_lesson, read_lesson
from renderer.pages.markdown import targets
from renderer.paths import ROOT
from renderer.scene.animation import settings_at

ASKED = {"stencil", "sums", "band-lu", "cdollar", "cuda", "flames", "light-fields", "path-tracing"}


def test_the_lessons_of_the_five_papers_and_three_more_come_along():
    assert set(bundled_lessons()) == ASKED


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_bundled_lesson_is_whole(name):
    """Six to ten steps with words of their own, questions with reasons, panels at once, links that lead."""
    lesson = read_lesson(LESSONS / name)
    assert 6 <= len(lesson.steps) <= 10 and lesson.shown(0)
    assert all(len(step.text) > 200 for step in lesson.steps) and len(lesson.intro) > 150
    assert sum(step.question is not None for step in lesson.steps) >= 3
    assert any(step.measure or step.program for step in lesson.steps)
    for text in [lesson.intro, *(step.text for step in lesson.steps)]:
        for target in targets(text, "link"):
            assert target.startswith(("https://", "#")) or (lesson.path / target.partition("#")[0]).exists(), target
        for quoted in re.findall(r"`(assets/[^`]+)`", text):
            assert (ROOT / quoted).exists(), quoted


def test_steps_keep_the_settings_of_those_before(folder):
    lesson = read_lesson(folder)
    first, second = lesson.scene(0, "set"), lesson.scene(1, "set")
    assert first.settings.max_iterations == second.settings.max_iterations == 30
    assert second.settings.view.height == 1.5 != first.settings.view.height
    assert lesson.shown(1) == ("set",) and lesson.steps[1].paper.plot().series == {"then": (30.0, 20.0)}
    assert [step.text.split()[0] for step in lesson.steps] == ["Text", "|"] and "introduction" in lesson.intro


def test_a_setting_of_a_step_loses_its_key_frames():
    """The bundled light field's disparity is animated: the step's value must be the one that is drawn."""
    lesson = read_lesson(LESSONS / "light-fields")
    for number, wanted in ((1, 3.9), (2, 1.6)):
        scene = lesson.scene(number, "field")
        assert settings_at(scene, 0.0).disparity == settings_at(scene, 2.0).disparity == wanted


MISTAKES = {
    "unknown key": ('summary = "Two steps."', 'summary = "Two."\nauthor = "me"', "unknown key 'author'"),
    "no title": ('title = "A small lesson"\n', "", "the key 'title' is missing"),
    "headings differ": ('title = "First"', 'title = "Start"', 'steps[0]: title is "Start"; lesson.md has "First"'),
    "unknown panel": ('show = ["set"]', 'show = ["sett"]', 'show: no panel "sett"; allowed are set'),
    "unknown setting": ("{ max_iterations = 30 }", "{ iterations = 30 }", "unknown key 'iterations'"),
    "setting out of range": ("{ max_iterations = 30 }", "{ max_iterations = -1 }", "max_iterations is -1"),
    "unknown view": ('show = ["set"]', 'show = ["set"]\nview.set = "x"', 'view: set is "x"; allowed are color'),
    "answers": ('answers = ["this", "that <b>"]', 'answers = ["this"]', "answers must be 2 to 6 texts"),
    "right": ("right = 1", "right = 2", "right is 2; it must be 0 to 1"),
    "kind": ('kind = "frame_rate"', 'kind = "speed"', 'kind is "speed"; allowed are frame_rate, noise'),
    "key": ('key = "max_iterations"', 'key = "depth"', "unknown key 'depth'"),
    "values": ("values = [10, 20]", "values = []", "values must be 1 to 16"),
    "size": ("size = [32, 24]", "size = [32, 100000]", "it must be 16 to 2048"),
    "series": ("{ then = [30.0, 20.0] }", "{ then = [30.0] }", '"then" has 1 values, x has 2'),
    "scene": ('scene = "set.toml"', 'scene = "sett.toml"', 'panels.set: scene is "sett.toml"'),
    "layout": ('scene = "set.toml"', 'scene = "demo"', "a layout; a panel shows one picture"),
    "toml": ("[[steps]]", "[[steps", "not a TOML file"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_with_file_and_key(folder, name):
    old, new, wanted = MISTAKES[name]
    toml = folder / "lesson.toml"
    text = toml.read_text()
    assert old in text
    toml.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_lesson(folder)
    assert str(error.value).startswith(str(toml)) and wanted in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("steps", [(), ({},) * (MAX_STEPS + 1), (1,)])
def test_a_lesson_has_steps_but_not_too_many(steps):
    LessonTable("title", "paper", "summary", ({},) * MAX_STEPS)
    with pytest.raises(ValueError, match=f"steps must be 1 to {MAX_STEPS} tables"):
        LessonTable("title", "paper", "summary", steps)


WORDS_MISTAKES = {
    "title": ("# A small lesson", "# Another", 'the heading (# ...) is "Another"'),
    "a heading less": ("## Second", "Second", "there are 2, but lesson.md has 1 headings"),
    "a picture of the net": ("Two words", "![x](https://example.org/x.png)", "allowed is a file beside it"),
    "a picture above": ("Two words", "![x](../x.png)", "allowed is a file beside it"),
    "a picture that is not there": ("Two words", "![x](x.png)", "there is no"),
    "much": ("Two words", "word " * 20_000, "a lesson has at most"),
}


@pytest.mark.parametrize("name", WORDS_MISTAKES)
def test_a_mistake_in_the_words_is_one_sentence(folder, name):
    old, new, wanted = WORDS_MISTAKES[name]
    words = folder / "lesson.md"
    words.write_text(words.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as error:
        read_lesson(folder)
    assert str(folder) in str(error.value) and wanted in str(error.value) and "\n" not in str(error.value)


def test_a_lesson_is_found_by_name_and_by_path(folder):
    assert find_lesson("stencil") == LESSONS / "stencil" and find_lesson(str(folder)) == folder
    assert find_lesson(str(folder / "lesson.toml")) == folder
    for name in ("stencill", "../stencil/..", str(folder / "none"), "x" * 300):
        with pytest.raises(UserError, match="allowed are band-lu, cdollar"):
            find_lesson(name)
    assert Path(LESSONS).is_dir()
