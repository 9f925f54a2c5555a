"""Programs with Open MPI on simulated hosts, if there is a compiler for them: `mpicc.openmpi`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_exec import NICETY

MPICC = shutil.which("mpicc.openmpi")
PROGRAM = Path(__file__).parent / "programs" / "windows.c"


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("windows") / "windows"
    subprocess.run([str(MPICC), "-o", program, PROGRAM], check=True)
    return program


def run(program: Path, *words: str, nic: str = "spin-discrete") -> tuple[int, str, str]:
    command = [*NICETY, "exec", "-n", "3", "--nic", nic, "--json", "--", str(program), *words]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, env={**os.environ, **root}, capture_output=True, text=True, timeout=240, check=False)
    return done.returncode, done.stdout, done.stderr


# Not skipped elsewhere: no required tool is missing there.
if MPICC and sys.platform == "linux":

    @pytest.mark.parametrize("nic", ["spin-discrete", "apenet-v5", "ethernet-100g", "qnix", "nfp-4000"])
    def test_windows_have_the_right_bytes_and_times(windows: Path, nic: str) -> None:
        runs = [run(windows, nic=nic) for _ in range(2)]
        assert [status for status, _, _ in runs] == [0, 0], runs[0][2]
        assert runs[0][1] == runs[1][1]
        assert "error" not in runs[0][2].lower()
        # The launcher's sleeps do not count: a millisecond each.
        assert all(rank["sleeping_ns"] == 0 for rank in json.loads(runs[0][1])["ranks"])

    def test_a_stopped_process_leaves_nothing(windows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        places = tmp_path / "temporary"
        places.mkdir()
        monkeypatch.setenv("TMPDIR", str(places))
        status, _, err = run(windows, "1", "stop")
        assert status == 1
        assert "the process of rank 1 has been stopped for 5 s" in err
        assert not list(places.iterdir())

    def test_its_programs_have_its_launcher(windows: Path) -> None:
        _, out, _ = run(windows)
        assert json.loads(out)["launcher"] == "openmpi"
        for launcher in ("none", "mpich"):
            command = [*NICETY, "exec", "--nic", "spin-discrete", "--launcher", launcher, "--", str(windows)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 2
            assert f"--launcher {launcher}: {windows} is linked with Open MPI" in done.stderr

    def test_who_ends_all_is_named(windows: Path) -> None:
        for how, told in [
            ("abort", "rank 1 called MPI_Abort with code 5, which ends all processes"),
            ("leave", "the process of rank 1 ended with status 3 before it had closed the network"),
        ]:
            for _ in range(3):
                status, _, err = run(windows, "1", how)
                assert status == 1
                assert told in err
                assert "Segmentation fault" not in err
