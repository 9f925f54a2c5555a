"""Runs of PsPIN's RTL, and the same runs on the card `pspin`."""

from __future__ import annotations

from nicety.studies.pspin.runs import CARD, PAPER, empty, pingpong, total
from nicety.studies.pspin.saturated import saturate
from nicety.studies.study import Section, Study

STUDY = Study(
    name="pspin",
    paper=PAPER,
    sections=(
        Section("Empty handler", empty),
        Section("Ping-pong", pingpong),
        Section("Sum of words", total),
        Section("Saturated", saturate),
    ),
    cards=(CARD,),
    roles={"card": CARD},
)
