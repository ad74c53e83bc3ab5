"""What `import dphh` offers."""

from __future__ import annotations

import dphh


def test_public_names_complete_and_no_others():
    assert dir(dphh) == sorted(dphh.__all__)
    assert all(hasattr(dphh, name) for name in dphh.__all__)
