"""What commands print."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def note(text: str) -> None:
    """Tell the user something on stderr."""
    sys.stderr.write(f"nicety: {text}\n")
