"""Untrusted text: names from files, messages of compilers, lines that handlers print.

A terminal shows it without interpreting it.
"""

from __future__ import annotations

import re

_ACTS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters on which a terminal acts: control characters, separators of lines and paragraphs, bidirectional
formatting.
"""

_ESCAPED = re.compile(f"[{_ACTS}\ud800-\udfff]")
_ESCAPED_IN_TEXT = re.compile(f"(?![\n\t])[{_ACTS}\ud800-\udfff]")
_LEFT_BY_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Text in one line, with terminal control characters as escapes: `\x1b`, `\u202e`."""
    return _ESCAPED.sub(_escape, text)


def printable_text(text: str) -> str:
    """`printable`, but with unchanged line breaks and tabs."""
    return _ESCAPED_IN_TEXT.sub(_escape, text)


def printable_json(document: str) -> str:
    """A JSON document with terminal control characters as JSON's own escapes."""
    return _LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
