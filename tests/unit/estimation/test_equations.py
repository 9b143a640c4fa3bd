"""The equations of docs/accuracy.md and the lines of the estimators that name them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "accuracy.md").read_text("utf-8")
ESTIMATORS = [path.read_text("utf-8") for path in (ROOT / "sfm_stream" / "estimation").rglob("*.py")]


def test_every_equation_is_named_by_a_line_of_the_estimators_and_there_is_no_other():
    section = PAGE.split("\n## The equations\n")[1].split("\n## ")[0]
    numbered = [int(number) for number in re.findall(r"^\| (\d+) \|", section, re.M)]
    assert numbered == list(range(1, len(numbered) + 1))
    assert len(numbered) > 20
    named: set[int] = set()
    for text in ESTIMATORS:
        flat = re.sub(r"\s+#?\s*", " ", text)
        for first, last in re.findall(r"[Ee]q\. (\d+)(?: to (\d+))?", flat):
            named.update(range(int(first), int(last or first) + 1))
        for _, second in re.findall(r"[Ee]q\. (\d+) and (\d+)", flat):
            named.add(int(second))
        named.update(int(last) for last in re.findall(r"[Ee]q\. [\d, to]+ and (\d+)", flat))
    assert named == set(numbered)
