"""nicety: is code for a network card right, does it keep up with the wire, and what does it gain the application?

    import nicety

    cluster = nicety.Cluster(2, "spin-discrete")  # hosts with cards; see nicety.program.cluster for their programs
    table = nicety.run_benchmark("latency", nics=["spin-discrete"], sizes=[8, 4096])

Times are in nanoseconds and sizes in bytes unless a name says otherwise. Every exception is a `nicety.Error`; see
`nicety.errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicety._generated.reports import (
        ApplicationReport,
        ChannelReport,
        EthernetReport,
        GroupReport,
        InterfaceReport,
        KernelReport,
        MicroengineReport,
        PortalsReport,
        PortReport,
        ProcessReport,
        QueueReport,
        RdmaReport,
        RuleReport,
        XdpReport,
    )
    from nicety.apps.cardinality import count_sources
    from nicety.apps.goal import (
        compare_schedule,
        convert_schedule,
        generate_schedule,
        run_schedule,
        schedule_info,
        trace_schedule,
    )
    from nicety.apps.offload import compare_offload
    from nicety.apps.processes import run_processes
    from nicety.apps.salesman import solve_tsp
    from nicety.bench.channels import bench_channels
    from nicety.bench.check.handlers import check_handlers
    from nicety.bench.check.program import check_program
    from nicety.bench.interfaces import bench_fairness, bench_registration
    from nicety.bench.line_rate import check_line_rate
    from nicety.bench.messages import run_benchmark
    from nicety.bench.profile.program import profile_program
    from nicety.bench.profile.run import profile_handlers
    from nicety.bench.ranks.grid import bench_grid
    from nicety.bench.ranks.torus import bench_torus
    from nicety.bench.single.contexts import bench_pcsa
    from nicety.bench.single.pcie import bench_pcie
    from nicety.bench.sockets import bench_request_response, bench_stream
    from nicety.bench.xdp import bench_xdp
    from nicety.build.card import XdpProgram
    from nicety.build.compiler import Compiled, compile_handlers
    from nicety.build.hosts import compile_host
    from nicety.build.sources import Handlers, Processes
    from nicety.cli.sweep.driver import sweep_study
    from nicety.errors import CompileError, Deadlock, Error, HandlerTrap, InputError, RunError, TimedOut
    from nicety.program.buffers import Buffer
    from nicety.program.calls import Operation
    from nicety.program.channels.card import Channels
    from nicety.program.channels.channel import Alternative, Channel, Device, PendingMessage
    from nicety.program.channels.processes import CardMemory, Process
    from nicety.program.cluster import Cluster
    from nicety.program.ethernet.frames import FrameRule, Frames, FrameWord
    from nicety.program.ethernet.xdp import LoadedXdp, Xdp, XdpMap
    from nicety.program.failures import HandlerFailure
    from nicety.program.host import Host, PendingRecv, Received
    from nicety.program.portals.card import Portals
    from nicety.program.portals.events import Count, Event
    from nicety.program.portals.handlers import Application, HpuMemory
    from nicety.program.rdma import Gpu, Rdma, RdmaEvent, RdmaProcess, Region
    from nicety.program.reports import NodeReport
    from nicety.program.run import Run
    from nicety.program.sockets import DatagramSocket, Sockets, StreamSocket
    from nicety.program.vni import Completed, Interface, Vni, VniProcess
    from nicety.shared.cards import CardInfo, cards
    from nicety.show.captures import Capture
    from nicety.show.html import Shown
    from nicety.show.stages import Breakdown
    from nicety.show.tables import Table
    from nicety.studies import reproduce
    from nicety.sweeps.executors import RayExecutor
    from nicety.sweeps.page import sweep_report
    from nicety.sweeps.results import Sweep
    from nicety.sweeps.sweep import sweep
    from nicety.usecases.driver import run_usecase

    __version__: str

__all__ = [
    "Alternative",
    "Application",
    "ApplicationReport",
    "Breakdown",
    "Buffer",
    "Capture",
    "CardInfo",
    "CardMemory",
    "Channel",
    "ChannelReport",
    "Channels",
    "Cluster",
    "CompileError",
    "Compiled",
    "Completed",
    "Count",
    "DatagramSocket",
    "Deadlock",
    "Device",
    "Error",
    "EthernetReport",
    "Event",
    "FrameRule",
    "FrameWord",
    "Frames",
    "Gpu",
    "GroupReport",
    "HandlerFailure",
    "HandlerTrap",
    "Handlers",
    "Host",
    "HpuMemory",
    "InputError",
    "Interface",
    "InterfaceReport",
    "KernelReport",
    "LoadedXdp",
    "MicroengineReport",
    "NodeReport",
    "Operation",
    "PendingMessage",
    "PendingRecv",
    "PortReport",
    "Portals",
    "PortalsReport",
    "Process",
    "ProcessReport",
    "Processes",
    "QueueReport",
    "RayExecutor",
    "Rdma",
    "RdmaEvent",
    "RdmaProcess",
    "RdmaReport",
    "Received",
    "Region",
    "RuleReport",
    "Run",
    "RunError",
    "Shown",
    "Sockets",
    "StreamSocket",
    "Sweep",
    "Table",
    "TimedOut",
    "Vni",
    "VniProcess",
    "Xdp",
    "XdpMap",
    "XdpProgram",
    "XdpReport",
    "__version__",
    "bench_channels",
    "bench_fairness",
    "bench_grid",
    "bench_pcie",
    "bench_pcsa",
    "bench_registration",
    "bench_request_response",
    "bench_stream",
    "bench_torus",
    "bench_xdp",
    "cards",
    "check_handlers",
    "check_line_rate",
    "check_program",
    "compare_offload",
    "compare_schedule",
    "compile_handlers",
    "compile_host",
    "convert_schedule",
    "count_sources",
    "generate_schedule",
    "profile_handlers",
    "profile_program",
    "reproduce",
    "run_benchmark",
    "run_processes",
    "run_schedule",
    "run_usecase",
    "schedule_info",
    "solve_tsp",
    "sweep",
    "sweep_report",
    "sweep_study",
    "trace_schedule",
]

# Loaded on first use: the command line must not pay for modules that a command does not need.
_HOMES = {
    "Alternative": "nicety.program.channels.channel",
    "Application": "nicety.program.portals.handlers",
    "ApplicationReport": "nicety._generated.reports",
    "Breakdown": "nicety.show.stages",
    "Buffer": "nicety.program.buffers",
    "Capture": "nicety.show.captures",
    "CardInfo": "nicety.shared.cards",
    "CardMemory": "nicety.program.channels.processes",
    "Channel": "nicety.program.channels.channel",
    "ChannelReport": "nicety._generated.reports",
    "Channels": "nicety.program.channels.card",
    "Cluster": "nicety.program.cluster",
    "CompileError": "nicety.errors",
    "Compiled": "nicety.build.compiler",
    "Completed": "nicety.program.vni",
    "Count": "nicety.program.portals.events",
    "DatagramSocket": "nicety.program.sockets",
    "Deadlock": "nicety.errors",
    "Device": "nicety.program.channels.channel",
    "Error": "nicety.errors",
    "EthernetReport": "nicety._generated.reports",
    "Event": "nicety.program.portals.events",
    "FrameRule": "nicety.program.ethernet.frames",
    "FrameWord": "nicety.program.ethernet.frames",
    "Frames": "nicety.program.ethernet.frames",
    "Gpu": "nicety.program.rdma",
    "GroupReport": "nicety._generated.reports",
    "HandlerFailure": "nicety.program.failures",
    "HandlerTrap": "nicety.errors",
    "Handlers": "nicety.build.sources",
    "Host": "nicety.program.host",
    "HpuMemory": "nicety.program.portals.handlers",
    "InputError": "nicety.errors",
    "Interface": "nicety.program.vni",
    "InterfaceReport": "nicety._generated.reports",
    "KernelReport": "nicety._generated.reports",
    "LoadedXdp": "nicety.program.ethernet.xdp",
    "MicroengineReport": "nicety._generated.reports",
    "NodeReport": "nicety.program.reports",
    "Operation": "nicety.program.calls",
    "PendingMessage": "nicety.program.channels.channel",
    "PendingRecv": "nicety.program.host",
    "Process": "nicety.program.channels.processes",
    "Portals": "nicety.program.portals.card",
    "PortalsReport": "nicety._generated.reports",
    "PortReport": "nicety._generated.reports",
    "ProcessReport": "nicety._generated.reports",
    "Processes": "nicety.build.sources",
    "QueueReport": "nicety._generated.reports",
    "RayExecutor": "nicety.sweeps.executors",
    "Rdma": "nicety.program.rdma",
    "RdmaEvent": "nicety.program.rdma",
    "RdmaProcess": "nicety.program.rdma",
    "RdmaReport": "nicety._generated.reports",
    "Received": "nicety.program.host",
    "Region": "nicety.program.rdma",
    "RuleReport": "nicety._generated.reports",
    "Run": "nicety.program.run",
    "RunError": "nicety.errors",
    "Shown": "nicety.show.html",
    "Sockets": "nicety.program.sockets",
    "StreamSocket": "nicety.program.sockets",
    "Sweep": "nicety.sweeps.results",
    "Table": "nicety.show.tables",
    "TimedOut": "nicety.errors",
    "Vni": "nicety.program.vni",
    "VniProcess": "nicety.program.vni",
    "Xdp": "nicety.program.ethernet.xdp",
    "XdpMap": "nicety.program.ethernet.xdp",
    "XdpProgram": "nicety.build.card",
    "XdpReport": "nicety._generated.reports",
    "bench_channels": "nicety.bench.channels",
    "bench_fairness": "nicety.bench.interfaces",
    "bench_request_response": "nicety.bench.sockets",
    "bench_stream": "nicety.bench.sockets",
    "bench_grid": "nicety.bench.ranks.grid",
    "bench_pcie": "nicety.bench.single.pcie",
    "bench_pcsa": "nicety.bench.single.contexts",
    "bench_registration": "nicety.bench.interfaces",
    "bench_torus": "nicety.bench.ranks.torus",
    "bench_xdp": "nicety.bench.xdp",
    "cards": "nicety.shared.cards",
    "check_handlers": "nicety.bench.check.handlers",
    "check_line_rate": "nicety.bench.line_rate",
    "check_program": "nicety.bench.check.program",
    "compare_schedule": "nicety.apps.goal",
    "compile_handlers": "nicety.build.compiler",
    "compare_offload": "nicety.apps.offload",
    "compile_host": "nicety.build.hosts",
    "convert_schedule": "nicety.apps.goal",
    "count_sources": "nicety.apps.cardinality",
    "generate_schedule": "nicety.apps.goal",
    "profile_handlers": "nicety.bench.profile.run",
    "profile_program": "nicety.bench.profile.program",
    "reproduce": "nicety.studies",
    "run_benchmark": "nicety.bench.messages",
    "run_processes": "nicety.apps.processes",
    "run_schedule": "nicety.apps.goal",
    "run_usecase": "nicety.usecases.driver",
    "schedule_info": "nicety.apps.goal",
    "solve_tsp": "nicety.apps.salesman",
    "sweep": "nicety.sweeps.sweep",
    "sweep_report": "nicety.sweeps.page",
    "sweep_study": "nicety.cli.sweep.driver",
    "trace_schedule": "nicety.apps.goal",
}


def __getattr__(name: str) -> object:
    value: object
    if name == "__version__":
        from nicety import _native

        value = _native.version()
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'nicety' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
