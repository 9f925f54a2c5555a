"""A point of a study: a command, run in this process."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from nicety.cli.commands import commands_for
from nicety.cli.options import error_text
from nicety.cli.output import collected
from nicety.sweeps.store import Outcome


def run_command(arguments: Sequence[str]) -> Outcome:
    """Run a command, and keep the document that it prints.

    Args:
        arguments: command-line arguments without `--json`.
    """
    begin, said, error = time.perf_counter(), io.StringIO(), None
    with collected() as documents, _streams(said):
        try:
            # Not among the arguments after `--`.
            place = arguments.index("--") if "--" in arguments else len(arguments)
            arguments = [*arguments[:place], "--json", *arguments[place:]]
            commands_for(arguments)(args=arguments, prog_name="nicety", standalone_mode=False)
        except (Exception, SystemExit) as wrong:
            error = error_text(wrong)
    if error is None and not documents:
        error = "the command has printed no report"
    outcome: Outcome = {"status": "done" if error is None else "failed", "elapsed_s": time.perf_counter() - begin}
    if documents:
        outcome["result"] = json.loads(json.dumps(documents[-1]))
    if error is not None:
        outcome["error"] = error
    if said.getvalue():
        outcome["notes"] = said.getvalue()
    return outcome


@contextlib.contextmanager
def _streams(said: io.StringIO) -> Iterator[None]:
    """Capture printed output; not in threads, which share the streams."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield
    sys.stdout.flush()
