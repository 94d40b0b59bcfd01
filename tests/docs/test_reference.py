"""The reference pages are what the code says today."""

import pytest

from tests.docs.reference_pages import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_page_is_up_to_date(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), f"run `make reference`: {name} is stale"
