"""The claims of the paper on the fifth version of APEnet+."""

from __future__ import annotations

from nicety.studies.apenet.puts import CARD, OLDER, engines, latency, memories, parts, tlb
from nicety.studies.claims import read_paper
from nicety.studies.study import Section, Study

STUDY = Study(
    name="apenet",
    paper=read_paper("nicety.studies.apenet"),
    sections=(
        Section("Parts", parts),
        Section("TLB", tlb),
        Section("Engines", engines),
        Section("Memories", memories),
        Section("Latency", latency),
    ),
    cards=(CARD, OLDER),
)
