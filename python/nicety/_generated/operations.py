"""Portals operations of a host's program: puts, gets and atomics, posted at once or triggered by a counter.

Each returns when it has been posted. Names, options and semantics are those of the Portals 4 specification.

Made of `crates/nicety/src/commands/table.rs` by `crates/exec/tests/portals_calls`, and not to be changed by hand.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Literal

from nicety.shared.checks import item_operator, operand_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

    from nicety import _native

Ack = Literal["no_ack", "ack", "ct_ack", "oc_ack"]
"""Acknowledgement of a put: none, a full event and a count, a count, or a count of the requested bytes."""


class Operations:
    """The operations that a host can start."""

    _portals: _native.PortalsCalls

    def put(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
        ack: bool | Ack = False,
    ) -> Awaitable[None]:
        """Post a put of a memory descriptor's bytes (`PtlPut`).

        Args:
            md: the memory descriptor.
            length_bytes: the number of bytes.
            to: the target rank.
            pt: the portal table entry there.
            match_bits: the bits for the match entry.
            local_offset: the offset of the bytes in the descriptor's memory.
            remote_offset: their offset in the match entry's memory; an entry with `manage_local` chooses it itself.
            hdr_data: a word for the target's event and handlers.
            user_ptr: a word that the local events return.
            ack: the acknowledgement: `True` or `ack` is a full event and a count, `ct_ack` and `oc_ack` a count.

        Raises:
            InputError: there is no such rank.
            RunError: there is no such descriptor, or the bytes are not inside its memory.
        """
        asked = (
            md,
            local_offset,
            length_bytes,
            ack,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
        )
        return self._portals.put(asked)

    def get(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        user_ptr: int = 0,
    ) -> Awaitable[None]:
        """Post a get into a memory descriptor's memory (`PtlGet`).

        It ends with a `PTL_EVENT_REPLY`; a counter of the descriptor counts it with `event_ct_reply`. The match entry
        there must have the option `op_get`. The arguments are those of `put`.

        Raises:
            InputError: see `put`.
            RunError: as `put`.
        """
        asked = (
            md,
            local_offset,
            length_bytes,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
        )
        return self._portals.get(asked)

    def atomic(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        operator: str,
        datatype: npt.DTypeLike,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
        ack: bool | Ack = False,
    ) -> Awaitable[None]:
        """Post an atomic operation of a descriptor's items on those of a match entry (`PtlAtomic`).

        `operator` is one of `min`, `max`, `sum`, `prod`, `lor`, `land`, `bor`, `band`, `lxor` and `bxor`. `datatype` is
        the type of an item: numpy's types, or the names of Portals, such as `uint64` or `float_complex`. The other
        arguments are those of `put`.

        Raises:
            InputError: see `put`; also if there is no such operator or type.
            RunError: see `put`; also if the operator does not support the type, or the length is no multiple of an
                item.
        """
        operator, datatype = item_operator(operator, datatype)
        asked = (
            md,
            local_offset,
            length_bytes,
            ack,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            operator,
            datatype,
        )
        return self._portals.atomic(asked)

    def fetch_atomic(
        self,
        md: int,
        length_bytes: int,
        *,
        get_md: int,
        to: int,
        pt: int,
        operator: str,
        datatype: npt.DTypeLike,
        match_bits: int = 0,
        local_offset: int = 0,
        local_get_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
    ) -> Awaitable[None]:
        """Post an atomic operation that fetches the previous value (`PtlFetchAtomic`).

        `get_md` is the memory descriptor for the previous value, from `local_get_offset` on; it may be the same. The
        other arguments are those of `atomic`. It ends with a `PTL_EVENT_REPLY` of `get_md`.

        Raises:
            InputError: see `atomic`.
            RunError: as `atomic`.
        """
        operator, datatype = item_operator(operator, datatype)
        asked = (
            get_md,
            local_get_offset,
            md,
            local_offset,
            length_bytes,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            operator,
            datatype,
        )
        return self._portals.fetch_atomic(asked)

    def swap(
        self,
        md: int,
        length_bytes: int,
        *,
        get_md: int,
        to: int,
        pt: int,
        operator: str,
        datatype: npt.DTypeLike,
        operand: bytes | None = None,
        match_bits: int = 0,
        local_offset: int = 0,
        local_get_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
    ) -> Awaitable[None]:
        """Post a swap: `fetch_atomic` with other operators (`PtlSwap`).

        `operator` is `swap`; or, on one item, `cswap`, `cswap_ne`, `cswap_le`, `cswap_lt`, `cswap_ge` or `cswap_gt`, or
        `mswap`. The `cswap` operators swap if the comparison of `operand` with the previous value holds; `mswap` swaps
        the bits that are set in `operand`. `operand` has the bytes of an item, such as `np.uint64(7).tobytes()`. The
        other arguments are those of `fetch_atomic`.

        Raises:
            InputError: see `atomic`.
            RunError: see `atomic`; also if the operator needs an operand, or takes none.
        """
        operator, datatype = item_operator(operator, datatype)
        asked = (
            get_md,
            local_get_offset,
            md,
            local_offset,
            length_bytes,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            operand_bytes(operand),
            None,
            None,
            operator,
            datatype,
        )
        return self._portals.swap(asked)

    def triggered_put(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        ct: int,
        threshold: int,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
        ack: bool | Ack = False,
    ) -> Awaitable[None]:
        """Post a put that the card starts when a counter has reached a threshold (`PtlTriggeredPut`)."""
        asked = (
            md,
            local_offset,
            length_bytes,
            ack,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            ct,
            threshold,
        )
        return self._portals.put(asked)

    def triggered_get(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        ct: int,
        threshold: int,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        user_ptr: int = 0,
    ) -> Awaitable[None]:
        """Post a get that the card starts when a counter has reached a threshold (`PtlTriggeredGet`)."""
        asked = (
            md,
            local_offset,
            length_bytes,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            ct,
            threshold,
        )
        return self._portals.get(asked)

    def triggered_atomic(
        self,
        md: int,
        length_bytes: int,
        *,
        to: int,
        pt: int,
        ct: int,
        threshold: int,
        operator: str,
        datatype: npt.DTypeLike,
        match_bits: int = 0,
        local_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
        ack: bool | Ack = False,
    ) -> Awaitable[None]:
        """Post an atomic that the card starts when a counter has reached a threshold (`PtlTriggeredAtomic`)."""
        operator, datatype = item_operator(operator, datatype)
        asked = (
            md,
            local_offset,
            length_bytes,
            ack,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            operator,
            datatype,
            ct,
            threshold,
        )
        return self._portals.atomic(asked)

    def triggered_fetch_atomic(
        self,
        md: int,
        length_bytes: int,
        *,
        get_md: int,
        to: int,
        pt: int,
        ct: int,
        threshold: int,
        operator: str,
        datatype: npt.DTypeLike,
        match_bits: int = 0,
        local_offset: int = 0,
        local_get_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
    ) -> Awaitable[None]:
        """Post a `fetch_atomic`, triggered when a counter has reached a threshold (`PtlTriggeredFetchAtomic`)."""
        operator, datatype = item_operator(operator, datatype)
        asked = (
            get_md,
            local_get_offset,
            md,
            local_offset,
            length_bytes,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            operator,
            datatype,
            ct,
            threshold,
        )
        return self._portals.fetch_atomic(asked)

    def triggered_swap(
        self,
        md: int,
        length_bytes: int,
        *,
        get_md: int,
        to: int,
        pt: int,
        ct: int,
        threshold: int,
        operator: str,
        datatype: npt.DTypeLike,
        operand: bytes | None = None,
        match_bits: int = 0,
        local_offset: int = 0,
        local_get_offset: int = 0,
        remote_offset: int = 0,
        hdr_data: int = 0,
        user_ptr: int = 0,
    ) -> Awaitable[None]:
        """Post a swap that the card starts when a counter has reached a threshold (`PtlTriggeredSwap`)."""
        operator, datatype = item_operator(operator, datatype)
        asked = (
            get_md,
            local_get_offset,
            md,
            local_offset,
            length_bytes,
            to,
            pt,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
            operand_bytes(operand),
            None,
            None,
            operator,
            datatype,
            ct,
            threshold,
        )
        return self._portals.swap(asked)


def me_append(
    *,
    pt: Any,
    buffer: Any = None,
    ct: Any,
    uid: Any,
    options: Any,
    source: Any = None,
    match_bits: Any = 0,
    ignore_bits: Any = 0,
    min_free: Any = 0,
    list: Any,  # noqa: A002, the name in the specification
    user_ptr: Any,
    handlers: Any = None,
) -> tuple[Any, ...]:
    """The arguments of `me_append`, in their order."""
    return (
        pt,
        buffer,
        None,
        ct,
        uid,
        options,
        source,
        match_bits,
        ignore_bits,
        min_free,
        list,
        user_ptr,
        handlers,
    )


def me_search(
    *,
    pt: Any,
    buffer: Any = None,
    ct: Any,
    uid: Any,
    options: Any,
    source: Any = None,
    match_bits: Any = 0,
    ignore_bits: Any = 0,
    min_free: Any = 0,
    delete: Any,
    user_ptr: Any,
    handlers: Any = None,
) -> tuple[Any, ...]:
    """The arguments of `me_search`, in their order."""
    return (
        pt,
        buffer,
        None,
        ct,
        uid,
        options,
        source,
        match_bits,
        ignore_bits,
        min_free,
        delete,
        user_ptr,
        handlers,
    )
