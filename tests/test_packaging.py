"""The project as others get it, and as its tests run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from email.parser import Parser
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

from console import ROOT


def test_random_tests_are_longer_in_long_runs() -> None:
    """A fixed number of cases does not grow in a long run."""
    fixed = {
        "*.rs": re.compile(r"(?:with_cases\(|\bcases: )[\d_]+[,)]"),
        "*.py": re.compile(r"@settings\(.*max_examples|max_examples=\d"),
    }
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for folder, pattern in (("crates", "*.rs"), ("tests", "test_*.py"))
        for path in sorted((ROOT / folder).rglob(pattern))
        for match in fixed[pattern.replace("test_", "")].finditer(path.read_text())
        if path.name != "test_packaging.py"
    ]
    assert found == []


def test_the_readme_leads_on_from_anywhere() -> None:
    """The package index shows it as well, and has no file beside it."""
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 5
    assert [link for link in links if not re.match("https://|#", link)] == []
    main = "https://github.com/nicety-lab/nicety/blob/main/"
    own = [link.removeprefix(main) for link in links if link.startswith(main)]
    assert [path for path in own if not (ROOT / path).is_file()] == []


def test_scripts_of_the_release_suit_every_system_that_it_is_made_on() -> None:
    """On Windows, git would end lines in a way that its bash does not accept, and its Python opens no /dev/fd."""
    command = ["git", "check-attr", "eol", ".ci/wheel", "requirements.lock", "handlers/kv.c"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line.rpartition(": ")[2] for line in told.splitlines()] == ["lf"] * 3
    assert re.findall(r"[<>]\(", (ROOT / ".ci/wheel").read_text()) == []


def test_no_file_names_a_folder_of_a_machine() -> None:
    """Debug information does, where it is left in a program."""
    kept = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    # Examples have the users `you` and `developer`.
    folder = re.compile(rb"/[r]oot/|/[h]ome/(?!(?:you|developer)\b)[a-z]")
    found = [name.decode() for name in kept if name and folder.search((ROOT / name.decode()).read_bytes())]
    assert found == []


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    command = [str(Path(sys.executable).with_name("maturin")), "sdist", "--out", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    return unpacked


def metadata(folder: Path) -> list[dict[str, Any]]:
    """The manifests of the workspace in a folder, as Cargo reads them."""
    command = ["cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version=1"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    packages: list[dict[str, Any]] = json.loads(done.stdout)["packages"]
    return packages


def folder_of(package: dict[str, Any]) -> Path:
    return Path(package["manifest_path"]).parent


@pytest.fixture(scope="module")
def crates() -> dict[str, dict[str, Any]]:
    """The crates of this workspace, by name."""
    return {package["name"]: package for package in metadata(ROOT)}


def published(crates: dict[str, dict[str, Any]]) -> list[str]:
    """The names of the crates that may go to a registry."""
    return [name for name, package in crates.items() if package["publish"] is None]


def test_published_crates_have_all_that_a_registry_asks_for(crates: dict[str, dict[str, Any]]) -> None:
    names = published(crates)
    assert {"nicety", "nicety-handlers", "nicety-shim", "nicety-specs"} <= set(names)
    assert not {"nicety-py-ext", "nicety-nic-testing", "nicety-fuzz"} & set(names)
    for name in names:
        package = crates[name]
        assert all(package[key] for key in ("description", "license", "repository")), name
        assert package["readme"] == "README.md", name
        assert (folder_of(package) / "README.md").is_file(), name


def test_published_crates_name_one_another_by_the_version(crates: dict[str, dict[str, Any]]) -> None:
    """A dependency without a version is refused, except in tests, where it is left out of the package."""
    names = set(published(crates))
    graph: dict[str, set[str]] = {}
    for name in names:
        own = [each for each in crates[name]["dependencies"] if each["name"] in crates]
        by_path = {each["name"] for each in own if each["req"] == "*" and each["kind"] == "dev"}
        versions = {each["name"]: each["req"] for each in own if each["name"] not in by_path}
        assert versions == {other: f"={crates[other]['version']}" for other in versions}, name
        assert set(versions) <= names, name
        graph[name] = set(versions)
    # The order in which a registry takes them.
    TopologicalSorter(graph).prepare()


def test_packages_have_the_files_that_they_are_compiled_from(crates: dict[str, dict[str, Any]]) -> None:
    missing, count = [], 0
    for name in published(crates):
        command = ["cargo", "package", "--list", "--locked", "--offline", "--allow-dirty", "--package", name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
        files, folder = set(done.stdout.splitlines()), folder_of(crates[name])
        assert {"LICENSE-APACHE", "LICENSE-MIT"} <= files, name
        assert not any(re.match("(tests|benches)/", file) for file in files), name
        for file in files:
            text = (folder / file).read_text(encoding="utf-8") if file.endswith(".rs") else ""
            for inner in re.findall(r'(?:include(?:_str|_bytes)?!\(|#\[path = )"([^"]+)"', text):
                path = os.path.relpath((folder / file).parent / inner, folder).replace(os.sep, "/")
                count += 1
                missing += [] if path in files else [f"{name}: {file}: {inner}"]
            # A build script runs in the folder of the package.
            missing += [f"{name}: {file}: ../"] if file == "build.rs" and "../" in text else []
    assert missing == []
    assert count > 140


def crates_of_the_extension(crates: dict[str, dict[str, Any]]) -> list[str]:
    """The folders of the extension module's crates."""
    found, left = set[str](), ["nicety-py-ext"]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            used = (each["name"] for each in crates[name]["dependencies"] if each["kind"] != "dev")
            left += [other for other in used if other in crates]
    return [folder_of(crates[name]).relative_to(ROOT).as_posix() for name in sorted(found)]


def test_a_source_distribution_has_what_is_built_in(sdist: Path, crates: dict[str, dict[str, Any]]) -> None:
    folders = crates_of_the_extension(crates)
    assert len(folders) > 10
    assert {"specs", "handlers", "shim"} < set(folders)
    for part in (*folders, "python"):
        kept = subprocess.run(["git", "ls-files", part], cwd=ROOT, capture_output=True, text=True, check=True)
        wanted = {
            name for name in kept.stdout.split("\n") if name and "/tests/" not in name and "/benches/" not in name
        }
        there = {path.relative_to(sdist).as_posix() for path in (sdist / part).rglob("*") if path.is_file()}
        assert len(there) > 3
        assert wanted - there == set()
    built_in = [
        source.parent / name
        for source in sdist.rglob("*.rs")
        for name in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', source.read_text())
    ]
    assert len(built_in) > 20
    assert [str(path) for path in built_in if not path.is_file()] == []
    # Its manifests resolve without the repository around them.
    there = {folder_of(each).relative_to(sdist).as_posix() for each in metadata(sdist)}
    assert there - set(folders) == {"crates/nic-testing"}, "crates of tests"
    assert set(folders) <= there


def test_a_source_distribution_says_what_it_is(sdist: Path) -> None:
    said = Parser().parsestr((sdist / "PKG-INFO").read_text())
    assert said["Name"] == "nicety"
    assert said["Version"] == tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert said["License-Expression"] == "MIT OR Apache-2.0"
    licences = ["studies/nfp-6000/LICENSE", "studies/bluefield3-dpa/LICENSE"]
    assert said.get_all("License-File") == ["LICENSE-MIT", "LICENSE-APACHE", *licences]
    assert {link.split(",")[0] for link in said.get_all("Project-URL", [])} >= {"Repository", "Documentation", "Issues"}
    assert said["Description-Content-Type"].startswith("text/markdown")
    assert "## A first program" in str(said.get_payload())


@pytest.mark.soak
def test_a_wheel_is_built_from_it_and_runs(tmp_path: Path) -> None:
    """The steps of the release, in a folder without earlier builds."""
    environment = {**os.environ, "DIST": str(tmp_path / "dist"), "CARGO_TARGET_DIR": str(tmp_path / "target")}
    done = subprocess.run(
        [str(ROOT / ".ci/wheel")], env=environment, capture_output=True, text=True, timeout=3600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    # Most of it is the extension module, 24 MB of code and tables that compress to 10 MB.
    assert wheel.stat().st_size < 12 << 20
    if sys.platform == "linux":
        assert "manylinux_2_17" in wheel.name
