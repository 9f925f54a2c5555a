"""Launchers of a program's processes: the `mpiexec` of the MPI with which the program is linked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from nicety.errors import InputError

Launcher = Literal["auto", "mpich", "openmpi", "none"]
"""The launcher that starts a program's processes. `auto` chooses the launcher by the program's MPI."""
LAUNCHERS: tuple[str, ...] = get_args(Launcher)

_NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
_LAUNCHERS = {"mpiexec", "mpirun", "orterun", "prterun", "prun", "srun", "aprun", "jsrun"}
"""Names of programs that start other programs' processes. A name counts up to its first dot, as in mpiexec.hydra."""


def refuse_launcher(words: Sequence[str], program: Path) -> None:
    """Refuse a program that is a launcher itself: its processes would have no simulated host.

    Raises:
        InputError: the program is a launcher, by its name or by the name of its link target.
    """
    if any(name.split(".")[0] in _LAUNCHERS for name in (program.name, program.resolve().name)):
        raise InputError(
            f"{words[0]}: this launcher starts the processes of another program, as nicety exec does; name that "
            "program and its number of processes, as in nicety exec -n 2 -- ./program, and the launcher by --launcher"
        )


def find_launcher(launcher: str, program: Path, ranks: int) -> tuple[str, str]:
    """Return the kind and the file of the launcher that starts a program with `ranks` ranks.

    Raises:
        InputError: there is no such launcher, or the program is linked with another MPI.
    """
    linked, library = _linked(program)
    if launcher == "none":
        if linked is not None:
            raise InputError(
                f"launcher none: {program} is linked with {_NAMES[linked]}, which uses the network only where its "
                "launcher has started it; leave the option out"
            )
        return "none", ""
    wanted = linked if launcher == "auto" else launcher
    if linked is not None and linked != wanted:
        raise InputError(f"launcher {launcher}: {program} is linked with {_NAMES[linked]}; leave the option out")
    names = ["mpiexec"] if wanted is None else ["mpiexec", f"mpiexec.{wanted}"]
    # Prefixes of MPI's installation. An MPI library is in PREFIX/lib or in PREFIX/lib/MACHINE.
    prefixes = [] if library is None else [library.parents[level] for level in (1, 2) if level < len(library.parents)]
    # The path has an order of its own for the folders on it: that of /bin/sh may have the launcher of another MPI.
    on_path = {Path(folder).resolve() for folder in os.get_exec_path()}
    places = [] if program.parent.resolve() in on_path else [program.parent / "mpiexec"]
    places += [prefix / "bin" / name for prefix in prefixes for name in names]
    places += [Path(path) for name in names if (path := shutil.which(name)) is not None]
    places.append(Path(sys.executable).parent / "mpiexec")
    for place in places:
        kind = _kind(place) if place.exists() else None
        if kind is not None and wanted in (None, kind):
            # Open MPI derives the prefix of its libraries from this path, and /bin may be a link to /usr/bin.
            return kind, os.fspath(place.parent.resolve() / place.name)
    if wanted is None and ranks == 1:
        return "none", ""
    of = "" if wanted is None else f" of {_NAMES[wanted]}"
    why = f", which {program} is linked with" if launcher == "auto" and wanted is not None else ""
    install = "install it" if wanted == "openmpi" else "pip install mpich"
    # Processes that use MPI find each other only through MPI's launcher.
    other = ", or start the processes one by one, with none as the launcher" if linked is None else ""
    raise InputError(f"there is no mpiexec{of}{why}, next to {program} or on the path; {install}{other}")


def _linked(program: Path) -> tuple[str | None, Path | None]:
    """Return the kind and the file of a program's MPI library. Both are None for a script or a program without MPI."""
    with program.open("rb") as file:
        head = file.read(4096)
    # The program's own dynamic linker lists its libraries without executing it.
    linker = re.search(rb"/[\w./-]*/ld[\w.-]*\.so[\w.-]*\0", head) if head.startswith(b"\x7fELF") else None
    if linker is None:
        return None, None
    try:
        listed = subprocess.run(
            [linker.group()[:-1].decode(), "--list", program],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, None
    found = dict(re.findall(r"^\s*(lib\S+) => (/.*) \(0x[0-9a-f]+\)$", listed.stdout, re.MULTILINE))
    names = {name.split(".so")[0] for name in found}
    if names & {"libopen-pal", "libopen-rte"}:
        kind = "openmpi"
    elif names & {"libmpich", "libmpi", "libmpi_abi"}:
        kind = "mpich"
    else:
        return None, None
    heads = ("libmpi.", "libmpich.", "libmpi_abi.")
    first = next((path for name, path in found.items() if name.startswith(heads)), None)
    return kind, None if first is None else Path(first)


def _kind(mpiexec: Path) -> str | None:
    """Return the MPI to which an mpiexec belongs, by its `--version`; None if it is neither MPICH nor Open MPI."""
    try:
        done = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout + done.stderr
    return "mpich" if "HYDRA" in text else "openmpi" if "Open MPI" in text or "OpenRTE" in text else None
