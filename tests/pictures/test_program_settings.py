"""The settings of a program's picture: parameters whose names no setting can have."""

import pytest

from renderer.errors import InputError
from renderer.pictures.cdollar import open_file


@pytest.mark.parametrize("name", ["None", "lambda"])
def test_a_parameter_named_like_a_python_keyword_is_refused_by_name(tmp_path, name):
    program = tmp_path / "p.cb"
    program.write_text(f"float main(int x, int y, float {name} = 1) => {name} * x;")
    with pytest.raises(InputError, match=rf"p\.cb: the parameter `{name}` cannot be a setting.*rename it"):
        open_file(program)
