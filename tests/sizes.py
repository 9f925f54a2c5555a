"""Numbers of cases of the randomised tests: few as a rule, many in a long run."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_DEFAULT = 100
"""Cases of a test that names no number, in the usual profile."""


def examples(usual: int, **more: Any) -> settings:
    """Settings with `usual` cases, multiplied in the profile `HYPOTHESIS_PROFILE=soak` as for other tests."""
    profile = settings()
    return settings(profile, max_examples=usual * profile.max_examples // _DEFAULT, **more)
