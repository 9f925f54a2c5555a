//! A shard: some nodes with one clock, one queue and their tasks, in one thread.
//!
//! A wake at the current instant is an event of class 1 with the node's next sequence number. Sequence numbers grow,
//! and only wakes can be added at the current instant. So a first-in, first-out queue of wakes gives exactly that order.
//! The shard serves this queue when the event queue holds no further event of this node and instant. All nodes of the
//! shard share one counter of sequence numbers. This is enough: only events of the same node are compared by their
//! sequence numbers, and gaps between the numbers do not matter.

use crate::describe;
use crate::interrupt::Interrupt;
use crate::memory::{Memory, drop_future};
use crate::prefetch::{Near, Needed, prefetch};
use crate::queue::{EventRef, Key, Queue, QueueKind};
use crate::tasks::{TaskRef, Tasks};
use nicety_types::{LinkId, NodeId, Time};
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Waker};

/// A task that the run waits for.
pub(crate) struct Program {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    task: TaskRef,
}

/// A program that still waits when no event is left.
pub(crate) struct Stuck {
    pub(crate) node: NodeId,
    pub(crate) program: String,
    pub(crate) why: String,
    pub(crate) since: Time,
}

/// The receiver of messages. `slot` is the receiver's number for a message.
pub(crate) trait Arrivals {
    fn arrive(&self, slot: u32);

    /// Handles the queued arrival of a [unit](crate::WireTx::send_unit). Returns whether a unit has arrived for which
    /// the receiver waited.
    fn unit(&self) -> bool;

    /// The message in `slot` will arrive soon. This is called several times, with `steps` from 4 down to 1.
    fn prepare(&self, slot: u32, steps: usize);

    /// Drops references to other objects of the world.
    fn close(&self);
}

/// The value of `slot` for an arrival that is a unit.
pub(crate) const UNIT: u32 = u32::MAX;

/// The memory of an event is prefetched in `PARTS` steps. `AHEAD` events happen between two steps. Each step follows a
/// pointer that the preceding step fetched.
const AHEAD: usize = 4;
const PARTS: usize = 6;
/// A world with more receivers than this is large: its memory does not fit the CPU caches. The memory of events is then
/// prefetched for the next buckets of the queue.
const MANY: usize = 2048;

/// With fewer tasks than this, the memory of all tasks stays in the CPU caches.
const FEW: usize = 256;

/// The error of a run that an interrupt ended.
pub(crate) struct Interrupted;

/// Number of events between two checks of the interrupt, unless an event [requests](Shard::look_soon) an earlier check.
const INTERRUPT_INTERVAL: u64 = 1024;

pub(crate) struct Shard {
    now: Cell<Time>,
    /// The node of the current or last event.
    node: Cell<NodeId>,
    /// The key of the current or last event. A wake has the last possible key of its node and instant.
    key: Cell<Key>,
    /// The latest known arrival time of a unit. The run lasts at least until this time, even if the arrival is no
    /// event.
    last_unit: Cell<Time>,
    running: Cell<bool>,
    closed: Cell<bool>,
    current: Cell<TaskRef>,
    sequence: Cell<u64>,
    events: Cell<u64>,
    queue: RefCell<Queue>,
    wakes: RefCell<VecDeque<TaskRef>>,
    tasks: RefCell<Tasks>,
    memory: RefCell<Memory>,
    programs: RefCell<Vec<Program>>,
    receivers: RefCell<Vec<Rc<dyn Arrivals>>>,
    /// The prefetched values of each node, by node.
    near: RefCell<Vec<Near>>,
    interrupt: Option<Interrupt>,
    /// The total number of events after which the interrupt is checked next.
    look_at: Cell<u64>,
    /// The end of the current window. Messages from other shards may arrive at this time or later.
    limit: Cell<Time>,
    /// Number of events that only [repeat](crate::Sim::repeat) themselves. `None` if the world has other shards. Their
    /// events are unknown here.
    repeats: Option<Cell<usize>>,
    pub(crate) seed: u64,
}

/// Marks the shard as running, until the end of the scope or a panic.
struct Running<'a>(&'a Shard);

impl<'a> Running<'a> {
    fn new(shard: &'a Shard) -> Running<'a> {
        assert!(!shard.running.replace(true), "a run inside a run");
        Running(shard)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.set(false);
        self.0.limit.set(Time::ZERO);
    }
}

impl Shard {
    /// `alone` is whether the world has no other shard.
    pub(crate) fn new(seed: u64, interrupt: Option<Interrupt>, queue: QueueKind, alone: bool) -> Rc<Shard> {
        Rc::new(Shard {
            now: Cell::new(Time::ZERO),
            node: Cell::new(NodeId(u32::MAX)),
            key: Cell::new(Key::own(Time::ZERO, NodeId(0), 0)),
            last_unit: Cell::new(Time::ZERO),
            running: Cell::new(false),
            closed: Cell::new(false),
            current: Cell::new(TaskRef::NONE),
            sequence: Cell::new(0),
            events: Cell::new(0),
            queue: RefCell::new(Queue::new(queue)),
            wakes: RefCell::default(),
            tasks: RefCell::new(Tasks::new()),
            memory: RefCell::new(Memory::new()),
            programs: RefCell::default(),
            receivers: RefCell::default(),
            near: RefCell::default(),
            interrupt,
            look_at: Cell::new(INTERRUPT_INTERVAL),
            limit: Cell::new(Time::ZERO),
            repeats: alone.then(Cell::default),
            seed,
        })
    }

    pub(crate) fn now(&self) -> Time {
        self.now.get()
    }

    /// Number of past events: arrivals, delays, wakes.
    pub(crate) fn events(&self) -> u64 {
        self.events.get()
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        if self.wakes.borrow().is_empty() { self.queue.borrow_mut().next_time() } else { Some(self.now()) }
    }

    /// Number of future events, and of tasks about to run.
    pub(crate) fn pending(&self) -> usize {
        self.wakes.borrow().len() + self.queue.borrow_mut().len()
    }

    /// Whether any event is pending that does not only repeat itself. If this is unknown, returns true.
    pub(crate) fn has_other_events(&self) -> bool {
        self.repeats.as_ref().is_none_or(|repeats| self.pending() > repeats.get())
    }

    /// Counts an event that only repeats itself.
    pub(crate) fn begin_repeat(&self) {
        if let Some(repeats) = &self.repeats {
            repeats.set(repeats.get() + 1);
        }
    }

    /// Counts such an event no longer.
    pub(crate) fn end_repeat(&self) {
        if let Some(repeats) = &self.repeats {
            repeats.set(repeats.get() - 1);
        }
    }

    /// Whether the arrival with this key comes before the current event.
    pub(crate) fn has_come(&self, key: Key) -> bool {
        key <= self.key.get()
    }

    /// Extends the run to at least `time`, for the arrival of a unit or another occurrence that is no event.
    pub(crate) fn expect_unit(&self, time: Time) {
        self.last_unit.set(self.last_unit.get().max(time));
    }

    /// Returns the arrival time of the last unit.
    pub(crate) fn last_unit(&self) -> Time {
        self.last_unit.get()
    }

    /// Sets the clock of a stopped shard to the time at which all shards ended.
    pub(crate) fn set_now(&self, now: Time) {
        debug_assert!(!self.running.get() && now >= self.now());
        self.now.set(now);
    }

    /// Returns the task that is being polled, for a primitive of `node`.
    pub(crate) fn current(&self, node: NodeId) -> TaskRef {
        if !self.running.get() || self.node.get() != node {
            self.foreign(node);
        }
        self.current.get()
    }

    #[cold]
    fn foreign(&self, node: NodeId) -> ! {
        panic!(
            "something of {node} was used outside a task of {node}: nodes share nothing, and futures of virtual \
             time are awaited by tasks of their node"
        );
    }

    fn next_key(&self, time: Time, node: NodeId) -> Key {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        Key::own(time, node, sequence)
    }

    /// Polls `task` at `time`, which is later than now.
    pub(crate) fn schedule(&self, time: Time, node: NodeId, task: TaskRef) -> EventRef {
        debug_assert!(time > self.now());
        let key = self.next_key(time, node);
        self.queue.borrow_mut().push(key, task.to_bits())
    }

    /// Advances virtual time to `time`, which is later than now, if no event comes before `time`. The effect is the
    /// same as if an event had polled the current task at `time`. Returns whether the clock was advanced.
    #[inline]
    pub(crate) fn pass(&self, time: Time, node: NodeId) -> bool {
        let task = self.current(node);
        let events = self.events.get() + 1;
        if time >= self.limit.get() || events >= self.look_at.get() || !self.wakes.borrow().is_empty() {
            return false;
        }
        let key = Key::own(time, node, self.sequence.get());
        if !self.queue.borrow_mut().comes_after(key) {
            return false;
        }
        debug_assert!(time > self.now());
        self.sequence.set(self.sequence.get() + 1);
        self.now.set(time);
        self.key.set(key);
        self.events.set(events);
        self.tasks.borrow_mut().slot(task).since = time;
        true
    }

    pub(crate) fn cancel(&self, event: EventRef) {
        // Usually the cancelled event is the current event, which is no longer in the queue.
        if !self.key.get().is_of(event) {
            self.queue.borrow_mut().cancel(event);
        }
    }

    pub(crate) fn retarget(&self, event: EventRef, task: TaskRef) {
        self.queue.borrow_mut().retarget(event, task.to_bits());
    }

    /// Polls a task at the current instant, before all other woken tasks.
    pub(crate) fn wake_first(&self, task: TaskRef) {
        let before = self.wakes.borrow().len();
        self.wake(task);
        let mut wakes = self.wakes.borrow_mut();
        if wakes.len() > before
            && let Some(last) = wakes.pop_back()
        {
            wakes.push_front(last);
        }
    }

    /// Polls a task at the current instant, after all tasks that are already woken. Does nothing if the task has ended.
    pub(crate) fn wake(&self, task: TaskRef) {
        let mut tasks = self.tasks.borrow_mut();
        let Some(slot) = tasks.get_mut(task) else { return };
        if slot.woken || self.closed.get() {
            return;
        }
        let node = slot.node;
        if self.running.get() {
            if self.node.get() != node && !std::thread::panicking() {
                self.foreign(node);
            }
            slot.woken = true;
            self.wakes.borrow_mut().push_back(task);
        } else {
            let key = self.next_key(self.now(), node);
            self.queue.borrow_mut().push(key, task.to_bits());
        }
    }

    /// Starts a task with the future returned by `make`, built in the task's memory.
    #[inline]
    pub(crate) fn spawn<F: Future<Output = ()> + 'static>(
        &self,
        node: NodeId,
        make: impl FnOnce() -> F,
    ) -> TaskRef {
        if self.closed.get() {
            return TaskRef::NONE;
        }
        let block = self.memory.borrow_mut().block(Layout::new::<F>());
        let future = block.fill(make);
        let task = self.tasks.borrow_mut().place(node, self.now(), future, [Needed::NOTHING; 2]);
        self.wake(task);
        task
    }

    /// Like [`Shard::spawn`], but the first poll is at `time`, or now if `time` is not later than now.
    #[inline]
    pub(crate) fn spawn_at<F: Future<Output = ()> + 'static>(
        &self,
        node: NodeId,
        time: Time,
        needs: [Needed; 2],
        make: impl FnOnce() -> F,
    ) {
        if time <= self.now() || self.closed.get() {
            self.spawn(node, make);
            return;
        }
        let block = self.memory.borrow_mut().block(Layout::new::<F>());
        let future = block.fill(make);
        let task = self.tasks.borrow_mut().place(node, self.now(), future, needs);
        self.schedule(time, node, task);
    }

    pub(crate) fn spawn_program<F: Future<Output = ()> + 'static>(
        &self,
        node: NodeId,
        name: String,
        future: F,
    ) {
        let task = self.spawn(node, || future);
        self.programs.borrow_mut().push(Program { node, name, task });
    }

    /// Adds a receiver of messages and returns its number.
    pub(crate) fn add_receiver(&self, receiver: Rc<dyn Arrivals>) -> u32 {
        let mut receivers = self.receivers.borrow_mut();
        receivers.push(receiver);
        u32::try_from(receivers.len() - 1).expect("fewer than 2^31 links")
    }

    /// Queues the arrival of the message in `slot` at `receiver` of `node`.
    pub(crate) fn push_arrival(&self, at: Arrival, receiver: u32, slot: u32) {
        let key = Key::arrival(at.time, at.node, at.link, at.count);
        self.queue.borrow_mut().push(key, u64::from(receiver) << 32 | u64::from(slot));
    }

    /// Runs all events before `limit`.
    pub(crate) fn run_before(&self, limit: Time) -> Result<(), Interrupted> {
        let _running = Running::new(self);
        self.limit.set(limit);
        loop {
            self.serve_wakes()?;
            let Some((key, data)) = self.queue.borrow_mut().pop_before(limit) else { return Ok(()) };
            debug_assert!(key.time() >= self.now());
            self.now.set(key.time());
            self.node.set(key.node());
            self.prepare();
            self.happen(key, data)?;
            loop {
                let due = self.queue.borrow_mut().pop_at(key.time(), key.node());
                let Some((key, data)) = due else { break };
                self.prepare();
                self.happen(key, data)?;
            }
        }
    }

    /// Prefetches the memory of future events, beyond the next `AHEAD` events.
    #[inline]
    fn prepare(&self) {
        if self.queue.borrow().has_ahead(AHEAD) || self.receivers.borrow().len() > MANY {
            self.prepare_events();
        }
    }

    /// [`Shard::prepare`] with events to look at.
    #[inline(never)]
    fn prepare_events(&self) {
        let mut queue = self.queue.borrow_mut();
        let (receivers, tasks, near) = (self.receivers.borrow(), self.tasks.borrow(), self.near.borrow());
        if receivers.len() < FEW && tasks.len() < FEW {
            return;
        }
        let is_large = receivers.len() > MANY;
        let prepare = |is_arrival: bool, data: u64, steps: usize| {
            if !is_arrival {
                return tasks.prepare(TaskRef::from_bits(data), steps, is_large.then_some(&near));
            }
            let receiver = &receivers[(data >> 32) as usize];
            match steps {
                PARTS => prefetch(receiver),
                5 => prefetch(&**receiver),
                _ => receiver.prepare(data as u32, steps),
            }
        };
        if is_large && queue.coming(PARTS, prepare) {
            return;
        }
        for steps in 1..=PARTS {
            let Some((is_arrival, data)) = queue.ahead(AHEAD * steps) else { return };
            prepare(is_arrival, data, steps);
        }
    }

    /// Prefetches the memory of a task that an arrival will wake. `steps` is the number of steps until the arrival,
    /// from 3 to 1.
    pub(crate) fn prepare_task(&self, task: TaskRef, steps: usize) {
        let (tasks, near) = (self.tasks.borrow(), self.near.borrow());
        let prepare = |part| tasks.prepare(task, part, Some(&near));
        match steps {
            3 => prepare(4),
            2 => {
                prepare(3);
                prepare(1);
            }
            _ => prepare(2),
        }
    }

    /// From now on, prefetches `value` before events of `node`.
    pub(crate) fn keep_near(&self, node: NodeId, value: Needed) {
        let (mut all, node) = (self.near.borrow_mut(), node.0 as usize);
        if all.len() <= node {
            all.resize_with(node + 1, Near::default);
        }
        all[node].add(value);
    }

    fn serve_wakes(&self) -> Result<(), Interrupted> {
        loop {
            let Some(task) = self.wakes.borrow_mut().pop_front() else { return Ok(()) };
            match self.tasks.borrow_mut().get_mut(task) {
                Some(slot) => slot.woken = false,
                None => continue, // the task has ended since it was woken
            }
            self.key.set(Key::own(self.now(), self.node.get(), u64::MAX));
            self.poll(task);
            self.count_event()?;
        }
    }

    fn happen(&self, key: Key, data: u64) -> Result<(), Interrupted> {
        self.key.set(key);
        if key.is_arrival() {
            let receiver = &self.receivers.borrow()[(data >> 32) as usize];
            if data as u32 != UNIT {
                receiver.arrive(data as u32);
            } else if !receiver.unit() {
                return Ok(()); // the unit has been taken, or no task waits for it: no event
            }
        } else {
            self.poll(TaskRef::from_bits(data));
        }
        self.count_event()
    }

    fn count_event(&self) -> Result<(), Interrupted> {
        let events = self.events.get() + 1;
        self.events.set(events);
        if events < self.look_at.get() {
            return Ok(());
        }
        self.look_at.set(events + INTERRUPT_INTERVAL);
        if self.is_interrupted() { Err(Interrupted) } else { Ok(()) }
    }

    /// Checks the interrupt after the current event.
    pub(crate) fn look_soon(&self) {
        self.look_at.set(0);
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::is_set)
    }

    /// Polls a task, unless it has ended.
    fn poll(&self, task: TaskRef) {
        let future = {
            let mut tasks = self.tasks.borrow_mut();
            let Some(slot) = tasks.get_mut(task) else { return };
            slot.since = self.now();
            slot.future.take()
        };
        let Some(mut future) = future else { return };
        self.current.set(task);
        let done = future.poll(&mut Context::from_waker(Waker::noop())).is_ready();
        let mut tasks = self.tasks.borrow_mut();
        if !done {
            tasks.slot(task).future = Some(future);
            return;
        }
        tasks.free(task);
        drop(tasks);
        // The drop of the future's values may wake and spawn tasks, so nothing is borrowed here.
        let block = drop_future(future);
        self.memory.borrow_mut().recycle(block);
    }

    /// Forgets the programs that have ended, and collects the descriptions of the other programs.
    pub(crate) fn stuck_programs(&self) -> Vec<Stuck> {
        self.programs.borrow_mut().retain(|program| self.tasks.borrow_mut().get_mut(program.task).is_some());
        let _running = Running::new(self);
        let waiting: Vec<_> =
            self.programs.borrow().iter().map(|p| (p.node, p.name.clone(), p.task)).collect();
        let ask = |(node, program, task): (NodeId, String, TaskRef)| {
            let since = self.tasks.borrow_mut().slot(task).since;
            self.node.set(node);
            self.key.set(Key::own(self.now(), node, u64::MAX));
            let why = describe::collect(|| self.poll(task));
            self.tasks.borrow_mut().slot(task).since = since;
            Stuck { node, program, why, since }
        };
        waiting.into_iter().map(ask).collect()
    }

    /// Drops all tasks and message handlers. Without this, they and the shard would keep each other alive in a
    /// reference cycle.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        let slots = self.tasks.borrow().len();
        for index in 0..slots {
            // The drop of the future's values may wake and spawn tasks, so nothing is borrowed then.
            let future = self.tasks.borrow_mut().close(index);
            drop(future);
        }
        let receivers = self.receivers.take();
        receivers.iter().for_each(|receiver| receiver.close());
    }
}

/// The time and node of a message's arrival, and its number on its link.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) time: Time,
    pub(crate) node: NodeId,
    pub(crate) link: LinkId,
    pub(crate) count: u64,
}
