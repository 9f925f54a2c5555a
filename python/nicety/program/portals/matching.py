"""Portals resources of a host's program: counters, event queues, descriptors, portal table entries, match entries."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from nicety._generated import operations as arguments
from nicety.errors import InputError
from nicety.program.calls import CardCalls
from nicety.program.portals.events import Count, Event
from nicety.shared.checks import names, numbers, text

if TYPE_CHECKING:
    from nicety import _native
    from nicety.program.buffers import Buffer

ListName = Literal["priority", "overflow"]
"""The lists of a portal table entry."""


StatusRegister = Literal["drop_count", "permission_violations", "operation_violations"]
"""Registers that count dropped messages: all, those of users without permission, or those with forbidden operations."""


class Matching(CardCalls):
    """The calls for a host's Portals resources on its card."""

    _portals: _native.PortalsCalls

    def ni_limits(self) -> dict[str, Any]:
        """The limits of all resources (`ptl_ni_limits_t`), by the specification's names; sizes in bytes.

        The card has two limits that the specification does not name: `max_eq_depth`, the number of events in a queue,
        and `max_operations`, the number of this host's unfinished operations. `features` lists the card's features
        other than puts.
        """
        return self._portals.ni_limits()

    def ni_status(self, register: StatusRegister) -> int:
        """Return the current count of a status register (`PtlNIStatus`).

        Raises:
            InputError: there is no such register.
        """
        return self._portals.ni_status(register)

    def atomic_sync(self) -> Awaitable[None]:
        """Wait until this host's memory has the results of all earlier atomic operations (`PtlAtomicSync`)."""
        return self._portals.atomic_sync()

    def ct_alloc(self) -> int:
        """Allocate a counting event, at zero (`PtlCTAlloc`)."""
        return self._portals.ct_alloc()

    def ct_free(self, ct: int) -> None:
        """Free a counting event (`PtlCTFree`).

        Raises:
            RunError: the counting event is still in use (`PTL_IN_USE`).
        """
        self._portals.ct_free(ct)

    def ct_get(self, ct: int) -> int:
        """Return a counter's successes as the host sees them now (`PtlCTGet`)."""
        return self._portals.ct_get(ct)[0]

    def ct_failures(self, ct: int) -> int:
        """Return a counter's failures as the host sees them now (`PtlCTGet`)."""
        return self._portals.ct_get(ct)[1]

    def ct_wait(self, ct: int, threshold: int) -> Awaitable[int]:
        """Wait until a counter has reached a threshold, and return its successes (`PtlCTWait`).

        Raises:
            RunError: an operation that the counter counts has failed.
        """
        return self._portals.ct_wait(ct, threshold)

    def ct_poll(
        self, thresholds: Mapping[int, int], *, timeout_ns: float | None = None
    ) -> Awaitable[tuple[int, Count] | None]:
        """Wait until one of several counters has reached its threshold, or counts a failure (`PtlCTPoll`).

        Args:
            thresholds: the key is a counter, the value its threshold.
            timeout_ns: maximum wait in nanoseconds; by default unlimited.

        Returns:
            The counter and its value, or None after the timeout.
        """
        if not thresholds:
            raise InputError("ct_poll takes counters and their thresholds, as in ct_poll({ct: 1})")
        if not isinstance(thresholds, Mapping):
            raise InputError("ct_poll takes a dict of counters and thresholds, as in ct_poll({ct: 1})")
        return self._portals.ct_poll(list(thresholds.items()), timeout_ns, Count)

    def ct_inc(self, ct: int, success: int = 0, *, failure: int = 0) -> Awaitable[None]:
        """Post an increment of a counter's successes or failures (`PtlCTInc`).

        The host sees the increment after two crossings of the bus: the card executes the command, and reports back.
        """
        return self._portals.ct_inc(ct, success, failure, None)

    def ct_set(self, ct: int, success: int = 0, *, failure: int = 0) -> Awaitable[None]:
        """Post a new value of a counter (`PtlCTSet`). The host sees it as late as an increment by `ct_inc`."""
        return self._portals.ct_set(ct, success, failure, None)

    def triggered_ct_inc(
        self, target: int, success: int = 0, *, ct: int, threshold: int, failure: int = 0
    ) -> Awaitable[None]:
        """Post an increment of `target`, triggered when `ct` has reached a threshold (`PtlTriggeredCTInc`)."""
        return self._portals.ct_inc(target, success, failure, (ct, threshold))

    def triggered_ct_set(
        self, target: int, success: int = 0, *, ct: int, threshold: int, failure: int = 0
    ) -> Awaitable[None]:
        """Post a new value of `target`, triggered when `ct` has reached a threshold (`PtlTriggeredCTSet`)."""
        return self._portals.ct_set(target, success, failure, (ct, threshold))

    def ct_cancel_triggered(self, ct: int) -> Awaitable[None]:
        """Post the cancellation of all triggered operations on a counter (`PtlCTCancelTriggered`)."""
        return self._portals.ct_cancel_triggered(ct)

    def eq_alloc(self, depth: int) -> int:
        """Allocate a queue for `depth` full events (`PtlEQAlloc`)."""
        return self._portals.eq_alloc(depth)

    def eq_free(self, eq: int) -> None:
        """Free a queue, and the events in it (`PtlEQFree`).

        Raises:
            RunError: the queue is still in use (`PTL_IN_USE`).
        """
        self._portals.eq_free(eq)

    def eq_get(self, eq: int) -> Awaitable[Event | None]:
        """Return the next event of a queue, or None if it is empty (`PtlEQGet`). Either takes CPU time.

        Raises:
            RunError: events before the next one were lost because the queue was full (`PTL_EQ_DROPPED`). The error is
                raised once; the next call returns the event after the loss.
        """
        return self._portals.eq_get(eq, Event)

    def eq_wait(self, eq: int) -> Awaitable[Event]:
        """Wait for the next event of a queue (`PtlEQWait`).

        Raises:
            RunError: as `eq_get`.
        """
        return self._portals.eq_wait(eq, Event)

    def eq_poll(self, eqs: Iterable[int], *, timeout_ns: float | None = None) -> Awaitable[tuple[int, Event] | None]:
        """Wait for the next event in one of several queues (`PtlEQPoll`).

        If several queues have events, the earliest in `eqs` is served.

        Args:
            eqs: the queues.
            timeout_ns: maximum wait in nanoseconds; by default unlimited.

        Returns:
            The queue and the event, or None after the timeout.

        Raises:
            RunError: as `eq_get`.
        """
        queues = numbers(eqs, "eq")
        if not queues:
            raise InputError("eq_poll takes at least one queue, as in eq_poll([eq])")
        return self._portals.eq_poll(queues, timeout_ns, Event)

    def pt_alloc(self, *, pt: int | None = None, eq: int | None = None, options: Iterable[str] = ()) -> int:
        """Allocate portal table entry `pt`, by default any (`PtlPTAlloc`). Entry 0 belongs to `send` and `recv`.

        With the option `flowctrl`, a message that finds a resource exhausted disables the entry. Resources are room in
        the event queue, a match entry for the message, an unexpected header, and resources of the card. This message's
        sender and later senders get `PTL_NI_PT_DISABLED`, and this host gets one `PTL_EVENT_PT_DISABLED`. No message
        that was accepted is lost.
        """
        if pt == 0 and not isinstance(pt, bool):
            raise InputError("pt_alloc: entry 0 belongs to send and recv; name another, or leave pt out for any")
        return self._portals.pt_alloc(pt, eq, option_names(options))

    def pt_free(self, pt: int) -> None:
        """Free a portal table entry (`PtlPTFree`).

        Raises:
            RunError: match entries are linked to the portal table entry (`PTL_PT_IN_USE`).
        """
        self._portals.pt_free(pt)

    def pt_enable(self, pt: int) -> Awaitable[None]:
        """Enable a portal table entry. Returns when the card has enabled it (`PtlPTEnable`)."""
        return self._portals.pt_enable(pt)

    def pt_disable(self, pt: int) -> Awaitable[None]:
        """Disable a portal table entry, so that it drops messages. Returns when it is disabled (`PtlPTDisable`)."""
        return self._portals.pt_disable(pt)

    def md_bind(
        self, buffer: Buffer, *, options: Iterable[str] = (), eq: int | None = None, ct: int | None = None
    ) -> int:
        """Bind a memory descriptor to a buffer (`PtlMDBind`). Options have names such as `event_ct_send`."""
        return self._portals.md_bind(buffer, option_names(options), eq, ct)

    def md_release(self, md: int) -> None:
        """Release a memory descriptor (`PtlMDRelease`).

        Raises:
            RunError: an operation on it has not ended (`PTL_IN_USE`).
        """
        self._portals.md_release(md)

    @overload
    def me_append(
        self,
        buffer: Buffer,
        *,
        pt: int,
        match_bits: int = 0,
        ignore_bits: int = 0,
        source: int | None = None,
        uid: int | None = None,
        options: Iterable[str] = ("op_put",),
        list: ListName = "priority",
        min_free: int = 0,
        ct: int | None = None,
        handlers: int | None = None,
        user_ptr: int = 0,
        wait: Literal[True] = True,
    ) -> Awaitable[int]: ...

    @overload
    def me_append(
        self,
        buffer: Buffer,
        *,
        pt: int,
        match_bits: int = 0,
        ignore_bits: int = 0,
        source: int | None = None,
        uid: int | None = None,
        options: Iterable[str] = ("op_put",),
        list: ListName = "priority",
        min_free: int = 0,
        ct: int | None = None,
        handlers: int | None = None,
        user_ptr: int = 0,
        wait: bool,
    ) -> Awaitable[int | None]: ...

    def me_append(
        self,
        buffer: Buffer,
        *,
        pt: int,
        match_bits: int = 0,
        ignore_bits: int = 0,
        source: int | None = None,
        uid: int | None = None,
        options: Iterable[str] = ("op_put",),
        list: ListName = "priority",  # noqa: A002, the name in the specification
        min_free: int = 0,
        ct: int | None = None,
        handlers: int | None = None,
        user_ptr: int = 0,
        wait: bool = True,
    ) -> Awaitable[Any]:
        """Append a match entry (`PtlMEAppend`), and return its handle. `wait` waits until the card has appended it.

        Args:
            buffer: the memory into which puts write, or from which gets read.
            pt: the portal table entry.
            match_bits: the match bits that a message must have.
            ignore_bits: the match bits that are not compared.
            source: the rank from which messages match; any rank by default.
            uid: the user from whom messages are accepted (`uids` of `Cluster`); any by default. A matching message of
                another user is dropped, and its acknowledgement has `PTL_NI_PERM_VIOLATION`.
            options: names of options in Portals 4: `op_put`, `op_get`, `use_once`, `manage_local`, `no_truncate`,
                `event_ct_comm`, `event_ct_bytes`, ...
            list: `priority`; or `overflow`, for messages that match no priority entry. The card keeps a header for each
                of these messages.
            min_free: with `manage_local`, the entry is unlinked when fewer bytes than this are left.
            ct: the counter that counts the entry's messages.
            handlers: attached handlers that run for the entry's messages.
            user_ptr: a word that the entry's events return.
            wait: whether to wait until the card has appended the entry.
        """
        asked = arguments.me_append(
            pt=pt,
            buffer=buffer,
            ct=ct,
            uid=uid,
            options=option_names(options),
            source=source,
            match_bits=match_bits,
            ignore_bits=ignore_bits,
            min_free=min_free,
            list=list,
            user_ptr=user_ptr,
            handlers=handlers,
        )
        return self._portals.me_append(asked, wait)

    def le_append(
        self,
        buffer: Buffer,
        *,
        pt: int,
        uid: int | None = None,
        options: Iterable[str] = ("op_put",),
        list: ListName = "priority",  # noqa: A002, the name in the specification
        ct: int | None = None,
        user_ptr: int = 0,
    ) -> Awaitable[int]:
        """Append a list entry, which takes every message to its portal table entry (`PtlLEAppend`).

        A list entry is a match entry that ignores all match bits. `me_append` documents the arguments, and `le_unlink`
        unlinks the entry.
        """
        asked = arguments.me_append(
            pt=pt,
            buffer=buffer,
            ct=ct,
            uid=uid,
            options=option_names(options),
            ignore_bits=_ALL_BITS,
            list=list,
            user_ptr=user_ptr,
        )
        return self._portals.me_append(asked, True)

    def le_unlink(self, le: int) -> Awaitable[None]:
        """Unlink a list entry (`PtlLEUnlink`), like `me_unlink` for a match entry."""
        return self._portals.me_unlink(le)

    def le_search(
        self,
        *,
        pt: int,
        uid: int | None = None,
        options: Iterable[str] = ("op_put", "use_once"),
        ct: int | None = None,
        user_ptr: int = 0,
        delete: bool = False,
    ) -> Awaitable[None]:
        """Search the unexpected headers for messages to this list entry (`PtlLESearch`); see `me_search`."""
        asked = arguments.me_search(
            pt=pt,
            ct=ct,
            uid=uid,
            options=option_names(options),
            ignore_bits=_ALL_BITS,
            delete=delete,
            user_ptr=user_ptr,
        )
        return self._portals.me_search(asked)

    def me_unlink(self, me: int) -> Awaitable[None]:
        """Unlink a match entry (`PtlMEUnlink`). Returns when the card has unlinked it.

        Raises:
            RunError: messages or unexpected headers refer to the entry (`PTL_IN_USE`), or it is unlinked already.
        """
        return self._portals.me_unlink(me)

    def me_search(
        self,
        *,
        pt: int,
        match_bits: int = 0,
        ignore_bits: int = 0,
        source: int | None = None,
        uid: int | None = None,
        options: Iterable[str] = ("op_put", "use_once"),
        ct: int | None = None,
        user_ptr: int = 0,
        delete: bool = False,
    ) -> Awaitable[None]:
        """Search the unexpected headers for messages that this match entry would take (`PtlMESearch`).

        A found header causes `PTL_EVENT_SEARCH`, or with `delete` an overflow event such as `PTL_EVENT_PUT_OVERFLOW`.
        Without a match there is a `PTL_EVENT_SEARCH` that failed with `PTL_NI_NO_MATCH`. With `use_once` only the first
        matching header is found, otherwise all are.
        """
        asked = arguments.me_search(
            pt=pt,
            ct=ct,
            uid=uid,
            options=option_names(options),
            source=source,
            match_bits=match_bits,
            ignore_bits=ignore_bits,
            delete=delete,
            user_ptr=user_ptr,
        )
        return self._portals.me_search(asked)


_ALL_BITS = 2**64 - 1


def option_names(options: Iterable[str]) -> list[str]:
    """Return options by their short names, such as `op_put`. `PTL_ME_OP_PUT` becomes `op_put`."""
    given = [text(name, "an option", "op_put") for name in names(options, "an option", "op_put")]
    return [re.sub("^PTL_(ME|MD|PT)_", "", name) for name in given]
