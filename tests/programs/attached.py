"""An XDP program that the kernel attaches to a veth pair, in a network namespace of its own.

    unshare --net python attached.py < request.json

The request has an object, a mode of `ip link`, entries of maps, and frames. iproute2 loads and attaches the object.
Frames leave the interface `far` and arrive at `near`, where the program runs. The answer has the frames that passed at
`near`, the frames that came back to `far`, and the entries of all maps. `{}` only tests whether all of this is allowed.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MAP_CREATE, LOOKUP, UPDATE, NEXT_KEY = 0, 1, 2, 4
PROGRAM_OF, MAP_OF, INFO_OF = 13, 14, 15
SYSCALLS = {"x86_64": 321, "aarch64": 280}
ARRAY, PER_CPU = 2, (5, 6, 10)
NEAR, FAR = "near", "far"
ALL_FRAMES, SOL_PACKET, IGNORE_OUTGOING, FORCED_BUFFER = 3, 263, 23, 33
BATCH = 32

libc = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> int:
    """The system call; attributes name buffers by address."""
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    found: int = libc.syscall(SYSCALLS[platform.machine()], command, buffer, len(buffer))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return found


def info(descriptor: int, size: int, fill: bytes = b"") -> bytes:
    """What the kernel tells of a program or a map."""
    buffer = ctypes.create_string_buffer(fill, size)
    bpf(INFO_OF, struct.pack("<IIQ", descriptor, size, ctypes.addressof(buffer)))
    return buffer.raw


def possible_cpus() -> int:
    text = Path("/sys/devices/system/cpu/possible").read_text()
    return int(text.strip().replace("-", ",").split(",")[-1]) + 1


class Map:
    """A map of the attached program."""

    def __init__(self, number: int) -> None:
        self.descriptor = bpf(MAP_OF, struct.pack("<I", number))
        about = info(self.descriptor, 80)
        self.kind, _, self.key_bytes, self.value_bytes, self.most = struct.unpack_from("<5I", about)
        self.name = about[24:40].split(b"\0")[0].decode()
        self.cpus = possible_cpus() if self.kind in PER_CPU else 1
        self.stride = (self.value_bytes + 7) // 8 * 8 if self.kind in PER_CPU else self.value_bytes

    def _call(self, command: int, key: Any, value: Any) -> None:
        addresses = [ctypes.addressof(each) if each else 0 for each in (key, value)]
        bpf(command, struct.pack("<IIQQQ", self.descriptor, 0, *addresses, 0))

    def set(self, key: bytes, value: bytes) -> None:
        values = value.ljust(self.stride, b"\0") * self.cpus
        self._call(UPDATE, ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(values, len(values)))

    def items(self) -> list[tuple[str, list[str]]]:
        found, key = [], None
        following = ctypes.create_string_buffer(self.key_bytes)
        value = ctypes.create_string_buffer(self.stride * self.cpus)
        while True:
            try:
                self._call(NEXT_KEY, key, following)
            except FileNotFoundError:
                return found
            key = ctypes.create_string_buffer(following.raw, self.key_bytes)
            self._call(LOOKUP, key, value)
            starts = range(0, len(value), self.stride)
            values = [value.raw[at : at + self.value_bytes].hex() for at in starts]
            found.append((key.raw.hex(), values))


def maps_of(program: int) -> dict[str, Map]:
    descriptor = bpf(PROGRAM_OF, struct.pack("<I", program))
    count = struct.unpack_from("<I", info(descriptor, 128), 52)[0]
    numbers = (ctypes.c_uint32 * max(count, 1))()
    info(descriptor, 128, bytes(52) + struct.pack("<IQ", count, ctypes.addressof(numbers)))
    found = [Map(number) for number in numbers[:count]]
    return {each.name: each for each in found}


def ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def received(interface: str) -> int:
    lines = Path("/proc/net/dev").read_text().splitlines()
    (line,) = [each for each in lines if each.strip().startswith(f"{interface}:")]
    return int(line.split(":")[1].split()[1])


def listening(interface: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    opened.setsockopt(socket.SOL_SOCKET, FORCED_BUFFER, 64 << 20)
    opened.bind((interface, ALL_FRAMES))
    opened.settimeout(0.2)
    return opened


def frames_of(opened: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(opened.recv(1 << 17).hex())
        except TimeoutError:
            return found


def pair() -> None:
    """Two interfaces that send nothing of their own."""
    for file in Path("/proc/sys/net/ipv6/conf").glob("*/disable_ipv6"):
        file.write_text("1")
    ip("link", "add", NEAR, "type", "veth", "peer", "name", FAR)
    for name in (NEAR, FAR):
        ip("link", "set", name, "up")


def attach(name: str, mode: str, file: str, program: str) -> int:
    """Attach a program, and return its number."""
    ip("link", "set", "dev", name, mode, "object", file, "program", program)
    (shown,) = json.loads(ip("-json", "-details", "link", "show", name))
    number: int = shown["xdp"]["prog"]["id"]
    return number


def allowed() -> None:
    """Raises an error where no program can be attached."""
    bpf(MAP_CREATE, struct.pack("<5I", ARRAY, 4, 8, 1, 0))
    if "libbpf" not in ip("-Version"):
        raise OSError("iproute2 was built without libbpf")


def main() -> None:
    request = json.load(sys.stdin)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    pair()
    if not request:
        allowed()
        print("{}")
        return
    mode, index = request["mode"], socket.if_nametoindex(NEAR)
    maps = maps_of(attach(NEAR, mode, request["object"], request["program"]))
    # The far end takes sent frames only if it has a program as well.
    attach(FAR, mode, request["pass"], "pass")
    for name, entries in request["maps"].items():
        for key, value in entries:
            own = [part.replace("INDEX", struct.pack("<I", index).hex()) for part in (key, value)]
            maps[name].set(*map(bytes.fromhex, own))
    near, far = listening(NEAR), listening(FAR)
    before = received(NEAR)
    for number, frame in enumerate(request["frames"], 1):
        far.send(bytes.fromhex(frame))
        limit = time.monotonic() + 5
        while number % BATCH == 0 and received(NEAR) - before < number and time.monotonic() < limit:
            time.sleep(0.001)
    passed, returned = frames_of(near), frames_of(far)
    arrived = received(NEAR) - before
    entries = {name: own.items() for name, own in maps.items() if own.key_bytes}
    print(json.dumps({"arrived": arrived, "passed": passed, "returned": returned, "maps": entries}))


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
