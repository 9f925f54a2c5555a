"""The measurements of XDP in a host's driver."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.study import Section, Study
from nicety.studies.xdp.rates import CARD, dropped, latency, load, redirected, sent

STUDY = Study(
    name="xdp",
    paper=read_paper("nicety.studies.xdp"),
    sections=(
        Section("Dropped frames", dropped),
        Section("Frames sent back", sent),
        Section("Redirected frames", redirected),
        Section("CPU load", load),
        Section("Latency", latency),
    ),
    cards=(CARD,),
)
