"""Files that list items, one a line."""

from pathlib import Path


def items_of_file(path: str | Path) -> list[str]:
    """The lines of a UTF-8 text file, without blanks around them, which nobody sees, and without
    the mark with which programs of Windows begin a file. Empty lines are left out."""
    lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    return [item for line in lines if (item := line.strip())]
