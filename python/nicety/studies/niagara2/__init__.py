"""The claims of the paper on the network interface of Niagara 2."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.niagara2.streams import DISCRETE, INTEGRATED, ROLES, latency, receive, where
from nicety.studies.study import Section, Study

STUDY = Study(
    name="niagara2",
    paper=read_paper("nicety.studies.niagara2"),
    sections=(
        Section("Receive", receive),
        Section("Where it helps", where),
        Section("Latency", latency),
    ),
    cards=(DISCRETE, INTEGRATED),
    roles=ROLES,
)
