"""`nicety bench`: its commands and their options."""

from nicety.cli.bench import channels, contexts, handlers, hosts, interfaces, usecases
from nicety.cli.options import group

bench = group("Benchmarks: between two hosts, of use cases, or of what runs on a card.")
for room in (hosts, handlers, usecases, channels, interfaces, contexts):
    room.register(bench)
