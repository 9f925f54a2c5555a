"""Defined and undefined names of a relocatable RV32 object file, and whether a program has code."""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<IIIIIIIIII")
_SYMBOL = struct.Struct("<IIIBBH")
_SEGMENT = struct.Struct("<IIIIIIII")

_SYMBOL_TABLE = 2
_RISCV = 243
_LOCAL = 0
_FUNCTION = 2
_LOADED = 1
_EXECUTABLE = 1


@dataclass(frozen=True)
class Symbols:
    """The global names of one object file.

    Attributes:
        functions: names of the functions that it defines.
        defined: all names that it defines, functions included.
        undefined: names that it uses and does not define.
    """

    functions: frozenset[str]
    defined: frozenset[str]
    undefined: frozenset[str]


def read_symbols(image: bytes) -> Symbols:
    """Read the global symbols of a 32-bit little-endian RISC-V ELF file.

    Raises:
        ValueError: the bytes are no such file.
    """
    try:
        return _read(image)
    except (struct.error, IndexError) as error:
        raise ValueError(f"a damaged ELF file: {error}") from error


def _read(image: bytes) -> Symbols:
    if image[:4] != b"\x7fELF":
        raise ValueError("not an ELF file")
    if image[4:6] != b"\x01\x01":
        raise ValueError("not a 32-bit little-endian ELF file")
    header = _HEADER.unpack_from(image)
    machine, sections_at, section_count = header[2], header[6], header[12]
    if machine != _RISCV:
        raise ValueError(f"for ELF machine {machine}, not for RISC-V ({_RISCV})")
    sections = [_SECTION.unpack_from(image, sections_at + i * _SECTION.size) for i in range(section_count)]
    functions: set[str] = set()
    defined: set[str] = set()
    undefined: set[str] = set()
    for section in sections:
        if section[1] != _SYMBOL_TABLE:
            continue
        names_at = sections[section[6]][4]
        for at in range(section[4], section[4] + section[5], _SYMBOL.size):
            name_at, _value, _size, info, _other, index = _SYMBOL.unpack_from(image, at)
            if info >> 4 == _LOCAL:
                continue
            start = names_at + name_at
            name = image[start : image.index(b"\0", start)].decode()
            if index == 0:
                undefined.add(name)
                continue
            defined.add(name)
            if info & 15 == _FUNCTION:
                functions.add(name)
    return Symbols(frozenset(functions), frozenset(defined), frozenset(undefined))


def has_code(program: bytes) -> bool:
    """Whether a linked RV32 program has executable bytes."""
    header = _HEADER.unpack_from(program)
    segments_at, size, count = header[5], header[9], header[10]
    segments = [_SEGMENT.unpack_from(program, segments_at + i * size) for i in range(count)]
    return any(each[0] == _LOADED and each[6] & _EXECUTABLE and each[4] > 0 for each in segments)
