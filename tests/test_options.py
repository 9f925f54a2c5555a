"""Requests, with arguments that are the options of commands and the arguments of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Required, TypedDict

import pytest
import typer
from typer.testing import CliRunner

import nicety as package
from conftest import Result
from nicety import requests, usecases
from nicety._generated import types
from nicety.cli.arguments import CommandOption, command
from nicety.cli.options import group
from nicety.program.script import run_program
from nicety.shared.checks import Names, Numbers
from nicety.shared.options import Option, arguments_of
from nicety.shared.ranges import format_numbers, parse_ranges

COMMANDS: dict[str, tuple[type, Callable[..., Any]]] = {
    "bench latency": (types.MessagesOptions, package.run_benchmark),
    "bench bandwidth": (types.MessagesOptions, package.run_benchmark),
    "bench message-rate": (types.MessagesOptions, package.run_benchmark),
    "bench handlers": (types.LineRateOptions, package.check_line_rate),
    "bench channel-latency": (types.ChannelOptions, package.bench_channels),
    "bench channel-bandwidth": (types.ChannelOptions, package.bench_channels),
    "bench registration": (types.RegistrationOptions, package.bench_registration),
    "bench fairness": (types.FairnessOptions, package.bench_fairness),
    "bench halo": (types.GridOptions, package.bench_grid),
    "bench allreduce": (types.GridOptions, package.bench_grid),
    "bench torus": (types.TorusOptions, package.bench_torus),
    "bench stream": (types.StreamOptions, package.bench_stream),
    "bench request-response": (types.ExchangeOptions, package.bench_request_response),
    "bench pcie": (types.PcieOptions, package.bench_pcie),
    "bench pcsa": (types.ContextOptions, package.bench_pcsa),
    "pcsa": (types.CountOptions, package.count_sources),
    "tsp": (types.TourOptions, package.solve_tsp),
    "goal run": (types.ScheduleOptions, package.run_schedule),
    "goal generate": (types.GenerateOptions, package.generate_schedule),
    "exec": (types.ExecOptions, package.run_processes),
    "run": (requests.ProgramOptions, run_program),
    "bench broadcast": (requests.BroadcastOptions, usecases.Broadcast),
    "bench accumulate": (requests.AccumulateOptions, usecases.Accumulate),
    "bench datatype": (requests.DatatypeOptions, usecases.Datatype),
    "bench matching": (requests.MatchingOptions, usecases.Matching),
    "bench storage": (requests.StorageOptions, usecases.Storage),
    "bench kv": (requests.KeyValueOptions, usecases.KeyValue),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_is_an_option_of_the_command_and_of_the_function(
    nicety: Callable[..., Result], name: str
) -> None:
    request, function = COMMANDS[name]
    shown = "".join(nicety(*name.split(), "--help").stdout.split())
    parameters = inspect.signature(function).parameters
    for argument in arguments_of(request).values():
        assert argument.text
        parameter = parameters[argument.name]
        assert (parameter.default is parameter.empty) == argument.required
        documented = function.__init__ if isinstance(function, type) else function
        assert argument.text[1:] in " ".join((documented.__doc__ or "").split())
        benchmark = name.rsplit(maxsplit=1)[-1]
        option = CommandOption(argument, benchmark)
        if argument.option.only in {None, benchmark}:
            assert option.flag + (option.parameter().annotation.__metadata__[0].metavar or "") in shown
            assert "".join(argument.text.replace("`", "").split()) in shown
        else:
            assert "".join(argument.text.replace("`", "").split()) not in shown


class Request(TypedDict, total=False):
    """Count sheep.

    Attributes:
        fields: Numbers of fields, each with
            a hedge.
        sheep: Sheep in each.
        dogs: Names of dogs.
        fast: Whether they are `quick`.
    """

    fields: Required[Annotated[Numbers, Option(usual="1:4")]]
    sheep: Annotated[int | None, Option(default=7, least=1, most=1000)]
    dogs: Annotated[Names | None, Option(metavar="D[,E]")]
    fast: Annotated[bool | None, Option(default=False)]


def farm() -> tuple[typer.Typer, list[dict[str, Any]]]:
    seen: list[dict[str, Any]] = []
    app = group("A farm.")
    command(app, "sheep", lambda **given: seen.append(given), Request)
    command(app, "none", lambda: None, text="Nothing.")
    return app, seen


def test_a_new_field_of_a_request_is_an_option_without_being_typed_again() -> None:
    app, _ = farm()
    shown = " ".join(CliRunner().invoke(app, ["sheep", "--help"]).output.split())
    assert "Count sheep." in shown
    for text in (
        "--fields RANGE Numbers of fields, each with a hedge. [default: 1:4]",
        "--sheep N Sheep in each. 1 to 1000. [default: 7]",
        "--dog D[,E] Names of dogs.",
        "--fast Whether they are quick.",
    ):
        assert text in shown


def test_a_command_gets_what_was_given_and_no_more() -> None:
    app, seen = farm()
    assert CliRunner().invoke(app, ["sheep"]).exit_code == 0
    arguments = ["sheep", "--fields", "1..3", "--sheep", "8", "--dog", "rex,bello", "--fast"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert seen == [
        {"fields": [1, 2, 4]},
        {"fields": [1, 2, 3], "sheep": 8, "dogs": ["rex", "bello"], "fast": True},
    ]
    refused = CliRunner().invoke(app, ["sheep", "--sheep", "1001"])
    assert str(refused.exception) == "--sheep is 1 to 1000, not 1001"


def test_a_function_names_what_is_missing_and_what_there_is_not() -> None:
    with pytest.raises(TypeError, match=r"bench_stream.* missing a required argument: 'nics'"):
        package.bench_stream()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"bench_registration.* unexpected keyword argument 'size'"):
        package.bench_registration(sizes=8, size=8)  # type: ignore[call-arg]


@pytest.mark.parametrize("text", ["1..8", "8", "64,128,4Ki", "1,2"])
def test_numbers_are_written_as_they_are_read(text: str) -> None:
    assert format_numbers(parse_ranges(text, "--sizes")) == text
