//! Coalesced interrupts: a channel interrupts after a number of frames, or a time after the first one.
//!
//! After an interrupt, the channel is silent until the driver arms it again. The driver does so when it has taken all
//! frames that it saw. Frames that arrived in between count at once.

use super::spec::InterruptsSpec;
use nicety_kernel::Sim;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The effect of a channel's interrupt, by the channel's number.
type Raise = Box<dyn Fn(usize)>;

/// The coalesced interrupts of a channel.
pub(super) struct Coalescing(Rc<Inner>);

struct Inner {
    sim: Sim,
    spec: InterruptsSpec,
    /// The channel's number.
    channel: usize,
    armed: Cell<bool>,
    /// Frames not yet reported by an interrupt.
    frames: Cell<u64>,
    /// Number of interrupts and armings, by which a timer detects that it is obsolete.
    era: Cell<u64>,
    raise: RefCell<Option<Raise>>,
}

impl Coalescing {
    pub(super) fn new(sim: &Sim, spec: InterruptsSpec, channel: usize) -> Coalescing {
        Coalescing(Rc::new(Inner {
            sim: sim.clone(),
            spec,
            channel,
            armed: Cell::new(true),
            frames: Cell::new(0),
            era: Cell::new(0),
            raise: RefCell::default(),
        }))
    }

    /// Sets the effect of an interrupt.
    pub(super) fn connect(&self, raise: impl Fn(usize) + 'static) {
        self.0.raise.replace(Some(Box::new(raise)));
    }

    /// Records a frame that has arrived in host memory.
    pub(super) fn frame(&self) {
        let inner = &self.0;
        inner.frames.set(inner.frames.get() + 1);
        if inner.armed.get() {
            inner.clone().look(inner.frames.get() == 1);
        }
    }

    /// Arms the channel: the driver has taken all frames that it saw. `unseen` frames have arrived since.
    pub(super) fn arm(&self, unseen: u64) {
        let inner = &self.0;
        inner.armed.set(true);
        inner.frames.set(unseen);
        inner.era.set(inner.era.get() + 1);
        if unseen > 0 {
            inner.clone().look(true);
        }
    }
}

impl Inner {
    /// Raises an interrupt, or starts the timer if a frame is the `first`.
    fn look(self: Rc<Inner>, first: bool) {
        if self.frames.get() >= self.spec.packets || self.spec.time.is_zero() {
            self.raise();
        } else if first {
            let era = self.era.get();
            let sim = self.sim.clone();
            sim.spawn(async move {
                self.sim.delay(self.spec.time).await;
                if self.armed.get() && self.era.get() == era {
                    self.raise();
                }
            });
        }
    }

    fn raise(&self) {
        self.armed.set(false);
        self.era.set(self.era.get() + 1);
        if let Some(raise) = &*self.raise.borrow() {
            raise(self.channel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};
    use nicety_types::{Duration, Time};

    /// Returns the times of a channel's interrupts, in microseconds. It gets frames at the times `frames`, and is armed
    /// again `handling` after each interrupt.
    fn interrupts(frames: &'static [u64], handling: u64) -> Vec<u64> {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let (taken, taken_time) = (0, Duration::ZERO);
        let (cpus, first, step, all) = (1, 0, 1, 1);
        let time = Duration::from_us(10);
        let spec = InterruptsSpec { packets: 4, time, cpus, first, step, all, taken, taken_time };
        let coalescing = Rc::new(Coalescing::new(&sim, spec, 3));
        let seen = Rc::new(RefCell::new(Vec::new()));
        let come = Rc::new(Cell::new(0));
        let (log, own, armed, all) = (seen.clone(), sim.clone(), Rc::downgrade(&coalescing), come.clone());
        coalescing.connect(move |channel| {
            assert_eq!(channel, 3);
            log.borrow_mut().push(own.now().ps() / 1_000_000);
            let (sim, armed, all, before) = (own.clone(), armed.clone(), all.clone(), all.get());
            own.spawn(async move {
                sim.delay(Duration::from_us(handling)).await;
                armed.upgrade().unwrap().arm(all.get() - before);
            });
        });
        let clock = sim.clone();
        sim.spawn_program("frames", async move {
            for &at in frames {
                clock.until(Time::ZERO + Duration::from_us(at)).await;
                come.set(come.get() + 1);
                coalescing.frame();
            }
            clock.delay(Duration::from_us(100)).await;
        });
        world.run().unwrap();
        seen.take()
    }

    #[test]
    fn after_so_many_frames_or_so_long_after_the_first() {
        assert_eq!(interrupts(&[1, 2, 3, 4], 1), [4]);
        assert_eq!(interrupts(&[1, 2, 3], 1), [11]);
        assert_eq!(interrupts(&[1, 20], 1), [11, 30]);
    }

    #[test]
    fn frames_that_come_while_the_driver_works_count_when_it_arms_again() {
        // Four at 4. Three more until 9, when the timer starts, and it ends at 19. One at 20, before the driver arms at
        // 24.
        assert_eq!(interrupts(&[1, 2, 3, 4, 5, 6, 7, 20], 5), [4, 19, 34]);
        // Four more before the driver arms: at once.
        assert_eq!(interrupts(&[1, 2, 3, 4, 5, 6, 7, 8], 5), [4, 9]);
    }

    #[test]
    fn an_old_timer_does_nothing() {
        // The first frame's timer would end at 11, but four frames interrupted before.
        assert_eq!(interrupts(&[1, 2, 3, 4, 10], 1), [4, 20]);
    }
}
