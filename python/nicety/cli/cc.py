"""`nicety cc`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nicety.build.compiler import compile_handlers
from nicety.errors import InputError


def compile_files(
    files: Sequence[Path],
    output: Path | None,
    include_dirs: Sequence[Path],
    defines: Sequence[str],
    isa: str,
    cc: str | None,
) -> None:
    """Compile sources to `output`, or to a file in this folder named after the first of them."""
    if output is None:
        output = Path(files[0].name).with_suffix(".elf")
    if any(output.absolute() == file.absolute() for file in files):
        raise InputError(f"-o {output}: this would overwrite the source; name another file")
    compile_handlers(files, include_dirs=include_dirs, defines=defines, cc=cc, isa=isa, output=output)
