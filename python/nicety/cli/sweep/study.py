"""Studies as TOML: a command, options with the same value at all points, and a grid of values for other options."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from nicety.cli.arguments import CARDS
from nicety.cli.commands import commands_for
from nicety.cli.options import UsageError, error_text
from nicety.errors import InputError
from nicety.shared.cards import show
from nicety.shared.checks import meant
from nicety.sweeps.grid import meant_by

_KEYS = ("run", "options", "grid")
_WRITES = ("json", "plot", "csv", "arrow", "trace", "trace-scale", "capture", "output", "report")
_MOST = 2**64 - 1
_MOST_BYTES = 16 << 20
_MOST_CHECKED = 500
"""Maximum number of points of a grid with cards that are loaded before a point runs."""
_EXAMPLE = 'run = "bench latency"'


@dataclass(frozen=True)
class Study:
    """A study without errors.

    Attributes:
        run: the command, as the study has it.
        words: the command, split into words.
        command: the command's parameters.
        options: names and values of the options that are equal at all points.
        grid: the key is the name of an option, the value the list of that option's values.
    """

    run: str
    words: Sequence[str]
    command: _Command
    options: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]]

    def arguments(self, values: Mapping[str, Any]) -> list[str]:
        """Return the command's arguments at a point. `values` has the values of the grid's options at that point."""
        # Arguments after `--` come last.
        given = sorted({**self.options, **values}.items(), key=lambda field: self.command.is_rest(field[0]))
        return [*self.words, *(word for name, value in given for word in self.command.words(name, value))]


class _InvalidStudy(Exception):
    """An error in a part of a study. `keys` is the path of keys to that part."""

    def __init__(self, keys: Sequence[str], text: str) -> None:
        super().__init__(text)
        self.keys = keys


def read_study(path: Path) -> Study:
    """Read a study.

    Raises:
        InputError: the study is unreadable, or a part of it is invalid; the error names file, line and field.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read it ({getattr(error, 'strerror', None) or error})") from error
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: a study is at most {_MOST_BYTES >> 20} MiB long")
    try:
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{path}: this is no TOML: {error}") from error
        except ValueError as error:
            # Python refuses whole numbers with more than 4300 digits.
            raise InputError(f"{path}: a number in it has too many digits") from error
        return _checked(document)
    except RecursionError as error:
        raise InputError(f"{path}: lists or tables are nested too deep") from error
    except _InvalidStudy as wrong:
        line = _line_of(text, wrong.keys)
        field = f"{'.'.join(wrong.keys)}: " if wrong.keys else ""
        raise InputError(f"{path}:{line}: {field}{wrong}") from wrong


def _checked(document: Mapping[str, Any]) -> Study:
    for key in document:
        if key not in _KEYS:
            raise _InvalidStudy([key], f"a study has {', '.join(_KEYS)}{meant(key, _KEYS)}")
    run = document.get("run")
    if not isinstance(run, str):
        raise _InvalidStudy(["run"] if "run" in document else [], f"run is missing: the command, as in {_EXAMPLE}")
    try:
        words = shlex.split(run)
    except ValueError as error:
        raise _InvalidStudy(["run"], f"this is no command ({error})") from error
    command = _Command(words[1:] if words[:1] == ["nicety"] else words)
    places: dict[str, Sequence[str]] = {}
    options = {}
    for keys, name, value in _fields(document, "options"):
        options[name], places[name] = command.value(keys, name, value), keys
    grid = {}
    for keys, name, values in _fields(document, "grid"):
        if name in options:
            raise _InvalidStudy(keys, "this option is in [options], too")
        if not isinstance(values, list) or not values:
            raise _InvalidStudy(keys, "write its values as a list, as in [8, 64]")
        grid[name], places[name] = [command.value(keys, name, value) for value in values], keys
        _check_differ(command, keys, name, grid[name])
    if not grid:
        raise _InvalidStudy(["grid"] if "grid" in document else [], "[grid] is empty: write an option and its values")
    study = Study(run, command.all, command, options, grid)
    first = {name: values[0] for name, values in grid.items()}
    command.check(study.arguments(first))
    _check_cards(study, first, places)
    return study


def _check_cards(study: Study, first: Mapping[str, Any], places: Mapping[str, Sequence[str]]) -> None:
    """Load the cards with their changes at points of the grid. Each value is at one of these points at least.

    Args:
        study: the study.
        first: the first value of each parameter of the grid.
        places: the path of keys to each option and parameter.

    Raises:
        _InvalidStudy: there is no such card, or it does not accept a change.
    """
    command = study.command
    named = [name for name in study.grid if command.names_cards(name)]
    changed = [name for name in study.grid if name.startswith("set.")]
    alone = [{name: value} for name in [*named, *changed] for value in study.grid[name]]
    both = [
        {name: value, change: to}
        for name in named
        for value in study.grid[name]
        for change in changed
        for to in study.grid[change]
    ]
    seen = set()
    for values in [{}, *alone, *both][:_MOST_CHECKED]:
        for card, changes in command.cards(study.arguments({**first, **values})):
            if (card, changes) in seen:
                continue
            seen.add((card, changes))
            try:
                show(card, changes)
            except InputError as error:
                text = str(error)
                key = re.match(r"--set ([^=:]+)", text)
                if key is not None:
                    text = f"{card}: {text.replace('--set ', '')}"
                    name = f"set.{key[1]}"
                else:
                    given = {**study.options, **first, **values}
                    of_card = [each for each in places if command.names_cards(each)]
                    name = next((each for each in of_card if card in str(given[each])), "")
                raise _InvalidStudy(places.get(name, ["run"]), text) from error


def _check_differ(command: _Command, keys: Sequence[str], name: str, values: Sequence[Any]) -> None:
    """Raise an error if two values mean the same."""
    seen: dict[str, Any] = {}
    for value in values:
        same = command.meaning(name, value)
        if same in seen:
            first = "" if str(seen[same]) == str(value) else f", first as {seen[same]!r}"
            raise _InvalidStudy(keys, f"a value appears twice: {value!r}{first}")
        seen[same] = value


def _fields(document: Mapping[str, Any], table: str) -> list[tuple[list[str], str, Any]]:
    """Return the fields of a table: the path of keys to a field, the field's name, and its value."""
    content = document.get(table, {})
    if not isinstance(content, dict):
        raise _InvalidStudy([table], f"write it as a table, [{table}]")
    found: list[tuple[list[str], str, Any]] = []
    for name, value in content.items():
        if name != "set":
            found.append(([table, name], name, value))
            continue
        if not isinstance(value, dict):
            raise _InvalidStudy([table, name], 'name the value to change, as in set."hpu.cores"')
        found += [([table, *keys], f"set.{'.'.join(keys[1:])}", inner) for keys, inner in _leaves(["set"], value)]
    return found


def _leaves(keys: list[str], table: Mapping[str, Any]) -> list[tuple[list[str], Any]]:
    leaves: list[tuple[list[str], Any]] = []
    for key, value in table.items():
        leaves += _leaves([*keys, key], value) if isinstance(value, dict) else [([*keys, key], value)]
    return leaves


class _Command:
    """The command of a study, and its parameters by name."""

    def __init__(self, words: Sequence[str]) -> None:
        self.all = list(words)
        root: Any = typer.main.get_command(commands_for(words[:1]))
        self._command = root
        self._context = typer.Context(root, info_name="nicety")
        rest = list(words)
        while hasattr(self._command, "list_commands"):
            # A study cannot run another study.
            names = [name for name in self._command.list_commands(self._context) if name != "sweep"]
            word = rest.pop(0) if rest else ""
            inner = self._command.get_command(self._context, word) if word in names else None
            if inner is None:
                what = f"there is no command {word!r}" if word else "this names no command"
                raise _InvalidStudy(["run"], f"{what}; write one of {', '.join(names)}{meant(word, names)}")
            self._command, self._context = inner, typer.Context(inner, parent=self._context, info_name=word)
        self._rest = rest
        self._parameters: dict[str, Any] = {}
        for parameter in self._command.params:
            names = parameter.opts if _is_option(parameter) else [parameter.name]
            self._parameters |= {name.lstrip("-"): parameter for name in names}
        if "json" not in self._parameters:
            raise _InvalidStudy(["run"], "this command has no report, so a sweep has nothing to tabulate")
        if "--help" in rest:
            raise _InvalidStudy(["run"], "--help: this runs nothing")
        for word in rest:
            name = word.lstrip("-").partition("=")[0]
            if word.startswith("-") and name in _WRITES:
                raise _InvalidStudy(
                    ["run"], f"{word}: a sweep keeps the report of each point, and writes no other files"
                )

    def value(self, keys: Sequence[str], name: str, value: Any) -> Any:
        """Check a field's value, and return it. A list becomes one comma-separated text.

        Raises:
            _InvalidStudy: the command has no such option, or the option does not accept the value.
        """
        field = "set" if name.startswith("set.") else name
        if name in _WRITES:
            raise _InvalidStudy(keys, "a sweep keeps the report of each point, and writes no other files")
        parameter = self._parameters.get(field)
        known = [each for each in self._parameters if each not in _WRITES]
        if parameter is None:
            command = self._context.command_path
            raise _InvalidStudy(keys, f"{command} has no such option; it has {', '.join(known)}{meant(name, known)}")
        if any(isinstance(each, int) and abs(each) > _MOST for each in (value if isinstance(value, list) else [value])):
            raise _InvalidStudy(keys, f"a number is at most {_MOST}")
        if isinstance(value, list):
            if not value or not all(type(each) in {str, int, float} for each in value):
                raise _InvalidStudy(keys, "a list of numbers or texts was expected")
            value = ",".join(map(str, value))
        flag = _is_option(parameter) and parameter.is_flag
        if flag and not isinstance(value, bool):
            raise _InvalidStudy(keys, f"write true or false, not {value!r}")
        is_truth = isinstance(value, bool) and not flag and field != "set"
        if is_truth or not isinstance(value, str | int | float):
            raise _InvalidStudy(keys, f"write a number or a text, not {str(value).lower() if is_truth else value}")
        self._convert(keys, parameter, value)
        return value

    def meaning(self, name: str, value: Any) -> str:
        """Return a text that is equal for values with the same meaning, such as `4096` and `"4Ki"` for a size."""
        if not name.startswith("set."):
            found = self._convert([], self._parameters[name], value)
            if not isinstance(found, str | Path):
                return repr(found)
        return str(meant_by(str(value)))

    def _convert(self, keys: Sequence[str], parameter: Any, value: Any) -> Any:
        """Return the value as the command's parameter parses it."""
        if isinstance(value, bool):
            return value
        try:
            given: Any = [str(value)] if parameter.multiple else str(value)
            if parameter.nargs == -1:
                given = shlex.split(given)
            found = parameter.process_value(self._context, given)
            check = getattr(self._command.callback, "checks", dict)().get(parameter.name)
            asked = check(found) if check is not None else None
        except (UsageError, InputError) as error:
            raise _InvalidStudy(keys, error_text(error)) from error
        except ValueError as error:
            raise _InvalidStudy(keys, f"{value}: {str(error).lower()}, as a shell reads it") from error
        return found if asked is None else asked

    def names_cards(self, name: str) -> bool:
        """Return whether a field names cards."""
        return getattr(self._parameters.get(name), "name", None) in CARDS

    def cards(self, arguments: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Return each card that the arguments of a point name, with the changes to it."""
        given = self._parsed(arguments).params
        found = []
        for name in CARDS:
            value = given.get(name) or ()
            words = [value] if isinstance(value, str) else value
            # Changes do not apply to the card of a peer.
            changes = () if name == "peer" else tuple(given.get("overrides") or ())
            found += [(card.strip(), changes) for word in words for card in word.split(",")]
        return found

    def is_rest(self, name: str) -> bool:
        """Return whether a field takes the rest of the command line, such as a program with its arguments."""
        parameter = self._parameters.get(name)
        return parameter is not None and parameter.nargs == -1

    def words(self, name: str, value: Any) -> list[str]:
        """Return a field as words of the command line."""
        if name.startswith("set."):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            return ["--set", f"{name.removeprefix('set.')}={text}"]
        parameter = self._parameters[name]
        if self.is_rest(name):
            return ["--", *shlex.split(str(value))]
        if not _is_option(parameter):
            return [str(value)]
        flag = max(parameter.opts, key=len)
        if isinstance(value, bool):
            return [flag] if value else []
        return [f"{flag}={value}"] if flag.startswith("--") else [flag, str(value)]

    def check(self, arguments: Sequence[str]) -> None:
        """Parse the arguments of one point.

        Raises:
            _InvalidStudy: an argument is missing or invalid.
        """
        self._parsed(arguments)

    def _parsed(self, arguments: Sequence[str]) -> Any:
        """Return the context of the command with the arguments of one point."""
        rest = list(arguments[len(self.all) - len(self._rest) :])
        try:
            return self._command.make_context(self._context.info_name, rest, parent=self._context.parent)
        except UsageError as error:
            raise _InvalidStudy(["run"], error_text(error)) from error


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _line_of(text: str, keys: Sequence[str]) -> int:
    """Return the line of the first statement that defines the path `keys`, or 1 if there is none."""
    table: list[str] = []
    for line, statement in _statements(text):
        found: Any = tomllib.loads(statement)
        if statement.startswith("["):
            table = []
            while found:
                ((name, inner),) = found.items()
                table.append(name)
                found = inner[0] if isinstance(inner, list) else inner
        for name in reversed(table):
            found = {name: found}
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found is not None:
            return line
    return 1


_TOKEN = re.compile(
    r"""
    \"{3}(?:\\.|[^\\])*?\"{3,5} | '{3}.*?'{3,5} | "(?:\\.|[^"\\\n])*" | '[^'\n]*'  # strings
    | \#[^\n]* | [\[{] | [\]}] | \n""",
    re.VERBOSE | re.DOTALL,
)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each statement of a TOML document: headers of tables, and keys with their values."""
    text = text.replace("\r\n", "\n") + "\n"
    line, begin, depth = 1, 0, 0
    for token in _TOKEN.finditer(text):
        sign = token.group()
        depth += (sign in "[{") - (sign in "]}")
        if sign == "\n" and depth == 0:
            statement = text[begin : token.end()]
            if (content := statement.strip()) and not content.startswith("#"):
                yield line, content
            line += statement.count("\n")
            begin = token.end()
