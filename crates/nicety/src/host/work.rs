//! Computation on host memory: its duration and its memory traffic.

use super::{Buffer, Host};
use crate::Error;
use crate::error::END_OF_TIME;
use nicety_host::Work;
use nicety_types::{Duration, Path, Stage};
use std::ops::Range;

impl Buffer {
    /// The addresses of the buffer in host memory.
    pub fn addresses(&self) -> Range<u64> {
        self.address()..self.address() + self.len()
    }
}

impl Host {
    /// Returns the sum of `time` and the duration of `cycles` cycles of a CPU core.
    ///
    /// # Errors
    /// When a computation of this duration would end after 2^64 picoseconds, the end of virtual time.
    pub fn duration(&self, time: Duration, cycles: u64) -> Result<Duration, Error> {
        let ps = u128::from(time.ps())
            + (u128::from(cycles) * 1_000_000_000_000).div_ceil(u128::from(self.inner.cpus.clock().hz()));
        let whole = u64::try_from(ps).unwrap_or(u64::MAX);
        if whole.saturating_add(self.now().ps()) == u64::MAX {
            return Err(Error::Program(format!(
                "compute, at {}: for {}; {END_OF_TIME}",
                self.now(),
                Duration::from_ps(whole)
            )));
        }
        Ok(Duration::from_ps(whole))
    }

    /// Simulates a computation on memory by one of the host's CPUs. The duration is the longest of three times:
    /// computation, fetches of cache lines, and transfer at the memory's bandwidth. The cache lines count as traffic of
    /// host memory. This call does not change any bytes; the caller must do that.
    ///
    /// # Errors
    /// When the memory does not belong to the host.
    pub async fn work(&self, work: &Work) -> Result<(), Error> {
        let (start, mut path) = (self.now(), self.path());
        let done = self.inner.cpus.work(&self.inner.memory, work, &mut path).await;
        self.path.replace(path);
        self.called("compute", start);
        Ok(done?)
    }

    /// Copies a buffer, on one of the host's CPUs. The duration is that of [`Host::work`] on both buffers. The bytes
    /// change at the end of the copy.
    ///
    /// # Errors
    /// When the buffers differ in length.
    pub async fn copy(&self, from: &Buffer, to: &Buffer) -> Result<(), Error> {
        if from.len() != to.len() {
            return Err(Error::Program(format!(
                "a copy of {} bytes into a buffer of {} bytes; slice the longer one",
                from.len(),
                to.len()
            )));
        }
        let (cpus, memory) = (&self.inner.cpus, &self.inner.memory);
        let copy = async |path: &mut Path| {
            cpus.copy(memory, Some(from.address()), Some(to.address()), from.len(), Stage::COMPUTE, path)
                .await
        };
        self.timed("compute", copy).await?;
        to.write(0, &from.read(0, from.len()));
        Ok(())
    }
}
