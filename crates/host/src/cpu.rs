//! A host's CPU cores, and what posting, noticing and computing cost on them.

use crate::noise::{Noise, NoiseSpec};
use nicety_kernel::{Pool, Sim};
use nicety_types::{Duration, Frequency, MessageId, Path, Recorder, Resource, Stage};

/// What a host is described by.
#[derive(Clone, Copy, Debug)]
pub struct HostSpec {
    /// CPU cores.
    pub cores: usize,
    /// Their clock.
    pub clock: Frequency,
    /// What posting an operation costs a CPU: the o of the LogGP models.
    pub post: Duration,
    /// What noticing an event costs a CPU: poll, and look at it.
    pub notice: Duration,
    /// Bytes of memory.
    pub memory: u64,
}

/// The CPU cores of a host; a program holds one only while it uses it.
pub struct Cpus {
    sim: Sim,
    cores: Pool,
    spec: HostSpec,
    recorder: Recorder,
    noise: Option<Noise>,
}

impl Cpus {
    /// Idle cores, their use recorded where such rows are kept.
    pub fn new(sim: &Sim, spec: HostSpec, recorder: &Recorder) -> Cpus {
        Cpus {
            sim: sim.clone(),
            cores: Pool::new(sim, spec.cores),
            spec,
            recorder: recorder.clone(),
            noise: None,
        }
    }

    /// The same cores, which background noise takes now and then: a program stays on its core meanwhile, and waits.
    ///
    /// # Panics
    /// When the noise's duration is not shorter than its period.
    pub fn with_noise(self, noise: NoiseSpec) -> Cpus {
        Cpus { noise: Some(Noise::new(&self.sim, self.spec.cores, noise)), ..self }
    }

    /// Posts an operation, which this message or command is.
    pub async fn post(&self, path: &mut Path, message: MessageId) {
        self.run(self.spec.post, Stage::Post, path, Some(message)).await;
    }

    /// Notices an event, which this message left where it was one.
    pub async fn notice(&self, path: &mut Path, message: Option<MessageId>) {
        self.run(self.spec.notice, Stage::Notice, path, message).await;
    }

    /// Computes for `duration`.
    pub async fn compute(&self, duration: Duration, path: &mut Path) {
        self.run(duration, Stage::Compute, path, None).await;
    }

    async fn run(&self, duration: Duration, stage: Stage, path: &mut Path, message: Option<MessageId>) {
        let core = self.cores.acquire().await;
        path.advance(Stage::CpuQueued, self.sim.now());
        let start = self.sim.now();
        match &self.noise {
            None => {
                self.sim.delay(duration).await;
                path.advance(stage, self.sim.now());
                self.recorder.slice(Resource::HostCpu, start, self.sim.now(), message, stage.name());
            }
            Some(noise) => {
                let core = noise.pin();
                let end = core.work(start, duration, |noisy, from, to| {
                    let stage = if noisy { Stage::Noise } else { stage };
                    path.advance(stage, to);
                    self.recorder.slice(Resource::HostCpu, from, to, message, stage.name());
                });
                self.sim.until(end).await;
            }
        }
        drop(core);
    }
}
