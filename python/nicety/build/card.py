"""XDP programs on the cores of a card.

An eBPF object is translated to assembly, and linked with the runtime of XDP programs: helpers, maps, and a frame
handler that calls the program. Functions of the runtime fill maps before the first packet, on a core without time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from nicety import _native
from nicety._generated.types import LineRateRow
from nicety.build.cache import cache_dir, keep
from nicety.build.compiler import Build, Compiled, library_folder
from nicety.build.toolchain import find_toolchain
from nicety.errors import InputError

_RUNTIME = tuple(
    f"xdp/{name}.c" for name in ("frame", "hash", "host", "lpm", "lru", "maps", "other", "packet", "queue", "ring")
)
_KEPT = ("frame_handler", "nicety_xdp_prepare", "nicety_xdp_set", "nicety_xdp_entries")
# Maps and data, which code may reach without their descriptors, and the host by their names.
_FOR_HOST = re.compile(r"^\t\.globl (nicety_(?:map|data)_\w+)$", re.MULTILINE)
_MACHINE = slice(18, 20)
_EBPF = 247


def is_object(path: Path) -> bool:
    """Whether a file is an eBPF object."""
    try:
        with path.open("rb") as file:
            head = file.read(_MACHINE.stop)
    except (OSError, ValueError):
        return False
    return head.startswith(b"\x7fELF") and int.from_bytes(head[_MACHINE], "little") == _EBPF


def card_values(nic: str) -> tuple[str, dict[str, Any]]:
    """The instruction set of a card's cores, and its values for XDP programs.

    Raises:
        InputError: there is no such card, or its handlers have no frames.
    """
    (item,) = json.loads(_native.line_rate_plan(json.dumps({"nics": [nic]})))["compile"]
    if item["xdp"] is None:
        raise InputError(f"{nic}: handlers of this card have messages, XDP programs frames; name another, as spin-100g")
    return item["isa"], item["xdp"]


@dataclass(frozen=True, eq=False)
class XdpProgram:
    """An XDP program for a card: `XdpProgram("firewall.o", maps={"flows": [{"key": 1, "value": 2}]})`.

    Attributes:
        source: the eBPF object.
        program: the program's name, where the object has several.
        maps: names of maps, and their entries before the first packet: lists as `bpftool -j map dump` prints them, or
            such a list as JSON.
        cc: a compiler to use instead of the one in the `ziglang` package; it assembles and links.
    """

    source: Path | str
    program: str | None = field(default=None, kw_only=True)
    maps: Mapping[str, object] = field(default_factory=dict, kw_only=True)
    cc: str | None = field(default=None, kw_only=True)

    @property
    def path(self) -> Path:
        """The eBPF object."""
        return Path(self.source)

    def content(self) -> bytes:
        """The object's bytes.

        Raises:
            InputError: it cannot be read.
        """
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise InputError(f"{self.source}: cannot read it ({error.strerror})") from error

    def request(self, isa: str, card: Mapping[str, Any]) -> str:
        """The request for a card, as JSON.

        Args:
            isa: the instruction set of its cores.
            card: its values, as a plan has them.
        """
        maps = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in self.maps.items()]
        own = {"program": self.program, "maps": maps, "misaligned": "zicclsm" in isa, "cluster": None}
        # The translator and the cores name no Zicclsm.
        plain = "_".join(name for name in isa.split("_") if name != "zicclsm")
        return json.dumps({**own, **card, "isa": plain})

    def translate(self, isa: str, card: Mapping[str, Any]) -> dict[str, Any]:
        """The assembly, with the program's name and the bytes of its maps.

        Raises:
            InputError: the object, the program or a map is wrong.
        """
        found = self._of(_native.xdp_build, self.content(), self.request(isa, card))
        return cast("dict[str, Any]", json.loads(found))

    def compile(self, isa: str, card: Mapping[str, Any]) -> Compiled:
        """The program for a card, with its maps filled.

        Raises:
            CompileError: the compiler refused it; its messages went to stderr.
            InputError: the object, the program or a map is wrong.
        """
        content, request = self.content(), self.request(isa, card)
        text = self.translate(isa, card)["assembly"]
        source = keep(cache_dir() / "assembly", text.encode(), ".S")
        toolchain = find_toolchain(self.cc)
        flags = toolchain.compile_flags(isa)
        build = Build(
            toolchain,
            isa,
            "nicety",
            flags,
            flags,
            library_folder(),
            runtime=_RUNTIME,
            kept=(*_KEPT, *_FOR_HOST.findall(text)),
            finish=lambda elf: self._of(_native.xdp_finish, content, elf, request),
            salt=content + request.encode(),
        )
        program, elf = build.program([source])
        return Compiled(elf, program, build.command(source), toolchain.version, flags)

    def figures(
        self, row: LineRateRow, elf: bytes, data: bytes, item: Mapping[str, Any], names: list[str]
    ) -> dict[str, Any]:
        """The figures of the program after a run, and the entries of maps with these names.

        Raises:
            InputError: there is no such map.
        """
        returned = next((each["returned"] for each in row["handlers"] if each["handler"] == "payload"), {})
        request = self.request(item["isa"], item["xdp"])
        after = partial(_native.xdp_after, self.content(), elf, data, request)
        return cast("dict[str, Any]", json.loads(self._of(after, json.dumps(returned), names)))

    def _of(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function; its errors begin with the object's name."""
        try:
            return act(*arguments)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from error
