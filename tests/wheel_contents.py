"""What a wheel and an sdist hold: every file of the package, its SQL and UDFs, and nothing else.

python tests/wheel_contents.py ROOT DIST...       compares, and lists what it found
python tests/wheel_contents.py --oldest ROOT      the oldest dependencies, as pip's constraints
"""

import re
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

#: Where the folders of a checkout lie in a wheel.
FOLDERS = {"dphh": "dphh", "sql": "dphh/sql", "udfs": "dphh/udfs"}
LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache"}


def sources(root: Path) -> dict[str, str]:
    """The files of the package: where each lies in the checkout, and where in a wheel."""
    found = {}
    for folder, installed in FOLDERS.items():
        for path in (root / folder).rglob("*"):
            hidden = path.name.startswith(".") or LEFT_OUT & set(path.parts)
            if path.is_file() and not hidden:
                within = path.relative_to(root / folder)
                found[f"{folder}/{within}"] = f"{installed}/{within}"
    return found


def members(dist: Path) -> set[str]:
    if dist.suffix == ".whl":
        with zipfile.ZipFile(dist) as wheel:
            return {name for name in wheel.namelist() if ".dist-info/" not in name}
    with tarfile.open(dist) as sdist:
        inner = {
            name.partition("/")[2] for name in sdist.getnames() if sdist.getmember(name).isfile()
        }
    return {name for name in inner if ".egg-info/" not in name}


def check(root: Path, dist: Path) -> None:
    found, wanted = members(dist), sources(root)
    wheel = dist.suffix == ".whl"
    expected = set(wanted.values() if wheel else wanted)
    missing = sorted(expected - found)
    strange = sorted(found - expected) if wheel else []
    kinds = Counter(Path(name).suffix or name for name in found)
    print(f"{dist.name}: {len(found)} files:", *(f"{n} {kind}" for kind, n in kinds.most_common()))
    if missing or strange:
        sys.exit(f"{dist.name}: missing {missing}, and not expected {strange}")


def oldest(root: Path) -> list[str]:
    with (root / "pyproject.toml").open("rb") as file:
        dependencies = tomllib.load(file)["project"]["dependencies"]
    return [re.sub(r">=([\d.]+).*", r"==\1", each) for each in dependencies]


if __name__ == "__main__":
    if sys.argv[1] == "--oldest":
        print("\n".join(oldest(Path(sys.argv[2]))))
    else:
        for each in sys.argv[2:]:
            check(Path(sys.argv[1]), Path(each))
