//! Windows of time, in one thread or in several.
//!
//! Each thread has a block of hosts. All agree on the next window in which something happens, carry out what does, and
//! leave in mailboxes what the others' hosts receive: that comes in a later window, for windows are no longer than a
//! message takes. Nothing is shared within a window.

use super::engine::{Agenda, Shard, World};
use super::event::Event;
use super::radix::Radix;
use super::{Failure, Finished, LOOK_EVERY, finished};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// No window comes any more.
const NEVER: u64 = u64::MAX;

/// What threads have in common.
struct Shared {
    /// The next window of each shard.
    next: Vec<AtomicU64>,
    /// Events for a shard, from each other one: `from * shards + to`.
    mail: Vec<Mutex<Vec<Event>>>,
    meeting: Meeting,
    /// Set in a window, and looked at between windows.
    stops: AtomicBool,
    operations: AtomicU64,
}

/// Where threads wait for each other.
struct Meeting {
    threads: usize,
    /// How many are there, and how often all were.
    there: Mutex<(usize, u64)>,
    come: Condvar,
    /// Whether one has panicked and will not come.
    broken: AtomicBool,
}

impl Meeting {
    /// Waits for all. Whether they have come.
    fn wait(&self) -> bool {
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        there.0 += 1;
        let before = there.1;
        if there.0 == self.threads {
            *there = (0, before + 1);
            self.come.notify_all();
        }
        while there.1 == before && !self.broken.load(Ordering::Relaxed) {
            there = self.come.wait(there).unwrap_or_else(PoisonError::into_inner);
        }
        !self.broken.load(Ordering::Relaxed)
    }
}

/// Lets the others go if a thread panics.
struct Leaving<'m>(&'m Meeting);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _there = self.0.there.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.broken.store(true, Ordering::Relaxed);
            self.0.come.notify_all();
        }
    }
}

/// Runs a schedule in a thread for each shard, of which the caller's is one.
pub(super) fn run(world: &World<'_>, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Finished, Failure> {
    let width = world.costs.lookahead(world.schedule);
    let shards = world.shards() as usize;
    let shared = Shared {
        next: (0..shards).map(|_| AtomicU64::new(NEVER)).collect(),
        mail: (0..shards * shards).map(|_| Mutex::new(Vec::new())).collect(),
        meeting: Meeting {
            threads: shards,
            there: Mutex::new((0, 0)),
            come: Condvar::new(),
            broken: AtomicBool::new(false),
        },
        stops: AtomicBool::new(false),
        operations: AtomicU64::new(0),
    };
    let made = thread::scope(|scope| {
        let others: Vec<_> = (1..world.shards())
            .map(|number| {
                let shared = &shared;
                scope.spawn(move || run_shard(world, number, width, shared, &mut |_| true))
            })
            .collect();
        let first = run_shard(world, 0, width, &shared, go_on);
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(shard) => shard,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(first).chain(joined).collect::<Vec<_>>()
    });
    let is_endless = made.iter().any(|shard| shard.endless.is_some());
    if shared.stops.into_inner() && !is_endless { Err(Failure::Interrupted) } else { finished(&made) }
}

fn run_shard<'s>(
    world: &World<'s>,
    number: u32,
    width: u64,
    shared: &Shared,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Shard<'s, false> {
    let _leaving = Leaving(&shared.meeting);
    let mut shard = Shard::<false>::new(world, number, Agenda::Windows(Radix::new(), width));
    let mut told = 0;
    let (mut next_look, mut next_tell) = (LOOK_EVERY, LOOK_EVERY);
    // Whether to go on, looked at every so often, also where others do all the work.
    let mut look = |shard: &mut Shard<'_, false>| {
        if shard.counts.steps >= next_look {
            next_look = shard.counts.steps + LOOK_EVERY;
            let more = shard.counts.operations - std::mem::replace(&mut told, shard.counts.operations);
            shared.operations.fetch_add(more, Ordering::Relaxed);
        }
        let done = shared.operations.load(Ordering::Relaxed);
        if done >= next_tell || shard.is_late() {
            next_tell = done + LOOK_EVERY;
            if !go_on(done) {
                shared.stops.store(true, Ordering::Relaxed);
            }
        }
        !shared.stops.load(Ordering::Relaxed)
    };
    // Each host's first events happen at once, so that those of all hosts are never there together.
    for host in shard.ranks() {
        shard.begin(host);
        shard.run_host(host, 0);
        if !look(&mut shard) {
            break;
        }
    }
    let mut hosts = Vec::new();
    loop {
        look(&mut shard);
        if shard.endless.is_some() {
            shared.stops.store(true, Ordering::Relaxed);
        }
        let Some(window) = exchange(&mut shard, number as usize, shared) else { return shard };
        if shard.peek_window() == Some(window) {
            shard.next_window();
            hosts = shard.take_hosts(hosts);
            for (at, (_, host)) in hosts.iter().enumerate() {
                shard.prefetch(&hosts, at);
                shard.run_host(*host, window);
                if !look(&mut shard) {
                    break;
                }
            }
            hosts.clear();
        }
    }
}

/// Hands over what happens at other shards' hosts, and takes what happens here. The next window of all; none where nothing
/// happens any more, or a run is to stop: all threads find the same.
fn exchange(shard: &mut Shard<'_, false>, number: usize, shared: &Shared) -> Option<u64> {
    let shards = shared.next.len();
    if shards > 1 {
        for (to, outbox) in shard.outboxes.iter_mut().enumerate().filter(|(_, outbox)| !outbox.is_empty()) {
            let mut mail = shared.mail[number * shards + to].lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut *mail, outbox);
        }
        if !shared.meeting.wait() {
            return None;
        }
        for from in 0..shards {
            let mut mail = shared.mail[from * shards + number].lock().unwrap_or_else(PoisonError::into_inner);
            mail.drain(..).for_each(|event| shard.push(event));
        }
    }
    // Nobody is in a window between the two meetings, so that this does not change.
    let stops = shared.stops.load(Ordering::Relaxed);
    shared.next[number].store(shard.peek_window().unwrap_or(NEVER), Ordering::Relaxed);
    if shards > 1 && !shared.meeting.wait() {
        return None;
    }
    let next = shared.next.iter().map(|next| next.load(Ordering::Relaxed)).min();
    next.filter(|next| *next != NEVER && !stops)
}
