"""Arguments of requests as options of commands."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from nicety.cli.options import Capture, complete_cards, complete_words
from nicety.errors import InputError
from nicety.shared.checks import U64, Expressions, Names, Numbers, Overrides, one_of, shown
from nicety.shared.options import Argument, arguments_of
from nicety.shared.ranges import Quantity, format_numbers, format_size, parse_number, parse_ranges

CARDS = ("nics", "nic", "peer")
"""Arguments with names of cards."""

_OF_CASES = {
    "broadcast": ("rdma", "portals4", "spin-store", "spin-stream"),
    "accumulate": ("rdma", "spin"),
    "datatype": ("rdma", "spin"),
    "matching": ("host", "spin"),
    "storage": ("host", "spin"),
    "kv": ("host", "spin"),
}
_OF_MESSAGES = (
    *("rdma", "portals4", "spin-store", "spin-stream", "channels", "put"),
    *("auto", "pio", "dma", "copy", "translate"),
)
WORDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    **{(command, "modes"): modes for command, modes in _OF_CASES.items()},
    **{(command, "modes"): _OF_MESSAGES for command in ("latency", "bandwidth", "message-rate")},
    **{(command, "modes"): ("direct", "indirect") for command in ("channel-latency", "channel-bandwidth")},
    **{(command, "modes"): ("host", "card") for command in ("run", "compare")},
    ("", "directions"): ("host-to-card", "card-to-host"),
    ("matching", "arrivals"): ("expected", "unexpected"),
    ("storage", "operations"): ("write", "read", "rebuild"),
    ("kv", "operations"): ("insert", "update", "lookup"),
    ("", "offload"): ("bcast", "barrier", "allreduce", "allreduce=always"),
}
"""Maps a command (empty for any) and an argument to the words that a shell completes."""


class CommandOption:
    """An argument of a request as an option of a command.

    Attributes:
        argument: the argument of the request.
        flag: the option's name, such as `--seed`.
    """

    def __init__(self, argument: Argument, command: str, *, one_card: bool = False) -> None:
        self.argument = argument
        self._one_card = one_card and argument.name == "nics"
        name = argument.name.removesuffix("s") if argument.type == Names else argument.name
        flag = "--set" if argument.type == Overrides else f"--{name.replace('_', '-')}"
        self.flag = argument.option.flag or flag
        usual = argument.option.usual
        self._command = command
        self._usual = usual.get(command) if isinstance(usual, Mapping) else usual

    @property
    def _is_size(self) -> bool:
        return self.argument.type is int and self.argument.option.metavar is not None

    @property
    def _default(self) -> Any:
        """The default value as the user would write it, or None if there is no single default."""
        default = self.argument.option.default
        if self.argument.type == Names:
            return [self._usual] if self._usual is not None else None if default is None else [",".join(default)]
        # Empty bytes are no default that a user could write.
        if self._usual is not None or default is None or default == b"":
            return self._usual
        if self.argument.type == Numbers:
            return format_numbers(default)
        if self.argument.type is int:
            return format_size(default) if self._is_size else str(default)
        return default

    @property
    def _limits(self) -> list[str]:
        """Words on the range of a number. Empty if the argument accepts every 64-bit number."""
        least, most = self.argument.option.least, self.argument.option.most
        if self.argument.type is not int or (least == 0 and most == U64):
            return []
        return [f"At least {least}." if most == U64 else f"{least} to {most}."]

    def parameter(self) -> inspect.Parameter:
        """Return the option as a parameter of a command's function."""
        of, option = self.argument.type, self.argument.option
        default = self._default
        kind: Any = str
        metavar = option.metavar
        if of in (Names, Overrides, Expressions):
            kind, metavar = list[str], metavar or ("A[,B]" if of == Names else "KEY=VALUE")
        elif of == Numbers:
            metavar = metavar or "RANGE"
        elif of is bytes:
            metavar = "HEX|@FILE"
        elif of is bool:
            kind, default = bool, False
        elif of is int and not self._is_size:
            metavar = "N"
        # Without a usual value, the user must name the cards.
        if self.argument.name == "nics" and self._usual is None:
            default = inspect.Parameter.empty
        elif default is None:
            kind = kind | None
        text = " ".join([self.argument.text.replace("`", ""), *self._limits])
        if self._one_card:
            metavar, text = "NIC", "The card: a name of a spec, or the path of a spec file."
        info = typer.Option(self.flag, metavar=metavar, help=text, autocompletion=self._completion())
        return inspect.Parameter(
            self.argument.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
        )

    def _completion(self) -> Callable[[str], list[str]] | None:
        """Return a function that completes a value in a shell; None for a value without known words."""
        name, of = self.argument.name, self.argument.type
        if name in CARDS:
            return complete_cards
        if typing.get_origin(of) is typing.Literal:
            known: tuple[str, ...] = typing.get_args(of)
        elif re.fullmatch(r"[a-z]+(\|[a-z]+)+", self.argument.option.metavar or ""):
            known = tuple((self.argument.option.metavar or "").split("|"))
        else:
            known = WORDS.get((self._command, name), WORDS.get(("", name), ()))
        if not known:
            return None

        def complete(incomplete: str) -> list[str]:
            return complete_words(incomplete, known)

        return complete

    def asked(self, value: Any) -> Any:
        """Parse the user's value like `read`; an error if a required value is missing.

        Raises:
            InputError: the value is missing or invalid.
        """
        found = self.read(value)
        if found is None and self.argument.required and self._usual is None:
            text = self.argument.text.replace("`", "").rstrip(".")
            raise InputError(f"{self.flag} is missing: {text[0].lower()}{text[1:]}")
        return found

    def read(self, value: Any) -> Any:
        """Parse the user's value. Return None for the request's own default.

        Raises:
            InputError: the value is invalid.
        """
        of = self.argument.type
        if value is None or (self._usual is None and value == self._default):
            return None
        if of in (Overrides, Expressions):
            return value
        if of == Names:
            return parse_names(value, self.flag, "rule" if self.argument.option.metavar == "RULE" else "name")
        if of == Numbers:
            return parse_ranges(value, self.flag, self._quantity)
        if of is bytes:
            return self._bytes(value)
        if of is int:
            number = self._number(value)
            least, most = self.argument.option.least, self.argument.option.most
            if not least <= number <= most:
                raise InputError(f"{self.flag} is {least} to {shown(most)}, not {value}")
            return number
        if typing.get_origin(of) is typing.Literal and value not in typing.get_args(of):
            raise InputError(f"{self.flag} is {one_of(typing.get_args(of))}, not {value}")
        return value

    @property
    def _quantity(self) -> Quantity:
        return "bytes" if self.argument.counts_bytes else "count"

    def _number(self, value: str) -> int:
        number = parse_number(value, self.flag, self._quantity)
        if number is None:
            what = "size" if self.argument.counts_bytes else "number"
            raise InputError(f"{self.flag} {value}: write one {what}, as in {self.flag} {self._default or '64Ki'}")
        return number

    def _bytes(self, value: str) -> bytes:
        if value.startswith("@"):
            try:
                return Path(value[1:]).read_bytes()
            except OSError as error:
                raise InputError(f"{self.flag} {value}: cannot read {value[1:]} ({error.strerror})") from error
        try:
            return bytes.fromhex(value.removeprefix("0x"))
        except ValueError as error:
            text = (
                f"{self.flag} {value}: bytes are written as two hexadecimal digits each, as in 0100ff, and a file @FILE"
            )
            raise InputError(text) from error


def parse_names(items: typing.Sequence[str], option: str, what: str = "name") -> list[str]:
    """Split comma-separated names, without repetitions. Repeated rules are kept: they overlap, which is an error."""
    names = [name.strip() for item in items for name in item.split(",")]
    if not all(names):
        raise InputError(f"{option} {','.join(items)!r}: an empty {what}; write {what}s between commas")
    return names if what == "rule" else list(dict.fromkeys(names))


class _Command:
    """A command's function. Its options are made when they are first asked for: a command line runs one of many."""

    def __init__(
        self,
        name: str,
        act: Callable[..., None],
        requests: typing.Sequence[type],
        more: Callable[..., Any] | None,
        *,
        captures: bool,
        one_card: bool,
        without: Container[str],
    ) -> None:
        self._name, self._act, self._requests, self._more = name, act, requests, more
        self._captures, self._one_card, self._without = captures, one_card, without
        # typer copies attributes of the instance to the function of its command.
        self.checks = self._checks

    @cached_property
    def _taken(self) -> list[CommandOption]:
        return [
            CommandOption(each, self._name, one_card=self._one_card)
            for request in self._requests
            for each in _of(request, self._name)
            if each.name not in self._without
        ]

    @cached_property
    def _common(self) -> Mapping[str, inspect.Parameter]:
        return signature(self._more) if self._more else {}

    def _checks(self) -> dict[str, Callable[[Any], Any]]:
        """The functions that parse the values of the requests' options, by argument."""
        return {option.argument.name: option.asked for option in self._taken}

    @cached_property
    def __signature__(self) -> inspect.Signature:  # typer reads it
        own = signature(self._act)
        own.pop("output", None)
        first = [parameter for parameter in own.values() if parameter.default is inspect.Parameter.empty]
        rest = [parameter for parameter in own.values() if parameter.default is not inspect.Parameter.empty]
        links = inspect.Parameter("links", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Capture)
        last = [*self._common.values(), *([links] if self._captures else [])]
        parameters = [*first, *(option.parameter() for option in self._taken), *rest, *last]
        return inspect.Signature([each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters])

    @cached_property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]  # typer reads it, and it is made late
        return {name: parameter.annotation for name, parameter in self.__signature__.parameters.items()}

    def __call__(self, **given: Any) -> None:
        with captured(given.pop("links"), given.values()) if self._captures else nullcontext():
            common = {option: given.pop(option) for option in self._common}
            output = {"output": self._more(**common)} if self._more else {}
            asked = {name: parse(given.pop(name)) for name, parse in self.checks().items()}
            self._act(**given, **{key: value for key, value in asked.items() if value is not None}, **output)


def command(
    group: typer.Typer,
    name: str,
    act: Callable[..., None],
    *requests: type,
    text: str | None = None,
    more: Callable[..., Any] | None = None,
    captures: bool = False,
    one_card: bool = False,
    without: Container[str] = (),
) -> None:
    """Add a command. Its options are the arguments of requests, and the parameters of `act` and `more`.

    Args:
        group: the group to which the command is added.
        name: the command's name.
        act: the command's function, which gets the given arguments of requests by name.
        requests: TypedDicts, as in `nicety.shared.options`.
        text: the command's help; by default the first request's docstring.
        more: makes the argument `output` of `act` from options that several commands have.
        captures: whether the command has runs with links to capture.
        one_card: whether the command runs on one card only.
        without: names of the requests' arguments that the command does not take.
    """
    about = requests[0].__doc__ or "" if text is None else text
    about = about.partition("\n    Attributes:")[0]
    run = _Command(name, act, requests, more, captures=captures, one_card=one_card, without=without)
    group.command(name, help=inspect.cleandoc(about))(run)


@contextmanager
def named_as_options(names: Iterable[str]) -> Iterator[None]:
    """If an error begins with one of these parameters, replace the parameter by the name of its option."""
    try:
        yield
    except InputError as error:
        name, *rest = re.split(r"\b(?=\W)", str(error), maxsplit=1)
        if name not in names:
            raise
        raise InputError("".join([f"--{name.replace('_', '-')}", *rest])) from error


@contextmanager
def captured(path: Path | None, others: Iterable[Any]) -> Iterator[None]:
    """Capture the links of runs in a file, if `path` names one.

    Args:
        path: the file for the capture.
        others: values of the command's other options, including its other files.

    Raises:
        InputError: the file cannot be written, or another option names it too.
    """
    if path is None:
        yield
        return
    from nicety.cli.output import recording_notes
    from nicety.show import captures

    captures.check_capture(f"--capture {path}", path)
    if any(isinstance(other, Path) and other.resolve() == path.resolve() for other in others):
        raise InputError(f"--capture {path}: the command uses this file for another purpose; name another file")
    with recording_notes(), captures.Capture(path):
        yield


def _of(request: type, command: str) -> list[Argument]:
    return [each for each in arguments_of(request).values() if each.option.only in {None, command}]


def signature(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function by name, with evaluated annotations."""
    parameters = inspect.signature(function, eval_str=True).parameters
    return {name: each for name, each in parameters.items() if each.kind is not inspect.Parameter.VAR_KEYWORD}
