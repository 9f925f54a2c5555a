//! A host's CPU cores, and the time that they need to post an operation, notice an event and compute.

use crate::cache::Lines;
use crate::memory::{Memory, MemoryError};
use crate::noise::{Intervals, Noise};
use nicety_kernel::{Permit, Pool, Sim};
use nicety_types::{Duration, Frequency, Gap, MessageId, Path, Recorder, Resource, Stage, Time};
use std::ops::Range;

/// The specification of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostSpec {
    /// Number of CPU cores.
    pub cores: usize,
    /// The clock of the cores.
    pub clock: Frequency,
    /// CPU time to post an operation: the parameter o of the LogGP models.
    pub post: Duration,
    /// CPU time to notice an event: to poll for it and read it.
    pub notice: Duration,
    /// Size of the memory in bytes.
    pub memory: u64,
    /// The latency of memory when a core fetches a line.
    pub memory_latency: Duration,
    /// Time per byte that is moved between cache and memory.
    pub memory_gap: Gap,
    /// Size in bytes of the cache that all cores share.
    pub cache: u64,
    /// Size of a cache line in bytes.
    pub line: u64,
    /// Maximum number of lines that a core fetches at once.
    pub line_fills: u64,
}

/// Number of bytes that a core copies per cycle if all of them are in the cache. A core with 128-bit vectors loads and
/// stores 16 bytes per cycle.
const COPIED_A_CYCLE: u64 = 16;

/// A computation that reads and writes memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The time of the computation if all data are in the cache.
    pub compute: Duration,
    /// Address ranges that the computation reads, in this order.
    pub reads: Vec<Range<u64>>,
    /// Address ranges that the computation writes, in this order.
    pub writes: Vec<Range<u64>>,
}

/// The CPU cores of a host. A program holds a core only while it uses the core.
pub struct Cpus {
    sim: Sim,
    cores: Pool,
    spec: HostSpec,
    recorder: Recorder,
    noise: Option<Noise>,
}

impl Cpus {
    /// Returns idle cores. The recorder gets their use, if it keeps such rows.
    pub fn new(sim: &Sim, spec: HostSpec, recorder: &Recorder) -> Cpus {
        Cpus {
            sim: sim.clone(),
            cores: Pool::new(sim, spec.cores),
            spec,
            recorder: recorder.clone(),
            noise: None,
        }
    }

    /// Returns the same cores with background noise. A program that is interrupted by noise waits on its core.
    ///
    /// # Panics
    /// If the duration of drawn noise is not shorter than its period.
    pub fn with_noise(self, noise: &Intervals) -> Cpus {
        Cpus { noise: Some(Noise::new(&self.sim, self.spec.cores, noise)), ..self }
    }

    /// Posts an operation. `message` is the operation's message or command.
    pub async fn post(&self, path: &mut Path, message: MessageId) {
        self.run(self.spec.post, Stage::POST, path, Some(message)).await;
    }

    /// Notices an event. `message` is the event's message, if it has one.
    pub async fn notice(&self, path: &mut Path, message: Option<MessageId>) {
        self.run(self.spec.notice, Stage::NOTICE, path, message).await;
    }

    /// Computes on memory. The first line arrives after the memory's latency. From then on computation, line fills and
    /// memory bandwidth overlap, and the slowest of these three determines the time. A core fetches a limited number of
    /// lines at once.
    ///
    /// The time depends on the contents of the cache at the start. Accesses by cards and other cores do not slow down
    /// the computation, and the computation does not slow down these accesses.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if a range is not within an allocation. The computation then does nothing.
    pub async fn work(&self, memory: &Memory, work: &Work, path: &mut Path) -> Result<(), MemoryError> {
        let spec = &self.spec;
        for bytes in work.reads.iter().chain(&work.writes) {
            memory.check(bytes.start, bytes.end.saturating_sub(bytes.start))?;
        }
        let lines = memory.touch(spec.cache, spec.line, &work.reads, &work.writes);
        self.compute(self.duration(work.compute, lines), path).await;
        Ok(())
    }

    /// Takes the CPU time of a copy. `None` for `from` or `to` means the library's own memory, which is in the cache.
    /// The core copies 16 bytes per cycle, and cache misses in `memory` take time as in [`Cpus::work`]. The caller
    /// moves the bytes.
    ///
    /// # Errors
    /// Like [`Cpus::work`].
    pub async fn copy(
        &self,
        memory: &Memory,
        from: Option<u64>,
        to: Option<u64>,
        bytes: u64,
        stage: Stage,
        path: &mut Path,
    ) -> Result<(), MemoryError> {
        let spec = &self.spec;
        let range = |at: u64| at..at.saturating_add(bytes);
        let (reads, writes) = (from.map(range), to.map(range));
        for bytes in reads.iter().chain(&writes) {
            memory.check(bytes.start, bytes.end - bytes.start)?;
        }
        let lines = memory.touch(spec.cache, spec.line, reads.as_slice(), writes.as_slice());
        let compute = spec.clock.cycles(bytes.div_ceil(COPIED_A_CYCLE));
        self.spend(self.duration(compute, lines), stage, path).await;
        Ok(())
    }

    /// Returns the duration of a computation that moves these lines between cache and memory.
    fn duration(&self, compute: Duration, lines: Lines) -> Duration {
        let spec = &self.spec;
        let latency = |rounds: u64| Duration::from_ps(spec.memory_latency.ps().saturating_mul(rounds));
        let rounds = lines.fetched.div_ceil(spec.line_fills);
        let bandwidth = spec.memory_gap.cover((lines.fetched + lines.written) * spec.line);
        latency(rounds.min(1)) + compute.max(latency(rounds.saturating_sub(1))).max(bandwidth)
    }

    /// The cores' clock.
    pub fn clock(&self) -> Frequency {
        self.spec.clock
    }

    /// Whether new work gets a core at once and keeps it. This is so if a core is free and there is no noise.
    pub fn are_ready(&self) -> bool {
        self.have_free(1)
    }

    /// Whether background noise disturbs the cores.
    pub fn has_noise(&self) -> bool {
        self.noise.is_some()
    }

    /// Like [`Cpus::are_ready`], for work on `cores` cores.
    pub fn have_free(&self, cores: usize) -> bool {
        self.noise.is_none() && self.cores.available() >= cores
    }

    /// Computes for `duration`.
    pub async fn compute(&self, duration: Duration, path: &mut Path) {
        self.run(duration, Stage::COMPUTE, path, None).await;
    }

    /// Works for `duration`, accounted to `stage`: code of a library or the operating system, or a copy.
    pub async fn spend(&self, duration: Duration, stage: Stage, path: &mut Path) {
        self.run(duration, stage, path, None).await;
    }

    /// Holds a core until the permit is dropped. This is for work that another part ends, such as programmed I/O.
    /// Background noise does not interrupt this work.
    pub async fn hold(&self, path: &mut Path) -> Permit {
        let core = self.cores.acquire().await;
        path.advance(Stage::CPU_QUEUED, self.sim.now());
        core
    }

    async fn run(&self, duration: Duration, stage: Stage, path: &mut Path, message: Option<MessageId>) {
        let core = self.cores.acquire().await;
        path.advance(Stage::CPU_QUEUED, self.sim.now());
        let start = self.sim.now();
        match &self.noise {
            None => {
                self.sim.delay(duration).await;
                path.advance(stage, self.sim.now());
                self.recorder.slice(Resource::HOST_CPU, start, self.sim.now(), message, stage.name());
            }
            Some(noise) => {
                let core = noise.pin();
                let mut left = duration;
                loop {
                    let end = core.work(self.sim.now(), &mut left, |noisy, from, to| {
                        let stage = if noisy { Stage::NOISE } else { stage };
                        path.advance(stage, to);
                        self.recorder.slice(Resource::HOST_CPU, from, to, message, stage.name());
                    });
                    if left.is_zero() || end == Time::MAX {
                        self.sim.until(end).await;
                        break;
                    }
                    self.sim.check_interrupt();
                    if end > self.sim.now() { self.sim.until(end).await } else { self.sim.yield_now().await }
                }
            }
        }
        drop(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use std::rc::Rc;

    const SPEC: HostSpec = HostSpec {
        cores: 2,
        clock: Frequency::from_hz(2_500_000_000),
        post: Duration::ZERO,
        notice: Duration::ZERO,
        memory: 1 << 20,
        memory_latency: Duration::from_ns(51),
        memory_gap: Gap::new(6, 1),
        cache: 4096,
        line: 64,
        line_fills: 10,
    };

    /// Returns the end times of consecutive computations on an allocation of 64 KiB. Each entry of `works` has the
    /// computation time in picoseconds, the range of bytes read, and the range of bytes written.
    fn ends(spec: HostSpec, works: &'static [(u64, Range<u64>, Range<u64>)]) -> (Vec<u64>, crate::Traffic) {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let memory = Rc::new(Memory::new(spec.memory));
        let base = memory.allocate(64 << 10).unwrap().address();
        let ends = Rc::new(std::cell::RefCell::new(Vec::new()));
        let (cpus, theirs, seen) = (Cpus::new(&sim, spec, &Recorder::off()), memory.clone(), ends.clone());
        let own = sim.clone();
        sim.spawn_program("work", async move {
            let mut path = Path::from(Time::ZERO);
            for (ps, read, write) in works {
                let at = |range: &Range<u64>| std::iter::once(base + range.start..base + range.end).collect();
                let work = Work { compute: Duration::from_ps(*ps), reads: at(read), writes: at(write) };
                let result = cpus.work(&theirs, &work, &mut path).await;
                seen.borrow_mut().push(if result.is_ok() { own.now().ps() } else { u64::MAX });
            }
        });
        world.run().unwrap();
        let ends = ends.borrow().clone();
        (ends, memory.traffic())
    }

    #[test]
    fn the_slowest_of_computing_latency_and_bandwidth_counts() {
        // One line takes the memory latency, then 64 B at 6 ps per byte.
        assert_eq!(ends(SPEC, &[(0, 0..64, 0..0)]).0, [51_000 + 384]);
        // 25 lines take three rounds of at most ten lines. The first round takes the memory latency.
        assert_eq!(ends(SPEC, &[(0, 0..1600, 0..0)]).0, [3 * 51_000]);
        // The computation overlaps with the fetches, and takes longer than the fetches.
        assert_eq!(ends(SPEC, &[(200_000, 0..1600, 0..0)]).0, [51_000 + 200_000]);
        // Lines that are wholly written are not fetched.
        assert_eq!(ends(SPEC, &[(0, 0..0, 0..640)]).0, [640 * 6]);
        // With enough fetches in flight, the memory bandwidth is the limit.
        let wide = HostSpec { line_fills: 1000, ..SPEC };
        assert_eq!(ends(wide, &[(0, 0..3200, 0..0)]).0, [51_000 + 3200 * 6]);
        // No line moves, so only the computation takes time.
        assert_eq!(ends(SPEC, &[(7, 0..0, 0..0)]).0, [7]);
    }

    #[test]
    fn cached_lines_take_no_time() {
        let (ends, traffic) =
            ends(SPEC, &[(0, 0..640, 0..0), (5, 0..640, 0..0), (0, 0..0, 0..640), (3, 0..0, 0..640)]);
        assert_eq!(ends, [51_000 + 3840, 51_000 + 3845, 51_000 + 2 * 3840 + 5, 51_000 + 2 * 3840 + 8]);
        assert_eq!((traffic.read, traffic.written), (640, 640));
    }

    #[test]
    fn work_outside_memory_is_refused() {
        assert_eq!(ends(SPEC, &[(5, 0..70_000, 0..0), (0, 0..0, 65_000..66_000)]).0, [u64::MAX; 2]);
    }
}
