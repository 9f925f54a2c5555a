//! A DMA engine with channels. Channels are set up in parallel and move their bytes one after another. So with two
//! channels, one is set up while the other moves bytes. Optionally all channels move bytes in parallel, and only the
//! bus serialises the bytes.
//!
//! The engine has no queue. Its owner chooses the transfer for the next free channel. The owner moves the bytes
//! (`dma.rs`) while it holds the [`Moving`] that [`Engine::set_up`] returns.

use crate::parts::stages;
use nicety_kernel::{Permit, Pool, Sim};
use nicety_types::{Duration, MessageId, Path, Recorder, Resource, Stage, Time};
use std::cell::{Cell, RefCell};

/// The last use of a contended resource: the message that released the resource, and this message's path up to the
/// release.
#[derive(Default)]
pub struct LastUse(RefCell<Option<(MessageId, Path)>>);

impl LastUse {
    /// Records that a message releases the resource at the end of `path`.
    pub fn released(&self, message: MessageId, path: &Path) {
        self.0.replace(Some((message, path.clone())));
    }

    /// Accounts for the wait of a message that has just got the resource. The wait belongs to the stage `queued`,
    /// unless the same message released the resource.
    pub fn waited(&self, queued: Stage, message: MessageId, path: &mut Path) {
        let last = self.0.borrow();
        let Some((holder, until)) = last.as_ref().filter(|(_, until)| until.at() > path.at()) else { return };
        if *holder == message {
            path.clone_from(until);
        } else {
            path.advance(queued, until.at());
        }
    }
}

/// The specification of a DMA engine's channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSpec {
    /// Number of channels.
    pub channels: usize,
    /// Set-up time of a channel before its transfer uses the bus.
    pub setup: Duration,
}

/// The channels of a DMA engine.
pub struct Engine {
    sim: Sim,
    recorder: Recorder,
    channels: Pool,
    freed: LastUse,
    /// The units that move bytes. Each unit serves one channel at a time.
    movers: Pool,
    moved: LastUse,
    busy: Cell<Duration>,
}

/// A channel that moves its bytes.
#[must_use = "a channel is given back by Engine::release"]
pub struct Moving {
    channel: Permit,
    /// `None` after the channel's bytes have moved, while a completion follows.
    mover: Option<Permit>,
    since: Time,
}

impl Engine {
    /// Returns an engine with this number of channels, all free. The channels move their bytes one after another.
    ///
    /// # Panics
    /// When the number of channels is zero.
    pub fn new(sim: &Sim, channels: usize, recorder: &Recorder) -> Engine {
        Engine::with_movers(sim, channels, 1, recorder)
    }

    /// Like [`Engine::new`], with channels that move their bytes in parallel.
    ///
    /// # Panics
    /// When the number of channels is zero.
    pub fn side_by_side(sim: &Sim, channels: usize, recorder: &Recorder) -> Engine {
        Engine::with_movers(sim, channels, channels, recorder)
    }

    fn with_movers(sim: &Sim, channels: usize, movers: usize, recorder: &Recorder) -> Engine {
        Engine {
            sim: sim.clone(),
            recorder: recorder.clone(),
            channels: Pool::new(sim, channels),
            freed: LastUse::default(),
            movers: Pool::new(sim, movers),
            moved: LastUse::default(),
            busy: Cell::default(),
        }
    }

    /// Busy time of all channels, in set-up and in transfer.
    pub fn busy(&self) -> Duration {
        self.busy.get()
    }

    /// Whether a channel is free.
    pub fn is_free(&self) -> bool {
        self.channels.available() > 0
    }

    /// Waits for a free channel, and takes it.
    pub async fn channel(&self, message: MessageId, path: &mut Path) -> Permit {
        let channel = self.channels.acquire().await;
        self.freed.waited(stages::DMA_QUEUED, message, path);
        channel
    }

    /// Waits for a free channel, and [sets it up](Engine::set_up).
    pub async fn start(&self, set_up: (Duration, Stage), message: MessageId, path: &mut Path) -> Moving {
        let channel = self.channel(message, path).await;
        self.set_up(channel, set_up, message, path).await
    }

    /// Sets up a channel for `time`, which belongs to `stage`. Then waits until the earlier channels have moved their
    /// bytes.
    pub async fn set_up(
        &self,
        channel: Permit,
        (time, stage): (Duration, Stage),
        message: MessageId,
        path: &mut Path,
    ) -> Moving {
        let start = self.sim.now();
        self.sim.delay(time).await;
        path.advance(stage, self.sim.now());
        self.recorder.slice(Resource::DMA, start, self.sim.now(), Some(message), stage.name());
        let mover = self.movers.acquire().await;
        self.moved.waited(stages::DMA_QUEUED, message, path);
        path.advance(stages::DMA_QUEUED, self.sim.now());
        Moving { channel, mover: Some(mover), since: start }
    }

    /// Sets up a channel again for `time`, which belongs to `stage`, for the completion that follows the channel's
    /// bytes. Another channel may move bytes during this time.
    pub async fn set_up_again(
        &self,
        moving: Moving,
        (time, stage): (Duration, Stage),
        message: MessageId,
        path: &mut Path,
    ) -> Moving {
        let Moving { channel, mover, since } = moving;
        self.moved.released(message, path);
        drop(mover);
        let start = self.sim.now();
        self.sim.delay(time).await;
        path.advance(stage, self.sim.now());
        self.recorder.slice(Resource::DMA, start, self.sim.now(), Some(message), stage.name());
        Moving { channel, mover: None, since }
    }

    /// Frees a channel that has moved its last byte at the end of `path`.
    pub fn release(&self, moving: Moving, message: MessageId, path: &Path) {
        let Moving { channel, mover, since } = moving;
        self.busy.set(self.busy.get() + self.sim.now().since(since));
        if mover.is_some() {
            self.moved.released(message, path);
        }
        drop(mover);
        if !self.is_free() {
            self.freed.released(message, path);
        }
        drop(channel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use nicety_types::NodeId;
    use proptest::prelude::*;
    use std::rc::Rc;

    /// Runs transfers of these durations in ns, each for its own message. All are queued at once. Returns the start,
    /// the end and the path of each transfer's move.
    fn run(channels: usize, set_up: u64, moves: &[u64]) -> Vec<(u64, u64, Path)> {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let engine = Rc::new(Engine::new(&sim, channels, &Recorder::off()));
        let moved = Rc::new(RefCell::new(Vec::new()));
        for (sequence, &time) in moves.iter().enumerate() {
            let (engine, moved, own) = (engine.clone(), moved.clone(), sim.clone());
            sim.spawn_program("transfer", async move {
                let message = MessageId { source: NodeId(0), sequence: sequence as u64 };
                let mut path = Path::from(Time::ZERO);
                let set_up = (Duration::from_ns(set_up), stages::DMA_SETUP);
                let moving = engine.start(set_up, message, &mut path).await;
                let start = own.now().ps() / 1000;
                own.delay(Duration::from_ns(time)).await;
                path.advance(Stage::FETCH, own.now());
                engine.release(moving, message, &path);
                moved.borrow_mut().push((start, own.now().ps() / 1000, path));
            });
        }
        world.run().unwrap();
        moved.take()
    }

    /// Returns the start and end of each move, in ns.
    fn times(moved: &[(u64, u64, Path)]) -> Vec<(u64, u64)> {
        moved.iter().map(|&(start, end, _)| (start, end)).collect()
    }

    #[test]
    fn a_second_channel_hides_the_set_up() {
        // Set-up takes 300 ns and a move takes 1000 ns. With one channel they follow each other. With two channels, the
        // set-up is during the previous move.
        let one = run(1, 300, &[1000, 1000, 1000]);
        assert_eq!(times(&one), [(300, 1300), (1600, 2600), (2900, 3900)]);
        let two = run(2, 300, &[1000, 1000, 1000]);
        assert_eq!(times(&two), [(300, 1300), (1300, 2300), (2300, 3300)]);
        // The third transfer waits for a channel, then until the second transfer's bytes have moved.
        let path = &two[2].2;
        let stages =
            [stages::DMA_SETUP, stages::DMA_QUEUED, Stage::FETCH].map(|stage| path.total(stage).ps() / 1000);
        assert_eq!(stages, [300, 2000, 1000]);
        // Short moves do not hide a long set-up. Two transfers at a time are set up.
        assert_eq!(times(&run(2, 300, &[100, 100, 100])), [(300, 400), (400, 500), (700, 800)]);
    }

    #[test]
    fn a_completion_keeps_its_channel_and_lets_others_move() {
        // A page takes 100 ns. The set-ups of the page and of its completion take 300 ns each, so a channel takes 700
        // ns per transfer. The second channel moves its bytes after the first channel's bytes, and before the first
        // channel's completion.
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let engine = Rc::new(Engine::new(&sim, 2, &Recorder::off()));
        let ends = Rc::new(RefCell::new(Vec::new()));
        for sequence in 0..4 {
            let (engine, ends, own) = (engine.clone(), ends.clone(), sim.clone());
            sim.spawn_program("transfer", async move {
                let message = MessageId { source: NodeId(0), sequence };
                let mut path = Path::from(Time::ZERO);
                let set_up = (Duration::from_ns(300), stages::DMA_SETUP);
                let channel = engine.channel(message, &mut path).await;
                let moving = engine.set_up(channel, set_up, message, &mut path).await;
                own.delay(Duration::from_ns(100)).await;
                path.advance(Stage::FETCH, own.now());
                let moving = engine.set_up_again(moving, set_up, message, &mut path).await;
                engine.release(moving, message, &path);
                assert_eq!(path.at(), own.now());
                ends.borrow_mut().push(own.now().ps() / 1000);
            });
        }
        world.run().unwrap();
        assert_eq!(ends.take(), [700, 800, 1400, 1500]);
        assert_eq!(engine.busy(), Duration::from_ns(700 + 800 + 700 + 700));
    }

    #[test]
    fn waiting_for_oneself_is_no_queue() {
        let (last, message) = (LastUse::default(), |sequence| MessageId { source: NodeId(0), sequence });
        let at = |ns: u64| Time::from_ps(1000 * ns);
        let mut first = Path::from(Time::ZERO);
        first.advance(Stage::FETCH, at(7));
        last.released(message(1), &first);
        let mut own = Path::from(Time::ZERO);
        last.waited(stages::DMA_QUEUED, message(1), &mut own);
        assert_eq!((own.total(Stage::FETCH).ns(), own.total(stages::DMA_QUEUED).ns()), (7.0, 0.0));
        let mut other = Path::from(at(3));
        last.waited(stages::DMA_QUEUED, message(2), &mut other);
        assert_eq!((other.at(), other.total(stages::DMA_QUEUED).ns()), (at(7), 4.0));
        // The resource was released before this message requested it, so there is no wait.
        let mut late = Path::from(at(9));
        last.waited(stages::DMA_QUEUED, message(2), &mut late);
        assert_eq!((late.at(), late.total(stages::DMA_QUEUED).ns()), (at(9), 0.0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]
        /// Every transfer is done once, in order. No two channels move bytes at the same time. An additional channel
        /// never makes the transfers slower. Each path accounts for all of its time.
        #[test]
        fn one_channel_moves_bytes_at_a_time(
            channels in 1..5usize,
            set_up in 0..500u64,
            moves in prop::collection::vec(0..1000u64, 1..20),
        ) {
            let moved = run(channels, set_up, &moves);
            prop_assert_eq!(moved.len(), moves.len());
            for ((start, end, path), time) in moved.iter().zip(&moves) {
                prop_assert_eq!(end - start, *time);
                prop_assert_eq!(path.at().ps(), end * 1000);
                let total: u64 = path.stages().map(|(_, time)| time.ps()).sum();
                prop_assert_eq!(total, end * 1000);
            }
            prop_assert!(moved.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            let last = |moved: &[(u64, u64, Path)]| moved.last().map(|&(_, end, _)| end);
            prop_assert!(last(&run(channels + 1, set_up, &moves)) <= last(&moved));
        }
    }
}
