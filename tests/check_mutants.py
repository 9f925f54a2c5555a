"""Mutants of handlers under the checker: the share of changed programs with a finding, by operator.

Operators change one place of a source. An atomic operation becomes a plain one, a comparison of a bound vanishes, or
an index or a length grows. A wait, a lock or a value is left out, two statements change places, or a return code is
another. Some mutants are as right as the original, so that no share is 100 %. Unchanged sources must have no
findings.

    python tests/check_mutants.py [--count 300] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from nicety.bench.check.handlers import check_handlers
from nicety.build.xdp import compile_xdp
from nicety.errors import Error
from test_check import PROGRAMS, ROOT, SUITE, options

TRAFFIC = "udp src=10.0.0.0/20 dst=10.0.0.2 sport=1024-2047 dport=53 size=60 packets=64"
OF_MESSAGES = {"packet_sizes": [64], "message_packets": 8, "messages": 1}
LIMIT = ["hpu.cycle_limit=20000"]


@dataclass(frozen=True)
class Operator:
    """A change: a pattern, and its replacement."""

    name: str
    pattern: str
    replacement: str


OPERATORS = [
    Operator("atomic becomes plain", r"__atomic_fetch_add\(([^,]+), ([^,]+), __ATOMIC_\w+\)", r"(*(\1) += (\2))"),
    Operator("atomic becomes plain", r"__sync_fetch_and_add\(([^,]+), ([^)]+)\)", r"(*(\1) += (\2))"),
    Operator("atomic becomes plain", r"amo_add\(([^,]+), ([^)]+)\)", r"(*(\1) += (\2))"),
    Operator("bound left out", r"if \([^;{}]*(?:> end|length <|_end\()[^;{}]*\) ?\{?\n?\s*return [^;]+;\s*\}?", ""),
    Operator("index grows", r"\[([^\]\n]*[a-z][^\]\n]*)\](?! *=? *\{)", r"[(\1) + 200]"),
    Operator("index grows", r" (?:%|&) (?:63|15|255|7|COUNT_FLOWS)\b", " % 5000"),
    Operator("loop goes on", r"(\bi|\bj|done) < ", r"\1 <= 3 + "),
    Operator("wait left out", r"\b(?:PtlHandlerDMAWait|spin_cmd_wait|spin_dma_wait)\([^)]*\);", ";"),
    Operator("lock left out", r"\b(?:take|spin_lock_lock|bpf_spin_lock)\((&[^)]*|lock)\);", ";"),
    Operator("unlock left out", r"\b(?:give|spin_lock_unlock|bpf_spin_unlock)\((&[^)]*|lock)\);", ";"),
    Operator("unlock twice", r"\b((?:give|spin_lock_unlock|bpf_spin_unlock)\((?:&[^)]*|lock)\));", r"\1; \1;"),
    Operator("another return code", r"return (?:SUCCESS|FRAME_\w+|XDP_\w+);", "return 77;"),
    Operator(
        "value left out", r"(\n\s+(?:uint\d+_t|int|__u\d+|struct \w+) \w+(?:\[\d+\])?) = (?:\{[^}]*\}|0);", r"\1;"
    ),
    Operator("send too long", r"(PtlHandlerPutFromDevice\([^,]+, )([^,]+),", r"\1(\2) + 5000,"),
    Operator("send too long", r"(spin_send_packet\([^,]+, )([^,]+),", r"\1(\2) + 100,"),
    Operator("statements swapped", r"(\n +[^\n;{}]+;)(\n +[^\n;{}]+;)", r"\2\1"),
]


def sources() -> dict[Path, dict[str, Any]]:
    """Sources with the arguments of their checks."""
    found: dict[Path, dict[str, Any]] = {}
    for path in sorted((ROOT / "handlers").glob("*/*.c")):
        if path.parent.name in ("frames", "xdp"):
            found[path] = {"nics": ["spin-100g"], "traffic": [TRAFFIC]}
            if path == ROOT / "handlers/frames/firewall.c":
                # The state begins with its table.
                found[path]["state_bytes"] = 256 << 10
        elif path.parent.name == "pspin":
            found[path] = {"nics": ["pspin"], **OF_MESSAGES}
    for name in (
        "accumulate",
        "broadcast_store",
        "broadcast_stream",
        "pingpong_store",
        "pingpong_stream",
        "sink_store",
    ):
        found[ROOT / f"handlers/{name}.c"] = {"nics": ["spin-discrete"], **OF_MESSAGES}
    for program in PROGRAMS:
        found[SUITE / f"{program['name']}.c"] = options(program["options"])
    return found


def twin(text: str) -> str:
    """A program of the suite without its bug."""
    text = re.sub(r"#ifdef BUG\n.*?#else\n(.*?)#endif\n", r"\1", text, flags=re.DOTALL)
    text = re.sub(r"#ifdef BUG\n.*?#endif\n", "", text, flags=re.DOTALL)
    return re.sub(r"#ifndef BUG\n(.*?)#endif\n", r"\1", text, flags=re.DOTALL)


def mutants(text: str) -> Iterator[tuple[str, str]]:
    """The operators' names and the sources that they make of a source."""
    start = text.find("{")
    for operator in OPERATORS:
        for match in re.finditer(operator.pattern, text):
            if match.start() > start:
                yield operator.name, text[: match.start()] + match.expand(operator.replacement) + text[match.end() :]


def findings(text: str, path: Path, given: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """The findings of a source in place of a file."""
    source = folder / path.name
    source.write_text(text)
    own = {**given, "overrides": LIMIT, "allow_failures": "all"}
    include = [path.parent, ROOT / "handlers/include"]
    if "<xdp.h>" in text:
        made = compile_xdp(source, output=folder / f"{path.stem}.o", include_dirs=include)
        return list(check_handlers(made, **own)["findings"])
    defines = ["STORE_AND_SEND"] if path.name == "saturate.c" else []
    return list(check_handlers(source, include_dirs=[path.parent], defines=defines, **own)["findings"])


def tried(texts: dict[Path, dict[str, Any]], count: int, seed: int, folder: Path) -> Iterator[tuple[str, set[str]]]:
    """The operators of this number of mutants, in turn, so that rare ones are tried too, with the kinds of findings."""
    every = [(path, *mutant) for path in texts for mutant in mutants(twin(path.read_text()))]
    random.Random(seed).shuffle(every)
    left: dict[str, list[tuple[Path, str]]] = {}
    for path, operator, text in every:
        left.setdefault(operator, []).append((path, text))
    while any(left.values()):
        for operator, those in left.items():
            if not those:
                continue
            path, text = those.pop()
            try:
                found = findings(text, path, texts[path], folder)
            except Error:
                continue  # the compiler refused it
            if not found:
                print(f"  no finding: {operator}: {path.name}", file=sys.stderr, flush=True)
            yield operator, {finding["kind"] for finding in found}
            count -= 1
            if not count:
                return


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts: dict[str, list[bool]] = {}
    kinds: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder, texts = Path(name), sources()
        unchanged = {path: findings(twin(path.read_text()), path, given, folder) for path, given in texts.items()}
        for operator, found in tried(texts, asked.count, asked.seed, folder):
            counts.setdefault(operator, []).append(bool(found))
            kinds += found
    for operator, hits in sorted(counts.items()):
        print(f"{operator:24} {sum(hits):4} of {len(hits):4}  {100 * sum(hits) / len(hits):5.1f} %")
    print(f"{'all':24} {sum(map(sum, counts.values())):4} of {sum(map(len, counts.values())):4}")
    print("findings by kind:", ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds))))
    alarms = [f"{path.name}: {each['kind']}" for path, found in unchanged.items() for each in found]
    print("findings in unchanged sources:", ", ".join(alarms) or "none")


if __name__ == "__main__":
    main()
