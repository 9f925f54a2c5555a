"""Writes a permutation of 1024 hosts as a schedule, and as a file of htsim. Each host sends one message of BYTES bytes.

`python crates/py-ext/benches/permutation.py BYTES` writes permutation-BYTES.goal and permutation-BYTES.cm.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

HOSTS = 1024


def main() -> None:
    """Write both files into the working folder."""
    size = int(sys.argv[1])
    order = list(range(HOSTS))
    random.Random(1).shuffle(order)  # noqa: S311, the same permutation each time, and no secret
    target = {order[at]: order[(at + 1) % HOSTS] for at in range(HOSTS)}
    source = {to: rank for rank, to in target.items()}
    lines = [f"num_ranks {HOSTS}"]
    for rank in range(HOSTS):
        lines += [f"rank {rank} {{", f"s: send {size}b to {target[rank]}", f"r: recv {size}b from {source[rank]}", "}"]
    Path(f"permutation-{size}.goal").write_text("\n".join(lines) + "\n")
    flows = [f"{rank}->{to} id {rank + 1} start 0 size {size}" for rank, to in target.items()]
    head = [f"Nodes {HOSTS}", f"Connections {HOSTS}"]
    Path(f"permutation-{size}.cm").write_text("\n".join([*head, *flows]) + "\n")


if __name__ == "__main__":
    main()
