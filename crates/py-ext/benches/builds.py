"""Builds benchmarks in Rust."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def benchmark(package: str, name: str, *options: str) -> str:
    """Build a benchmark of a package with more options of cargo, and return the path of its program."""
    words = ["cargo", "bench", "-q", "-p", package, "--bench", name, "--locked", "--no-run", *options]
    built = subprocess.run([*words, "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    artifacts = (json.loads(line) for line in built.stdout.splitlines())
    return str(next(each["executable"] for each in artifacts if each.get("target", {}).get("name") == name))


def torus() -> str:
    """Build the benchmark of tori, and return its path."""
    return benchmark("nicety-fabric", "torus")
