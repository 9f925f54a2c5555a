"""The functions on a message's path in ARCHITECTURE.md are at the given places."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
STEP = re.compile(r"^\| [^|]+ \| `(\w+)` \| `([^`]+)` \|$", re.MULTILINE)


def test_a_journeys_functions_are_in_their_files() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    begin = text.index("## One message, design by design")
    section = text[begin : text.index("\n## ", begin)]
    designs = re.findall(r"^On .*`?(?:sPIN|nfp-4000|qnix|apenet-v5|niagara2)\b", section, re.MULTILINE)
    steps = STEP.findall(section)
    assert len(designs) == 5
    assert len(steps) == section.count("\n| ") - 5
    wrong = []
    for function, name in steps:
        source = (ROOT / name).read_text() if (ROOT / name).is_file() else ""
        found = rf"^ *(?:__process )?\w+ {function}\(|^\s*(?:pub(?:\([\w: ]+\))? )?(?:async )?fn {function}\b"
        if not re.search(found, source, re.MULTILINE):
            wrong.append(f"no function {function} in {name}")
    assert not wrong, "\n".join(wrong)
