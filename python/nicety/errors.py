"""The exceptions that nicety raises. All of them derive from `Error`.

  InputError        what the user gave is wrong: a file, a key, a unit, a size; exit status 2
    CompileError    the compiler refused a handler; its own messages have gone to stderr
  RunError          the run itself failed; exit status 1
    TimedOut        a call had a timeout, and its other end did not come in time
    Deadlock        a program waits and nothing can happen any more
    HandlerTrap     a handler or process trapped, or used up its cycles
      HandlerFailure  the run came to its end, and a handler failed in it that was not allowed to
                      (`nicety.HandlerFailure`, in `nicety.program.failures`)

The message says what is wrong, where, and what to write instead. Where some points of a benchmark, or some cards of
`run_program`, failed and others did not, the error has the `report` of these as an attribute.
"""

from __future__ import annotations

from nicety._native import Deadlock, Error, HandlerTrap, InputError, RunError, TimedOut


class CompileError(InputError):
    """The compiler refused a handler; its messages went to stderr."""


__all__ = ["CompileError", "Deadlock", "Error", "HandlerTrap", "InputError", "RunError", "TimedOut"]
