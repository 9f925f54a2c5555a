"""The call tree of a profile: called functions, and those inlined in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from nicety._generated.types import ProfiledInstruction, ProfileRow
from nicety.bench.profile.sources import path_name


@dataclass
class Call:
    """A function in the tree.

    Attributes:
        name: its name.
        inlined: whether its caller has its code.
        own: cycles of its own instructions.
        calls: the functions that it calls, by name.
    """

    name: str
    inlined: bool = False
    own: int = 0
    calls: dict[str, Call] = field(default_factory=dict)

    @property
    def cycles(self) -> int:
        """Cycles of its own instructions and of the functions that it calls."""
        return self.own + sum(call.cycles for call in self.calls.values())

    def call(self, name: str, *, inlined: bool) -> Call:
        """The function with this name that it calls."""
        return self.calls.setdefault(name, Call(name, inlined))

    def hottest(self) -> list[Call]:
        """The functions that it calls, those with the most cycles first."""
        return sorted(self.calls.values(), key=lambda call: (-call.cycles, call.name))


def call_tree(row: ProfileRow) -> Call:
    """The tree of a profile. Its root calls the entries of runs."""
    root = Call("all handlers")
    chains = path_chains(row)
    for sample in row["samples"]:
        call = root
        for name, inlined in stack_of(chains[sample["path"]], row["instructions"][sample["instruction"]]):
            call = call.call(name, inlined=inlined)
        call.own += sample["cycles"]
    return root


def path_chains(row: ProfileRow) -> list[list[str]]:
    """The names of the functions of each call path, the entry first."""
    chains: list[list[str]] = []
    for path in row["paths"]:
        before = chains[path["caller"]] if path["caller"] is not None else []
        chains.append([*before, path_name(path)])
    return chains


def stack_of(chain: list[str], instruction: ProfiledInstruction) -> Iterator[tuple[str, bool]]:
    """The functions that are active at an instruction, the entry first, and whether each is inlined."""
    yield from ((name, False) for name in chain)
    # The outermost function of the line tables is the last one of the path.
    for frame in reversed(instruction["frames"][:-1]):
        yield frame["function"] or "(no name)", True
