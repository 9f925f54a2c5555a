"""Memory of hosts, as their programs hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicety.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from nicety import _native
    from nicety._calls import Caller


class Buffer:
    """Memory of a host, or a part of it; slice it for a part. `array` is the same memory for numpy."""

    def __init__(
        self, host: Caller, number: int, address: int, memory: _native.HostMemory, offset: int, length: int
    ) -> None:
        self._host = host
        self._number = number
        self._address = address
        self._memory = memory
        self._offset = offset
        self._length = length

    def __len__(self) -> int:
        """Bytes."""
        return self._length

    def __getitem__(self, part: slice) -> Buffer:
        """A part of the buffer, the same memory: `buffer[64:128]`."""
        if not isinstance(part, slice):
            raise InputError(f"a buffer is sliced, as in buffer[0:8]; for one byte write buffer.array[{part}]")
        start, stop, step = part.indices(self._length)
        if step != 1:
            raise InputError("a part of a buffer is contiguous; slice it without a step")
        length = max(0, stop - start)
        return Buffer(self._host, self._number, self._address + start, self._memory, self._offset + start, length)

    @property
    def address(self) -> int:
        """The first byte's address in the host's memory, in which events say where something is."""
        return self._address

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The bytes as a writable numpy array that shares the memory."""
        import numpy as np

        return self.view(np.uint8)

    def view(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The memory as a writable numpy array of another type.

        Raises:
            InputError: where the buffer is not a whole number of elements.
        """
        import numpy as np

        kind = np.dtype(dtype)
        if self._length % kind.itemsize:
            raise InputError(f"{self._length} bytes are no whole number of {kind.name} ({kind.itemsize} bytes each)")
        if self._length == 0:
            return np.empty(0, kind)
        return np.frombuffer(memoryview(self._memory), kind, self._length // kind.itemsize, self._offset)

    def _part(self) -> dict[str, int]:
        """The buffer as a command names it."""
        return {"buffer": self._number, "offset": self._offset, "bytes": self._length}

    def __repr__(self) -> str:
        return f"<Buffer of rank {self._host.rank}, {self._length} bytes>"
