"""The guide to training: its blocks of code, run one after another in one session."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "train.md"


@pytest.mark.slow
def test_the_guide_runs_as_it_stands():
    pytest.importorskip("torch")
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    session = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), session)


def test_the_guide_names_every_public_name():
    pytest.importorskip("torch")
    import calibrant.train

    text = GUIDE.read_text(encoding="utf-8")
    assert [name for name in calibrant.train.__all__ if f"`{name}" not in text and f"train.{name}" not in text] == []
