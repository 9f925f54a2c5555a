"""Host memory as programs use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicety import _native
from nicety.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Buffer(_native.HostMemory):
    """Memory of a host. A slice is a part of it, and `array` is the same memory for numpy.

    Attributes:
        address: the first byte's address in the host's memory; events use such addresses.
        rank: the rank that owns the memory.
    """

    def __getitem__(self, part: slice) -> Buffer:
        """Return a part of the buffer, which shares the memory: `buffer[64:128]`."""
        if not isinstance(part, slice):
            raise InputError(f"a buffer is sliced, as in buffer[0:8]; for one byte write buffer.array[{part}]")
        start, stop, step = part.indices(len(self))
        if step != 1:
            raise InputError("a part of a buffer is contiguous; slice it without a step")
        length = max(0, stop - start)
        return Buffer(self._part(start, length))

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The bytes as a writable numpy array that shares the memory."""
        import numpy as np

        return self.view(np.uint8)

    def view(self, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """The memory as a writable numpy array of another type.

        Raises:
            InputError: the buffer's length is not a whole number of elements.
        """
        import numpy as np

        kind = np.dtype(dtype)
        if len(self) % kind.itemsize:
            raise InputError(f"{len(self)} bytes are no whole number of {kind.name} ({kind.itemsize} bytes each)")
        if len(self) == 0:
            return np.empty(0, kind)
        return np.frombuffer(memoryview(self), kind)

    def __repr__(self) -> str:
        return f"<Buffer of rank {self.rank}, {len(self)} bytes>"
