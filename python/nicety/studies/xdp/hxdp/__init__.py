"""The measurements of hXDP: a card that executes eBPF, and the server that it is compared with."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.study import Section, Study
from nicety.studies.xdp.hxdp.card import CARD, figures, firewall, instructions, small
from nicety.studies.xdp.hxdp.server import HOST, katran, served

STUDY = Study(
    name="hxdp",
    paper=read_paper("nicety.studies.xdp.hxdp"),
    sections=(
        Section("Small programs", small),
        Section("Simple firewall", firewall),
        Section("Instructions per row", instructions),
        Section("The server", served),
        Section("Katran", katran),
        Section("Figures without numbers", figures),
    ),
    cards=(CARD, HOST),
)
