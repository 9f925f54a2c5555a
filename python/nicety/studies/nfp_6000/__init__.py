"""The measurements of pcie-bench on an Agilio CX in four hosts."""

from __future__ import annotations

from nicety.studies.nfp_6000.hosts import HOSTS, PAPER, measure, unmodelled
from nicety.studies.study import Section, Study

STUDY = Study(
    name="nfp-6000",
    paper=PAPER,
    sections=(*(Section(host, measure(card)) for card, host in HOSTS.items()), Section("Not modelled", unmodelled)),
    cards=("nfp-6000",),
)
"""Its claims are rows of `studies/nfp-6000/rows.csv`."""
