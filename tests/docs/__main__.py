"""Write what pages print anew: `python -m tests.docs docs/index.md`. Look at the difference."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.docs.pages import Running, same_noise, shown


def written_anew(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    new, done = [], 0
    running = Running()
    for what in shown(text):
        printed = running.run(what)
        if what.printed is not None and "\n..." not in f"\n{what.printed}":
            new += [text[done : what.place[0]], printed.rstrip() + "\n"]
            done = what.place[1]
    return "".join([*new, text[done:]])


for page in [Path(name).resolve() for name in sys.argv[1:]]:
    with TemporaryDirectory() as folder, same_noise():
        os.chdir(folder)
        os.environ.pop("DPHH_LEDGER", None)
        os.environ["XDG_DATA_HOME"] = f"{folder}/own-data"
        os.environ["COLUMNS"] = "100"
        page.write_text(written_anew(page), encoding="utf-8")
        os.chdir("/")
