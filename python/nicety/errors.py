"""What nicety raises. All of it derives from `Error`.

  InputError        what the user gave is wrong: a file, a key, a unit, a size; exit status 2
    CompileError    the compiler refused a handler; its own messages have gone to stderr
  RunError          the run itself failed; exit status 1
    TimedOut        a call had a timeout, and its other end did not come in time
    Deadlock        a program waits and nothing can happen any more
    HandlerTrap     a handler or process faulted, or used up its cycles
      HandlerFailure  the run came to its end, and a handler failed in it that was not allowed to

The message says what is wrong, where, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nicety._native import Deadlock, Error, HandlerTrap, InputError, RunError, TimedOut

if TYPE_CHECKING:
    from nicety.outcomes import Run


class CompileError(InputError):
    """The compiler refused a handler; its messages went to stderr."""


class HandlerFailure(HandlerTrap):
    """A run came to its end, and a handler or process trapped, failed, overran its budget or had a command refused.

    `allow_failures` of what was run says which of these are asked for.

    Attributes:
        failures: what failed, as in `Run.failures`; of a benchmark or `run_program` also the card, `nic`.
        run: the run, of `Cluster.run`.
        report: the report, of a benchmark or of `run_program`: it is whole.
    """

    def __init__(
        self,
        text: str,
        failures: Sequence[Mapping[str, Any]],
        *,
        run: Run | None = None,
        report: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(text)
        self.failures, self.run, self.report = list(failures), run, report


def retold(error: Error, text: str) -> Error:
    """The same error with another text."""
    if isinstance(error, HandlerFailure):
        return HandlerFailure(text, error.failures, run=error.run, report=error.report)
    return type(error)(text)


__all__ = ["CompileError", "Deadlock", "Error", "HandlerFailure", "HandlerTrap", "InputError", "RunError", "TimedOut"]
