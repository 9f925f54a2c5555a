//! A host's network: the stack, the kernel threads that run it, and the threads that wait for sockets.

pub(crate) mod holding;
pub(crate) mod loans;
pub(crate) mod softrings;

use crate::card::Card;
use crate::card::transmit::Finish;
use crate::net::holding::{Held, Holding};
use crate::net::loans::Loans;
use crate::net::softrings::SoftRing;
use crate::programs::Programs;
use crate::serialiser::Serialiser;
use crate::spec::EthernetSpec;
use crate::waiters::Waiters;
use crate::xdp::CpuQueue;
use crate::{stages, wire};
use nicety_host::threads::{Data, Group, Piece, Placement, Thread, Threads};
use nicety_kernel::{Either, Repeat, Signal, Sim, race};
use nicety_nic_core::CardError;
use nicety_nic_core::parts::Early;
use nicety_stack::{Arrival, ConnectionId, DatagramId, Error, Event, ListenerId, Source, Stack};
use nicety_types::{Duration, MessageId, NodeId, Path, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Number of probes of closed windows without any other event, after which the run counts as stuck. One is not enough: the
/// peer's program may have read since the last probe, and the segment that said so may be lost.
const VAIN_PROBES: u32 = 2;

/// The frame number of bus transfers that belong to no frame.
pub(crate) const NO_FRAME: u64 = u64::MAX;

/// A connection's state in the kernel, besides the stack's own.
pub(crate) struct Connection {
    /// The cache lines of the state.
    pub(crate) data: Data,
    /// Buffers of unread frames.
    pub(crate) loans: Loans,
    /// Bytes held back from readers.
    pub(crate) held: Held,
    /// Threads that wait to read.
    pub(crate) readers: Waiters,
    /// Threads that wait to write, or for the connection to be established.
    pub(crate) writers: Waiters,
    /// Whether [`Net::watcher`] waits for this socket.
    pub(crate) watched: Cell<bool>,
    /// The path up to the stack's work for the last frame.
    pub(crate) path: RefCell<Path>,
    /// The path up to the connection's last segment, received or sent. The connection's timers run from this segment
    /// on.
    last: RefCell<Path>,
    /// Whether the connection is established.
    pub(crate) connected: Cell<bool>,
    /// The reason for the connection's failure.
    pub(crate) failed: Cell<Option<Error>>,
}

impl Connection {
    /// Records a segment with `readable` bytes for a program. A reader may see the bytes before its notification.
    pub(crate) fn note_arrival(&self, readable: usize, path: &Path) {
        self.last.replace(path.clone());
        if readable > 0 || !self.connected.get() {
            self.path.replace(path.clone());
        }
    }

    /// Returns the path of the stack's current work. If a timer triggered it, the path continues from the last segment.
    fn timed(&self, path: &Path, now: Time) -> Path {
        if !path.is_clock() {
            return path.clone();
        }
        let mut timed = self.last.borrow().clone();
        timed.advance(stages::TCP_TIMER, now);
        timed
    }
}

/// A listener's or a datagram socket's state in the kernel.
#[derive(Default)]
pub(crate) struct Waited {
    /// Threads that wait for a connection or a datagram.
    pub(crate) readers: Waiters,
    /// Threads that wait for room.
    pub(crate) writers: Waiters,
    /// Whether [`Net::watcher`] waits for this socket.
    pub(crate) watched: Cell<bool>,
    /// The path up to the stack's work for the socket's last frame.
    pub(crate) path: RefCell<Option<Path>>,
}

/// The network of a host.
pub(crate) struct Net {
    pub(crate) sim: Sim,
    pub(crate) spec: Arc<EthernetSpec>,
    pub(crate) card: Rc<Card>,
    pub(crate) threads: Threads,
    pub(crate) stack: RefCell<Stack>,
    pub(crate) rings: Vec<SoftRing>,
    /// The serialisers, one per transmit ring. Empty if each thread sends its own frames.
    pub(crate) serialisers: Vec<Serialiser>,
    pub(crate) programs: Rc<Programs>,
    pub(crate) holding: Holding,
    connections: RefCell<FxHashMap<ConnectionId, Rc<Connection>>>,
    pub(crate) listeners: RefCell<FxHashMap<ListenerId, Rc<Waited>>>,
    pub(crate) datagrams: RefCell<FxHashMap<DatagramId, Rc<Waited>>>,
    /// A thread that waits for any of several sockets.
    pub(crate) watcher: RefCell<Option<Thread>>,
    /// Signals arrivals for the watcher's sockets.
    pub(crate) early: Rc<Early>,
    /// Ranks with stations known to the stack.
    known: RefCell<FxHashSet<u32>>,
    pub(crate) system_calls: Cell<u64>,
    /// Number of handled interrupts of receive channels, and the time of their handlers before they took frames.
    pub(crate) handlers: Cell<(u64, Duration)>,
    /// Queues of CPUs for redirected frames.
    pub(crate) cpu_queues: RefCell<BTreeMap<u32, Rc<CpuQueue>>>,
    /// The threads of interrupts, with their CPUs.
    pub(crate) interrupted: RefCell<Vec<(usize, Thread)>>,
    /// The next time at which the timers' thread runs.
    due: Cell<Option<Time>>,
    due_sooner: Signal,
    /// The declaration that the timer only repeats probes of closed windows, while this is so.
    probes: RefCell<Option<Repeat>>,
}

impl Net {
    /// Starts the kernel's threads: for interrupts, soft rings and timers.
    ///
    /// # Errors
    /// When no stack is possible with this spec.
    pub(crate) fn start(sim: &Sim, spec: Arc<EthernetSpec>, card: Rc<Card>) -> Result<Rc<Net>, CardError> {
        let threads = Threads::new(sim, spec.threads, spec.cpus);
        let node = card.node;
        let stack = Stack::new(spec.host_stack(node, sim.rng("network stack").next_u64()));
        let stack =
            stack.map_err(|error| CardError::Input(format!("the protocols of this host: {error}")))?;
        let place = |ring: usize| match spec.stack.bound {
            true => Placement::Bound((spec.interrupts.cpu(0) + ring) % spec.cpus),
            false => Placement::Anywhere,
        };
        let rings = (0..spec.stack.rings).map(|ring| SoftRing::new(threads.thread(place(ring)))).collect();
        let net = Rc::new(Net {
            sim: sim.clone(),
            card,
            serialisers: (0..if spec.driver.serial > 0 { spec.transmit.channels } else { 0 })
                .map(|_| Serialiser::new(&threads))
                .collect(),
            programs: Programs::start(sim, &threads),
            holding: Holding::default(),
            threads,
            stack: RefCell::new(stack),
            rings,
            connections: RefCell::default(),
            listeners: RefCell::default(),
            datagrams: RefCell::default(),
            watcher: RefCell::default(),
            early: Rc::new(Early::new(sim)),
            known: RefCell::default(),
            system_calls: Cell::new(0),
            handlers: Cell::new((0, Duration::ZERO)),
            cpu_queues: RefCell::default(),
            interrupted: RefCell::default(),
            due: Cell::new(None),
            due_sooner: Signal::new(sim),
            probes: RefCell::default(),
            spec,
        });
        net.start_driver();
        for number in 0..net.rings.len() {
            sim.spawn(net.clone().serve_soft_ring(number));
        }
        for number in 0..net.serialisers.len() {
            sim.spawn(net.clone().serve_serialiser(number));
        }
        let timer = net.threads.thread(Placement::Anywhere);
        sim.spawn(net.clone().watch_time(timer.clone()));
        sim.spawn(net.clone().serve_timer(timer));
        Ok(net)
    }

    /// Calls `act` on the stack at this instant.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Stack, Time) -> T) -> T {
        act(&mut self.stack.borrow_mut(), self.sim.now())
    }

    /// Returns the message number of bus transfers that belong to no frame.
    pub(crate) fn no_frame(&self) -> MessageId {
        MessageId { source: self.card.node, sequence: NO_FRAME }
    }

    /// Returns a connection of the stack.
    pub(crate) fn connection(&self, id: ConnectionId) -> Option<Rc<Connection>> {
        if let Some(known) = self.connections.borrow().get(&id) {
            return Some(known.clone());
        }
        let is_there = self.stack.borrow().ends(id).is_ok();
        is_there.then(|| self.new_connection(id))
    }

    fn new_connection(&self, id: ConnectionId) -> Rc<Connection> {
        let lines = self.spec.stack.lines;
        let connection = Rc::new(Connection {
            data: Data::new(lines),
            loans: Loans::default(),
            held: Held::default(),
            readers: Waiters::default(),
            writers: Waiters::default(),
            watched: Cell::new(false),
            path: RefCell::new(Path::from(Time::ZERO)),
            last: RefCell::new(Path::from(Time::ZERO)),
            connected: Cell::new(false),
            failed: Cell::new(None),
        });
        self.connections.borrow_mut().insert(id, connection.clone());
        connection
    }

    /// Handles the results of a step of the stack: wakes waiting threads, sends frames that are ready, and sets the
    /// timer. All of it is work of `thread`.
    pub(crate) async fn follow(self: &Rc<Net>, thread: &Thread, path: &mut Path) {
        loop {
            let event = self.stack.borrow_mut().next_event();
            let Some(event) = event else { break };
            let woken = self.changed(event, path);
            self.wake(thread, woken, path).await;
        }
        self.output(thread, path).await;
        self.set_timer();
    }

    /// Wakes threads. The given path continues without the woken threads.
    pub(crate) async fn wake(&self, thread: &Thread, woken: Vec<Thread>, path: &Path) {
        for other in woken {
            thread.wake(&other, &mut path.clone()).await;
        }
    }

    /// Handles a change of a socket. Returns the threads to wake.
    fn changed(&self, event: Event, path: &Path) -> Vec<Thread> {
        match event {
            Event::Incoming(listener) => {
                let listener = self.listeners.borrow().get(&listener).cloned();
                listener.map_or_else(Vec::new, |listener| self.readable(&listener, path))
            }
            Event::Connected(id) => self.over(id, path, |connection| connection.connected.set(true)),
            Event::Finished(id) => self.over(id, path, |_| {}),
            Event::Failed(id, error) => {
                let woken = self.over(id, path, |connection| connection.failed.set(Some(error)));
                self.connections.borrow_mut().remove(&id);
                woken
            }
            Event::Closed(id) => {
                let woken = self.over(id, path, |_| {});
                self.connections.borrow_mut().remove(&id);
                woken
            }
            Event::Undeliverable(..) => Vec::new(),
        }
    }

    fn over(&self, id: ConnectionId, path: &Path, change: impl FnOnce(&Connection)) -> Vec<Thread> {
        let connections = self.connections.borrow();
        let Some(connection) = connections.get(&id) else { return Vec::new() };
        change(connection);
        connection.held.release();
        connection.path.replace(connection.timed(path, self.sim.now()));
        let mut threads = [connection.readers.all(), connection.writers.all()].concat();
        threads.extend(self.came_for(&connection.watched));
        threads
    }

    /// Records an arrival for a socket. Returns the thread that watches the socket, if any.
    pub(crate) fn came_for(&self, watched: &Cell<bool>) -> Option<Thread> {
        if watched.get() {
            self.early.note();
        }
        self.watcher.borrow().clone().filter(|_| watched.get())
    }

    /// Records an arrival for a listener or a datagram socket. Returns the threads to wake.
    fn readable(&self, socket: &Waited, path: &Path) -> Vec<Thread> {
        socket.path.replace(Some(path.clone()));
        let mut threads = socket.readers.all();
        threads.extend(self.came_for(&socket.watched));
        threads
    }

    /// Sends the frames that the stack has ready.
    async fn output(self: &Rc<Net>, thread: &Thread, path: &mut Path) {
        let mut frame = Vec::new();
        loop {
            let source = self.stack.borrow_mut().next_ready();
            let Some(source) = source else { return };
            let state = match source {
                Source::Connection(id) => self.connection(id),
                Source::Host | Source::Datagram(_) => None,
            };
            let mut on = path.clone();
            if let Some(connection) = &state {
                on = connection.timed(path, self.sim.now());
            }
            loop {
                let out = self.with(|stack, now| stack.transmit(now, source, &mut frame));
                let Some(out) = out else { break };
                let costs = &self.spec.stack;
                let work = if out.payload > 0 { costs.transmit } else { costs.acknowledge };
                let summed =
                    if self.spec.frames.checksums { 0 } else { self.lines(frame.len()) * costs.checksum };
                let data: Vec<&Data> = state.iter().map(|connection| &connection.data).collect();
                let piece = Piece::new(Group::Stack, work + summed).touching(&data);
                thread.run(piece, stages::STACK_OUT, &mut on).await;
                thread.run(Piece::new(Group::Buffers, costs.buffer), stages::STACK_OUT, &mut on).await;
                let finish = Finish { checksum: out.needs_checksum, segment: out.segment, came: None };
                self.send(thread, &frame, finish, &mut on).await;
                if let Some(connection) = &state {
                    connection.last.replace(on.clone());
                }
            }
            match path.is_clock() {
                true => path.advance(stages::STACK_OUT, on.at()),
                false => *path = on,
            }
            self.wake(thread, self.emptied(source), path).await;
        }
    }

    /// Returns the number of cache lines of `bytes` bytes.
    pub(crate) fn lines(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil(self.spec.threads.caches.line)
    }

    /// Handles departed datagrams. Returns the threads to wake.
    fn emptied(&self, source: Source) -> Vec<Thread> {
        let Source::Datagram(id) = source else { return Vec::new() };
        self.datagrams.borrow().get(&id).map_or_else(Vec::new, |socket| socket.writers.all())
    }

    /// Sets the timer to the stack's next deadline.
    pub(crate) fn set_timer(&self) {
        let stack = self.stack.borrow_mut().next_timer();
        let held = self.holding.next();
        let probes = held.is_none() && self.stack.borrow().only_probes();
        self.probes.replace(probes.then(|| self.sim.repeat()));
        let next = stack.into_iter().chain(held).min();
        let sooner = next.is_some_and(|next| self.due.get().is_none_or(|due| next < due));
        if sooner {
            self.due.set(next);
            self.due_sooner.notify_one();
        }
    }

    /// Wakes the thread of the kernel's timers at each deadline. If only probes of closed windows are left in the whole run,
    /// omits them. The programs then wait for each other, and the run ends with a deadlock that names them.
    async fn watch_time(self: Rc<Net>, timer: Thread) {
        let mut vain = 0;
        loop {
            self.due_sooner.wait_until(|| self.due.get().is_some()).await;
            let Some(due) = self.due.get() else { continue };
            if let Either::Left(()) = race(self.sim.until(due), self.due_sooner.wait()).await {
                self.due.set(None);
                let probes = self.probes.take().is_some();
                // Events of other probes are in progress at times, so only the first timer of several finds none.
                let is_vain = probes && !self.sim.has_other_events();
                vain = if probes { vain + u32::from(is_vain) } else { 0 };
                if is_vain && vain > VAIN_PROBES {
                    continue;
                }
                timer.interrupt();
            }
        }
    }

    /// Handles the kernel's timers, on their thread.
    async fn serve_timer(self: Rc<Net>, thread: Thread) {
        loop {
            thread.sleep().await;
            let mut path = Path::clock(self.sim.now());
            let piece = Piece::new(Group::Kernel, self.spec.stack.acknowledge);
            thread.run(piece, stages::STACK_OUT, &mut path).await;
            self.with(|stack, now| stack.on_timer(now));
            self.tell_late(&thread).await;
            self.follow(&thread, &mut path).await;
        }
    }

    /// Handles the change of a socket by a frame. Returns the threads to wake: readers, and writers if there is enough
    /// room.
    pub(crate) fn arrived(&self, arrival: &Arrival, pushed: bool, path: &Path) -> Vec<Thread> {
        match arrival.source {
            Source::Connection(id) => {
                let Some(connection) = self.connection(id) else { return Vec::new() };
                let mut threads = Vec::new();
                if arrival.readable > 0 && self.is_told(&connection, arrival, pushed) {
                    threads = self.told(&connection, path);
                }
                if arrival.acknowledged > 0 && self.has_room(id) {
                    threads.extend(connection.writers.all());
                }
                threads
            }
            Source::Datagram(id) => {
                let socket = self.datagrams.borrow().get(&id).cloned();
                socket.map_or_else(Vec::new, |socket| self.readable(&socket, path))
            }
            Source::Host => Vec::new(),
        }
    }

    /// Whether a connection's send buffer has enough room to wake a thread that waits for room.
    pub(crate) fn has_room(&self, id: ConnectionId) -> bool {
        let stack = self.stack.borrow();
        let (room, used) = (stack.writable(id).unwrap_or(0), stack.unacknowledged(id).unwrap_or(0));
        room as u64 * 100 >= (room + used) as u64 * self.spec.sockets.wake_room
    }

    /// Removes a connection with a returned handle. Returns the threads that waited for the connection.
    pub(crate) fn forget(&self, id: ConnectionId) -> Vec<Thread> {
        let known = self.connections.borrow_mut().remove(&id);
        known.map_or_else(Vec::new, |state| [state.readers.all(), state.writers.all()].concat())
    }

    /// Makes a rank's station known, like an administrator's static entry.
    pub(crate) fn know(&self, rank: u32) {
        if rank >= self.card.nodes || rank == self.card.node.0 || !self.known.borrow_mut().insert(rank) {
            return;
        }
        let mac = wire::station(NodeId(rank));
        let mut stack = self.stack.borrow_mut();
        stack.add_neighbour(wire::ipv4(rank).into(), mac);
        stack.add_neighbour(wire::ipv6(rank).into(), mac);
    }
}
