"""Use cases: the gains of offload in real programs. Each use case has C handlers, and a host program for every mode.

    import nicety
    from nicety.usecases import Broadcast

    report = nicety.run_usecase(Broadcast(nodes=[2, 4, 8], sizes=[8, 65536]), nics=["spin-discrete"])
    for row in report["rows"]:
        print(row["mode"], row["nodes"], row["size_bytes"], row["latency_ns"])

A use case's programs use the public interface: `nicety.Cluster`, its hosts, and handlers in C from the library
(`nicety.build.compiler.library_source`). So each module is an example for your own programs. Every run compares the
resulting bytes with a sequential reference computation in numpy.
"""

from nicety.usecases.accumulate import Accumulate
from nicety.usecases.broadcast import Broadcast
from nicety.usecases.case import BANDWIDTH, LATENCY, Card, Figure, Outcome, Trial, UseCase, require_equal
from nicety.usecases.datatype import Datatype
from nicety.usecases.driver import run_usecase
from nicety.usecases.kv import KeyValue
from nicety.usecases.matching import Matching, Overlap
from nicety.usecases.report import UseCaseReport
from nicety.usecases.storage import Storage

__all__ = [
    "BANDWIDTH",
    "LATENCY",
    "Accumulate",
    "Broadcast",
    "Card",
    "Datatype",
    "Figure",
    "KeyValue",
    "Matching",
    "Outcome",
    "Overlap",
    "Storage",
    "Trial",
    "UseCase",
    "UseCaseReport",
    "require_equal",
    "run_usecase",
]
