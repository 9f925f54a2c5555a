"""The command line, `nicety`.

Exit status: 0 success; 1 the run failed (a deadlock, a trap, a wrong byte); 2 the user's input is wrong. Ctrl-C ends a
command with 130. SIGTERM and SIGHUP end a command like Ctrl-C, with 143 and 129. Messages go to stderr, and a user's
mistake never prints a traceback. With `--json`, stdout has one JSON document and nothing else. If a run failed before
its document was complete, the document is `{"error": ...}`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

INTERRUPTED = 130
_ENDED = {INTERRUPTED: "interrupted", 129: "hung up", 143: "terminated"}
"""Maps the exit status of a command that a signal ended to the message on stderr."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    silent = False
    try:
        # Imported inside `try`, since Ctrl-C may be pressed while modules are loaded.
        from nicety.cli.streams import set_up

        set_up()
        for number in ("SIGTERM", "SIGHUP"):
            # nohup ignores SIGHUP, and Windows has no SIGHUP.
            if (ends := getattr(signal, number, None)) and signal.getsignal(ends) is signal.SIG_DFL:
                signal.signal(ends, _terminate)
        from nicety.cli.app import app_for, everything

        given = sys.argv[1:] if arguments is None else list(arguments)
        # A shell that completes a line passes the line in an environment variable.
        app = everything() if "_NICETY_COMPLETE" in os.environ else app_for(given)
        app(args=given, prog_name="nicety")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        # Only one of several MPI processes prints the end.
        silent = getattr(ended, "silent", False)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:
        status = _report(error, as_json="--json" in (sys.argv[1:] if arguments is None else arguments))
    else:
        status = 0
    try:
        sys.stdout.flush()
    except OSError as error:
        status = _report(error)
    if status in _ENDED and not silent:
        print(f"nicety: {_ENDED[status]}", file=sys.stderr)
    return status


def _terminate(number: int, _frame: object) -> None:
    sys.exit(128 + number)


def _report(error: Exception, *, as_json: bool = False) -> int:
    from nicety.errors import Error, InputError
    from nicety.shared.text import printable_text

    # An error about a file has the file's name. An error without a name is about stdout.
    if isinstance(error, OSError) and error.filename is None:
        return _unwritten(error)
    if isinstance(error, UnicodeEncodeError):
        # Python decodes bytes that are not UTF-8 to surrogates. These cannot be encoded.
        print(f"nicety: a name or an argument is no text in UTF-8 ({error.reason}); rename it", file=sys.stderr)
        return 2
    if not isinstance(error, Error):
        raise error
    from nicety.cli.output import print_behind, print_error

    print(f"nicety: {printable_text(str(error))}", file=sys.stderr)
    text, to_stderr = getattr(error, "behind", ("", False))
    print_behind(text, to_stderr=to_stderr)
    if as_json and not isinstance(error, InputError):
        print_error(error)
    return 2 if isinstance(error, InputError) else 1


def _unwritten(error: OSError) -> int:
    """Print that stdout is not writable, unless its reader has closed the pipe. Return the exit status."""
    from nicety.cli.streams import discard

    discard(sys.stdout)
    # `head` closes its pipe early, which is no error.
    if not isinstance(error, BrokenPipeError):
        print(f"nicety: cannot write stdout: {error.strerror or error}", file=sys.stderr)
    return 1
