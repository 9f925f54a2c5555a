"""The report of a run, read from JSON."""

from __future__ import annotations

import json
from typing import Any

from nicety import _native
from nicety.applications import ApplicationReport
from nicety.failures import Failure
from nicety.faults import LinkReport, TransportReport
from nicety.interfaces import InterfaceReport
from nicety.outcomes import NodeReport, Run
from nicety.processes import (
    ChannelReport,
    KernelReport,
    MicroengineReport,
    PortReport,
    ProcessReport,
    QueueReport,
)
from nicety.refusals import RefusedCommand


def run_of(text: str, results: dict[int, Any], recording: _native.Recording) -> Run:
    """A run that came to its end, what its programs returned, and what it has recorded."""
    report = json.loads(text)
    links = [LinkReport(**link) for link in report.pop("links")]
    failures = [Failure(**failure) for failure in report.pop("failures")]
    nodes = [_node_report(node) for node in report.pop("nodes")]
    return Run(**report, nodes=nodes, results=results, links=links, failures=failures, _recording=recording)


def _node_report(node: dict[str, Any]) -> NodeReport:
    return NodeReport(
        **node
        | {
            "applications": [ApplicationReport(**application) for application in node["applications"]],
            "transport": TransportReport(**node["transport"]),
            "refused_commands": [RefusedCommand(**command) for command in node["refused_commands"]],
            "microengines": [_microengine_report(microengine) for microengine in node["microengines"]],
            "channels": ChannelReport(**node["channels"]),
            "port": _port_report(node["port"]),
            "interfaces": InterfaceReport(**node["interfaces"]),
            "kernel": KernelReport(**node["kernel"]),
        }
    )


def _port_report(port: dict[str, Any]) -> PortReport:
    return PortReport(**port | {"queues": [QueueReport(**queue) for queue in port["queues"]]})


def _microengine_report(microengine: dict[str, Any]) -> MicroengineReport:
    processes = [ProcessReport(**process) for process in microengine["processes"]]
    return MicroengineReport(**microengine | {"processes": processes})
