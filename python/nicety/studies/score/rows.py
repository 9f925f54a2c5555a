"""Measurements of cards: rows of a CSV file, and the points of benchmarks that they measure."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from nicety.errors import InputError
from nicety.shared.checks import one_of

Point = tuple[str, str, str, int, int, int, int, int]
"""A point of a benchmark: test, pattern, state of the cache, offsets on host and card, window, CPUs, and size."""
Kind = Literal["calibrated", "seen", "predicted"]
"""The use of a row: constants were fitted to it, it was known before the mechanisms were chosen, or neither."""

PCIE = {
    "LAT_CMD_RD": "ns",
    "LAT_CMD_WRRD": "ns",
    "LAT_DMA_RD": "ns",
    "LAT_DMA_WRRD": "ns",
    "BW_DMA_RD": "Gb/s",
    "BW_DMA_WR": "Gb/s",
    "BW_DMA_RW": "Gb/s",
}
"""The tests of pcie-bench, with the units of their figures."""
XDP = {"XDP_DROP": "drop", "XDP_TX": "send", "XDP_REDIRECT": "forward"}
"""The tests of XDP in the host's driver, with the program of each. `cpus` cores take frames of the shortest gap."""
DPA = {
    "DPA_LOAD_L2": "cycles",
    "DPA_LOAD_L3": "cycles",
    "DPA_LOAD_MEMORY": "cycles",
    "DPA_LOAD_ARM": "cycles",
    "DPA_LOAD_ARM_FIRST": "cycles",
    "DPA_REFLECT": "Mpps",
    "DPA_AGGREGATE_GAIN": "x",
}
"""The tests of a datapath accelerator, with the units of their figures: loads, and rates of `cpus` threads."""
PINGPONG = "LAT_PINGPONG"
"""The test of half a round trip between programs on two hosts."""
TESTS = {**PCIE, **dict.fromkeys(XDP, "Mpps"), PINGPONG: "ns", **DPA}
"""All tests, with the units of their figures."""

COLUMNS = ("test", "size_bytes", "published")
"""Columns that a file must have."""
OPTIONAL = {
    "card": "",
    "pattern": "seq",
    "cache": "hwarm",
    "host_offset_bytes": "0",
    "card_offset_bytes": "0",
    "window_bytes": "8192",
    "cpus": "1",
    "unit": "",
    "kind": "predicted",
    "source": "",
    "fit": "",
}
"""Further columns, with the values that rows have without them."""
_NUMBER = re.compile(r"\+?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?|\+?[0-9]+\.")
_LEAST, _MOST = 1e-6, 1e15
"""The range of published figures."""
_WORDS = {
    "test": tuple(TESTS),
    "pattern": ("seq", "rand"),
    "cache": ("hwarm", "dwarm", "cold", "dthrash"),
    "kind": get_args(Kind),
}


@dataclass(frozen=True)
class Published:
    """A published measurement.

    Attributes:
        card: the name or path of the spec of the measured card in its host.
        test: name of the benchmark (pcie-bench, XDP, DPA or ping-pong).
        pattern: the pattern of addresses, `seq` or `rand`.
        cache: the state of the host's cache, `hwarm`, `dwarm`, `cold` or `dthrash`.
        host_offset: the offset from a line of the host in bytes.
        card_offset: the offset from a line of the card's memory in bytes.
        window: the window of host memory in bytes.
        cpus: the number of cores, or of hardware threads, that take frames.
        size: the size of a transfer, of a message, or of a frame with its check sequence, in bytes.
        value: the latency in ns, the bandwidth in Gb/s, or the rate in Mpps.
        kind: the use of the row.
        source: the table, figure or file of the measurement.
        fit: the key of the spec that is fitted to the row, or empty.
        line: the line in the file.
        file: the file's name in messages.
    """

    card: str
    test: str
    pattern: str
    cache: str
    host_offset: int
    card_offset: int
    window: int
    size: int
    value: float
    kind: Kind
    source: str
    line: int
    cpus: int = 1
    fit: str = ""
    file: str = ""

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return TESTS[self.test]

    @property
    def point(self) -> Point:
        """The point of the benchmark, without the card."""
        offsets = (self.host_offset, self.card_offset)
        return (self.test, self.pattern, self.cache, *offsets, self.window, self.cpus, self.size)


def read_rows(text: str, place: str, card: str = "") -> list[Published]:
    """Read the rows of a file.

    Args:
        text: the file's content.
        place: the file's name in messages.
        card: the card of rows that name none.

    Raises:
        InputError: a column is missing or unknown, or a value is wrong. The message names the line.
    """
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        names = [name.strip() for name in reader.fieldnames or []]
        if missing := [name for name in COLUMNS if name not in names]:
            raise InputError(f"{place}: line 1: no column {missing[0]}; write {', '.join([*COLUMNS, *OPTIONAL])}")
        if unknown := [name for name in names if name not in (*COLUMNS, *OPTIONAL)]:
            raise InputError(f"{place}: line 1: no column is called {unknown[0]!r}; {one_of((*COLUMNS, *OPTIONAL))}")
        if len(set(names)) < len(names):
            raise InputError(f"{place}: line 1: a column appears twice; write it once")
        reader.fieldnames = names
        rows = [_row(row, place, reader.line_num, card) for row in reader]
    except csv.Error as error:
        raise InputError(f"{place}: line {reader.line_num}: not CSV ({error}); write one row a line") from error
    if not rows:
        raise InputError(f"{place}: no row; write a line for each measurement below the names of the columns")
    return rows


def rows_of_file(path: Path, card: str = "") -> list[Published]:
    """Read the rows of a user's file. `card` is the card of rows that name none.

    Raises:
        InputError: the file cannot be read, or a row is wrong.
    """
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputError(f"{path}: cannot read it ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8; write CSV") from error
    return read_rows(text.removeprefix("\ufeff"), str(path), card)


def _row(given: dict[str, str | None], file: str, line: int, card: str) -> Published:
    place = f"{file}: line {line}"
    if None in given or None in given.values():
        raise InputError(
            f"{place}: the number of values differs from the number of columns; write one value per column, or leave "
            "it empty"
        )
    row = {name: (value or "").strip() or OPTIONAL.get(name, "") for name, value in given.items()}
    row = {**OPTIONAL, **row}
    row["card"] = row["card"] or card
    for name, words in _WORDS.items():
        if row[name] not in words:
            raise InputError(f"{place}: {name} is {one_of(words)}, not {row[name]!r}")
    if not row["card"]:
        raise InputError(f"{place}: no card; write the name or path of a spec in a column card, or before --rows")
    unit = TESTS[row["test"]]
    if row["unit"] not in {"", unit}:
        raise InputError(f"{place}: the unit of {row['test']} is {unit}, not {row['unit']!r}")
    if row["fit"] and row["kind"] == "seen":
        raise InputError(f"{place}: a row that a key is fitted to is calibrated, not seen; leave kind empty")
    number = {name: _count(row[name], name, place) for name in row if name.endswith("_bytes") or name == "cpus"}
    return Published(
        card=row["card"],
        test=row["test"],
        pattern=row["pattern"],
        cache=row["cache"],
        host_offset=number["host_offset_bytes"],
        card_offset=number["card_offset_bytes"],
        window=number["window_bytes"],
        size=number["size_bytes"],
        value=_value(row["published"], unit, place),
        kind="calibrated" if row["fit"] else cast(Kind, row["kind"]),
        source=row["source"],
        line=line,
        cpus=number["cpus"],
        fit=row["fit"],
        file=file,
    )


def _count(text: str, name: str, place: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(1 << 63))):
        what = "a whole number of bytes" if name.endswith("_bytes") else "a whole number"
        raise InputError(f"{place}: {name} is {what}, not {text!r}")
    return int(text)


def _value(text: str, unit: str, place: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else 0.0
    if not _LEAST <= value <= _MOST:
        raise InputError(f"{place}: published is a number of {unit} from {_LEAST:g} to {_MOST:g}, not {text!r}")
    return value
