"""docs/extending.md: its examples run and print what the page says; its format is held to the contract of formats.

tests/contract/formats.py takes the format from the page.
"""

import re
from pathlib import Path

from contract.formats import CASES
from reference.memory_batch import MemoryBatch

from sfm_stream.types import Reason

PAGE = (Path(__file__).parents[2] / "docs/extending.md").read_text("utf-8")


def test_the_examples_run_and_print_what_they_say(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names = {}
    for block in blocks:
        exec(compile(block, "docs/extending.md", "exec"), names)  # noqa: S102 -- the page's own code
        said = re.findall(r"print\(.*\)  # (.+)$", block, re.M)
        assert capsys.readouterr().out.splitlines() == said
    assert len(blocks) == 3
    plain = b"at:1700000000000\tpage:/a\tuser:u1"
    columns = names["extractor"].columns([MemoryBatch([plain, b"at:1700000000000\tpage:/a", plain])])
    assert columns.reasons.tolist() == [Reason.OK, Reason.ITEM_MISSING, Reason.OK]


def test_the_format_of_the_page_is_held_to_the_contract():
    assert CASES["ltsv"].make.__name__ == "LtsvFormat"
    assert "LtsvFormat" in PAGE


def test_the_modules_that_the_page_names_are_there():
    root = Path(__file__).parents[2]
    for name in re.findall(r"`((?:sfm_stream|tests)/[a-z_/]+(?:\.py|/))`", PAGE):
        assert (root / name).exists(), name
