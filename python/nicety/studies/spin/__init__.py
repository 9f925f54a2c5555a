"""The claims of the sPIN paper."""

from __future__ import annotations

from nicety.studies.claims import read_paper
from nicety.studies.spin.broadcast import broadcast
from nicety.studies.spin.effects import host_memory, noise
from nicety.studies.spin.line_rate import line_rate
from nicety.studies.spin.pingpong import parameters, ping_pong
from nicety.studies.spin.usecases import accumulate, datatypes, kv, matching, storage
from nicety.studies.study import Section, Study

STUDY = Study(
    name="spin",
    paper=read_paper("nicety.studies.spin"),
    sections=(
        Section("Parameters", parameters),
        Section("Ping-pong", ping_pong),
        Section("Line rate", line_rate),
        Section("Broadcast", broadcast),
        Section("Accumulate", accumulate),
        Section("Matching", matching),
        Section("Datatypes", datatypes),
        Section("Storage", storage),
        Section("Key-value store", kv),
        Section("Noise", noise),
        Section("Host memory", host_memory),
    ),
)
