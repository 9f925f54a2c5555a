"""The exceptions that nicety raises. All of them derive from `Error`.

- InputError        the user's input is wrong: a file, a key, a unit, a size; exit status 2
  - CompileError    the compiler refused a handler; its messages went to stderr
- RunError          the run itself failed; exit status 1
  - TimedOut        the peer of a call did not make its own call within the timeout
  - Deadlock        a program waits, and no event is left that could wake it
  - HandlerTrap     a handler or process trapped, or used up its cycles
    - HandlerFailure  the run was completed, but with a failure that is not allowed
                      (`nicety.HandlerFailure`, in `nicety.program.failures`)

The message names the error, its place and the correction. If only some points of a benchmark failed, or some cards of
`run_program`, the error's attribute `report` has the results of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicety._native import Deadlock, Error, HandlerTrap, InputError, RunError, TimedOut


class CompileError(InputError):
    """The compiler refused a handler; its messages went to stderr."""


__all__ = ["CompileError", "Deadlock", "Error", "HandlerTrap", "InputError", "RunError", "TimedOut"]


def failure_text(failure: Mapping[str, Any]) -> str:
    """Return a failure of a run as text, with the number of times if it occurred more than once."""
    return failure["text"] if failure["times"] == 1 else f"{failure['text']} ({failure['times']} times)"
