"""Failures of handlers and processes in completed runs, and the kinds of failure that a user allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from nicety import errors
from nicety.errors import Error, HandlerTrap, InputError, RunError, failure_text

if TYPE_CHECKING:
    from nicety._generated.types import FailedPoint
    from nicety.program.run import Run

_R = TypeVar("_R")

KINDS = ("trap", "fail", "budget", "refused", "lost")
"""Kinds of failure. `trap`: a handler or process was stopped; `fail`: a handler returned a failure; `budget`: a budget
of its application was used up. `refused`: the card refused one of its commands. `lost`: packets were lost, and no card
retransmits them.
"""

_LISTED = 8
"""Maximum number of failures that an error message lists; a report has all failures."""

Allowed = str | Iterable[str]
"""The kinds of failures with which a run may end, or `all`."""


def allowed(value: Allowed) -> frozenset[str]:
    """Return the set of kinds that a user allows.

    Raises:
        InputError: there is no such kind of failure.
    """
    names: Iterable[object] = value.split(",") if isinstance(value, str) else _each(value)
    found = [name.strip() if isinstance(name, str) else name for name in names]
    kinds = frozenset(str(name) for name in found if name != "")
    for name in sorted(kinds - {*KINDS, "all"}):
        raise InputError(f"there is no failure {name!r} to allow; write {', '.join(KINDS)}, or 'all' for all of them")
    return frozenset(KINDS) if "all" in kinds else kinds


def _each(value: object) -> Iterable[object]:
    if not isinstance(value, Iterable):
        raise InputError(f"allow_failures are names such as 'fail', not {value!r}")
    return value


def require(run: Run, kinds: frozenset[str]) -> Run:
    """Return the run if it has no failures except of the kinds `kinds`.

    Raises:
        HandlerFailure: the run has a failure of another kind.
    """
    failed = [asdict(failure) for failure in run.failures if failure.kind not in kinds]
    if failed:
        lines = [f"rank {each['rank']}: {failure_text(each)}" for each in failed]
        raise HandlerFailure(_text(lines, failed), failed, run=run)
    return run


def require_report(report: Mapping[str, Any], kinds: frozenset[str]) -> None:
    """Check the failures of a report as `require` checks a run's. Each failure names its card, and its point if any.

    Raises:
        HandlerFailure: there is a failure that is not allowed.
    """
    failed = [each for each in report["failures"] if each["kind"] not in kinds]
    if failed:
        points = [", ".join([each["nic"], *([each["point"]] if "point" in each else [])]) for each in failed]
        lines = [f"{at}: rank {each['rank']}: {failure_text(each)}" for at, each in zip(points, failed, strict=True)]
        raise HandlerFailure(_text(lines, failed), failed, report=report)


def require_points(report: Mapping[str, Any], attempts: Attempts | None = None) -> None:
    """Raise an error if some points of a report failed and have no row.

    Args:
        report: the report; its `failed_points` names the failed points.
        attempts: the failed points with their exceptions, if available.

    Raises:
        Error: of the class of the first failed point's error. Its attribute `report` is the report.
        KeyboardInterrupt: the user interrupted the remaining points. Its attribute `report` is the report.
    """
    points = report.get("failed_points")
    if not points:
        return
    error: BaseException = KeyboardInterrupt()
    if points[-1]["kind"] != "KeyboardInterrupt":
        lines = [f"{each['point']}: {each['text']}" for each in points[:_LISTED]]
        if len(points) > _LISTED:
            lines.append(f"and {len(points) - _LISTED} more points")
        text = "\n".join(lines)
        first = next(iter(attempts.errors.values())) if attempts else None
        error = retold(first, text) if isinstance(first, Error) else getattr(errors, points[0]["kind"], RunError)(text)
    vars(error)["report"] = report
    raise error


@dataclass
class Attempts:
    """Runs points one after the other, and keeps the errors of those that fail."""

    errors: dict[str, BaseException] = field(default_factory=dict)
    """Maps the name of a failed point to its error."""

    def run(self, point: str, act: Callable[[], _R]) -> _R | None:
        """Return the result of `act`. None if it failed, or if the user interrupted an earlier point."""
        if any(isinstance(error, KeyboardInterrupt) for error in self.errors.values()):
            return None
        try:
            return act()
        except (Error, KeyboardInterrupt) as error:
            self.errors[point] = error
            return None

    def report(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the report with its `failed_points`. If it has no rows, raise the first failed point's error."""
        if not self.errors:
            return dict(report)
        if not report["rows"]:
            raise next(iter(self.errors.values()))
        points: list[FailedPoint] = [
            {"point": point, "kind": type(error).__name__, "text": str(error).removeprefix(f"{point}: ")}
            for point, error in self.errors.items()
        ]
        return {**report, "failed_points": points}


def _text(lines: Sequence[str], failed: Sequence[Mapping[str, Any]]) -> str:
    more = len(lines) - _LISTED
    shown = [*lines[:_LISTED], f"and {more} more"] if more > 0 else list(lines)
    kinds = ",".join(kind for kind in KINDS if any(each["kind"] == kind for each in failed))
    ask = f"--allow-failures {kinds}, or allow_failures={kinds!r} in Python"
    hint = f"the run ended with these failures; to accept them, write {ask}"
    return "\n".join([*shown, f"({hint})"])


class HandlerFailure(HandlerTrap):
    """A run was completed, and something failed in it.

    A handler or process trapped, failed, exceeded its budget, or the card refused its command; or packets were lost
    that no card retransmits. The argument `allow_failures` of the run sets the allowed failures.

    Attributes:
        failures: the failures, as in `Run.failures`. For a benchmark or `run_program` each also has its card, `nic`.
        run: the run, if `Cluster.run` raised the exception.
        report: the complete report, if a benchmark or `run_program` raised the exception.
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
    """Return an error of the same class with another text."""
    if isinstance(error, HandlerFailure):
        return HandlerFailure(text, error.failures, run=error.run, report=error.report)
    return type(error)(text)
