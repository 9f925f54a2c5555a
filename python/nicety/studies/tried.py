"""Experiments that explain deviations: commands of `nicety bench`, and their results.

A study runs the text of an experiment's command here. So the command on a study's page is the command that was run.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

from nicety.bench.channels import bench_channels
from nicety.bench.interfaces import bench_registration
from nicety.bench.messages import run_benchmark
from nicety.bench.single.contexts import bench_pcsa
from nicety.bench.sockets import bench_stream
from nicety.errors import InputError
from nicety.shared.ranges import parse_number
from nicety.show.columns import fixed
from nicety.studies.claims import Tried
from nicety.usecases import Broadcast, Matching, Storage, UseCase, run_usecase

_RENAMED = {
    "nic": "nics",
    "mode": "modes",
    "set": "overrides",
    "direction": "directions",
    "operation": "operations",
    "arrival": "arrivals",
    "eager": "eager_bytes",
}
"""Maps an option of the command line to the Python argument, where the names differ."""
_LISTS = {"nodes", "sizes", "operations", "arrivals"}
"""Arguments of use cases that are lists."""
_OWN = {*_LISTS, "servers", "requests", "eager_bytes"}
"""Arguments of use cases; the other arguments are those of a measurement."""
HOST_MEMORY = "host_memory"
"""The name of a figure: bytes that the hosts' memories read and write."""
DRIVER = "driver_ns_per_packet"
"""The name of a figure: CPU time per packet in the driver."""


def _messages(name: str) -> Callable[..., Mapping[str, Any]]:
    return lambda **given: cast(Mapping[str, Any], run_benchmark(cast(Any, name), **given))


def _channels(name: str) -> Callable[..., Mapping[str, Any]]:
    return lambda **given: cast(Mapping[str, Any], bench_channels(cast(Any, name), **given))


def _usecase(case: Callable[..., UseCase]) -> Callable[..., Mapping[str, Any]]:
    def run(**given: Any) -> Mapping[str, Any]:
        of_case: dict[str, Any] = {
            name: [value] if name in _LISTS else value for name, value in given.items() if name in _OWN
        }
        rest = {name: value for name, value in given.items() if name not in _OWN}
        return cast(Mapping[str, Any], run_usecase(case(**of_case), **rest))

    return run


_POINTS = {"io_sizes", "connections", "cpus"}
"""Arguments of streams that are lists."""


def _stream(**given: Any) -> Mapping[str, Any]:
    direction = {"direction": given.pop("directions")} if "directions" in given else {}
    points = {name: (given.pop(name),) for name in _POINTS & given.keys()}
    return cast(Mapping[str, Any], cast(Any, bench_stream)(**direction, **points, **given))


_BENCHMARKS: dict[str, Callable[..., Any]] = {
    "stream": _stream,
    "latency": _messages("latency"),
    "bandwidth": _messages("bandwidth"),
    "channel-bandwidth": _channels("channel-bandwidth"),
    "channel-latency": _channels("channel-latency"),
    "pcsa": bench_pcsa,
    "registration": bench_registration,
    "broadcast": _usecase(Broadcast),
    "matching": _usecase(Matching),
    "storage": _usecase(Storage),
}


def _number(value: str, option: str) -> int | str:
    """Return the number of an option. Other values are returned unchanged."""
    try:
        number = parse_number(value, option, "bytes")
    except InputError:
        return value
    return value if number is None else number


def options_of(command: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a command's benchmark, and the arguments of its Python function.

    Raises:
        ValueError: the command is no benchmark that studies use.
    """
    program, group, name, *words = shlex.split(command)
    if (program, group) != ("nicety", "bench") or name not in _BENCHMARKS:
        raise ValueError(f"{command}: no benchmark of a study")
    given: dict[str, Any] = {}
    while words:
        word = words.pop(0).removeprefix("--")
        key = _RENAMED.get(word, word).replace("-", "_")
        if not words or words[0].startswith("--"):
            given[key] = True
            continue
        value: Any = words.pop(0)
        if key == "overrides":
            given[key] = [*given.get(key, []), value]
        else:
            given[key] = _number(value, f"--{word}")
    return name, given


@lru_cache(maxsize=256)
def report_of(command: str) -> Mapping[str, Any]:
    """Run a benchmark's command, and return its report."""
    name, given = options_of(command)
    return cast(Mapping[str, Any], _BENCHMARKS[name](**given))


def figure_of(row: Mapping[str, Any], figure: str) -> float:
    """Return a figure of a row."""
    if figure == HOST_MEMORY:
        return float(row["host_memory_read_bytes"] + row["host_memory_written_bytes"])
    if figure == DRIVER:
        return sum(float(group["ns_per_packet"]) for group in row["breakdown"] if group["group"] == "driver")
    return cast(float, row[figure])


def tried(command: str, figure: str, scale: float = 1.0, unit: str = "", decimals: int = 2) -> Tried:
    """Run an experiment, and return its command and its result.

    Args:
        command: a command of `nicety bench`. The result is in the last row of its report.
        figure: the name of the figure in that row.
        scale: the factor from the figure's unit to `unit`.
        unit: the unit of the result.
        decimals: number of decimals that are printed.
    """
    value = figure_of(report_of(command)["rows"][-1], figure)
    return Tried(command, f"{fixed(value * scale, decimals)} {unit}".strip(), figure, value)
