"""The command line, `nicety`.

Exit status: 0 success; 1 the run failed (a deadlock, a trap, a wrong byte); 2 the user's input is wrong; 130 Ctrl-C.
A message goes to stderr, never a traceback for a user's mistake. With `--json`, stdout carries one JSON document and
nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    from nicety.cli.app import app

    try:
        app(args=None if arguments is None else list(arguments), prog_name="nicety")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:
        status = _report(error)
    else:
        status = 0
    if status == INTERRUPTED:
        print("nicety: interrupted", file=sys.stderr)
    return status


def _report(error: Exception) -> int:
    from nicety.errors import Error, InputError

    if not isinstance(error, Error):
        raise error
    print(f"nicety: {error}", file=sys.stderr)
    return 2 if isinstance(error, InputError) else 1
