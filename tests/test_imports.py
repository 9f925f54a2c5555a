"""A command that draws nothing imports nothing that draws: matplotlib's import takes longer than most commands."""

import subprocess
import sys

import pytest

# Imported by pictures, tables and recordings alone.
HEAVY = ("matplotlib", "numpy", "pyarrow", "pandas")

RUN = f"""
import sys
from nicety.cli.app import app_for
try:
    app_for(sys.argv[1:])(sys.argv[1:])
except SystemExit as end:
    status = end.code
sys.stderr.write(f"status {{status or 0}}: {{[name for name in {HEAVY!r} if name in sys.modules]}}")
"""


def imported(arguments: list[str]) -> str:
    """The exit status of a command and the heavy packages that it imported."""
    run = subprocess.run([sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, check=False)
    return run.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "specs",
        "specs show qnix",
        "bench latency --nic spin-discrete --sizes 8 --json",
        "bench latency --nic spin-discrete --sizes 8 --breakdown",
        "bench handlers --help",
        "goal generate ring-allreduce --ranks 4 --size 64",
        "goal run {schedule} --json",
        "goal run {schedule} --nic qnix",
        "goal compare {schedule} --nic qnix",
    ],
)
def test_a_command_without_a_picture_imports_nothing_that_draws(command, tmp_path):
    schedule = tmp_path / "one.goal"
    schedule.write_text("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 1\n}\nrank 1 {\nrecv 8b from 0 tag 1\n}\n")
    assert imported(command.format(schedule=schedule).split()) == "status 0: []"


def test_a_picture_imports_what_draws(tmp_path):
    picture = tmp_path / "latency.svg"
    words = ["bench", "latency", "--nic", "spin-discrete", "--sizes", "8,64", "--plot", str(picture)]
    assert imported(words) == "status 0: ['matplotlib', 'numpy']"
