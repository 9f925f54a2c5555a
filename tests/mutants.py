"""Changes the code in one place at a time, and lists the changes that no test notices.

Each change is tried with the tests of its crate. Those that survive are tried with the tests through Python that are
named below.

    make mutants FILE='crates/hpu/src/decode.rs crates/fabric/src/switch.rs'    every change of these files
    make mutants SAMPLE=100 SEED=7                                              about so many, from everywhere else

Surviving changes that cannot be noticed, or need not be, are explained in tests/mutants.toml. The status is 1 if
another one survives.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Not in a sample: the extension module, which is tested from Python, and files that are tested whole, by name.
NOT_SAMPLED = (
    "crates/py-ext/**",
    "crates/channels/src/host/transfer.rs",
    "crates/fabric/src/switch.rs",
    "crates/hpu/src/decode.rs",
    "crates/hpu/src/decode/word.rs",
    "crates/nic-qnix/src/transfer.rs",
    "crates/nic-spin/src/complete/mod.rs",
    "crates/nic-spin/src/deposit/mod.rs",
    "crates/nic-spin/src/incoming.rs",
    "crates/nic-spin/src/receive/mod.rs",
    "crates/portals/src/calls/arrive.rs",
    "crates/portals/src/calls/complete.rs",
    "crates/portals/src/delivery.rs",
)

# Tests through Python, the quickest first, by place of the change.
THROUGH_PYTHON = {
    "crates/apps/src/tsp/": ("test_salesman.py",),
    "crates/bench/src/pcsa.rs": ("test_cardinality.py",),
    "crates/apps/": ("test_count.py", "test_cardinality.py"),
    "crates/line-rate/": ("test_line_rate.py", "test_verdicts.py", "test_locks.py"),
    "crates/bench/": ("test_channel_bench.py", "test_interfaces.py", "test_bench.py", "test_load.py"),
    "crates/": (
        "test_recording.py",
        "test_cluster.py",
        "test_portals.py",
        "test_channels.py",
        "test_interfaces.py",
        "test_arguments.py",
        "test_handlers.py",
        "test_faults.py",
        "test_mixed.py",
        "test_trace.py",
        "test_cli.py",
        "test_run.py",
    ),
}


def main() -> int:
    """Run the requested changes, and print those that survive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--tool", default="cargo-mutants")
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--only", metavar="REGEX", help="of the changes of the files, those whose name has this; deleted fields stay"
    )
    parser.add_argument(
        "--tests", metavar="ARGUMENTS", default="", help="which tests to run, as a test program takes it: '--skip nfp'"
    )
    parser.add_argument("--hours", type=float, default=4.0, help="stop after so long")
    options = parser.parse_args()
    command = [str(Path(options.tool).resolve()), "mutants"]
    if options.files:
        missing = [name for name in options.files if not (ROOT / name).is_file()]
        if missing:
            print(f"make mutants: there is no file {', '.join(missing)}", file=sys.stderr)
            return 2
        chosen = [part for name in options.files for part in ("--file", name)]
        chosen += ["--re", options.only] if options.only else []
    else:
        chosen = [part for name in NOT_SAMPLED for part in ("--exclude", name)]
        listed = subprocess.run([*command, "--list", *chosen], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        # Every n-th one. Names of a random sample would not work: cargo-mutants 27.1 does not filter all by name.
        every = max(1, round(len(listed.stdout.splitlines()) / max(1, options.sample)))
        chosen += ["--sharding", "round-robin", "--shard", f"{options.seed % every}/{every}"]
    folder = ROOT / "target/mutants"
    tree = folder / "tree"
    _copy(tree)
    # Documentation examples are excluded: each is a program to compile, and none tests for mistakes.
    run = [
        *command,
        *chosen,
        "--in-place",
        *("--output", str(folder)),
        *("--profile", "mutants"),
        *("--minimum-test-timeout", "20"),
        *("--cargo-test-arg", "--tests"),
        "--caught",
        *(["--", "--", *shlex.split(options.tests)] if options.tests else []),
    ]
    # Few cases: changes that survive these may survive in CI too.
    environment = os.environ | {
        "PROPTEST_CASES": os.environ.get("PROPTEST_CASES", "64"),
        "CARGO_TARGET_DIR": str(folder / "built"),
    }
    with subprocess.Popen(run, cwd=tree, env=environment) as running:
        try:
            running.wait(timeout=options.hours * 3600)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            running.send_signal(signal.SIGINT)
            running.wait()
            print("make mutants: stopped; what follows is what was tested until then")
    return _report(folder / "mutants.out", tree, environment)


def _copy(tree: Path) -> None:
    """Update a copy of the working tree, which is changed instead of it, so that compiled files stay valid."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    names = {name for name in listed.stdout.split("\0") if (ROOT / name).is_file()}
    for path in [path for path in tree.rglob("*") if path.is_file()]:
        if str(path.relative_to(tree)) not in names:
            path.unlink()
    for name in names:
        copy = tree / name
        content = (ROOT / name).read_bytes()
        if not copy.is_file() or copy.read_bytes() != content:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)


def _failure_through_python(files: tuple[str, ...], tree: Path, environment: dict[str, str]) -> str | None:
    """The failure of tests through Python, with the extension module built from the tree; None if they pass."""
    build = ["cargo", "build", "--quiet", "--locked", "--package", "nicety-py-ext", "--profile", "mutants"]
    if subprocess.run(build, cwd=tree, env=environment, check=False).returncode:
        return "the extension module does not build"
    built = Path(environment["CARGO_TARGET_DIR"]) / "mutants/lib_native.so"
    shutil.copy(built, tree / "python/nicety/_native.abi3.so")
    # The package of the tree, not the installed one.
    own = environment | {"PYTHONPATH": str(tree / "python")}
    tests = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "logical", "--dist", "loadgroup"]
    command = [*tests, *(f"tests/{file}" for file in files)]
    done = subprocess.run(command, cwd=tree, env=own, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout if done.returncode else None


def _noticed_through_python(changes: dict[str, Path], tree: Path, environment: dict[str, str]) -> set[str]:
    """The changes, by name, with which a test through Python fails."""
    groups = {
        name: next(files for begin, files in THROUGH_PYTHON.items() if name.startswith(begin)) for name in changes
    }
    for files in set(groups.values()):
        failure = _failure_through_python(files, tree, environment)
        if failure is not None:
            sys.exit(f"{failure}\nmake mutants: {', '.join(files)} do not pass without any change")
    noticed = set()
    for name, change in changes.items():
        patch = ["patch", "--quiet", "--strip=0", f"--input={change}"]
        subprocess.run(patch, cwd=tree, check=True)
        if _failure_through_python(groups[name], tree, environment) is not None:
            noticed.add(name)
        subprocess.run([*patch, "--reverse"], cwd=tree, check=True)
        print(f"{'noticed through Python' if name in noticed else 'not noticed'}: {name}", flush=True)
    return noticed


def _report(folder: Path, tree: Path, environment: dict[str, str]) -> int:
    outcomes = json.loads((folder / "outcomes.json").read_text())["outcomes"]
    tested = [each for each in outcomes if each["scenario"] != "Baseline"]
    if not tested:
        print("make mutants: nothing was tested; see target/mutants/mutants.out/log", file=sys.stderr)
        return 1
    explained = tomllib.loads((ROOT / "tests/mutants.toml").read_text())
    missed = {
        each["scenario"]["Mutant"]["name"]: folder / each["diff_path"]
        for each in tested
        if each["summary"] == "MissedMutant"
    }
    # Line numbers change; the replacement and its function stay.
    reasons = {name: explained.get(re.sub(r":\d+:\d+: ", ": ", name)) for name in missed}
    open_ones = {name: change for name, change in missed.items() if reasons[name] is None}
    noticed = _noticed_through_python(open_ones, tree, environment)
    survivors = [name for name in open_ones if name not in noticed]
    for name, why in reasons.items():
        if why is not None:
            print(f"explained: {name}: {why}")
    for name in survivors:
        print(f"survives: {name}")
    caught = sum(each["summary"] in {"CaughtMutant", "Timeout"} for each in tested)
    print(
        f"{caught} caught, {len(noticed)} noticed through Python, {len(missed) - len(open_ones)} explained, "
        f"{len(survivors)} survive, of {len(tested)}"
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
