"""The host program of the suite: it starts processes, and exchanges messages with them.

    nicety check host.py --nic nfp-4000 FILE.c DEFINES WORDS...

A word NAME:MICROENGINE:CONTEXT[:ARGUMENT] starts a process, and @RANK changes the rank of the following words.
TARGET>BYTES and TARGET<BYTES send and receive a message, TARGET>>BYTES and TARGET<<BYTES an indirect one. A question
mark behind the bytes gives up after a while.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import nicety

FILE, DEFINES, *WORDS = sys.argv[1:]
program = nicety.Processes(FILE, defines=[DEFINES] if DEFINES else [])
nodes = 2 if any(word.startswith("@") for word in WORDS) else 1
allow_failures = "trap"


async def main(host: Any) -> None:
    rank = 0
    device = host.channels.open()
    for word in WORDS:
        if word.startswith("@"):
            rank = int(word[1:])
        elif rank != host.rank:
            continue
        elif found := re.fullmatch(r"(\d+)(>>?|<<?)(\d+)(\??)", word):
            channel = await device.subscribe(int(found[1]))
            await exchange(host, channel, found[2], int(found[3]), 200_000 if found[4] else None)
        else:
            name, microengine, context, *args = word.split(":")
            place = {"microengine": int(microengine), "context": int(context)}
            host.channels.start(program, name, **place, args=[int(arg) for arg in args])


async def exchange(host: Any, channel: Any, way: str, length: int, timeout_ns: int | None) -> None:
    try:
        match way:
            case ">":
                await channel.send(bytes(length), timeout_ns=timeout_ns)
            case "<":
                await channel.receive(length, timeout_ns=timeout_ns)
            case ">>":
                await channel.send_ind(host.alloc(length), timeout_ns=timeout_ns)
            case _:
                await channel.receive_ind(host.alloc(length), timeout_ns=timeout_ns)
    except nicety.TimedOut:
        pass
