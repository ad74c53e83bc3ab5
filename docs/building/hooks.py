"""MkDocs calls these while it builds the site.

A page says `<!-- made: NAME -->` where something that the code knows is to stand. The pages of the
repository's root (CONTRIBUTING, SECURITY, CHANGELOG) and its examples become part of the site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent)]

from mkdocs.structure.files import File, Files  # noqa: E402

from building.api import api_page  # noqa: E402
from building.pictures import PICTURES  # noqa: E402
from building.plain_sql import PLAIN_SQL  # noqa: E402

MADE: dict[str, Callable[[], str]] = {
    "api": api_page,
    **PICTURES,
    **PLAIN_SQL,
}
ROOT_PAGES = {
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changes.md": "CHANGELOG.md",
}


#: A link to a file beside the tests: its text, and its path in the repository.
_OUTSIDE = r"\[([^]]+)\]\(\.\./(tests/[^)#]+)[^)]*\)"


def on_files(files: Files, config: Any) -> Files:
    for page, source in ROOT_PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_in_the_site(text)))
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            uri = str(path.relative_to(ROOT))
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return re.sub(r"<!-- made: ([\w-]+) -->", lambda found: MADE[found[1]](), _beside(markdown))


def _in_the_site(text: str) -> str:
    """Links from the repository's root, as links from docs/."""
    text = re.sub(r"\]\(docs/", "](", text)
    for page, source in ROOT_PAGES.items():
        text = text.replace(f"]({source}", f"]({page}")
    return text


def _beside(text: str) -> str:
    """Links out of docs/, as links to what the site has of the rest of the repository.

    Measurements and audits lie beside what they measure, and are no pages: the site names the file.
    """
    text = text.replace("](../examples/gateway)", "](examples/gateway/dphh.service)")
    text = text.replace("](../examples/", "](examples/")
    text = re.sub(r"\(" + _OUTSIDE + r"\)", r"(\1: `\2`)", text)
    text = re.sub(_OUTSIDE, r"\1 (`\2`)", text)
    for page, source in ROOT_PAGES.items():
        text = text.replace(f"](../{source}", f"]({page}")
    return text
