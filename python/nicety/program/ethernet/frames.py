"""Handlers on frames: programs on a host's Ethernet card that process frames before the host.

    async def main(host):
        if host.rank == 1:
            echo = host.frames.install("udp dport=7", nicety.Handlers("echo.c"))
            ...

A rule has terms for header fields (`udp dport=53 src=10.0.0.0/8`), or for 32-bit words of the frame, as hardware
compares them (`FrameWord`). All terms must match, and `or` separates alternatives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicety import _native
from nicety.build.card import OnCard, XdpProgram
from nicety.build.sources import Handlers
from nicety.errors import InputError
from nicety.program.calls import CardCalls
from nicety.shared.checks import U32, whole

if TYPE_CHECKING:
    from nicety.program.calls import Loaded


@dataclass(frozen=True)
class FrameWord:
    """A term of a rule: 32 bits of a frame, in network order and masked, are in a range.

    Attributes:
        offset: bytes from the frame's first one, a multiple of 4.
        mask: the compared bits.
        start: the minimum of the masked value.
        end: the maximum of the masked value; `start` by default.
    """

    offset: int
    mask: int
    start: int
    end: int | None = None

    def __post_init__(self) -> None:
        whole(self.offset, "offset", U32)
        for name in ("mask", "start"):
            whole(getattr(self, name), name, U32)
        if self.end is not None:
            whole(self.end, "end", U32)

    def __str__(self) -> str:
        end = self.start if self.end is None else self.end
        return f"word@{self.offset}&{self.mask:08x}={self.start:08x}..{end:08x}"


class FrameRule:
    """A rule with its handlers, on a card."""

    def __init__(self, calls: _native.FrameCalls, rule: str, number: int) -> None:
        self._calls = calls
        self._rule = rule
        self._number = number

    @property
    def rule(self) -> str:
        """The rule's text."""
        return self._rule

    @property
    def number(self) -> int:
        """The rule's number on the card, which handlers find in `frame->rule`."""
        return self._number

    @property
    def state(self) -> bytes:
        """The present contents of the handlers' state; reading it takes no virtual time."""
        return self._calls.state(self._number)

    def __repr__(self) -> str:
        return f"<FrameRule {self._number}: {self._rule}>"


class XdpRule(FrameRule):
    """A rule with an XDP program, on a card."""

    def __init__(self, calls: _native.FrameCalls, rule: str, number: int, program: OnCard) -> None:
        super().__init__(calls, rule, number)
        self._program = program

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The present entries of a map, as `bpftool -j map dump` prints them; reading them takes no virtual time.

        Raises:
            InputError: the object has no such map.
        """
        return self._program.entries(self._calls.data(self._number), name)


class Frames(CardCalls):
    """The rules and handlers of a host's card."""

    def __init__(self, calls: _native.Calls, loaded: Loaded) -> None:
        super().__init__(calls, loaded)
        self._frames = _native.FrameCalls(calls)

    def __repr__(self) -> str:
        return f"<Frames of rank {self._calls.rank}>"

    def install(
        self,
        rule: str | FrameWord | Iterable[FrameWord],
        handlers: Handlers | XdpProgram,
        *,
        state: bytes = b"",
    ) -> FrameRule:
        """Pass the frames that a rule matches to a frame handler. Set-up: takes no virtual time.

        Args:
            rule: as in `"udp dport=53"`, or words, which must all match.
            handlers: the program, which is compiled here for this card. Its `payload` is the name of the frame handler,
                if that is not `frame_handler`. Or an XDP program, which is built for this card with its maps.
            state: the initial contents of `state` in HPU memory; not for an XDP program.

        Raises:
            InputError: the rule is invalid, is too long for the card, or matches frames of another rule, which the
                error names; or the program does not compile, has no such handler, or does not fit.
        """
        if isinstance(handlers, XdpProgram):
            return self._install_xdp(_text_of(rule), handlers, state)
        if not isinstance(handlers, Handlers):
            raise InputError(f"install takes nicety.Handlers or nicety.XdpProgram, not {type(handlers).__name__}")
        if handlers.header is not None or handlers.completion is not None:
            raise InputError("a frame has one handler: name it as Handlers(..., payload=...), and no others")
        if not isinstance(state, bytes | bytearray | memoryview):
            raise InputError(f"state is bytes, such as bytes(8), not {type(state).__name__}")
        text = _text_of(rule)
        isa = self._calls.isa()
        # The same program may also be on cards with message handlers, under another number.
        number = self._loaded.get((handlers, f"frames, {isa}"))
        if number is None:
            number = self._frames.load(handlers.compile(isa=isa).elf, handlers.payload)
            self._loaded[handlers, f"frames, {isa}"] = number
        return FrameRule(self._frames, text, self._frames.install(text, number, bytes(state)))

    def _install_xdp(self, rule: str, program: XdpProgram, state: bytes) -> XdpRule:
        """Build an XDP program for this card. Each rule has a program, and so maps, of its own."""
        if state:
            raise InputError(
                "state is for handlers in C: an XDP program keeps its state in maps, XdpProgram(..., maps=...)"
            )
        isa = self._calls.isa()
        card = json.loads(self._frames.for_xdp())
        elf = program.compile(isa, card).elf
        number = self._frames.install(rule, self._frames.load(elf, None), b"")
        return XdpRule(self._frames, rule, number, OnCard(program, isa, card, elf))


def _text_of(rule: object) -> str:
    if isinstance(rule, str | FrameWord):
        return str(rule)
    words = list(rule) if isinstance(rule, Iterable) else [rule]
    for word in words:
        if not isinstance(word, FrameWord):
            raise InputError(f'a rule is a text such as "udp dport=53", or nicety.FrameWord of a frame, not {word!r}')
    return " ".join(map(str, words))
