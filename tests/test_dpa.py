"""The datapath accelerator of BlueField-3: cycles of loads, its programs on their threads, and errors."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "handlers" / "dpa"
CARD = "bluefield3-dpa"
UDP = "udp size=64 packets=2000"
