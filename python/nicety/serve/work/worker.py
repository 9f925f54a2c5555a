"""The process of one work: `python -m nicety.serve.work.worker`.

It says that it is ready, reads a job from stdin, and writes frames to stdout until the work has ended. Output of
handlers goes to stderr. The process ends as soon as its parent closes stdin.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import traceback
from typing import BinaryIO

from nicety.errors import Error
from nicety.serve.work.actions import ACTIONS
from nicety.serve.work.job import Job
from nicety.serve.work.pipe import Pipe, read_json
from nicety.serve.work.said import Names, Said, error_info


def main() -> None:
    """Do one work."""
    # Only frames go to stdout, so other output gets another descriptor.
    pipe = Pipe(os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    _prepare()
    pipe.tell({"type": "ready"})
    request = read_json(sys.stdin.buffer)
    if request is None:
        return
    threading.Thread(target=_end_with_parent, args=(sys.stdin.buffer,), daemon=True).start()
    names = Names([(path, name) for path, name in request["paths"]])
    said = Said(names, lambda text: pipe.tell({"type": "output", "text": text}))
    _do(Job(**request["job"]), pipe, said)
    sys.stdout.flush()
    # Nothing is left to do, and the page waits for the end of output.
    os._exit(0)


def _prepare() -> None:
    """Do what every work needs before there is one: the library in the cache, and the compiler's version."""
    from nicety.build.compiler import library_folder
    from nicety.build.toolchain import find_toolchain

    # A work reports the error.
    with contextlib.suppress(Error):
        library_folder()
        find_toolchain(None)


def _do(job: Job, pipe: Pipe, said: Said) -> None:
    try:
        with contextlib.redirect_stderr(said):
            result = ACTIONS[job.action](job, pipe, said)
        pipe.tell({"type": "result", "action": job.action, "result": said.names.all(result)})
    except Error as error:
        pipe.tell({"type": "failed", "error": error_info(error, job.name, said)})
    except Exception as error:
        # A fault of nicety: the terminal gets the traceback, and the page one line.
        text = f"internal error: {type(error).__name__}; the terminal of nicety serve has more"
        pipe.tell({"type": "failed", "error": {"message": text, "kind": "run"}, "trace": traceback.format_exc()})


def _end_with_parent(stream: BinaryIO) -> None:
    while stream.read(1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
