"""Files are written wholly or not at all, and possible remains of a crash are noticed."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nicety.build import cache as _cache
from nicety.build.compiler import compile_handlers, library_source
from nicety.build.toolchain import find_toolchain
from nicety.errors import InputError
from nicety.shared.files import write_whole
from nicety.show.axes import save
from nicety.show.traces import write_trace

HANDLER = "#include <nicety.h>\n__handler int payload_handler(const ptl_payload_t p, void *s) { return DROP; }\n"

DAMAGES = [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: bytes(len(b)), lambda b: b + b"x"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("NICETY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "handler.c").write_text(HANDLER)
    return tmp_path / "cache"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_program_is_compiled_again(cache: Path, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    first = compile_handlers([tmp_path / "handler.c"])
    first.path.write_bytes(damage(first.elf))
    again = compile_handlers([tmp_path / "handler.c"])
    assert again.elf == first.elf
    assert again.path.read_bytes() == first.elf


def test_leftovers_of_a_crash_in_the_cache_are_made_again(cache: Path, tmp_path: Path) -> None:
    """Any file of the cache may be empty, short, full of zeros or too long, without consequences."""
    first = compile_handlers([tmp_path / "handler.c"])
    whole = {path: path.read_bytes() for path in cache.rglob("*") if path.is_file() and "zig" not in path.parts}
    folders = {path.relative_to(cache).parts[0] for path in whole}
    assert folders == {"library", "programs", "runtime", "toolchains"}
    # The same for the program's own sources: it is made from them again.
    for damage in DAMAGES:
        for path, content in whole.items():
            path.write_bytes(damage(content))
        assert compile_handlers([tmp_path / "handler.c"]) == first
        left = {path: path.read_bytes() for path in whole if "programs" not in path.parts}
        assert left == {path: whole[path] for path in left}


def test_a_compilers_damaged_answer_is_asked_for_again(cache: Path) -> None:
    version = find_toolchain(None).version
    (answer,) = (cache / "toolchains").rglob("*.txt")
    for damaged in (b"", b"\xff\xfe\x00", version[:5].encode()):
        answer.write_bytes(damaged)
        assert find_toolchain(None).version == version
        assert answer.read_text() == version


def test_a_damaged_file_of_the_library_is_written_again(cache: Path) -> None:
    path = library_source("kv.c")
    text = path.read_text()
    path.write_text(text[:100])
    assert library_source("kv.c").read_text() == text
    path.unlink()
    assert library_source("kv.c").read_text() == text


def test_kept_files_are_found_or_damaged(tmp_path: Path) -> None:
    path = _cache.keep(tmp_path / "a", b"content", ".o")
    assert (_cache.kept(path), _cache.find(tmp_path / "a", ".o")) == (b"content", path)
    path.write_bytes(b"conten")
    assert (_cache.kept(path), _cache.find(tmp_path / "a", ".o")) == (None, None)
    assert _cache.kept(tmp_path / "gone") is None


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    mask = os.umask(0o027)
    try:
        write_whole(path, b"one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        write_whole(tmp_path / "program", b"one", mode=0o777)
        assert stat.S_IMODE((tmp_path / "program").stat().st_mode) == 0o750
    finally:
        os.umask(mask)
    path.chmod(0o604)
    link.symlink_to(path)
    write_whole(link, b"two")
    # A link stays a link, and permissions stay unchanged.
    assert link.is_symlink()
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o604)
    write_whole(tmp_path / ("n" * 255), b"a name as long as there are")
    assert sorted(len(name.name) for name in tmp_path.iterdir()) == [4, 4, 7, 255]
    for wrong in (tmp_path / "no" / "file", tmp_path, tmp_path / ("n" * 256), f"{tmp_path}/a\0b"):
        with pytest.raises(InputError, match="cannot write it"):
            write_whole(wrong, b"")


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"file: cannot write it \(No space left on device\)"):
        write_whole(path, b"after")
    with pytest.raises(InputError, match="No space left"):
        write_whole(tmp_path / "other", b"after")
    assert [(left.name, left.read_bytes()) for left in tmp_path.iterdir()] == [("file", b"before")]


def test_pictures_and_timelines_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    class Recording:
        def left_out(self) -> dict[str, int]:
            return {"resources": 0}

        def timeline(self, _: str) -> bytes:
            return b"x" * 100

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for path, write in [
        (tmp_path / "a.svg", lambda path: save(Figure(), path)),
        (tmp_path / "a.pftrace", lambda path: write_trace(Recording(), path)),  # type: ignore[arg-type]
    ]:
        path.write_bytes(b"before")
        with pytest.raises(InputError, match="No space left"):
            write(path)
        assert path.read_bytes() == b"before"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_a_device_is_written_as_it_is(nicety: Callable, tmp_path: Path) -> None:
    write_whole("/dev/null", b"content")
    assert Path("/dev/null").is_char_device()
    with pytest.raises(InputError, match=r"/dev/full: cannot write it \(No space left on device\)"):
        write_whole("/dev/full", b"content")
    bench = ["bench", "latency", "--nic", "spin-discrete", "--mode", "rdma", "--sizes", "8"]
    picture = tmp_path / "full.svg"
    picture.symlink_to("/dev/full")
    for option in (["--csv", "/dev/full"], ["--arrow", "/dev/full"], ["--trace", "/dev/full"], ["--plot", picture]):
        result = nicety(*bench, *option)
        assert (result.status, result.stdout) == (2, "")
        assert result.stderr == f"nicety: {option[1]}: cannot write it (No space left on device)\n"
    (tmp_path / "a.c").write_text(HANDLER)
    result = nicety("cc", "a.c", "-o", "/dev/full")
    assert (result.status, result.stderr) == (2, "nicety: /dev/full: cannot write it (No space left on device)\n")


def test_a_reports_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    from nicety.studies.report import check_folder

    (tmp_path / "report.json").write_text("of another run")
    check_folder(tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "of another run")]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made a folder"):
        check_folder(tmp_path / "file")
