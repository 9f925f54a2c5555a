"""The actions of the workbench: a line-rate check, a profile, a check by the checker."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicety.bench.check.handlers import check_handlers, check_text
from nicety.bench.line_rate import check_line_rate, line_rate_text, words_of
from nicety.bench.profile.run import profile_handlers
from nicety.build.compiler import INSPECTIONS, library_folder
from nicety.build.sources import Handlers
from nicety.errors import Error
from nicety.serve.work.includes import check_assembly, check_includes
from nicety.serve.work.job import Job
from nicety.serve.work.pipe import BYTES, Pipe
from nicety.serve.work.recorded import latency_histogram, packets_message, timeline_message
from nicety.serve.work.said import Said, error_info
from nicety.show.columns import distinct

if TYPE_CHECKING:
    from nicety import _native

_FIRST = re.compile(r"(?P<place>.*?): (?P<verdict>yes|no|not judged): ")
"""The news of the first run of a card."""


def _with_report(
    job: Job, said: Said, act: Callable[..., Any], **options: Any
) -> tuple[Any, bool, dict[str, Any] | None]:
    """Return a report, whether all of it succeeded, and otherwise the error."""
    handlers = Handlers(job.source, include_dirs=job.folders, defines=job.defines, **job.names)
    if job.is_edited:
        source = Path(job.source)
        text = source.read_text(encoding="utf-8")
        composed = check_includes(job.name, text, [source.parent, *map(Path, job.folders)], library_folder())
        if composed or any("asm" in define for define in job.defines):
            INSPECTIONS.append(partial(check_assembly, job.name))
    try:
        return act(handlers, **options, **job.given), True, None
    except Error as error:
        report = getattr(error, "report", None)
        if report is None:
            raise
        return report, False, error_info(error, job.name, said)


class _Shown:
    """The recording of a run on its way to the page, in a thread: the first answer does not wait for it."""

    def __init__(self, job: Job, pipe: Pipe) -> None:
        point = "traffic" if "traffic" in job.given else "packets"
        self._about = {"id": job.id, "nic": job.given["nics"][0], "point": point}
        self._pipe = pipe
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.latency: dict[str, Any] | None = None

    def begin(self, recording: _native.Recording) -> None:
        """Take the recording."""
        self._thread = threading.Thread(target=self._show, args=(recording,))
        self._thread.start()

    def _show(self, recording: _native.Recording) -> None:
        try:
            self._pipe.write(BYTES, timeline_message(recording, self._about))
            message, packets = packets_message(recording, self._about)
            self._pipe.write(BYTES, message)
            self.latency = latency_histogram(self._about["nic"], packets)
        except BaseException as error:  # raised again by `join`
            self._error = error

    def join(self) -> None:
        """Wait until the page has the recording."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error


def run(job: Job, pipe: Pipe, said: Said) -> dict[str, Any]:
    """Check whether handlers keep up with the line rate."""
    shown = _Shown(job, pipe)

    def tell(text: str) -> None:
        found = _FIRST.match(text)
        place, verdict = (found["place"], found["verdict"]) if found else (None, None)
        pipe.tell({"type": "news", "text": said.names.text(text), "place": place, "verdict": verdict})

    report, ok, error = _with_report(
        job, said, check_line_rate, progress=_progress(pipe), news=tell, recorded=shown.begin
    )
    shown.join()
    rows = report["rows"]
    sentences = [
        {"nic": nic, "lines": words_of([row for row in rows if row["nic"] == nic])}
        for nic in distinct(row["nic"] for row in rows)
    ]
    return {
        "ok": ok,
        "error": error,
        "report": dict(report),
        "sentences": sentences,
        "text": line_rate_text(report),
        "latency": shown.latency,
        "command": job.command,
    }


_OF_PROFILE = (
    *("nic", "packet_bytes", "packets", "runs", "sampled_runs", "cycle_ns", "executions", "cycles", "cycles_mean"),
    *("cycles_p99", "causes", "functions", "lines", "instructions", "locks", "banks", "missing"),
)
"""The fields of a profile's row that a page gets."""


def profile(job: Job, pipe: Pipe, said: Said) -> dict[str, Any]:
    """Count the cycles of handlers by line and instruction."""
    report, ok, error = _with_report(job, said, profile_handlers, progress=_progress(pipe))
    rows = [{name: row[name] for name in _OF_PROFILE} for row in report["rows"]]
    files = distinct(line["file"] for row in rows for line in row["lines"] if line["file"] is not None)
    return {
        "ok": ok,
        "error": error,
        "version": report["version"],
        "seed": report["seed"],
        "rows": rows,
        "failures": report["failures"],
        "sources": [
            {"file": file, "is_program": file == job.source, "text": text}
            for file in files
            if (text := _text_of(job, file)) is not None
        ],
        "command": job.command,
    }


def _text_of(job: Job, file: str) -> str | None:
    """Return the text of a source that the user opened, or of the library; None for other files."""
    path = Path(file).resolve()
    folders = [Path(job.source).parent, library_folder(), *map(Path, job.folders)]
    if not any(folder.resolve() in path.parents for folder in folders):
        return None
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def check(job: Job, pipe: Pipe, said: Said) -> dict[str, Any]:
    """Run handlers under the checker."""
    report, succeeded, error = _with_report(job, said, check_handlers, progress=_progress(pipe))
    return {
        "ok": succeeded and not report["findings"],
        "report": dict(report),
        "text": check_text(report) + (f"{error['message']}\n" if error else ""),
        "command": job.command,
    }


def _progress(pipe: Pipe) -> Callable[[int, int], None]:
    return lambda done, total: pipe.tell({"type": "progress", "done": done, "total": total})


ACTIONS: Mapping[str, Callable[[Job, Pipe, Said], dict[str, Any]]] = {"run": run, "profile": profile, "check": check}
"""The functions of the actions."""
