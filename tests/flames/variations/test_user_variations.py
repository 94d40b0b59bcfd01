"""A variation in a file of the user's is drawn as a built-in one; mistakes in it are one sentence."""

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.flames.genome import Flame, Xform
from renderer.flames.variations import catalog as variations
from tests.flames.games import run_chaos_game
from tests.flames.variations.variation_kernel import apply_cases

BILLOW = """// Billows along x.
VARIATION(billow, frequency = 2, amplitude = 0.1) {
    return scaled(weight, x, y + amplitude * sine_of(frequency * x));
}
"""


@pytest.fixture
def user_file(tmp_path, monkeypatch):
    """A function that writes a file, lets RAYFOLD_VARIATIONS name it and reads the table anew."""

    def forget():
        variations.variation_table.cache_clear()
        variations.parameter_owners.cache_clear()

    def write(text, name="mine.h"):
        (tmp_path / name).write_text(text)
        monkeypatch.setenv("RAYFOLD_VARIATIONS", str(tmp_path))
        forget()
        return variations.variation_table()

    yield write
    monkeypatch.undo()
    forget()


def test_a_users_variation_is_drawn(device, user_file):
    table = user_file(BILLOW)
    billow = table["billow"]
    assert billow.parameters == {"billow_frequency": 2.0, "billow_amplitude": 0.1} and billow.is_user_defined
    points = np.random.default_rng(1).normal(size=(64, 4))
    found = apply_cases(device, [billow], [(billow, 0.7, {"frequency": 3.0}, points)], np.zeros(6))[0]
    wanted = 0.7 * np.stack([points[:, 0], points[:, 1] + 0.1 * np.sin(3 * points[:, 0])], 1)
    assert np.allclose(found[:, :2], wanted, atol=1e-6)
    xform = Xform((0.7, -0.3, 0.4, 0.3, 0.7, 0.0), variations={"billow": 1.0, "post_billow": 1.0})
    assert run_chaos_game(device, Flame((xform, Xform((0.4, 0, -0.6, 0, 0.4, 0.2))))).sums.read().any()


def test_draws_of_helpers_are_counted(user_file):
    helper = "DEVICE real noisy(real x, Random *random) {\n    return x + uniform(random) + gauss4(random);\n}\n"
    body = "VARIATION(noisy_twice) {\n    real u = noisy(x, random);\n    return pair(u, noisy(y, random));\n}\n"
    assert user_file(helper + body)["noisy_twice"].random_count == 10


def test_a_file_may_have_only_a_solid(user_file):
    ball = user_file("SOLID(half_ball) { return u * u + v * v + w * w < 0.25f && p.y > 0.0f; }\n")["half_ball"]
    assert ball.is_user_defined and ball.in_space and ball.hides


def test_variations_outside_the_order_follow_by_name(user_file, tmp_path, monkeypatch):
    order = tmp_path / "order.txt"
    order.write_text("swirl linear")
    monkeypatch.setattr(variations, "ORDER", order)
    names = list(user_file(BILLOW))
    assert names[:2] == ["swirl", "linear"] and names[-1] == "billow" and names[2:-1] == sorted(names[2:-1])


def test_a_palette_stamp_of_the_users_takes_the_palette(device, user_file):
    stamp = user_file("PALETTE_STAMP(bars, SIDE = 2, count = 3) {\n    return gray(sine_of(count * p.x));\n}\n")["bars"]
    assert list(stamp.parameters) == ["bars_count", *(f"bars_{name}" for name in variations.STAMP_PARAMETERS)]
    assert stamp.in_space and stamp.sets_rgb and stamp.sets_color and stamp.random_count == 2
    said = {"Gradient": 1.0, "ColorOnly": 1.0}
    points = np.random.default_rng(2).normal(size=(64, 4))
    found = apply_cases(device, [stamp], [(stamp, 1.0, said, points)], np.zeros(6))[0]
    shade = np.clip(np.floor(256 * np.sin(3 * points[:, 0].astype("f4"))), 0, 255)
    assert np.abs(found[:, 5] - shade * 65793).max() <= 65793, "the ramp of grays has the color itself"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no variation"),
        (BILLOW.replace("billow", "linear"), "'linear'; that name is taken"),
        (BILLOW.replace("billow", "post_x"), "'post_x'; that name is taken"),
        (BILLOW + "SOLID(linear) { return u > v; }\n", "mine.h:5: a variation cannot be called 'linear'"),
        ("ESCAPE(" + BILLOW.partition("(")[2].replace("2,", "two,"), "mine.h:1: variation 'billow' is not of the form"),
        (BILLOW.replace("= 2", "= two"), "mine.h:2: variation 'billow' is not of the form"),
        ("#include <stdio.h>\n" + BILLOW, "mine.h:1: preprocessor lines are not allowed"),
    ],
)
def test_mistakes_are_one_sentence(user_file, text, told):
    with pytest.raises(UserError, match=told) as caught:
        user_file(text)
    assert "\n" not in str(caught.value)


def test_a_text_that_does_not_compile_names_its_file(device, user_file):
    user_file(BILLOW.replace("sine_of", "sinus"))
    with pytest.raises(UserError, match=r"billow of .*mine\.h") as caught:
        run_chaos_game(device, Flame((Xform(variations={"billow": 1.0}),)))
    assert "\n" not in str(caught.value)


def test_a_path_that_is_nothing_is_an_error(tmp_path, monkeypatch, user_file):
    user_file(BILLOW)
    variations.variation_table.cache_clear()
    monkeypatch.setenv("RAYFOLD_VARIATIONS", str(tmp_path / "none"))
    with pytest.raises(UserError, match="must be a file or a folder"):
        variations.variation_table()
