"""The claims of the sPIN paper."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.spin.broadcast import broadcast
from nicety.studies.spin.line_rate import line_rate
from nicety.studies.spin.pingpong import host_memory, noise, parameters, ping_pong
from nicety.studies.study import Section, Study

STUDY = Study(
    name="spin",
    paper=read_paper("nicety.studies.spin"),
    sections=(
        Section("Parameters", parameters),
        Section("Ping-pong", ping_pong),
        Section("Line rate", line_rate),
        Section("Noise", noise),
        Section("Host memory", host_memory),
        Section("Broadcast", broadcast),
    ),
)
