"""Portals operations of a host's program: puts, gets and atomics, posted at once or triggered by a counter.

Each returns when it has been posted. Names, options and semantics are those of the Portals 4 specification.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Literal

from nicety.errors import InputError
from nicety.program.calls import CardCalls

if TYPE_CHECKING:
    import numpy.typing as npt

    from nicety import _native

Ack = Literal["no_ack", "ack", "ct_ack", "oc_ack"]
"""Acknowledgement of a put: none, a full event and a count, a count, or a count of the requested bytes."""

_TYPES = {"float32": "float", "float64": "double", "complex64": "float_complex", "complex128": "double_complex"}
"""Types of items: numpy's names, and Portals' names if they differ."""


class Operations(CardCalls):
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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, ack)
        return self._portals.put(put, None)

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
        get = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, 0, user_ptr, False)
        return self._portals.get(get, None)

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, ack)
        return self._portals.atomic(put, *_operator(operator, datatype), None)

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, False)
        fetch = _fetch(get_md, local_get_offset, operator, datatype, None)
        return self._portals.fetch_atomic(put, fetch, None)

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, False)
        fetch = _fetch(get_md, local_get_offset, operator, datatype, operand)
        return self._portals.swap(put, fetch, None)

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, ack)
        return self._portals.put(put, (ct, threshold))

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
        get = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, 0, user_ptr, False)
        return self._portals.get(get, (ct, threshold))

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, ack)
        return self._portals.atomic(put, *_operator(operator, datatype), (ct, threshold))

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, False)
        fetch = _fetch(get_md, local_get_offset, operator, datatype, None)
        return self._portals.fetch_atomic(put, fetch, (ct, threshold))

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
        put = (md, length_bytes, to, pt, match_bits, local_offset, remote_offset, hdr_data, user_ptr, False)
        fetch = _fetch(get_md, local_get_offset, operator, datatype, operand)
        return self._portals.swap(put, fetch, (ct, threshold))


def _operator(operator: str, datatype: npt.DTypeLike) -> tuple[str, str]:
    if not isinstance(operator, str):
        raise InputError(f"operator is a name such as 'sum', not {operator!r}")
    if not isinstance(datatype, str):
        import numpy as np

        try:
            datatype = np.dtype(datatype).name
        except TypeError:
            raise InputError(f"datatype is a type such as 'uint64' or numpy.float32, not {datatype!r}") from None
    return operator, _TYPES.get(datatype, datatype)


def _fetch(
    get_md: int, local_get_offset: int, operator: str, datatype: npt.DTypeLike, operand: bytes | None
) -> tuple[int, int, str, str, bytes]:
    if operand is not None and not isinstance(operand, bytes | bytearray | memoryview):
        raise InputError(f"operand is the bytes of an item, such as np.uint64(7).tobytes(), not {operand!r}")
    return (get_md, local_get_offset, *_operator(operator, datatype), bytes(operand or b""))
