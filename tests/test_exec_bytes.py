"""Messages between real programs pass through the card, and nothing else does."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from test_exec import report

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux")

RANKS = 3
SIZES = (48, 1000, 200_000)
PIECE = 16
# A message goes to the switch, and from there.
LINKS = 2

# Each message has different bytes. After the exchange each rank notes the memory that it shares with others.
EXCHANGE = f"""
import json
for at, size in enumerate({SIZES}):
    wanted = [(each, bytearray(size)) for each in range(ranks) if each != rank]
    pending = [world.Irecv(room, each) for each, room in wanted]
    for each, _ in wanted:
        world.Send(numpy.random.default_rng((at, rank, each)).bytes(size), each)
    MPI.Request.Waitall(pending)
    for each, room in wanted:
        assert room == numpy.random.default_rng((at, each, rank)).bytes(size)
parts = world.allgather(numpy.random.default_rng((9, rank, 0)).bytes(600))
shared = []
for line in open("/proc/self/maps"):
    place, rights, *_, name = (line.split(maxsplit=5) + [""])[:6]
    if rights[1] == "w" and rights[3] == "s":
        shared.append(name.strip())
with open(f"shared.{{rank}}", "w") as file:
    json.dump(shared, file)
"""


def exchange(folder: Path, monkeypatch: pytest.MonkeyPatch, local: str) -> tuple[set[str], int, int]:
    """Run the program: memory that ranks share, pieces that links did not carry exactly once, and all pieces."""
    # Before the program starts MPI, and regardless of the launcher's settings.
    setting = f"import os\nos.environ['MPIR_CVAR_NOLOCAL'] = '{local}'\n"
    (folder / "sitecustomize.py").write_text(setting)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    report(folder, EXCHANGE, "--capture", "all.pcapng", ranks=RANKS)
    carried = (folder / "all.pcapng").read_bytes()
    # Each has some memory that could be shared, and that no other one has.
    names = Counter(name for rank in range(RANKS) for name in set(json.loads((folder / f"shared.{rank}").read_text())))
    shared = {name for name, ranks in names.items() if ranks > 1}
    wrong = pieces = 0
    for at, size in enumerate(SIZES):
        for pair in ((one, other) for one in range(RANKS) for other in range(RANKS) if one != other):
            sent = np.random.default_rng((at, *pair)).bytes(size)
            for start in range(0, size - PIECE, 4096 if size > 4096 else PIECE):
                pieces += 1
                wrong += carried.count(sent[start : start + PIECE]) != LINKS
    return shared, wrong, pieces


def test_no_byte_passes_the_provider_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, wrong, pieces = exchange(tmp_path, monkeypatch, "1")
    assert shared == {"/memfd:nicety (deleted)"}
    assert wrong == 0
    assert pieces > 600


def test_bytes_that_pass_it_by_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # MPICH's ranks share memory unless it is forbidden.
    shared, wrong, pieces = exchange(tmp_path, monkeypatch, "0")
    assert len(shared) > 1
    assert wrong == pieces
