//! Runs by windows of simulated time, in one thread, in several threads, or in several processes.
//!
//! Each thread or process has a block of hosts. All of them agree on the next window with an event, and execute the events of
//! their hosts in it. They put events for hosts of others into mailboxes. These events are due in a later window, because a
//! message takes at least as long as a window. Within a window, nothing is shared.

use super::counts::Counts;
use super::engine::{Agenda, Shard, World};
use super::event::Event;
use super::host::Host;
use super::radix::Radix;
use super::{Failure, Finished, LOOK_EVERY, finished};
use nicety::{Error, Outcome, Peers};
use nicety_kernel::{Parts, Threads};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Numbers in place of a window. `NEVER` means that no window follows, and `STOP` that the run must stop.
const NEVER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// The state that the threads of a process share.
#[derive(Default)]
struct Shared {
    stops: AtomicBool,
    operations: AtomicU64,
}

/// Runs a schedule, with one thread for each shard. The caller's thread is one of them.
pub(super) fn run(world: &World<'_>, go_on: &mut dyn FnMut(u64) -> bool) -> Result<Finished, Failure> {
    let width = world.costs.lookahead(world.schedule);
    let shared = Shared::default();
    let mut connected = Threads::connected(world.shards() as usize).into_iter();
    let first = connected.next().expect("there is one at least");
    let made = thread::scope(|scope| {
        let others: Vec<_> = connected
            .map(|threads| {
                let shared = &shared;
                scope.spawn(move || run_shard(world, threads, width, shared, &mut |_| true))
            })
            .collect();
        let first = run_shard(world, first, width, &shared, go_on);
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(shard) => shard,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(first).chain(joined).collect::<Vec<_>>()
    });
    let is_endless = made.iter().any(|shard| shard.endless.is_some());
    if shared.stops.into_inner() && !is_endless { Err(Failure::Interrupted) } else { finished(&made) }
}

/// Runs a schedule in several processes, one for each shard. All get the result; `None` if the run failed.
pub(super) fn run_in_processes(
    world: &World<'_>,
    peers: &Peers,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Finished>, Error> {
    let width = world.costs.lookahead(world.schedule);
    let outcome = peers.run(|connected| {
        let shared = Shared::default();
        let shard = run_shard(world, connected, width, &shared, &mut |done| {
            go_on(done.saturating_mul(peers.count() as u64))
        });
        if shared.stops.into_inner() && shard.endless.is_none() {
            return Err(Error::Interrupted);
        }
        if !shard.is_over() {
            return Err(Error::Program("it has not come to its end".to_owned()));
        }
        let finish_ps: Vec<u64> = shard.hosts.iter().map(Host::finish).collect();
        Ok((finish_ps, shard.counts()))
    })?;
    match outcome {
        Outcome::Ended(shards) => {
            let (finish_ps, counts): (Vec<_>, Vec<Counts>) = shards.into_iter().unzip();
            Ok(Some(Finished { finish_ps: finish_ps.concat(), counts: counts.into_iter().sum() }))
        }
        Outcome::Failed => Ok(None),
        Outcome::Interrupted => Err(Error::Interrupted),
    }
}

fn run_shard<'s>(
    world: &World<'s>,
    mut parts: impl Parts<Event>,
    width: u64,
    shared: &Shared,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Shard<'s, false> {
    let number = parts.place().0 as u32;
    let mut shard = Shard::<false>::new(world, number, Agenda::Windows(Radix::new(), width));
    let mut told = 0;
    let (mut next_look, mut next_tell) = (LOOK_EVERY, LOOK_EVERY);
    // Calls `go_on` regularly, even if other threads do all the work.
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
    // The first events of each host are executed at once, so that the first events of all hosts are never queued at the same
    // time.
    for host in shard.ranks() {
        shard.begin(host);
        shard.run_host(host, 0);
        if !look(&mut shard) {
            break;
        }
    }
    let (mut hosts, mut incoming) = (Vec::new(), Vec::new());
    loop {
        look(&mut shard);
        if shard.endless.is_some() {
            shared.stops.store(true, Ordering::Relaxed);
        }
        let stops = shared.stops.load(Ordering::Relaxed);
        let Some(window) = exchange(&mut shard, &mut parts, &mut incoming, stops, width) else {
            return shard;
        };
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

/// Sends events to hosts of other shards, and receives events for this shard. Returns the next window of all shards; `None` if
/// there is none, or the run must stop. All shards get the same result.
fn exchange(
    shard: &mut Shard<'_, false>,
    parts: &mut impl Parts<Event>,
    incoming: &mut Vec<Event>,
    stops: bool,
    width: u64,
) -> Option<u64> {
    let sent = match std::mem::replace(&mut shard.first_sent, u64::MAX) {
        u64::MAX => NEVER,
        time => time / width,
    };
    let next = sent.min(shard.peek_window().unwrap_or(NEVER));
    let words = parts.meet(if stops { STOP } else { next }, &mut shard.outboxes, incoming)?;
    let stops = words.contains(&STOP);
    let next = words.iter().min().copied().unwrap_or(NEVER);
    incoming.drain(..).for_each(|event| shard.push(event));
    Some(next).filter(|next| *next != NEVER && !stops)
}
