"""Display of results in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any


class Shown(dict[str, Any]):
    """A report that displays itself in a notebook, by a function that converts it to HTML."""

    def __init__(self, report: Mapping[str, Any], html: Callable[[Any], str]) -> None:
        super().__init__(report)
        self._html = html

    def _repr_html_(self) -> str:
        return self._html(self)


def table_html(title: str, rows: Sequence[Sequence[str]]) -> str:
    """A table with the columns' names in its first row."""
    head, *body = ["".join(_cell(text, index == 0) for text in row) for index, row in enumerate(rows)]
    lines = "".join(f"<tr>{cells}</tr>" for cells in body)
    caption = f'<caption style="text-align: left; font-weight: bold; white-space: nowrap">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _cell(text: str, heads: bool) -> str:
    tag = "th" if heads else "td"
    return f'<{tag} style="text-align: right; padding: 0.1em 0.6em">{escape(text)}</{tag}>'
