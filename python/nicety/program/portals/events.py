"""Events and counters of Portals, as programs are given them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """A full event of Portals, with the names of the specification's fields.

    Attributes:
        kind: what happened, for example `PTL_EVENT_PUT`.
        fail: how it ended: `PTL_NI_OK`, or why not, for example `PTL_NI_PT_DISABLED`.
        initiator: the rank that started the operation.
        pt: the portal table entry.
        list: the list the match entry is on: `priority` or `overflow`.
        match_bits: the bits of the message.
        hdr_data: the initiator's word for the target.
        rlength_bytes: bytes asked for.
        mlength_bytes: bytes kept.
        remote_offset_bytes: where they begin in the target's memory.
        start: where they begin in this host's memory, as in `Buffer.address`.
        user_ptr: the user's word, of the match entry or of the operation.
        uid: the user on whose behalf the operation is.
        operator: of an atomic operation, for example `PTL_SUM`.
        datatype: of its items, for example `PTL_UINT64_T`.
    """

    kind: str
    fail: str
    initiator: int
    pt: int
    list: str
    match_bits: int
    hdr_data: int
    rlength_bytes: int
    mlength_bytes: int
    remote_offset_bytes: int
    start: int
    user_ptr: int
    uid: int
    operator: str | None
    datatype: str | None

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.fail == "PTL_NI_OK"


@dataclass(frozen=True)
class Count:
    """The value of a counting event: successes and failures, of operations or bytes."""

    success: int
    failure: int
