"""The package as a whole."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

import nicety
from nicety import _native

ROOT = Path(__file__).parent.parent


def test_every_public_name_is_there() -> None:
    assert dir(nicety) == sorted(nicety.__all__), "what the package offers, and nothing else"
    for name in nicety.__all__:
        assert getattr(nicety, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'nicety' has no attribute 'fly'"):
        nicety.fly  # noqa: B018


def test_the_versions_agree() -> None:
    assert nicety.__version__ == _native.version() == metadata.version("nicety")


def test_errors_are_of_two_kinds() -> None:
    assert issubclass(nicety.InputError, nicety.Error)
    assert issubclass(nicety.CompileError, nicety.InputError)
    assert issubclass(nicety.RunError, nicety.Error)
    assert issubclass(nicety.Deadlock, nicety.RunError)
    assert issubclass(nicety.HandlerTrap, nicety.RunError)
    assert not issubclass(nicety.InputError, nicety.RunError)


def test_the_extension_carries_every_file_of_the_handlers() -> None:
    folder = ROOT / "handlers"
    files = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    # Those of the crate that carries them.
    for own in ("Cargo.toml", "README.md", "lib.rs", "LICENSE-APACHE", "LICENSE-MIT"):
        del files[own]
    assert _native.handler_sources() == files
