"""nicety: is code for a network card right, does it keep up with the wire, and what does it buy the application?

    import nicety

    cluster = nicety.Cluster(2, "spin-discrete")  # hosts with cards; see nicety.cluster for their programs
    table = nicety.run_benchmark("latency", nics=["spin-discrete"], sizes=[8, 4096])

Times are in nanoseconds and sizes in bytes wherever a name says nothing else. Whatever goes wrong is a
`nicety.Error`; see `nicety.errors`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nicety.applications import Application, ApplicationReport, HpuMemory
    from nicety.benchmarks import run_benchmark
    from nicety.cardinality import bench_pcsa, count_sources
    from nicety.channel_benchmarks import bench_channels
    from nicety.channels import Alternative, Channel, Device
    from nicety.cluster import Buffer, Cluster, Count, Event, Host, NodeReport, PendingRecv, Received, Run
    from nicety.compiler import Compiled, compile_handlers
    from nicety.errors import CompileError, Deadlock, Error, HandlerFailure, HandlerTrap, InputError, RunError, TimedOut
    from nicety.handlers import Handlers
    from nicety.interface_benchmarks import bench_fairness, bench_registration
    from nicety.interfaces import Completed, Interface, InterfaceReport, Operation, VniProcess
    from nicety.line_rate import check_line_rate
    from nicety.processes import (
        CardMemory,
        ChannelReport,
        KernelReport,
        MicroengineReport,
        PortReport,
        Process,
        Processes,
        ProcessReport,
        QueueReport,
    )
    from nicety.results import Breakdown, Table
    from nicety.salesman import solve_tsp
    from nicety.studies import reproduce
    from nicety.usecases.driver import run_usecase

    __version__: str

__all__ = [
    "Alternative",
    "Application",
    "ApplicationReport",
    "Breakdown",
    "Buffer",
    "CardMemory",
    "Channel",
    "ChannelReport",
    "Cluster",
    "CompileError",
    "Compiled",
    "Completed",
    "Count",
    "Deadlock",
    "Device",
    "Error",
    "Event",
    "HandlerFailure",
    "HandlerTrap",
    "Handlers",
    "Host",
    "HpuMemory",
    "InputError",
    "Interface",
    "InterfaceReport",
    "KernelReport",
    "MicroengineReport",
    "NodeReport",
    "Operation",
    "PendingRecv",
    "PortReport",
    "Process",
    "ProcessReport",
    "Processes",
    "QueueReport",
    "Received",
    "Run",
    "RunError",
    "Table",
    "TimedOut",
    "VniProcess",
    "__version__",
    "bench_channels",
    "bench_fairness",
    "bench_pcsa",
    "bench_registration",
    "check_line_rate",
    "compile_handlers",
    "count_sources",
    "reproduce",
    "run_benchmark",
    "run_usecase",
    "solve_tsp",
]

# Loaded when first used: the command line must not pay for what a command does not need.
_HOMES = {
    "Alternative": "nicety.channels",
    "Application": "nicety.applications",
    "ApplicationReport": "nicety.applications",
    "Breakdown": "nicety.results",
    "Buffer": "nicety.cluster",
    "CardMemory": "nicety.processes",
    "Channel": "nicety.channels",
    "ChannelReport": "nicety.processes",
    "Cluster": "nicety.cluster",
    "CompileError": "nicety.errors",
    "Compiled": "nicety.compiler",
    "Completed": "nicety.interfaces",
    "Count": "nicety.cluster",
    "Deadlock": "nicety.errors",
    "Device": "nicety.channels",
    "Error": "nicety.errors",
    "Event": "nicety.cluster",
    "HandlerFailure": "nicety.errors",
    "HandlerTrap": "nicety.errors",
    "Handlers": "nicety.handlers",
    "Host": "nicety.cluster",
    "HpuMemory": "nicety.applications",
    "InputError": "nicety.errors",
    "Interface": "nicety.interfaces",
    "InterfaceReport": "nicety.interfaces",
    "KernelReport": "nicety.processes",
    "MicroengineReport": "nicety.processes",
    "NodeReport": "nicety.cluster",
    "Operation": "nicety.interfaces",
    "PendingRecv": "nicety.cluster",
    "Process": "nicety.processes",
    "PortReport": "nicety.processes",
    "ProcessReport": "nicety.processes",
    "Processes": "nicety.processes",
    "QueueReport": "nicety.processes",
    "Received": "nicety.cluster",
    "Run": "nicety.cluster",
    "RunError": "nicety.errors",
    "Table": "nicety.results",
    "TimedOut": "nicety.errors",
    "VniProcess": "nicety.interfaces",
    "bench_channels": "nicety.channel_benchmarks",
    "bench_fairness": "nicety.interface_benchmarks",
    "bench_pcsa": "nicety.cardinality",
    "bench_registration": "nicety.interface_benchmarks",
    "check_line_rate": "nicety.line_rate",
    "compile_handlers": "nicety.compiler",
    "count_sources": "nicety.cardinality",
    "reproduce": "nicety.studies",
    "run_benchmark": "nicety.benchmarks",
    "run_usecase": "nicety.usecases.driver",
    "solve_tsp": "nicety.salesman",
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
