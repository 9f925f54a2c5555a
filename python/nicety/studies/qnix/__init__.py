"""The claims of the QNIX chapter."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.qnix.interfaces import CARD, calibrated, copy_or_translate, messages
from nicety.studies.study import Section, Study

STUDY = Study(
    name="qnix",
    paper=read_paper("nicety.studies.qnix"),
    sections=(
        Section("Calibrated", calibrated),
        Section("Copy or translate", copy_or_translate),
        Section("Messages", messages),
    ),
    cards=(CARD,),
)
