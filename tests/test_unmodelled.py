"""There is no verdict on handlers that share words in memory if the card does not model contention there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nicety
from nicety._generated.types import LineRateReport
from nicety.bench.line_rate import line_rate_text

ADDS = "for (int i = 0; i < 40; i++) __atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);"
CARD = 'extends = "spin-discrete"\nname = "mine"\n[hpu]\ncores = { value = 16, kind = "assumed", source = "a test" }\n'
# 40 additions take some 200 cycles of 0.4 ns, and 16 cores have a packet every 20.48 ns: 328 ns each.
SIZE = 1024


def check(folder: Path, body: str, nic: str = "mine.toml", *, before: str = "", **more: Any) -> LineRateReport:
    (folder / "mine.toml").write_text(CARD)
    (folder / "mine.c").write_text(f"""#include <nicety.h>
{before}
__handler int payload_handler(const ptl_payload_t p, void *state) {{ {body} return SUCCESS; }}
""")
    card = str(folder / nic) if nic == "mine.toml" else nic
    return nicety.check_line_rate(folder / "mine.c", nics=card, packet_sizes=[SIZE], **more)


def test_atomic_additions_to_one_word_of_ideal_memory_are_not_judged(tmp_path: Path) -> None:
    report = check(tmp_path, ADDS)
    (row,) = report["rows"]
    assert (row["verdict"], row["limited_by"]) == ("not judged", None)
    found = row["unmodelled"]
    assert found is not None
    assert (found["word"], found["word_accesses"]) == ("byte 0 of the state", 40.0)
    assert (found["atomic_words"], found["stored_words"], found["levels"]) == (1, 1, ["ideal"])
    text = " ".join(line_rate_text(report).replace("\n#", "").split())
    assert f"{SIZE} B: not judged: contention is not modelled on this card: handlers use byte 0 of the state by" in text
    assert "40.0 times a packet" in text
    for key in ("memory.state=l1", "memory.l1.banks", "memory.l1.atomics", "memory.l1.atomic_occupancy"):
        assert key in found["keys"]
        assert key in text


def test_the_keys_that_it_names_model_it(tmp_path: Path) -> None:
    """A bank does an atomic operation per cycle: 40 cycles of 0.4 ns are 16 ns of 6.7 ns between packets of 64 B."""
    (found,) = (row["unmodelled"] for row in check(tmp_path, ADDS)["rows"])
    assert found is not None
    values = {"memory.l1.banks": "64", "memory.l1.occupancy": "1", "memory.l1.atomics": "bank"}
    values |= {"memory.l1.atomic_occupancy": "1"}
    sets = [key if "=" in key else f"{key}={values[key]}" for key in found["keys"]]
    (row,) = nicety.check_line_rate(
        tmp_path / "mine.c", nics=str(tmp_path / "mine.toml"), packet_sizes=[64], overrides=sets
    )["rows"]
    assert (row["verdict"], row["limited_by"], row["unmodelled"]) == ("no", "memory bank", None)
    assert row["loads"]["memory_bank"] == pytest.approx(16 / 6.7, rel=0.01)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("((volatile uint32_t *)state)[p.offset / 1024 % 8]++;", 8),
        ("counters[p.offset / 1024 % 4] += p.length;", 4),
        ("PtlHandlerFAdd((uint64_t *)state, &(uint64_t){0}, 1);", 1),
    ],
    ids=["state", "variables", "command"],
)
def test_words_that_handlers_store_are_shared(tmp_path: Path, body: str, words: int) -> None:
    (row,) = check(tmp_path, body, before="static volatile uint32_t counters[64];")["rows"]
    found = row["unmodelled"]
    assert found is not None
    assert (row["verdict"], found["stored_words"]) == ("not judged", words)
    assert (found["word"] is None) == ("PtlHandler" not in body)
    assert f"memory.{'data' if 'counters' in body else 'state'}=l1" in found["keys"]


def test_handlers_without_sharing_and_slow_ones_are_judged(tmp_path: Path) -> None:
    def verdict(body: str, **more: Any) -> str:
        (row,) = check(tmp_path, body, **more)["rows"]
        return row["verdict"]

    # Each has its own: the packet, the stack.
    own = "volatile uint32_t sum = 0; for (int i = 0; i < 4; i++) sum += p.base[i];"
    assert verdict(own) == "yes"
    # Nobody waits for words that are only read.
    assert verdict("volatile uint32_t seen = *(uint32_t *)state; (void)seen;") == "yes"
    # A single core has all memory for itself.
    assert verdict("__atomic_fetch_add((uint32_t *)state, 1, __ATOMIC_RELAXED);", overrides=["hpu.cores=1"]) == "yes"
    # A handler that is too slow without contention is too slow with it.
    assert verdict(ADDS.replace("40", "400")) == "no"


def test_a_level_without_contention_is_not_judged_either(nicety: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text("""#include <frame.h>
__handler int frame_handler(const frame_t *frame, void *state) {
    __atomic_fetch_add((uint32_t *)state, frame->length, __ATOMIC_RELAXED);
    return FRAME_DROP;
}
""")
    command = ["bench", "handlers", "mine.c", "--nic", "spin-100g", "--packet-sizes", "508", "--messages", "2000"]
    (row,) = nicety(*command, "--json").json()["rows"]
    assert (row["verdict"], row["unmodelled"]) == ("yes", None)
    command += ["--set", "memory.l1.contended=false"]
    (row,) = nicety(*command, "--json").json()["rows"]
    assert (row["verdict"], row["unmodelled"]["levels"]) == ("not judged", ["l1"])
    assert row["unmodelled"]["keys"][:2] == ["memory.l1.contended=true", "memory.l1.banks"]
    line = next(line for line in nicety(*command).stdout.splitlines() if line.startswith("508"))
    assert "not judged" in line


def test_where_no_key_models_it_the_footnote_stays(tmp_path: Path) -> None:
    """Accesses of handlers written for PsPIN never wait for one another here."""
    (tmp_path / "mine.c").write_text("""#include <handler.h>
volatile int32_t word;
__handler__ void packet(handler_args_t *args) { for (int i = 0; i < 8; i++) amo_add(&word, 1); }
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **memory) {
    *hh = NULL; *ph = packet; *th = NULL; *memory = NULL;
}
""")
    report = nicety.check_line_rate(tmp_path / "mine.c", nics="pspin", packet_sizes=[1024])
    (row,) = report["rows"]
    assert (row["verdict"] in {"yes", "barely"}, row["unmodelled"]) == (True, None)
    assert "Rests on a level of memory, l2" in " ".join(line_rate_text(report).replace("\n#", "").split())
