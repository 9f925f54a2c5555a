//! Coalesced interrupts. A channel interrupts after a number of frames, or at the end of a timer. The timer runs from
//! the first frame that is not reported, or from the driver's arming on. A timer of the latter kind ends after each
//! period, with or without frames. At such an end, the card writes the completions that wait in it.
//!
//! After an interrupt, the channel raises no further interrupt until the driver arms it again. The driver arms the
//! channel when it has taken all frames that it saw. Frames that arrived in between count at once.

use crate::spec::InterruptsSpec;
use nicety_kernel::Sim;
use nicety_types::{Duration, Time};
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
    /// Number of frames that no interrupt has reported yet.
    frames: Cell<u64>,
    /// Number of interrupts and armings. A timer detects by this number that it is obsolete.
    era: Cell<u64>,
    /// Number of frames with completions that wait in the card.
    staged: Cell<u64>,
    /// The instant from which the timer runs, if it runs from the arming on.
    base: Cell<Time>,
    /// Whether the next end of the timer is awaited, and the number of the awaited end.
    awaited: Cell<bool>,
    ends: Cell<u64>,
    /// Whether the timer has ended since the driver's write of the number of taken frames.
    overdue: Cell<bool>,
    raise: RefCell<Option<Raise>>,
    write: RefCell<Option<Raise>>,
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
            staged: Cell::new(0),
            base: Cell::new(Time::ZERO),
            awaited: Cell::new(false),
            ends: Cell::new(0),
            overdue: Cell::new(false),
            raise: RefCell::default(),
            write: RefCell::default(),
        }))
    }

    /// Sets the effect of an interrupt.
    pub(super) fn connect(&self, raise: impl Fn(usize) + 'static) {
        self.0.raise.replace(Some(Box::new(raise)));
    }

    /// Sets the function that writes the completions that wait in the card.
    pub(super) fn connect_writes(&self, write: impl Fn(usize) + 'static) {
        self.0.write.replace(Some(Box::new(write)));
    }

    /// Records the number of frames with completions that wait in the card.
    pub(super) fn stage(&self, staged: u64) {
        self.0.staged.set(staged);
        self.0.clone().await_end();
    }

    /// Records frames that have arrived in host memory with their completions.
    pub(super) fn written(&self, frames: u64) {
        let inner = &self.0;
        inner.frames.set(inner.frames.get() + frames);
        if inner.spec.from_arming {
            inner.clone().look_from_arming();
        } else if inner.armed.get() {
            inner.clone().look(inner.frames.get() == frames);
        }
    }

    /// Records that the driver has written the number of taken frames. `unseen` frames have arrived that the driver has
    /// not seen.
    pub(super) fn taken(&self, unseen: u64) {
        self.0.overdue.set(false);
        if self.0.spec.from_arming {
            self.0.frames.set(unseen);
        }
    }

    /// Arms the channel after the driver has taken all frames that it saw. `unseen` frames have arrived since.
    pub(super) fn arm(&self, unseen: u64) {
        let inner = &self.0;
        inner.armed.set(true);
        inner.frames.set(unseen);
        inner.era.set(inner.era.get() + 1);
        if inner.spec.from_arming {
            if !inner.overdue.get() {
                // The arming starts the timer again, unless the timer has ended.
                inner.base.set(inner.sim.now());
                inner.awaited.set(false);
                inner.ends.set(inner.ends.get() + 1);
            }
            inner.clone().look_from_arming();
        } else if unseen > 0 {
            inner.clone().look(true);
        }
    }
}

impl Inner {
    /// Raises an interrupt, or starts the timer if the `first` unreported frame has arrived.
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

    /// Raises an interrupt, or awaits the end of the timer that runs from the arming on.
    fn look_from_arming(self: Rc<Inner>) {
        let frames = self.frames.get();
        let due = frames >= self.spec.packets || self.overdue.get() || self.spec.time.is_zero();
        if self.armed.get() && frames > 0 && due {
            self.raise();
        }
        self.await_end();
    }

    /// Awaits the next end of the timer that runs from the arming on, if there are frames to report. Without frames,
    /// the ends of the timer have no effect.
    fn await_end(self: Rc<Inner>) {
        let has_frames = self.staged.get() > 0 || self.frames.get() > 0 && !self.overdue.get();
        if self.awaited.get() || !has_frames || !self.spec.from_arming || self.spec.time.is_zero() {
            return;
        }
        let (sim, period) = (self.sim.clone(), self.spec.time.ps());
        let elapsed = sim.now().since(self.base.get()).ps() / period;
        let end = self.base.get() + Duration::from_ps((elapsed + 1) * period);
        self.awaited.set(true);
        let number = self.ends.get();
        sim.clone().spawn(async move {
            sim.until(end).await;
            if self.ends.get() == number {
                self.ends.set(number + 1);
                self.awaited.set(false);
                self.base.set(end);
                self.end();
            }
        });
    }

    /// Handles the end of the timer: has the waiting completions written, and raises an interrupt if frames are
    /// unreported.
    fn end(self: Rc<Inner>) {
        self.overdue.set(true);
        if self.staged.get() > 0
            && let Some(write) = &*self.write.borrow()
        {
            write(self.channel);
        }
        self.look_from_arming();
    }

    fn raise(&self) {
        self.armed.set(false);
        self.overdue.set(false);
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

    /// Returns the times of a channel's interrupts, in microseconds. The channel gets frames at the times `frames`. The
    /// driver arms it again `handling` microseconds after each interrupt.
    fn interrupts(frames: &'static [u64], handling: u64) -> Vec<u64> {
        interrupts_by(false, frames, handling)
    }

    fn interrupts_by(from_arming: bool, frames: &'static [u64], handling: u64) -> Vec<u64> {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let (taken, taken_time) = (0, Duration::ZERO);
        let (cpus, first, step, all) = (1, 0, 1, 1);
        let time = Duration::from_us(10);
        let vectors = 0;
        let spec = InterruptsSpec {
            packets: 4,
            time,
            from_arming,
            cpus,
            first,
            step,
            all,
            vectors,
            taken,
            taken_time,
        };
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
                coalescing.written(1);
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
        // Four more frames arrive before the driver arms, so the second interrupt follows at once.
        assert_eq!(interrupts(&[1, 2, 3, 4, 5, 6, 7, 8], 5), [4, 9]);
    }

    #[test]
    fn a_timer_from_the_arming_on_ends_without_regard_to_frames() {
        // The timer ends at 10, with a frame since 1.
        assert_eq!(interrupts_by(true, &[1], 1), [10]);
        // There is no frame at the timer's end at 10. There is one at the next end.
        assert_eq!(interrupts_by(true, &[12], 1), [20]);
        // The driver arms at 11, and so starts the timer again.
        assert_eq!(interrupts_by(true, &[1, 13], 1), [10, 21]);
        // The fourth frame raises the interrupt before the timer's end.
        assert_eq!(interrupts_by(true, &[1, 2, 3, 4], 1), [4]);
    }

    #[test]
    fn a_timer_that_ends_while_the_driver_works_interrupts_when_it_arms() {
        // The number of frames causes the interrupt at 4. The timer ends at 10 with the frame of 5, and the driver arms
        // at 12.
        assert_eq!(interrupts_by(true, &[1, 2, 3, 4, 5], 8), [4, 12]);
    }

    #[test]
    fn an_old_timer_does_nothing() {
        // The first frame's timer would end at 11, but the fourth frame raised the interrupt before.
        assert_eq!(interrupts(&[1, 2, 3, 4, 10], 1), [4, 20]);
    }
}
