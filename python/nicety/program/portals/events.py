"""Events and counters of Portals, as programs get them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """A full event of Portals, with the names of the specification's fields.

    Attributes:
        kind: the kind of event, for example `PTL_EVENT_PUT`.
        fail: the outcome of the operation: `PTL_NI_OK`, or the failure, for example `PTL_NI_PT_DISABLED`.
        initiator: the rank that started the operation.
        pt: the portal table entry.
        list: the list in which the match entry is: `priority` or `overflow`.
        match_bits: the match bits of the message.
        hdr_data: a word of 64 bits from the initiator to the target.
        rlength_bytes: number of bytes that the initiator requested.
        mlength_bytes: number of bytes after truncation at the target.
        remote_offset_bytes: the offset of the first byte in the target's memory.
        start: the address of the first byte in this host's memory, as in `Buffer.address`.
        user_ptr: the word that the user gave the match entry or the operation.
        uid: the user of the operation.
        operator: the operator of an atomic operation, for example `PTL_SUM`.
        datatype: the type of an atomic operation's items, for example `PTL_UINT64_T`.
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
        """Whether the operation succeeded."""
        return self.fail == "PTL_NI_OK"


@dataclass(frozen=True)
class Count:
    """The value of a counting event: numbers of successes and failures. It counts operations or bytes."""

    success: int
    failure: int
