//! [`Sim`], a node's view of virtual time, and [`Delay`], the future that waits for an instant.

use crate::prefetch::Needed;
use crate::queue::EventRef;
use crate::rng::Rng;
use crate::shard::Shard;
use crate::tasks::TaskRef;
use nicety_types::{Duration, NodeId, Time};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A node's handle to virtual time: its clock, its tasks, its random streams. A clone is cheap.
///
/// The primitives that are made with this handle belong to the node, and only the node's tasks may use them. Use by a
/// task of another node panics, because nodes share nothing but wires.
#[derive(Clone)]
pub struct Sim {
    shard: Rc<Shard>,
    node: NodeId,
}

impl Sim {
    pub(crate) fn new(shard: Rc<Shard>, node: NodeId) -> Sim {
        Sim { shard, node }
    }

    /// The current instant.
    #[inline]
    pub fn now(&self) -> Time {
        self.shard.now()
    }

    /// The node of this handle.
    #[inline]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the time of the next event among the nodes of this thread. This is now if a task is about to run, and
    /// `None` if no event is left. Arrivals from nodes of other threads may be earlier.
    pub fn next_event(&self) -> Option<Time> {
        self.shard.next_time()
    }

    /// Number of future events among the nodes of this thread, plus the number of their tasks that are about to run.
    pub fn pending_events(&self) -> usize {
        self.shard.pending()
    }

    /// Declares that one pending event of this node only repeats itself, such as a probe with a known answer. The
    /// declaration holds until the returned value is dropped.
    pub fn repeat(&self) -> Repeat {
        self.shard.begin_repeat();
        Repeat { sim: self.clone() }
    }

    /// Whether any event is pending besides those that only [repeat](Sim::repeat) themselves. If none is, a service
    /// may end its repetition, so that the run ends with a [deadlock](crate::RunError::Deadlock). In a world with several
    /// shards this is unknown, and the result is true.
    pub fn has_other_events(&self) -> bool {
        self.shard.has_other_events()
    }

    /// Waits for `duration`, counted from this call. A zero duration is ready at once, without an event.
    pub fn delay(&self, duration: Duration) -> Delay {
        self.until(self.now() + duration)
    }

    /// Waits until `time`. An instant that is not later than now is ready at once, without an event. `Time::MAX` never
    /// arrives, and ends the run.
    #[inline]
    pub fn until(&self, time: Time) -> Delay {
        Delay { sim: self.clone(), deadline: time, timer: Timer::NONE }
    }

    /// Like [`Sim::until`], for a task that waits for nothing else at the same time, not even in a race. If no other
    /// event of its shard comes before `time`, the clock advances at once, without the event queue. Events, their times
    /// and their order stay the same.
    #[inline]
    pub fn pass_until(&self, time: Time) -> Pass {
        Pass { delay: self.until(time) }
    }

    /// Advances the clock to `time` at once, if no other event of the shard comes before `time`. Returns whether the
    /// clock is now at `time` or later.
    #[inline]
    pub fn try_pass_until(&self, time: Time) -> bool {
        time <= self.now() || self.shard.pass(time, self.node)
    }

    /// Declares an occurrence at `time` that is no event: no task waits for it, and a task accounts for it later. The
    /// run does not end before `time`.
    pub fn expect(&self, time: Time) {
        self.shard.expect_unit(time);
    }

    /// Lets all other events and tasks of this node that are due at this instant run first.
    pub fn yield_now(&self) -> YieldNow {
        YieldNow { sim: self.clone(), yielded: false }
    }

    /// Starts a task of this node: a service, which may wait for ever, or a helper such as the path of one packet. The
    /// first poll of the task is at the current instant, after all events that are already due. Later tasks of about
    /// the same size reuse the task's memory.
    pub fn spawn<F: Future<Output = ()> + 'static>(&self, future: F) {
        self.shard.spawn(self.node, || future);
    }

    /// Like [`Sim::spawn`], for a task that is started often: the future returned by `make` is built in its final
    /// place, and not moved.
    #[inline]
    pub fn spawn_with<F: Future<Output = ()> + 'static>(&self, make: impl FnOnce() -> F) {
        self.shard.spawn(self.node, make);
    }

    /// Like [`Sim::spawn_with`], but the first poll is at `time`. A task that begins with a [delay](Sim::until) costs
    /// one event more. If `time` is not later than now, the task is polled as by [`Sim::spawn_with`]. The task's own
    /// memory and the values in `needs` are [prefetched](crate::prefetch()) before the first poll.
    #[inline]
    pub fn spawn_at<F: Future<Output = ()> + 'static>(
        &self,
        time: Time,
        needs: [Needed; 2],
        make: impl FnOnce() -> F,
    ) {
        self.shard.spawn_at(self.node, time, needs, make);
    }

    /// Starts a program: a task that the run waits for. If no event is left and the program still waits, the run ends with
    /// a [deadlock](crate::RunError::Deadlock).
    pub fn spawn_program<F: Future<Output = ()> + 'static>(&self, name: impl Into<String>, future: F) {
        self.shard.spawn_program(self.node, name.into(), future);
    }

    /// [Prefetches](crate::prefetch()) a value before each event of this node. This helps if the world is too large for
    /// the CPU caches. The value must stay at its address, or the prefetch gains nothing.
    pub fn keep_near<T: ?Sized>(&self, value: &T) {
        self.shard.keep_near(self.node, Needed::of(value));
    }

    /// Returns the random stream of this name. The same seed, node and name give the same stream on every machine.
    /// Streams of different names are independent.
    pub fn rng(&self, name: &str) -> Rng {
        Rng::named(self.shard.seed, self.node, name)
    }

    /// Checks the run's [interrupt](crate::Config::interrupt) directly after this event, instead of some events later.
    /// Call this in a task that has taken long in real time, or that knows that the interrupt is set.
    pub fn check_interrupt(&self) {
        self.shard.look_soon();
    }

    pub(crate) fn shard(&self) -> &Shard {
        &self.shard
    }

    /// The task that is being polled.
    #[inline]
    pub(crate) fn current(&self) -> TaskRef {
        self.shard.current(self.node)
    }

    pub(crate) fn wake(&self, task: TaskRef) {
        self.shard.wake(task);
    }

    /// Returns a timer that polls `task` at `time`, which is later than now.
    pub(crate) fn timer(&self, time: Time, task: TaskRef) -> Timer {
        Timer { event: Some(self.shard.schedule(time, self.node, task)), task }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sim({} at {})", self.node, self.now())
    }
}

/// The declaration that an event only repeats itself; see [`Sim::repeat`].
#[derive(Debug)]
pub struct Repeat {
    sim: Sim,
}

impl Drop for Repeat {
    fn drop(&mut self) {
        self.sim.shard.end_repeat();
    }
}

/// A cancellable event that polls a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    event: Option<EventRef>,
    task: TaskRef,
}

impl Timer {
    pub(crate) const NONE: Timer = Timer { event: None, task: TaskRef::NONE };

    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.task == TaskRef::NONE
    }

    /// Makes this timer poll `task`.
    pub(crate) fn follow(&mut self, sim: &Sim, task: TaskRef) {
        if self.task != task {
            self.task = task;
            if let Some(event) = self.event {
                sim.shard.retarget(event, task);
            }
        }
    }

    pub(crate) fn cancel(&mut self, sim: &Sim) {
        if let Some(event) = self.event.take() {
            sim.shard.cancel(event);
        }
    }
}

/// Waits until an instant; see [`Sim::delay`] and [`Sim::until`]. A dropped delay cancels its event.
#[derive(Debug)]
#[must_use = "time passes only where a delay is awaited"]
pub struct Delay {
    sim: Sim,
    deadline: Time,
    timer: Timer,
}

impl Delay {
    /// The instant at which it is ready.
    pub fn deadline(&self) -> Time {
        self.deadline
    }
}

impl Future for Delay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.sim.now() >= this.deadline {
            this.timer.cancel(&this.sim);
            return Poll::Ready(());
        }
        let task = this.sim.current();
        if this.timer.is_none() {
            this.timer = this.sim.timer(this.deadline, task);
        } else {
            this.timer.follow(&this.sim, task);
        }
        Poll::Pending
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.timer.cancel(&self.sim);
    }
}

/// Waits until an instant; see [`Sim::pass_until`]. A dropped future cancels its event.
#[derive(Debug)]
#[must_use = "time passes only where it is awaited"]
pub struct Pass {
    delay: Delay,
}

impl Future for Pass {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let delay = &mut self.delay;
        if delay.timer.is_none() && delay.sim.try_pass_until(delay.deadline) {
            return Poll::Ready(());
        }
        Pin::new(delay).poll(context)
    }
}

/// Lets other tasks run first; see [`Sim::yield_now`].
#[derive(Debug)]
#[must_use = "others go first only where this is awaited"]
pub struct YieldNow {
    sim: Sim,
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        let task = self.sim.current();
        self.sim.wake(task);
        Poll::Pending
    }
}
