"""One point of a study: a command that runs in this process."""

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
    """Run a command, and return its status, its time, and the document that it printed.

    Args:
        arguments: command-line arguments without `--json`.
    """
    begin, said, error = time.perf_counter(), io.StringIO(), None
    with collected() as documents, _streams(said):
        try:
            # `--json` belongs before `--`, since arguments after `--` are not the command's options.
            place = arguments.index("--") if "--" in arguments else len(arguments)
            arguments = [*arguments[:place], "--json", *arguments[place:]]
            # Without standalone mode, `typer.Exit` becomes a returned status.
            status = commands_for(arguments)(args=arguments, prog_name="nicety", standalone_mode=False)
            if status:
                error = _ended(status, said.getvalue())
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


def _ended(status: int, said: str) -> str:
    """Return the error of a command that ended with a status above 0: the status, and the command's last note."""
    notes = [line.removeprefix("nicety: ") for line in said.splitlines() if line.startswith("nicety: ")]
    return f"the command ended with status {status}" + (f": {notes[-1]}" if notes else "")


@contextlib.contextmanager
def _streams(said: io.StringIO) -> Iterator[None]:
    """Capture printed output of the main thread. Other threads share the streams, so their output is not captured."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield
    sys.stdout.flush()
