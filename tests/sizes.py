"""How many cases the randomised tests try: few as a rule, many in a long run."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_DEFAULT = 100
"""Cases of a test that names no number, in the usual profile."""


def examples(usual: int, **more: Any) -> settings:
    """So many cases, and as many times more as `HYPOTHESIS_PROFILE=soak` tries of other tests."""
    profile = settings()
    return settings(profile, max_examples=usual * profile.max_examples // _DEFAULT, **more)
