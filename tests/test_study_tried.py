"""Experiments of studies: the command that a page names is the one that was run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from nicety.show.columns import fixed
from nicety.studies.tried import DRIVER, figure_of, options_of, report_of, tried
from studies import report

_COMMAND = re.compile(r"^#   (nicety bench .*?): ", re.MULTILINE)

COMMANDS = {
    "nicety bench latency --nic qnix --mode pio --sizes 1Ki --iterations 2 --set 'pio.limit=4 KiB'": "latency_ns",
    "nicety bench bandwidth --nic apenet-v5 --sizes 64Ki --iterations 1 --window 2 --loopback": "bandwidth_bytes_per_s",
    "nicety bench registration --nic qnix --sizes 4096 --set 'kernel.pin=4.55 us'": "translate_ns",
    "nicety bench pcsa --nic nfp-4000 --contexts 8 --updates 8 --set hpu.cycles.switch=0": "cycles_computing",
    "nicety bench channel-bandwidth --nic nfp-4000 --mode indirect --direction host-to-card --processes 2 --sizes 64Ki "
    "--payload 1Mi --runs 2": "bandwidth_bytes_per_s",
    "nicety bench broadcast --nic spin-integrated --nodes 4 --sizes 8 --mode rdma --topology fat-tree:36": "latency_ns",
    "nicety bench storage --nic spin-discrete --sizes 4Ki --operation write --mode spin": "latency_ns",
    "nicety bench matching --nic spin-discrete --sizes 64Ki --arrival expected --mode spin": "host_memory",
    "nicety bench matching --nic spin-discrete --sizes 64Ki --arrival expected --eager 64Ki --mode host": "host_memory",
    "nicety bench stream --nic niagara2-niu --peer xeon-oplin --warmup 1ms --duration 1ms --connections 4 --cpus 8 "
    "--io-sizes 1Ki --set driver.receive=161": "cpu_ns_per_packet",
    "nicety bench stream --nic niagara2-niu --warmup 1ms --duration 1ms --connections 4 --cpus 8": DRIVER,
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_what_the_study_runs(command: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "--json"], capture_output=True, text=True, check=True
    ).stdout
    figure = COMMANDS[command]
    ours = figure_of(report_of(command)["rows"][-1], figure)
    assert ours == figure_of(json.loads(run)["rows"][-1], figure)
    found = tried(command, figure, 1, "in all", 0)
    assert (found.value, found.result) == (ours, f"{fixed(ours, 0)} in all")


def test_the_drivers_time_is_a_part_of_a_packets() -> None:
    (command,) = (command for command, figure in COMMANDS.items() if figure == DRIVER)
    row = report_of(command)["rows"][-1]
    others = sum(group["ns_per_packet"] for group in row["breakdown"] if group["group"] != "driver")
    assert 0 < figure_of(row, DRIVER) == pytest.approx(row["cpu_ns_per_packet"] - others)


def test_commands_of_pages_are_benchmarks() -> None:
    for name in ("apenet", "qnix", "nfcomms", "spin", "niagara2"):
        commands = _COMMAND.findall(report(name))
        assert commands, name
        for command in commands:
            _, given = options_of(command)
            assert given["nics"], command


def test_other_commands_are_refused() -> None:
    for command in ("nicety tsp --nic nfp-4000", "nicety bench kv --nic spin-discrete", "ls -l bench"):
        with pytest.raises(ValueError, match="no benchmark of a study"):
            options_of(command)
