"""The report of a node, made from JSON: the node's counts, and the counts of its card by the card's design."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from nicety._generated.reports import (
    ChannelReport,
    EthernetReport,
    InterfaceReport,
    NodeCounts,
    PortalsReport,
    RdmaReport,
    TransportReport,
)
from nicety.errors import InputError

_R = TypeVar("_R")

_PARTS: dict[type, dict[str, dict[frozenset[str], type]]] = {}
"""Maps a type of report to the types of its nested reports; see `_parts`."""

_NAMES = {
    PortalsReport: "portals",
    ChannelReport: "channels",
    InterfaceReport: "vni",
    RdmaReport: "rdma",
    EthernetReport: "socket",
}


class NodeReport(NodeCounts):
    """Counters of one node. The attribute of the card's counters is named as in `Host`."""

    @property
    def portals(self) -> PortalsReport:
        """Counts of a card with Portals, under the same name as `host.portals`.

        Raises:
            InputError: the card is of another design.
        """
        return self._of(PortalsReport)

    @property
    def channels(self) -> ChannelReport:
        """Counts of a card with microengines, under the same name as `host.channels`.

        Raises:
            InputError: the card is of another design.
        """
        return self._of(ChannelReport)

    @property
    def vni(self) -> InterfaceReport:
        """Counts of a card with virtual network interfaces, under the same name as `host.vni`.

        Raises:
            InputError: the card is of another design.
        """
        return self._of(InterfaceReport)

    @property
    def rdma(self) -> RdmaReport:
        """Counts of a card with RDMA, under the same name as `host.rdma`.

        Raises:
            InputError: the card is of another design.
        """
        return self._of(RdmaReport)

    @property
    def socket(self) -> EthernetReport:
        """Counts of an Ethernet card, of the protocols and of the threads of its host's kernel.

        Raises:
            InputError: the card is of another design.
        """
        return self._of(EthernetReport)

    def _of(self, kind: type[_R]) -> _R:
        if not isinstance(self.card, kind):
            instead = f"what it did is in node.{_NAMES[type(self.card)]}" if self.card else "it reports nothing"
            raise InputError(f"node.{_NAMES[kind]}: {self.nic} is of another design; {instead}")
        return self.card


def report_of(kind: type[_R], counted: dict[str, Any]) -> _R:
    """Make a report and the reports nested in it from a dict of JSON. The dict is changed."""
    parts = _PARTS.get(kind)
    if parts is None:
        parts = _PARTS[kind] = _parts(kind)
    for name, kinds in parts.items():
        if isinstance(value := counted[name], list):
            counted[name] = [_read(kinds, each) for each in value]
        elif value is not None:
            counted[name] = _read(kinds, value)
    return kind(**counted)


def _parts(kind: type) -> dict[str, dict[frozenset[str], type]]:
    """Map a field with a nested report to its possible types. The key of each type is the set of its field names."""
    reports: dict[str, dict[frozenset[str], type]] = {}
    for name, hint in typing.get_type_hints(kind).items():
        for each in typing.get_args(hint) or (hint,):
            if isinstance(each, type) and is_dataclass(each):
                reports.setdefault(name, {})[frozenset(field.name for field in fields(each))] = each
    return reports


def _read(kinds: Mapping[frozenset[str], type], value: dict[str, Any]) -> Any:
    return report_of(next(iter(kinds.values())) if len(kinds) == 1 else kinds[frozenset(value)], value)


def transport_of(node: NodeReport) -> TransportReport:
    """Return the counts of the reliable transport of a node's card; all zero on a card without one."""
    if isinstance(node.card, PortalsReport):
        return node.card.transport
    return TransportReport(**{field.name: 0 for field in fields(TransportReport)})
