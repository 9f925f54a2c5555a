//! The rules of LogGOPS: the effects of events, for all hosts of a shard.

use super::costs::Costs;
use super::counts::Counts;
use super::event::{Event, EventKind, Key, Slab};
use super::host::Host;
use super::matching::{Matching, Message, Receive, Wildcards};
use super::noise::{Noise, Noises};
use super::radix::Radix;
use crate::schedule::{Kind, Op, Schedule};
use crate::spans::Spans;
use nicety_kernel::prefetch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The events that are due later.
#[derive(Debug)]
pub(super) enum Agenda {
    /// Each host has a queue of its events. A radix heap has the hosts, by the window of their next event. The number is the
    /// length of a window.
    Windows(Radix, u64),
    /// One heap has the events of all hosts.
    Global(BinaryHeap<Reverse<Event>>),
}

/// The state that all shards of a run share.
#[derive(Clone, Copy)]
pub(super) struct World<'s> {
    pub(super) schedule: &'s Schedule,
    pub(super) costs: Costs,
    wildcards: Wildcards,
    /// Whether any rank has several CPUs.
    has_cpus: bool,
    /// Number of shards.
    shards: u32,
    /// Noise on the CPUs.
    pub(super) noise: Option<&'s Noise>,
}

impl<'s> World<'s> {
    pub(super) fn new(schedule: &'s Schedule, costs: Costs, shards: u32) -> World<'s> {
        let has_cpus = schedule.ops().iter().any(|op| op.cpu > 0);
        let shards = shards.clamp(1, schedule.ranks().max(1));
        World { schedule, costs, wildcards: Wildcards::of(schedule), has_cpus, shards, noise: None }
    }

    pub(super) fn shards(&self) -> u32 {
        self.shards
    }
}

/// The state of a block of hosts, with their events. If `COMPAT`, it follows the rules of LogGOPSim.
pub(super) struct Shard<'s, const COMPAT: bool> {
    pub(super) schedule: &'s Schedule,
    pub(super) costs: Costs,
    pub(super) hosts: Vec<Host>,
    /// The first host. `first_op` is the index of its first operation.
    pub(super) first: u32,
    first_op: usize,
    /// For each shard, new events for its hosts.
    pub(super) outboxes: Vec<Vec<Event>>,
    /// The time of the earliest event in the outboxes.
    pub(super) first_sent: u64,
    /// For each operation, the number of dependencies that are not met.
    pub(super) remaining: Vec<u32>,
    /// For each operation, the time at which its last dependency was met. Empty if every rank has one CPU, because the clock of
    /// that CPU gives the time.
    ready: Vec<u64>,
    pub(super) slab: Slab,
    pub(super) matching: Matching,
    pub(super) agenda: Agenda,
    /// The number of the next event, by the rules of LogGOPSim.
    sequence: u64,
    /// The operations that the current event freed: host, operation, and earliest start.
    freed: Vec<(u32, u32, u64)>,
    pub(super) counts: Counts,
    /// The host and number of the first operation that ends after the largest possible time.
    pub(super) endless: Option<(u32, u32)>,
    noises: Option<Noises<'s>>,
    /// Start and end of each operation, if requested.
    pub(super) spans: Option<Spans>,
}

impl<'s, const COMPAT: bool> Shard<'s, COMPAT> {
    /// Returns a shard. The numbers of hosts in two shards differ by at most one.
    pub(super) fn new(world: &World<'s>, number: u32, agenda: Agenda) -> Shard<'s, COMPAT> {
        let World { schedule, costs, wildcards, has_cpus, shards, noise } = *world;
        let begin =
            |shard: u32| (u64::from(shard) * u64::from(schedule.ranks())).div_ceil(shards.into()) as u32;
        let ranks = begin(number)..begin(number + 1);
        let first_op = schedule.first_op(ranks.start);
        let ops = &schedule.ops()[first_op..schedule.first_op(ranks.end)];
        Shard {
            schedule,
            costs,
            hosts: ranks.clone().map(|_| Host::new()).collect(),
            first: ranks.start,
            first_op,
            outboxes: (0..world.shards()).map(|_| Vec::new()).collect(),
            first_sent: u64::MAX,
            remaining: ops.iter().map(|op| op.dependencies).collect(),
            ready: vec![0; if has_cpus && !COMPAT { ops.len() } else { 0 }],
            slab: Slab::new(),
            matching: Matching::new(&wildcards),
            agenda,
            sequence: 0,
            freed: Vec::new(),
            counts: Counts::default(),
            endless: None,
            noises: noise.map(|noise| Noises::new(noise, ranks.clone())),
            spans: None,
        }
    }

    /// Returns whether the simulation of noise has taken long in real time. The caller should then check for an interrupt.
    pub(super) fn is_late(&mut self) -> bool {
        self.noises.as_mut().is_some_and(Noises::were_many)
    }

    #[inline]
    fn host(&self, host: u32) -> &Host {
        &self.hosts[(host - self.first) as usize]
    }

    #[inline]
    fn host_mut(&mut self, host: u32) -> &mut Host {
        &mut self.hosts[(host - self.first) as usize]
    }

    /// Begins the operations of a host that depend on no other operation.
    pub(super) fn begin(&mut self, host: u32) {
        let roots = (0..).zip(self.schedule.rank(host).ops).filter(|(_, op)| op.dependencies == 0);
        self.freed.extend(roots.map(|(number, _)| (host, number, 0)));
        self.release(0);
    }

    /// Returns whether all operations of the shard's hosts are executed, and no message and no receive is left.
    pub(super) fn is_over(&self) -> bool {
        self.endless.is_none() && self.counts.operations == self.remaining.len() as u64 && !self.has_left()
    }

    /// Returns whether a message or a receive is left.
    fn has_left(&self) -> bool {
        self.hosts.iter().any(|host| {
            let (posted, unexpected) = self.matching.left(&host.lines);
            !posted.is_empty() || !unexpected.is_empty()
        })
    }

    /// Returns the counts of the run so far.
    pub(super) fn counts(&self) -> Counts {
        Counts { steps: self.counts.steps + self.matching.steps, ..self.counts }
    }

    /// Prefetches data of the next hosts into the CPU cache, step by step. The steps are the host, the heads of its queues, the
    /// events there, and their operations or receives.
    pub(super) fn prefetch(&self, hosts: &[(u64, u32)], at: usize) {
        let host = |ahead: usize| Some(self.host(hosts.get(at + ahead)?.1));
        if let Some(host) = host(16) {
            prefetch(host);
        }
        if let Some(host) = host(12) {
            host.queues().for_each(|queue| queue.prefetch(&self.slab));
            self.matching.prefetch(&host.lines);
        }
        if let Some(host) = host(8) {
            host.queues().for_each(|queue| queue.prefetch_long(&self.slab));
        }
        let Some(host) = host(4) else { return };
        let first = self.schedule.first_op(hosts[at + 4].1);
        let first_here = first - self.first_op;
        let operation = |op: u32| {
            prefetch(&self.remaining[first_here + op as usize]);
            prefetch(&self.schedule.ops()[first + op as usize]);
        };
        self.matching.first_posted(&host.lines).into_iter().for_each(operation);
        for event in host.queues().filter_map(|queue| queue.front(&self.slab)) {
            match event.what {
                EventKind::Message => {
                    self.matching.prefetch_receive(&host.lines, event.key.source, event.tag)
                }
                EventKind::Send | EventKind::Recv | EventKind::Calc | EventKind::Complete => {
                    operation(event.op)
                }
                // The operation may belong to another host.
                EventKind::RetrySend | EventKind::RetryCalc | EventKind::RetryMessage => {}
            }
        }
    }

    /// Prefetches the data of the next event in a lane while the previous event is executed.
    #[inline]
    fn prefetch_waiting(&self, host: u32, retry: EventKind) {
        let state = self.host(host);
        let Some(next) = state.front_waiting(&self.slab, retry) else { return };
        match next.what {
            EventKind::Message => self.matching.prefetch_receive(&state.lines, next.key.source, next.tag),
            _ => prefetch(&self.schedule.rank(host).ops[next.op as usize]),
        }
    }

    /// Returns the key of a new event.
    #[inline]
    fn key(&mut self, time: u64, now: u64, host: u32) -> Key {
        if COMPAT {
            self.sequence += 1;
            return Key { time, born: self.sequence, source: host, count: 0 };
        }
        let count = &mut self.host_mut(host).count;
        *count += 1;
        Key { time, born: now, source: host, count: *count }
    }

    #[inline]
    pub(super) fn push(&mut self, event: Event) {
        match &mut self.agenda {
            Agenda::Global(heap) => heap.push(Reverse(event)),
            Agenda::Windows(radix, width) => {
                let Some(host) = self.hosts.get_mut(event.host.wrapping_sub(self.first) as usize) else {
                    self.first_sent = self.first_sent.min(event.key.time);
                    let shard =
                        u64::from(event.host) * self.outboxes.len() as u64 / u64::from(self.schedule.ranks());
                    return self.outboxes[shard as usize].push(event);
                };
                host.queue.push(&mut self.slab, event);
                if event.key.time < host.scheduled {
                    let window = event.key.time / *width;
                    host.scheduled = window * *width;
                    radix.push(window, event.host);
                }
            }
        }
    }

    /// Returns the next window that has an event, as far as this shard knows.
    pub(super) fn peek_window(&self) -> Option<u64> {
        match &self.agenda {
            Agenda::Windows(radix, _) => radix.peek(),
            Agenda::Global(_) => None,
        }
    }

    /// Advances to the next window with an event.
    pub(super) fn next_window(&mut self) -> Option<u64> {
        match &mut self.agenda {
            Agenda::Windows(radix, _) => radix.next(),
            Agenda::Global(_) => None,
        }
    }

    /// Returns the hosts with events in the current window. Keeps the empty list `empty` in their place.
    pub(super) fn take_hosts(&mut self, empty: Vec<(u64, u32)>) -> Vec<(u64, u32)> {
        match &mut self.agenda {
            Agenda::Windows(radix, _) => radix.take(empty),
            Agenda::Global(_) => empty,
        }
    }

    /// Returns the range of the shard's hosts.
    pub(super) fn ranks(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.hosts.len() as u32
    }

    /// Executes the events of a host that are due in a window.
    pub(super) fn run_host(&mut self, host: u32, window: u64) {
        let Agenda::Windows(_, width) = self.agenda else { return };
        let begin = window * width;
        if self.host(host).scheduled != begin {
            return; // The host was executed in an earlier window.
        }
        let end = begin.saturating_add(width);
        loop {
            let state = &mut self.hosts[(host - self.first) as usize];
            let queued = state.queue.first(&self.slab);
            let waiting = state.first_of_all_waiting(&self.slab);
            match (queued, waiting) {
                (queued, Some((key, retry))) if key.time < end && queued.is_none_or(|other| key < other) => {
                    let event =
                        state.next_waiting(&mut self.slab, retry, 0, 0).expect("the first one is there");
                    self.counts.steps += 1;
                    self.prefetch_waiting(host, retry);
                    self.start(Event { key, ..event });
                    self.release(key.time);
                }
                (Some(key), _) if key.time < end => {
                    let event = state.queue.pop(&mut self.slab).expect("the first one is there");
                    self.happen(event);
                }
                (queued, waiting) => {
                    let next =
                        queued.into_iter().chain(waiting.map(|(key, _)| key)).map(|key| key.time).min();
                    state.scheduled = u64::MAX;
                    if let (Agenda::Windows(radix, _), Some(time)) = (&mut self.agenda, next) {
                        let window = time / width;
                        state.scheduled = window * width;
                        radix.push(window, host);
                    }
                    return;
                }
            }
        }
    }

    /// Executes an event.
    pub(super) fn happen(&mut self, event: Event) {
        self.counts.steps += 1;
        match event.what {
            EventKind::Calc => self.start_or_wait(event, EventKind::RetryCalc),
            EventKind::Send => self.start_or_wait(event, EventKind::RetrySend),
            EventKind::Message => self.start_or_wait(event, EventKind::RetryMessage),
            EventKind::Recv => self.recv(event),
            EventKind::Complete => self.complete(event.host, event.op, event.cpu, event.nic, event.key.time),
            EventKind::RetryCalc | EventKind::RetrySend | EventKind::RetryMessage => {
                return self.retry(event);
            }
        }
        self.release(event.key.time);
    }

    #[inline]
    fn start_or_wait(&mut self, event: Event, retry: EventKind) {
        let host = &mut self.hosts[(event.host - self.first) as usize];
        let free = host.free(event.what, event.cpu, event.nic);
        if free <= event.key.time {
            return self.start(event);
        }
        let is_first = host.wait(&mut self.slab, retry, event);
        // With windows, the host itself checks the lanes of CPU 0 and interface 0, so they need no retry event.
        let is_polled = event.cpu == 0 && (event.nic == 0 || event.what == EventKind::Calc);
        if is_first && !(is_polled && matches!(self.agenda, Agenda::Windows(..))) {
            self.push(Event { what: retry, key: Key { time: free, ..event.key }, ..event });
        }
    }

    /// Starts the first event in a lane, if the retry belongs to this event and the event can begin.
    fn retry(&mut self, event: Event) {
        let Event { key, host, what, cpu, nic, .. } = event;
        let first = self.hosts[(host - self.first) as usize].first_waiting(&self.slab, what, cpu, nic);
        if first != Some(Key { time: 0, ..key }) {
            return; // The event has begun, or an earlier event has come.
        }
        let free = self.host(host).free(what, cpu, nic);
        if free > key.time {
            return self.push(Event { key: Key { time: free, ..key }, ..event });
        }
        let waited = self.hosts[(host - self.first) as usize].next_waiting(&mut self.slab, what, cpu, nic);
        self.start(Event { key, ..waited.expect("the first one is there") });
        self.release(key.time);
        if let Some(next) = self.hosts[(host - self.first) as usize].first_waiting(&self.slab, what, cpu, nic)
        {
            let time = self.host(host).free(what, cpu, nic).max(key.time);
            self.push(Event { key: Key { time, ..next }, ..event });
        }
    }

    #[inline]
    fn start(&mut self, event: Event) {
        match event.what {
            EventKind::Calc => self.calc(event),
            EventKind::Send => self.send(event),
            _ => self.message(event),
        }
    }

    fn calc(&mut self, event: Event) {
        let now = event.key.time;
        let end = self.costs.calc::<COMPAT>(now, event.size);
        let end = self.lengthened(&event, now, end);
        self.note_end(end, &event);
        *self.host_mut(event.host).cpu_mut(event.cpu) = end;
        self.counts.operations += 1;
        self.free(event.host, event.op, true, now);
        self.free(event.host, event.op, false, end);
    }

    fn send(&mut self, event: Event) {
        let Event { key: Key { time: now, .. }, host, size, cpu, nic, .. } = event;
        self.counts.operations += 1;
        let sent = self.costs.sent::<COMPAT>(now, size);
        let next = self.costs.next::<COMPAT>(now, size);
        let arrives = self.costs.arrives::<COMPAT>(now);
        let (sent, arrives) = match self.noises {
            None => (sent, arrives),
            Some(_) => {
                // The message leaves after the overhead. The bytes after its first take the CPU after that.
                let leaves = arrives.saturating_sub(self.costs.latency);
                let left = self.lengthened(&event, now, leaves);
                let bytes = sent.saturating_sub(leaves);
                (
                    self.lengthened(&event, left, left.saturating_add(bytes)),
                    left.saturating_add(self.costs.latency),
                )
            }
        };
        self.note_end(sent.max(next).max(arrives), &event);
        *self.host_mut(host).cpu_mut(cpu) = sent;
        *self.host_mut(host).sending_mut(nic) = next;
        self.free(host, event.op, true, now);
        let key = self.key(arrives, now, host);
        let peer = self.schedule.rank(host).ops[event.op as usize].peer;
        self.push(Event { key, host: peer, what: EventKind::Message, ..event });
        if size <= self.costs.eager {
            self.free(host, event.op, false, sent);
        }
    }

    /// Returns the end of CPU work with noise. Without noise, the work lasts from `now` to `end`.
    #[inline]
    fn lengthened(&mut self, event: &Event, now: u64, end: u64) -> u64 {
        match &mut self.noises {
            None => end,
            Some(noises) => noises.after(event.host, event.cpu, now, end - now),
        }
    }

    fn recv(&mut self, event: Event) {
        let Event { key: Key { time: now, .. }, host, size, op, cpu, nic, tag, .. } = event;
        self.counts.operations += 1;
        self.free(host, op, true, now);
        let source = self.schedule.rank(host).ops[op as usize].peer;
        let lines = &mut self.hosts[(host - self.first) as usize].lines;
        let Some(message) = self.matching.post(lines, Receive { source, tag, op }) else { return };
        self.note_taken((host, op), (message.source, message.op));
        if COMPAT {
            if size > self.costs.eager {
                self.complete(message.source, message.op, cpu, nic, now);
            }
        } else if message.size > self.costs.eager {
            self.tell_sender(host, &message, now);
        }
        self.free(host, op, false, now.max(message.until));
    }

    fn message(&mut self, event: Event) {
        let Event { key: Key { time: now, source, .. }, host, size, op, cpu, nic, tag, .. } = event;
        self.counts.messages += 1;
        let until = self.costs.received::<COMPAT>(now, size);
        let until = self.lengthened(&event, now, until);
        let next = self.costs.next::<COMPAT>(now, size);
        self.note_end(until.max(next), &event);
        *self.host_mut(host).cpu_mut(cpu) = until;
        *self.host_mut(host).receiving_mut(nic) = next;
        let message = Message { source, tag, op, cpu, nic, size, until };
        let lines = &mut self.hosts[(host - self.first) as usize].lines;
        let Some(receive) = self.matching.arrive(lines, message) else { return };
        self.note_taken((host, receive), (source, op));
        if size > self.costs.eager {
            if COMPAT {
                self.complete(source, op, cpu, nic, now);
            } else {
                self.tell_sender(host, &message, now);
            }
        }
        self.free(host, receive, false, until);
    }

    /// Notifies the sender of a long message that its receive has taken it. The notification arrives after the latency.
    fn tell_sender(&mut self, host: u32, message: &Message, now: u64) {
        let time = now.saturating_add(self.costs.latency);
        let key = self.key(time, now, host);
        let Message { source, op, cpu, nic, size, tag, .. } = *message;
        self.push(Event { key, host: source, what: EventKind::Complete, op, cpu, nic, size, tag });
    }

    /// Ends the send of a long message.
    fn complete(&mut self, host: u32, op: u32, cpu: u8, nic: u8, now: u64) {
        let state = self.host_mut(host);
        let clock = state.cpu_mut(cpu);
        *clock = now.max(*clock);
        let clock = state.sending_mut(nic);
        *clock = now.max(*clock);
        self.free(host, op, false, now);
    }

    /// Marks dependencies on the start or the end of an operation as met at a time.
    #[inline]
    fn free(&mut self, host: u32, op: u32, on_start: bool, time: u64) {
        let rank = self.schedule.rank(host);
        if let Some(spans) = &mut self.spans {
            let at = self.schedule.first_op(host) - self.first_op + op as usize;
            if on_start { spans.begin(at, time) } else { spans.end(at, time) }
        }
        if on_start && !rank.ops[op as usize].starts_others() {
            return;
        }
        let first = self.schedule.first_op(host) - self.first_op;
        for dependent in rank.dependents(op as usize).iter().filter(|each| each.on_start() == on_start) {
            let at = first + dependent.op() as usize;
            let mut ready = time;
            if let Some(latest) = self.ready.get_mut(at) {
                *latest = time.max(*latest);
                ready = *latest;
            }
            let remaining = &mut self.remaining[at];
            *remaining -= 1;
            if *remaining == 0 {
                self.freed.push((host, dependent.op(), ready));
            }
        }
    }

    /// Begins the operations that the current event freed. They are in the order of hosts; for each host, sends come before
    /// receives, and receives before calculations.
    #[inline]
    fn release(&mut self, now: u64) {
        if self.freed.is_empty() {
            return;
        }
        let mut freed = std::mem::take(&mut self.freed);
        if freed.len() > 1 {
            let kind = |host: u32, op: u32| self.schedule.rank(host).ops[op as usize].kind;
            freed.sort_by_key(|(host, op, _)| (*host, kind(*host, *op)));
        }
        for (host, number, ready) in freed.drain(..) {
            let op = self.schedule.rank(host).ops[number as usize];
            let what = match op.kind {
                Kind::Send => EventKind::Send,
                Kind::Recv => EventKind::Recv,
                Kind::Calc => EventKind::Calc,
            };
            let free = self.host(host).free(what, op.cpu, op.nic);
            let key = self.key(if COMPAT { free } else { free.max(ready) }, now, host);
            let Op { size, tag, cpu, nic, .. } = op;
            self.push(Event { key, size, tag, op: number, host, what, cpu, nic });
        }
        self.freed = freed;
    }

    /// Records the send that a receive has matched, if spans are requested.
    #[inline]
    fn note_taken(&mut self, receive: (u32, u32), send: (u32, u32)) {
        if let Some(spans) = &mut self.spans {
            let at = |(host, op): (u32, u32)| self.schedule.first_op(host) - self.first_op + op as usize;
            spans.take(at(receive), at(send));
        }
    }

    /// Records an operation that ends after the largest possible time.
    #[inline]
    fn note_end(&mut self, end: u64, event: &Event) {
        if !COMPAT && end == u64::MAX && self.endless.is_none() {
            let sender = if event.what == EventKind::Message { event.key.source } else { event.host };
            self.endless = Some((sender, event.op));
        }
    }
}
