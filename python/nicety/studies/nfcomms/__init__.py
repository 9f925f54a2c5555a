"""The claims of the NFComms paper."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.nfcomms.cardinality import CARD, cardinality
from nicety.studies.nfcomms.channels import bulk_messages, calibrated, direct_messages
from nicety.studies.nfcomms.salesman import salesman
from nicety.studies.study import Section, Study

STUDY = Study(
    name="nfcomms",
    paper=read_paper("nicety.studies.nfcomms"),
    sections=(
        Section("Calibrated", calibrated),
        Section("Direct messages", direct_messages),
        Section("Bulk messages", bulk_messages),
        Section("Cardinality", cardinality),
        Section("Travelling salesman", salesman),
    ),
    cards=(CARD,),
)
