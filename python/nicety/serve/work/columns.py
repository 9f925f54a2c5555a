"""Columns of numbers as one message of bytes, which a page reads without a copy.

A message begins with the length of its header as a 32-bit number, and the header as JSON. Zeros up to a multiple of 8
follow, and then the columns. Each column begins at a multiple of 8. Numbers are little-endian.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

NONE = 0xFFFFFFFF
"""A missing whole number. A missing real number is NaN."""
_ALIGNED = 8


def packed(header: Mapping[str, Any], columns: Mapping[str, Array]) -> bytes:
    """Return a message.

    Args:
        header: the header without its columns.
        columns: arrays of `uint32` or `float64`, by name.
    """
    described, parts, offset = [], [], 0
    for name, array in columns.items():
        kind = "f64" if array.dtype.kind == "f" else "u32"
        content = array.astype("<u4" if kind == "u32" else "<f8", copy=False).tobytes()
        described.append({"name": name, "type": kind, "offset": offset, "length": len(array)})
        content += bytes(-len(content) % _ALIGNED)
        parts.append(content)
        offset += len(content)
    text = json.dumps({**header, "columns": described}, allow_nan=False).encode()
    start = len(text).to_bytes(4, "little") + text
    return b"".join([start, bytes(-len(start) % _ALIGNED), *parts])
