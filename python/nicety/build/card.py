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
from nicety.build.toolchain import Interface, find_toolchain
from nicety.errors import InputError

_RUNTIME = tuple(f"xdp/{name}.c" for name in ("hash", "host", "lpm", "lru", "maps", "other", "packet", "queue", "ring"))
_CHECKS = "xdp/check.c"
_KEPT = ("nicety_xdp_prepare", "nicety_xdp_set", "nicety_xdp_entries", "nicety_xdp_counts")
# The runtime's handler, and the function by which a card finds it.
_OF_FRAMES = (("xdp/frame.c",), "frame_handler")
# A program that is the handler itself.
_DIRECT = (("xdp/verdict.c",), "frame_handler")
_OF_TASKS = (("xdp/task.c",), "init_handlers")
_OF_CONTEXTS = (("xdp/nfp.c",), "nicety_xdp_context_runs")
FLOW_PROCESSOR = "nfp"
"""The interface of programs for microengines in a plan."""
# Maps of a flow processor's firmware.
_TABLE = "nicety_xdp_table"
# Global names of maps and data. Code may reach these without a map's descriptor, and the host finds them by name.
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


def card_values(nic: str) -> dict[str, Any]:
    """Return the instruction set of a card's cores (`isa`), their `interface`, and parameters for XDP programs (`xdp`).

    Raises:
        InputError: there is no such card, or its handlers process messages instead of frames.
    """
    (item,) = json.loads(_native.line_rate_plan(json.dumps({"nics": [nic], "xdp": {}})))["compile"]
    if item["xdp"] is None:
        raise InputError(f"{nic}: this card has no handler cores; name one that has them, as --nic spin-100g")
    return cast("dict[str, Any]", item)


@dataclass(frozen=True, eq=False)
class XdpProgram:
    """An XDP program for a card: `XdpProgram("firewall.o", maps={"flows": [{"key": 1, "value": 2}]})`.

    Attributes:
        source: the eBPF object.
        program: the program's name in the object; required if the object has several programs.
        maps: the key is the name of a map, the value its entries before the first packet. Entries are a list as
            `bpftool -j map dump` prints it, or such a list as JSON.
        cc: a compiler to use instead of the one in the `ziglang` package. It assembles and links.
        unverified: check each access and each argument of a helper on the card. An error is a trap.
        lenient: take a program that Linux's verifier refuses for certain, without checks. `check_handlers` and `debug`
            do so, since they look for its errors.
    """

    source: Path | str
    program: str | None = field(default=None, kw_only=True)
    maps: Mapping[str, object] = field(default_factory=dict, kw_only=True)
    cc: str | None = field(default=None, kw_only=True)
    unverified: bool = field(default=False, kw_only=True)
    lenient: bool = field(default=False, kw_only=True)

    @property
    def path(self) -> Path:
        """The object's path."""
        return Path(self.source)

    def content(self) -> bytes:
        """The object's bytes.

        Raises:
            InputError: the object cannot be read.
        """
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise InputError(f"{self.source}: cannot read it ({error.strerror})") from error

    def chosen(self) -> bytes:
        """The object's bytes, for a place that runs eBPF itself.

        Raises:
            InputError: the object, the program's name or a map's name is wrong.
        """
        content = self.content()
        self._of(_native.xdp_choose, content, self.program, self.entries())
        return content

    def request(self, isa: str, card: Mapping[str, Any]) -> str:
        """Return the request to translate the object for a card, as JSON.

        Args:
            isa: the instruction set of the card's cores.
            card: the card's parameters for XDP programs; see `card_values`.
        """
        own = {"program": self.program, "maps": self.entries(), "misaligned": "zicclsm" in isa}
        own |= {"unverified": self.unverified, "lenient": self.lenient}
        # The translator and the cores do not know the name Zicclsm: they take `misaligned`.
        plain = "_".join(name for name in isa.split("_") if name != "zicclsm")
        return json.dumps({**own, **card, "isa": plain})

    def entries(self) -> list[tuple[str, str]]:
        """Return the name of each map, and the map's entries before the first packet as JSON."""
        return [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in self.maps.items()]

    def translate(self, isa: str, card: Mapping[str, Any]) -> dict[str, Any]:
        """Return the program's assembly, its name, and the bytes of its maps.

        Raises:
            InputError: the object, the program or a map is wrong.
        """
        found = self._of(_native.xdp_build, self.content(), self.request(isa, card))
        return cast("dict[str, Any]", json.loads(found))

    def compile(self, isa: str, card: Mapping[str, Any], interface: str = "nicety") -> Compiled:
        """Compile the program for a card, and fill its maps.

        Args:
            isa: the instruction set of the card's cores.
            card: the card's parameters for XDP programs; see `card_values`.
            interface: the interface of the card's handlers.

        Raises:
            CompileError: the compiler refused the program; its messages went to stderr.
            InputError: the object, the program or a map is wrong.
        """
        on_contexts = interface == FLOW_PROCESSOR
        if on_contexts and self.unverified:
            raise InputError("--unverified: no checks on microengines, which run what Linux offloads; leave it out")
        content, request = self.content(), self.request(isa, card)
        translated = self.translate(isa, card)
        text = translated["assembly"]
        source = keep(cache_dir() / "assembly", text.encode(), ".S")
        toolchain = find_toolchain(self.cc)
        flags = toolchain.compile_flags(isa)
        of_frames = _DIRECT if translated["direct"] else _OF_FRAMES
        handler, entry = _OF_CONTEXTS if on_contexts else of_frames if interface == "nicety" else _OF_TASKS
        build = Build(
            toolchain,
            isa,
            "nicety" if on_contexts else cast("Interface", interface),
            flags,
            flags,
            library_folder(),
            runtime=(*handler, *_RUNTIME, *([_CHECKS] if self.unverified else [])),
            runtime_defines=[
                *([f"NICETY_XDP_CLUSTER={card['cluster']}"] if card["cluster"] else []),
                *(["NICETY_XDP_UNVERIFIED=1"] if self.unverified else []),
                *(["NICETY_XDP_NFP=1"] if on_contexts else []),
            ],
            layout="xdp/nfp.ld" if on_contexts else None,
            kept=(entry, *_KEPT, *([_TABLE] if on_contexts else []), *_FOR_HOST.findall(text)),
            finish=lambda elf: self._of(_native.xdp_finish, content, elf, request),
            salt=content + request.encode(),
        )
        program, elf = build.program([source])
        return Compiled(elf, program, build.command(source), toolchain.version, flags)

    def figures(
        self, row: LineRateRow, elf: bytes, data: bytes, item: Mapping[str, Any], names: list[str]
    ) -> dict[str, Any]:
        """Return the program's figures after a run, and the entries of the maps with the given names.

        Raises:
            InputError: there is no such map.
        """
        returned = next((each["returned"] for each in row["handlers"] if each["handler"] == "payload"), {})
        return self.after(elf, data, returned, (item["isa"], item["xdp"]), names)

    def after(
        self,
        elf: bytes,
        data: bytes,
        returned: Mapping[str, int],
        card: tuple[str, Mapping[str, Any]],
        names: list[str],
    ) -> dict[str, Any]:
        """The figures of the program, and entries of maps, in the data of a card with this instruction set and values.

        Raises:
            InputError: there is no such map.
        """
        after = partial(_native.xdp_after, self.content(), elf, data, self.request(*card))
        return cast("dict[str, Any]", json.loads(self._of(after, json.dumps(returned), names)))

    def _of(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call `act` and return its result. An `InputError` of `act` begins with the object's name."""
        try:
            return act(*arguments)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from error


@dataclass(frozen=True, eq=False)
class OnCard:
    """A program that was built for a card.

    Attributes:
        program: the program.
        isa: the instruction set of the card's cores.
        card: the card's values.
        elf: the program for the card.
    """

    program: XdpProgram
    isa: str
    card: Mapping[str, Any]
    elf: bytes

    def entries(self, data: bytes, name: str) -> list[dict[str, Any]]:
        """The entries of a map in the data of the card.

        Raises:
            InputError: there is no such map.
        """
        found = self.program.after(self.elf, data, {}, (self.isa, self.card), [name])
        return cast("list[dict[str, Any]]", found["maps"][name])
