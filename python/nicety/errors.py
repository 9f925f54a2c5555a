"""What nicety raises. All of it derives from `Error`.

  InputError        what the user gave is wrong: a file, a key, a unit, a size; exit status 2
    CompileError    the compiler refused a handler; its own messages have gone to stderr
  RunError          the run itself failed; exit status 1
    Deadlock        a program waits and nothing can happen any more
    HandlerTrap     a handler faulted, or used up its cycles

The message says what is wrong, where, and what to write instead.
"""

from __future__ import annotations

from nicety._native import Deadlock, Error, HandlerTrap, InputError, RunError


class CompileError(InputError):
    """The compiler refused a handler; its messages went to stderr as they were."""


__all__ = ["CompileError", "Deadlock", "Error", "HandlerTrap", "InputError", "RunError"]
