//! The memory of a host's graphics processor.

use super::{Buffer, Host};
use crate::Error;

/// The graphics processor of a host with its memory, which the host's card can access. Cheap to clone.
#[derive(Clone)]
pub struct Gpu {
    host: Host,
    gpu: nicety_host::Gpu,
}

impl Host {
    /// Returns the graphics processor of this host.
    ///
    /// # Errors
    /// When the host's card cannot access a graphics processor. The error names a card that can.
    pub fn gpu(&self) -> Result<Gpu, Error> {
        let gpu = self.inner.gpu.clone().ok_or_else(|| {
            let design = self.inner.card.design().name;
            Error::Input(format!(
                "the card of rank {}, of design {design}, reaches no memory of a graphics processor; name one with \
                 a section [gpu] in its spec, for example apenet-v5",
                self.rank()
            ))
        })?;
        Ok(Gpu { host: self.clone(), gpu })
    }
}

impl Gpu {
    /// Allocates `len` zero bytes of graphics memory. This is set-up: it takes no virtual time. A card can read and write these
    /// bytes, but the host's CPUs cannot.
    ///
    /// # Errors
    /// When less than `len` bytes of graphics memory are left.
    pub fn alloc(&self, len: u64) -> Result<Buffer, Error> {
        let allocation = self.gpu.memory.allocate(len).map_err(|_| {
            let memory = self.gpu.spec.memory;
            Error::Program(format!(
                "the graphics processor's memory of {memory} has less than {len} bytes free; raise gpu.memory"
            ))
        })?;
        self.host.inner.card.adopt(&allocation);
        Ok(Buffer { allocation, start: 0, len })
    }

    /// The number of bytes that cards have read from and written to graphics memory.
    pub fn traffic(&self) -> nicety_host::Traffic {
        self.gpu.memory.traffic()
    }
}
