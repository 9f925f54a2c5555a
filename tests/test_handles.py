"""Features of one design: `host.portals`, `host.channels`, `host.vni`, `host.rdma` and `host.socket`."""

from __future__ import annotations

import pytest

import nicety

CARDS = {
    "portals": "spin-discrete",
    "channels": "nfp-4000",
    "vni": "qnix",
    "rdma": "apenet-v5",
    "socket": "niagara2-niu",
}
"""A card with it, by the name of a handle."""

DESIGNS = {
    "spin-discrete": "portals",
    "nfp-4000": "nfp",
    "qnix": "qnix",
    "apenet-v5": "apenet",
    "niagara2-niu": "ethernet",
}

TYPES = {
    "portals": nicety.Portals,
    "channels": nicety.Channels,
    "vni": nicety.Vni,
    "rdma": nicety.Rdma,
    "socket": nicety.Sockets,
}


def asked(nic: str, what: str) -> object:
    """The value of an attribute of a program's host, or the error."""

    async def main(host: nicety.Host) -> object:
        try:
            return getattr(host, what)
        except (nicety.Error, AttributeError) as error:
            return error

    return nicety.Cluster(1, nic).run(main).results[0]


@pytest.mark.parametrize("handle", CARDS)
def test_a_host_has_what_its_card_has_and_says_of_the_rest_which_card_has_it(handle: str) -> None:
    for nic in CARDS.values():
        found = asked(nic, handle)
        if nic == CARDS[handle]:
            assert isinstance(found, TYPES[handle])
            assert repr(found) == f"<{type(found).__name__} of rank 0>"
        else:
            assert isinstance(found, nicety.InputError)
            has, needs = DESIGNS[nic], DESIGNS[CARDS[handle]]
            assert str(found).startswith(f"host.{handle} of rank 0, {nic}: a card of design {has} has no ")
            assert str(found).endswith(f"; name a card of design {needs}, for example {CARDS[handle]}")


def test_a_handle_is_made_once() -> None:
    async def main(host: nicety.Host) -> bool:
        return host.portals is host.portals

    assert nicety.Cluster(1, "spin-discrete").run(main).results == {0: True}


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("put", "; write await host.portals.put(...)"),
        ("ct_alloc", "; write host.portals.ct_alloc(...)"),
        ("attach", "; write host.portals.attach(...)"),
        ("uid", "; write host.portals.uid"),
        ("start", "; write host.channels.start(...)"),
        ("open", "; write host.channels.open(...)"),
        ("vni_process", "; write host.vni.process(...)"),
        ("register", "; write await host.rdma.register(...)"),
        ("streaming", "; write host.rdma.streaming"),
        ("datagram", "; write host.socket.datagram(...)"),
        ("fly", ""),
        ("_portals", ""),
    ],
)
@pytest.mark.parametrize("nic", CARDS.values())
def test_calls_asked_of_the_host_name_their_handle(nic: str, name: str, instead: str) -> None:
    error = asked(nic, name)
    assert isinstance(error, AttributeError)
    assert str(error) == f"a Host has no {name!r}{instead}"


def test_a_host_itself_has_what_every_card_has() -> None:
    common = {
        "alloc", "barrier", "channels", "compute", "copy", "frames", "gather", "gpu", "now_ns", "now_ps", "portals",
        "post_recv", "rank", "ranks", "rdma", "recv", "send", "socket", "vni", "xdp",
    }  # fmt: skip
    assert {name for name in dir(nicety.Host) if not name.startswith("_")} == common


def test_a_call_that_is_never_awaited_is_told_by_its_name() -> None:
    async def main(host: nicety.Host) -> None:
        host.portals.ct_inc(host.portals.ct_alloc(), 1)
        await host.compute(ns=1)

    with pytest.raises(nicety.InputError, match=r"never awaited; write await host.portals.ct_inc\(\.\.\.\)"):
        nicety.Cluster(1, "spin-discrete").run(main)


async def nothing(host: nicety.Host) -> None:
    await host.compute(ns=1)


@pytest.mark.parametrize("nic", CARDS.values())
def test_a_nodes_report_has_what_its_card_did_by_the_same_name(nic: str) -> None:
    kinds = {
        "portals": nicety.PortalsReport,
        "channels": nicety.ChannelReport,
        "vni": nicety.InterfaceReport,
        "rdma": nicety.RdmaReport,
        "socket": nicety.EthernetReport,
    }
    node = nicety.Cluster(1, nic).run(nothing).nodes[0]
    (own,) = (handle for handle in CARDS if CARDS[handle] == nic)
    assert isinstance(getattr(node, own), kinds[own])
    assert node.card is getattr(node, own)
    for handle in CARDS.keys() - {own}:
        with pytest.raises(nicety.InputError) as raised:
            getattr(node, handle)
        text = f"node.{handle}: {nic} is of another design; what it did is in node.{own}"
        assert str(raised.value) == text
