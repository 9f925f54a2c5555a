"""Compares the JSON of two builds: the same values under the same names, or under the names of a map.

    python tests/same_json.py FOLDER                          run every command below, and write its document to FOLDER;
                                                          `nicety` is the one of PATH
    python tests/same_json.py --compare OLD NEW --map MAP     print the differences of two such folders

MAP is a JSON file: `fields` maps old names of fields to new ones, and `values` maps old
texts to new ones. A name with a point, `caches.passed`, is that of a field in `caches` only. Both are applied to OLD.
A difference is printed with its path, and makes the exit status 1.
Documents contain the exit status of their command. Every command takes some seconds at most, and prints the same each
time.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

FILES = {
    "add.c": """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint64_t before, sum = 0;
    for (ptl_size_t i = 0; i < p.length / 4; i++)
        sum += ((const uint32_t *)p.base)[i];
    PtlHandlerFAdd(state, &before, sum);
    return SUCCESS;
}
__handler int completion_handler(int dropped_bytes, bool flow_control, void *state) {
    PtlHandlerDMAToHostB(state, 0, 8, PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
""",
    "lock.c": """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t *lock = state;
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        ;
    for (int i = 0; i < 20; i++)
        ((volatile uint32_t *)state)[2] += p.length;
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    return SUCCESS;
}
""",
    "counter.c": """
#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    uint32_t *count = state, before = __atomic_load_n(count, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(count, &before, before + frame->length, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return FRAME_HOST;
}
""",
    "refused.c": """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, 99, 1, 0, NULL, 0);
    return SUCCESS;
}
""",
    "wild.c": """
#include <nicety.h>
__handler int payload_handler(const ptl_payload_t p, void *state) {
    return *(volatile int *)4;
}
""",
    "main.c": """
int main(void) {
    volatile int sum = 0;
    for (int i = 0; i < 100; i++)
        sum += i;
    return sum & 63;
}
""",
    "ring.c": """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = calloc(1, 100000), *in = malloc(100000);
    double sum = rank, total;
    MPI_Sendrecv(out, 100000, MPI_CHAR, (rank + 1) % ranks, 0, in, 100000, MPI_CHAR, (rank + ranks - 1) % ranks, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(out, 1000, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
""",
    "exchange.py": """
async def main(host):
    peer = 1 - host.rank
    out, back = host.alloc(4096), host.alloc(4096)
    coming = await host.post_recv(back, source=peer)
    await host.barrier()
    await host.send(out, to=peer)
    await coming
    return {"done_ns": host.now_ns, "rounds": 1}
""",
    "server.py": """
async def main(host):
    socket = host.socket.datagram()
    await socket.bind(53)
    for _ in range(50):
        question, sender = await socket.recvfrom(2000)
        await socket.sendto(question, *sender)
    return {"bytes": len(question)}
""",
    "study.toml": """
run = "bench bandwidth"

[options]
window = 4
iterations = 2
sizes = "64Ki"

[grid]
nic = ["apenet-v5", "apenet-v4"]
set."tlb.entries" = [64, 256]
""",
}

PREPARATION = [
    "nicety goal generate halo-2d -o halo.goal --ranks 9 --size 64Ki --compute 20us --iterations 2",
    "nicety goal generate ring-allreduce -o ring.goal --ranks 4 --size 1Mi",
    "nicety cc main.c -o main.elf",
    "mpicc -O2 ring.c -o ring",
    (
        f"nicety bench handlers {ROOT}/handlers/frames/drop.c --nic spin-100g"
        " --traffic 'udp src=10.0.0.0/8 flows=1k zipf=1.3 size=60 packets=500' --capture flows.pcapng"
    ),
]

_TRAFFIC = "'udp dport=53 src=10.0.0.0/8 flows=1k zipf=1.1 size=imix rate=60Gbps arrivals=poisson packets=3k'"
_L1 = (
    "--set hpu.cores=16 --set memory.state=l1 --set memory.l1.banks=16 --set memory.l1.load=5 --set memory.l1.atomic=8"
)
COMMANDS = {
    "handlers-discrete": "bench handlers add.c --nic spin-discrete --packet-sizes 64,4Ki --messages 8",
    "handlers-integrated": "bench handlers add.c --nic spin-integrated --packet-sizes 512 --messages 8"
    " --set hpu.cores=60",
    "handlers-banks": f"bench handlers add.c --nic spin-discrete --packet-sizes 64 --messages 8 {_L1}",
    "handlers-lock": "bench handlers lock.c --nic spin-discrete --packet-sizes 1Ki --messages 8",
    "handlers-lock-banks": f"bench handlers lock.c --nic spin-discrete --packet-sizes 1Ki --messages 8 {_L1}",
    "handlers-cache": "bench handlers add.c --nic spin-discrete --packet-sizes 64 --messages 8 --set hpu.cores=16"
    " --set memory.state=l2 --set memory.l2.banks=16 --set memory.l2.load=20 --set memory.l2.cached=true"
    " --set 'memory.cache.size=4 KiB' --set memory.cache.ways=4 --set memory.cache.load=2"
    " --set memory.cache.coherence=none",
    "handlers-pspin": f"bench handlers {ROOT}/handlers/pspin/empty.c --nic pspin --packet-sizes 64 --messages 8",
    "handlers-pspin-own": f"bench handlers {ROOT}/handlers/pspin/sum.c --nic pspin --packet-sizes 256 --messages 8",
    "handlers-frames": f"bench handlers {ROOT}/handlers/frames/echo.c --nic spin-100g --packet-sizes 60,1500"
    " --messages 500",
    "handlers-retries": "bench handlers counter.c --nic spin-100g --traffic 'udp size=60 rate=30Mpps packets=2k'",
    "handlers-traffic": f"bench handlers add.c --nic spin-discrete --lossy --traffic {_TRAFFIC}",
    "handlers-ports": f"bench handlers add.c --nic spin-discrete --set link.ports=2 --traffic {_TRAFFIC}"
    " --traffic 'udp dport=443 size=1500 rate=40Gbps packets=1k'",
    "handlers-capture": f"bench handlers {ROOT}/handlers/frames/count.c --nic spin-100g --pfc"
    " --traffic 'capture=flows.pcapng rate=wire'",
    "handlers-sensitivity": "bench handlers add.c --nic spin-discrete --packet-sizes 64 --messages 2 --set hpu.cores=10"
    " --sensitivity",
    "handlers-refused": "bench handlers refused.c --nic spin-discrete --packet-sizes 1Ki --messages 4",
    "handlers-trap": "bench handlers wild.c --nic spin-discrete --packet-sizes 64 --messages 4",
    "latency": "bench latency --nic spin-discrete,spin-integrated --sizes 8,64Ki --iterations 3 --breakdown",
    "latency-pattern": "bench latency --nic spin-discrete --mode rdma --sizes 8,4Ki --pattern incast:4",
    "latency-ethernet": "bench latency --nic niagara2-niu --sizes 8,1448 --iterations 3 --breakdown",
    "latency-channels": "bench latency --nic nfp-4000 --sizes 8 --iterations 2 --breakdown",
    "bandwidth": "bench bandwidth --nic apenet-v5,qnix --sizes 64Ki --window 4 --iterations 2",
    "bandwidth-pfc": "bench bandwidth --nic spin-discrete --mode rdma --sizes 64Ki --pattern incast:4 --iterations 2"
    " --flow-control pfc,buffer=64Ki",
    "message-rate": "bench message-rate --nic spin-discrete --mode portals4 --sizes 8 --window 8 --iterations 2",
    "broadcast": "bench broadcast --nic spin-discrete --nodes 4 --sizes 8,4Ki --iterations 2",
    "accumulate": "bench accumulate --nic spin-discrete --sizes 4Ki --set hpu.isa=rv32imafc_zicsr --iterations 2",
    "datatype": "bench datatype --nic spin-discrete --size 64Ki --blocks 64,4Ki --iterations 1",
    "matching": "bench matching --nic spin-discrete --sizes 64Ki --overlap --iterations 2",
    "storage": "bench storage --nic spin-discrete --sizes 4Ki --operation write,read --iterations 2",
    "kv": "bench kv --nic spin-discrete --clients 1,2 --requests 8 --operation insert",
    "channel-latency": "bench channel-latency --nic nfp-4000 --mode direct,indirect --sizes 56"
    " --iterations 4 --breakdown",
    "channel-bandwidth": "bench channel-bandwidth --nic nfp-4000 --mode indirect --processes 2 --sizes 64Ki"
    " --payload 1Mi",
    "registration": "bench registration --nic qnix --sizes 64:16Ki",
    "fairness": "bench fairness --nic qnix --processes 1,4 --messages 2",
    "pcie": "bench pcie --nic nfp-6000 --test LAT_DMA_WRRD,BW_DMA_RD --sizes 8,63 --cache hwarm,cold",
    "halo": "bench halo --nic spin-discrete --grid 2x2 --sizes 4Ki --iterations 2",
    "allreduce": "bench allreduce --nic spin-discrete,qnix --grid 2x2 --sizes 4Ki --iterations 2",
    "torus": "bench torus --nic spin-discrete --topology torus:4x4x4 --packet 64 --load 0.1,0.9 --duration 2us",
    "stream": "bench stream --nic niagara2-niu --connections 4 --warmup 1ms --duration 1ms",
    "request-response": "bench request-response --nic ethernet-100g --connections 4 --warmup 1ms --duration 1ms",
    "contexts": "bench pcsa --nic nfp-4000 --contexts 1..3",
    "goal-info": "goal info halo.goal",
    "goal-loggops": "goal run halo.goal --network loggops",
    "goal-cards": "goal run halo.goal --nic spin-discrete --mode card --breakdown",
    "goal-compare": "goal compare halo.goal --nic spin-discrete,spin-integrated --mode host,card",
    "goal-compare-one": "goal compare ring.goal --nic spin-discrete --network loggops",
    "exec": "exec -n 2 --nic spin-discrete -- ./ring",
    "exec-offload": "exec -n 2 --nic spin-discrete --offload bcast,allreduce=always -- ./ring",
    "run": "run exchange.py --nic spin-discrete,spin-integrated",
    "run-traffic": "run server.py --nodes 1 --nic niagara2-niu --traffic"
    " 'udp dport=53 size=64-512 rate=80kpps packets=50 start=20us'",
    "pcsa": "pcsa flows.pcapng",
    "tsp": "tsp kroA100 --restarts 2 --climbers 2",
    "hpu": "hpu run main.elf --spec spin-discrete",
    "specs": "specs",
    "specs-show": "specs show pspin",
    "sweep": "sweep run study.toml -o sweep",
    "reproduce": "reproduce qnix --quick",
}
"""Subcommands with their options, by the names of their documents; `--json` is added."""


def write(folder: Path) -> None:
    """Runs all commands in a folder of their own, and writes their documents."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "NICETY_NEWS": "0"}
    with tempfile.TemporaryDirectory() as place:
        for name, text in FILES.items():
            (Path(place) / name).write_text(text.lstrip())
        for command in PREPARATION:
            subprocess.run(command, shell=True, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)
        for name, command in COMMANDS.items():
            before, behind, rest = command.partition(" -- ")
            line = ["nicety", *shlex.split(before), "--json", *([behind.strip(), *shlex.split(rest)] if behind else [])]
            ended = subprocess.run(line, check=False, cwd=place, env=environment, text=True, capture_output=True)
            try:
                document = json.loads(ended.stdout)
            except ValueError:
                document = None
                print(f"{name}: status {ended.returncode}, no document: {ended.stderr[-500:]}", file=sys.stderr)
            text = json.dumps({"status": ended.returncode, "document": document}, indent=1)
            (folder / f"{name}.json").write_text(text.replace(place, "FOLDER").replace(str(ROOT), "ROOT"))


def renamed(value: Any, fields: dict[str, str], values: dict[str, str], inside: str = "") -> Any:
    """A document, or the content of its field `inside`, with the new names."""
    if isinstance(value, dict):
        names = {key: fields.get(f"{inside}.{key}", fields.get(key, key)) for key in value}
        return {names[key]: renamed(part, fields, values, key) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, fields, values, inside) for part in value]
    return values.get(value, value) if isinstance(value, str) else value


def differences(old: Any, new: Any, path: str) -> Iterator[str]:
    """The places at which two documents differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new) and sorted(old) == sorted(new):
            yield f"{path}: fields in another order"
        for key in sorted({*old, *new}):
            if key not in old or key not in new:
                yield f"{path}.{key}: only in the {'new' if key in new else 'old'} document"
            else:
                yield from differences(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for at, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{path}[{at}]")
    elif old != new or type(old) is not type(new):
        yield f"{path}: {json.dumps(old)[:200]} -> {json.dumps(new)[:200]}"


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--map", type=Path)
    options = parser.parse_args()
    if options.compare is None:
        if options.folder is None:
            parser.error("name a folder for the documents, or give --compare OLD NEW")
        write(options.folder)
        return 0
    names = json.loads(options.map.read_text()) if options.map else {"fields": {}, "values": {}}
    found = 0
    for name in COMMANDS:
        old, new = (json.loads((folder / f"{name}.json").read_text()) for folder in options.compare)
        for difference in differences(renamed(old, names["fields"], names["values"]), new, name):
            print(difference)
            found += 1
    print(f"{len(COMMANDS)} documents, {found} differences")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
