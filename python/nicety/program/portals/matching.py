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
"""Counters of dropped messages: all messages, those from a user without permission, and those with an operation that
the entry does not allow.
"""


class Matching(CardCalls):
    """Resources of a host on its card."""

    _portals: _native.PortalsCalls

    def ni_limits(self) -> dict[str, Any]:
        """The limits of all resources (`ptl_ni_limits_t`), by the specification's names; sizes in bytes.

        The card has two limits that the specification does not name: `max_eq_depth`, the events of one queue, and
        `max_operations`, the unfinished operations of this host. `features` are those of the card besides puts.
        """
        return self._portals.ni_limits()

    def ni_status(self, register: StatusRegister) -> int:
        """A status register's count so far (`PtlNIStatus`).

        Raises:
            InputError: there is no such register.
        """
        return self._portals.ni_status(register)

    def atomic_sync(self) -> Awaitable[None]:
        """Wait until this host's memory has the results of the card's atomic operations so far (`PtlAtomicSync`)."""
        return self._portals.atomic_sync()

    def ct_alloc(self) -> int:
        """Allocate a counting event, at zero (`PtlCTAlloc`)."""
        return self._portals.ct_alloc()

    def ct_free(self, ct: int) -> None:
        """Free a counting event (`PtlCTFree`).

        Raises:
            RunError: it is still in use (`PTL_IN_USE`).
        """
        self._portals.ct_free(ct)

    def ct_get(self, ct: int) -> int:
        """Successes of a counter, as visible to the host now (`PtlCTGet`)."""
        return self._portals.ct_get(ct)[0]

    def ct_failures(self, ct: int) -> int:
        """Failures of a counter, as visible to the host now (`PtlCTGet`)."""
        return self._portals.ct_get(ct)[1]

    def ct_wait(self, ct: int, threshold: int) -> Awaitable[int]:
        """Wait until a counter has reached a threshold; return the counter's successes (`PtlCTWait`).

        Raises:
            RunError: operations that the counter counts have failed.
        """
        return self._portals.ct_wait(ct, threshold)

    def ct_poll(
        self, thresholds: Mapping[int, int], *, timeout_ns: float | None = None
    ) -> Awaitable[tuple[int, Count] | None]:
        """Wait until one of several counters has reached its threshold, or counts a failure (`PtlCTPoll`).

        Args:
            thresholds: counters with their thresholds.
            timeout_ns: maximum wait; for ever by default.

        Returns:
            The counter and its value, or None after the timeout.
        """
        if not thresholds:
            raise InputError("ct_poll takes counters and their thresholds, as in ct_poll({ct: 1})")
        if not isinstance(thresholds, Mapping):
            raise InputError("ct_poll takes a dict of counters and thresholds, as in ct_poll({ct: 1})")
        return self._portals.ct_poll(list(thresholds.items()), timeout_ns, Count)

    def ct_inc(self, ct: int, success: int = 0, *, failure: int = 0) -> Awaitable[None]:
        """Post an increment of a counter, of its successes or its failures (`PtlCTInc`).

        The host sees the increment when the card has executed and reported it, two crossings of the bus later.
        """
        return self._portals.ct_inc(ct, success, failure, None)

    def ct_set(self, ct: int, success: int = 0, *, failure: int = 0) -> Awaitable[None]:
        """Post a new value of a counter (`PtlCTSet`). The host sees the value as late as it sees an increment."""
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
            RunError: it is still in use (`PTL_IN_USE`).
        """
        self._portals.eq_free(eq)

    def eq_get(self, eq: int) -> Awaitable[Event | None]:
        """The next event of a queue, or None if it is empty (`PtlEQGet`). The look costs CPU time in both cases.

        Raises:
            RunError: events were lost before the next one because the queue was full (`PTL_EQ_DROPPED`). This is
                reported once, and a further call continues after the loss.
        """
        return self._portals.eq_get(eq, Event)

    def eq_wait(self, eq: int) -> Awaitable[Event]:
        """Wait for the next event of a queue (`PtlEQWait`).

        Raises:
            RunError: as `eq_get`.
        """
        return self._portals.eq_wait(eq, Event)

    def eq_poll(self, eqs: Iterable[int], *, timeout_ns: float | None = None) -> Awaitable[tuple[int, Event] | None]:
        """Wait for the next event of several queues (`PtlEQPoll`).

        Of several queues with events, the first of the list is served.

        Args:
            eqs: the queues.
            timeout_ns: maximum wait; for ever by default.

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

        With the option `flowctrl`, a message that finds a resource exhausted disables the entry. The resource is room
        in the queue for its events, a match entry for it, an unexpected header, or a resource of the card. The
        message's sender and later senders get `PTL_NI_PT_DISABLED`, and this host gets one `PTL_EVENT_PT_DISABLED`. No
        accepted message is lost.
        """
        if pt == 0 and not isinstance(pt, bool):
            raise InputError("pt_alloc: entry 0 belongs to send and recv; name another, or leave pt out for any")
        return self._portals.pt_alloc(pt, eq, option_names(options))

    def pt_free(self, pt: int) -> None:
        """Free a portal table entry (`PtlPTFree`).

        Raises:
            RunError: match entries are linked to it (`PTL_PT_IN_USE`).
        """
        self._portals.pt_free(pt)

    def pt_enable(self, pt: int) -> Awaitable[None]:
        """Enable a portal table entry; returns when the card has done so (`PtlPTEnable`)."""
        return self._portals.pt_enable(pt)

    def pt_disable(self, pt: int) -> Awaitable[None]:
        """Disable a portal table entry, which then drops messages; returns when it is disabled (`PtlPTDisable`)."""
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
        """Append a match entry (`PtlMEAppend`) and return its handle; with `wait`, when the card has appended it.

        Args:
            buffer: the memory for put messages, or the source of get messages.
            pt: the portal table entry.
            match_bits: the bits required in a message.
            ignore_bits: the bits that are not compared.
            source: the rank of matching messages; any rank by default.
            uid: the user of matching messages (`uids` of `Cluster`); any by default. A matching message of another user
                is dropped, and its acknowledgement has `PTL_NI_PERM_VIOLATION`.
            options: names of options in Portals 4: `op_put`, `op_get`, `use_once`, `manage_local`, `no_truncate`,
                `event_ct_comm`, `event_ct_bytes`, ...
            list: `priority`, or `overflow`, which takes messages that no priority entry takes, and remembers their
                headers.
            min_free: with `manage_local`, unlink when fewer bytes than this are left.
            ct: the counter that counts the entry's messages.
            handlers: attached handlers that run for the entry's messages.
            user_ptr: a word that the entry's events return.
            wait: whether to wait for the card.
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

        It is a match entry that ignores all bits, on the only interface. `me_append` documents the arguments, and
        `le_unlink` unlinks it.
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
        """Search the unexpected headers for messages to such a list entry (`PtlLESearch`); see `me_search`."""
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
        """Unlink a match entry; returns when the card has done so (`PtlMEUnlink`).

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
        """Search the unexpected headers for messages that such an entry would take (`PtlMESearch`).

        A found header causes `PTL_EVENT_SEARCH`, or with `delete` `PTL_EVENT_PUT_OVERFLOW` and similar events. Without
        a match there is a `PTL_EVENT_SEARCH` that failed with `PTL_NI_NO_MATCH`. With `use_once` only the first header
        is found, otherwise all.
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
    """Options by their short names, as in `op_put`; `PTL_ME_OP_PUT` is the same."""
    given = [text(name, "an option", "op_put") for name in names(options, "an option", "op_put")]
    return [re.sub("^PTL_(ME|MD|PT)_", "", name) for name in given]
