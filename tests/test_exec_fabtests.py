"""libfabric's own tests (fabtests) on simulated hosts.

`NICETY_FABTESTS` names their folder in a copy of github.com/ofiwg/libfabric, which has the headers for their
compilation. The library is that of PyPI's `mpich`. Their version of the interface must not be newer than the library
(2.5).
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

FOLDER = os.environ.get("NICETY_FABTESTS")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform != "linux", reason="programs run on simulated hosts only under Linux"),
    pytest.mark.skipif(FOLDER is None, reason="NICETY_FABTESTS names no folder of libfabric's fabtests"),
]

CONFIGURATION = """
#define HAVE_CLOCK_GETTIME 1
#define HAVE_EPOLL 1
#define PACKAGE_VERSION "fabtests"
#define SIZEOF_VOID_P 8
"""

# The first process is the server, and the second its client. For programs that use sockets before, a client that
# arrives first ends.
ROLES = """#!/bin/sh
test "$NICETY_RANK" = 0 && exec "$@"
case "$1" in *multi_recv) sleep 1;; esac
exec "$@" 127.0.0.1
"""

MESSAGES = [
    "spin-discrete",
    "spin-integrated",
    "pspin",
    "apenet-v5",
    "qnix",
    "nfp-4000",
    "ethernet-100g",
    "niagara2-niu",
]
REGISTERED = ["spin-discrete", "spin-integrated", "pspin", "apenet-v5"]
ATOMIC = ["spin-discrete", "spin-integrated", "pspin"]

TESTS = [
    ("functional/rdm", "", MESSAGES),
    ("benchmarks/rdm_pingpong", "-I 5 -v -S 4096", MESSAGES),
    ("benchmarks/rdm_pingpong", "-I 2 -v -S 1048576", MESSAGES),
    ("benchmarks/rdm_cntr_pingpong", "-I 5 -S 4096", MESSAGES),
    ("benchmarks/rdm_tagged_bw", "-I 20 -W 4 -v -S 65536", MESSAGES),
    ("functional/cq_data", "-o senddata", MESSAGES),
    ("functional/inject_test", "-N -A inject -v -I 5", [nic for nic in MESSAGES if nic != "qnix"]),
    ("functional/inject_test", "-N -A inj_complete -v -I 5 -S 64", MESSAGES),
    ("functional/multi_recv", "-e rdm -I 200 -S 1024 -v", MESSAGES),
    ("functional/multi_recv", "-e rdm -I 200 -S 3000 -M -v", MESSAGES),
    ("functional/cq_data", "-o writedata", REGISTERED),
    ("benchmarks/rma_bw", "-e rdm -o write -I 5 -W 4", REGISTERED),
    ("benchmarks/rma_bw", "-e rdm -o read -I 5 -W 4 -v -S 65536", REGISTERED),
    ("benchmarks/rma_bw", "-e rdm -o writedata -I 5 -W 4 -S 65536", REGISTERED),
    ("functional/rdm_atomic", "-I 2 -v", ATOMIC),
]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the programs."""
    assert FOLDER is not None
    source, made = Path(FOLDER), tmp_path_factory.mktemp("fabtests")
    (made / "config.h").write_text(CONFIGURATION)
    (made / "roles").write_text(ROLES)
    (made / "roles").chmod(0o755)
    library = Path(sysconfig.get_path("data"), "lib", "mpich", "libfabric.so.1")
    folders = [made, source / "include", source / "include" / "unix", source.parent / "include", source / "benchmarks"]
    shared = [str(path) for path in sorted((source / "common").glob("*.c"))]
    for name in sorted({name for name, _, _ in TESTS}):
        extra = [str(source / "benchmarks" / "benchmark_shared.c")] if name.startswith("benchmarks") else []
        command = ["cc", "-O1", "-w", "-D_GNU_SOURCE", *(f"-I{folder}" for folder in folders)]
        command += [str(source / f"{name}.c"), *extra, *shared, "-o", str(made / Path(name).name)]
        command += [str(library), f"-Wl,-rpath,{library.parent}", "-lpthread", "-ldl"]
        subprocess.run(command, check=True)
    return made


@pytest.mark.parametrize("nic", MESSAGES)
@pytest.mark.parametrize(("name", "words", "cards"), TESTS, ids=[f"{name} {words}" for name, words, _ in TESTS])
def test_a_test_of_libfabric_passes_or_says_what_the_card_lacks(
    programs: Path, name: str, words: str, cards: list[str], nic: str
) -> None:
    command = [sys.executable, "-m", "nicety", "exec", "-n", "2", "--launcher", "none", "--nic", nic, "--"]
    command += ["./roles", f"./{Path(name).name}", *words.split()]
    done = subprocess.run(command, cwd=programs, capture_output=True, text=True, timeout=300, check=False)
    if nic in cards:
        assert done.returncode == 0, done.stderr
    elif "inject_test" in name:
        # Its receives have 8 MiB, for any message size; its first message has the same size.
        assert "the maximum is 2097152" in done.stderr
    else:
        lacks = "FI_ATOMIC" if "atomic" in name else "FI_RMA"
        assert done.returncode == 2
        assert (
            f"libfabric has offered the program nothing, since the program asks for {lacks}, which the card"
            in done.stderr
        )
