"""Untrusted text: names from files, messages of compilers, lines that handlers print.

Control characters in such a text are escaped, so that a terminal does not act on them.
"""

from __future__ import annotations

import re

_ACTS = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters on which a terminal acts: control characters, separators of lines and paragraphs, and characters that
change the direction of text.
"""

_ESCAPED = re.compile(f"[{_ACTS}\ud800-\udfff]")
_ESCAPED_IN_TEXT = re.compile(f"(?![\n\t])[{_ACTS}\ud800-\udfff]")
_LEFT_BY_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    r"""Return text as one line, with the characters of `_ACTS` escaped, as in `\x1b` and `\u202e`."""
    return _ESCAPED.sub(_escape, text)


def printable_text(text: str) -> str:
    """Return text like `printable`, but leave line breaks and tabs unchanged."""
    return _ESCAPED_IN_TEXT.sub(_escape, text)


def printable_json(document: str) -> str:
    """Return a JSON document with the characters on which a terminal acts as JSON's own escapes."""
    return _LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
