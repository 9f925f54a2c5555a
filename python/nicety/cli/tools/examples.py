"""Examples of commands, for their help and the manual page."""

from __future__ import annotations

from collections.abc import Mapping

import typer

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "cc": (
        "nicety cc count.c -o count.elf",
        "nicety cc --xdp drop.c -o drop.o",
        "nicety cc --flags > compile_flags.txt",
    ),
    "man": ("nicety man > nicety.1", "nicety man | man -l -"),
    "reproduce": ("nicety reproduce spin --quick", "nicety reproduce nfp-6000 --report nfp-6000"),
    "run": ("nicety run hello.py --nic spin-discrete,qnix",),
    "exec": (
        "nicety exec -n 4 --nic spin-discrete -- ./program",
        "nicety exec -n 2 --nic spin-discrete,qnix --plot exec.png -- python pingpong.py",
    ),
    "pcsa": ("nicety pcsa capture.pcap", "nicety pcsa capture.pcap.gz --sketches 1024"),
    "tsp": ("nicety tsp kroA100.tsp --restarts 100 --compare cpu",),
    "profile": ("nicety profile count.c --nic spin-discrete --html count.html",),
    "debug": ("nicety debug count.c --nic spin-discrete", "nicety debug shout.py --nic nfp-4000"),
    "check": (
        "nicety check count.c --nic spin-discrete",
        "nicety check count.c --nic spin-discrete --schedules 100",
        "nicety check shout.py --nic nfp-4000",
    ),
    "serve": ("nicety serve", "nicety serve count.c --nic spin-100g --port 8080 --no-open"),
    "specs show": ("nicety specs show spin-discrete", "nicety specs show ./mine.toml --set hpu.cores=8"),
    "specs diff": ("nicety specs diff spin-discrete spin-integrated", "nicety specs diff spin-discrete ./mine.toml"),
    "specs new": ("nicety specs new spin-discrete mine.toml",),
    "specs schema": ("nicety specs schema > card.json",),
    "specs score": (
        "nicety specs score pspin --plot pspin.png",
        "nicety specs score nfp-6000 --test LAT_DMA_RD",
        "nicety specs score ./mine.toml --rows mine.csv",
    ),
    "specs fit": ("nicety specs fit --rows mine.csv --from nfp-6000 -o mine.toml",),
    "specs check": ("nicety specs check mine.toml",),
    "hpu run": ("nicety hpu run program.elf", "nicety hpu run program.elf --entry main --json"),
    "xdp show": ("nicety xdp show firewall.o",),
    "xdp run": ("nicety xdp run firewall.o --packet packets.pcap",),
    "xdp translate": ("nicety xdp translate firewall.o",),
    "bench latency": (
        "nicety bench latency --nic spin-discrete,qnix",
        "nicety bench latency --nic spin-discrete --sizes 8,4Ki --breakdown --plot stages.png",
    ),
    "bench bandwidth": ("nicety bench bandwidth --nic spin-discrete --sizes 64Ki --pattern incast:4",),
    "bench message-rate": ("nicety bench message-rate --nic spin-discrete --mode rdma",),
    "bench handlers": (
        "nicety bench handlers count.c --nic spin-discrete",
        "nicety bench handlers filter.c --nic spin-100g --traffic 'udp dport=53 size=imix rate=40Gbps'",
        "nicety bench handlers count.c --nic spin-discrete --state @table.bin",
    ),
    "bench xdp": ("nicety bench xdp drop.o --nic ethernet-100g --cpus 1:8 --lossy",),
    "bench broadcast": ("nicety bench broadcast --nic spin-discrete --nodes 2:32",),
    "bench accumulate": ("nicety bench accumulate --nic spin-discrete --sizes 8:1Mi",),
    "bench datatype": ("nicety bench datatype --nic spin-discrete --blocks 64,4Ki",),
    "bench matching": ("nicety bench matching --nic spin-discrete --overlap",),
    "bench storage": ("nicety bench storage --nic spin-discrete --operation write",),
    "bench kv": ("nicety bench kv --nic spin-discrete --clients 1:8",),
    "bench channel-latency": ("nicety bench channel-latency --nic nfp-4000",),
    "bench channel-bandwidth": ("nicety bench channel-bandwidth --nic nfp-4000 --mode indirect --processes 1,8",),
    "bench registration": ("nicety bench registration --nic qnix",),
    "bench fairness": ("nicety bench fairness --nic qnix --processes 1:16",),
    "bench halo": ("nicety bench halo --nic apenet-v5 --grid 4x2",),
    "bench allreduce": ("nicety bench allreduce --nic apenet-v5 --grid 4x2",),
    "bench torus": ("nicety bench torus --nic apenet-6 --topology torus:4x4x4",),
    "bench stream": ("nicety bench stream --nic niagara2-niu --connections 1:64",),
    "bench request-response": ("nicety bench request-response --nic ethernet-100g",),
    "bench pcie": ("nicety bench pcie --nic nfp-6000 --test LAT_DMA_RD,BW_DMA_RD --plot pcie.png",),
    "bench pcsa": ("nicety bench pcsa --nic nfp-4000 --contexts 1..8",),
    "goal info": ("nicety goal info ring.goal",),
    "goal convert": ("nicety goal convert ring.goal ring.bin",),
    "goal trace": ("nicety goal trace trace-*.txt -o app.goal",),
    "goal run": ("nicety goal run ring.goal", "nicety goal run ring.goal --nic spin-discrete"),
    "goal compare": ("nicety goal compare ring.goal --nic spin-discrete,spin-integrated --plot ring.png",),
    "goal generate": ("nicety goal generate ring-allreduce --ranks 16 --size 1Mi -o ring.goal",),
    "sweep run": ("nicety sweep study.toml",),
    "sweep report": ("nicety sweep report results",),
}
"""Maps a command to examples."""


def add_examples(app: typer.Typer, path: str = "") -> None:
    """Append the examples to the help of all commands of an app."""
    for command in app.registered_commands:
        if found := EXAMPLES.get(f"{path} {command.name}".strip()):
            # The mark keeps click from joining the lines.
            command.epilog = "\n".join(["\b", "Examples:", *(f"  {line}" for line in found)])
    for inside in app.registered_groups:
        if inside.typer_instance is not None:
            add_examples(inside.typer_instance, f"{path} {inside.name}".strip())
