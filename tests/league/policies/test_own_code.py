"""The digest of a game's source: of its file and of whatever it imports from its project, wherever a text says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.policies.own_code import source_digest

PLACES = {
    "at the head": "import rules\n",
    "in a function": "def make():\n    import rules\n",
    "in a method": "class Game:\n    def reset(self):\n        from rules import WIN\n",
    "where another fails": "try:\n    import absent\nexcept ImportError:\n    import rules\n",
    "in the end": "try:\n    pass\nfinally:\n    import rules\n",
    "else": "for one in ():\n    pass\nelse:\n    import rules\n",
    "in a case": "match 1:\n    case 2:\n        import rules\n",
    "in a block": "async def play():\n    async with lock:\n        import rules\n",
    "by way of another": "from between import WIN\n",
    "in a package": "from parts.inner import *\n",
}


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES)
def test_a_change_of_what_is_imported_changes_the_digest(text: str, tmp_path: Path) -> None:
    game, rules = tmp_path / "game.py", tmp_path / "rules.py"
    (tmp_path / "parts").mkdir()
    for name, content in {
        "between.py": "import rules\n",
        "parts/__init__.py": "",
        "parts/inner.py": "from .. import rules\n",
        "other.py": "",
        "rules.py": "WIN = 1\n",
    }.items():
        (tmp_path / name).write_text(content)
    game.write_text(text)
    before = source_digest(f"{game}:make")
    (tmp_path / "other.py").write_text("WIN = 3\n")
    assert source_digest(f"{game}:make") == before, "nobody imports it"
    rules.write_text("WIN = 2\n")
    assert source_digest(f"{game}:make") != before
    rules.write_text("WIN = 1\n")
    assert source_digest(f"{game}:make") == before


def test_a_text_that_is_no_python_has_a_digest(tmp_path: Path) -> None:
    game = tmp_path / "game.py"
    game.write_text("def make(:\n")
    assert source_digest(f"{game}:make") is not None
    assert source_digest(f"{tmp_path}/absent.py:make") != source_digest(f"{game}:make")
