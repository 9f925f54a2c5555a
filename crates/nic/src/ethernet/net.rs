//! A host's network: the stack, the kernel threads that run it, and who waits for what.

use super::card::Card;
use super::holding::{Held, Holding};
use super::loans::Loans;
use super::programs::Programs;
use super::softrings::SoftRing;
use super::spec::EthernetSpec;
use super::transmit::Finish;
use super::waiters::Waiters;
use super::{stages, wire};
use crate::design::CardError;
use crate::parts::Early;
use nicety_host::threads::{Data, Group, Piece, Placement, Thread, Threads};
use nicety_kernel::{Either, Signal, Sim, race};
use nicety_stack::{
    Arrival, ConnectionId, DatagramId, Error, Event, LEAST_MTU_V6, ListenerId, Network, Source, Stack,
    StackSpec,
};
use nicety_types::{Duration, MessageId, NodeId, Path, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// The frame's number where none is meant, for transfers over the bus that belong to no frame.
pub(super) const NO_FRAME: u64 = u64::MAX;

/// A connection's state in the kernel, beside the stack's own.
pub(super) struct Connection {
    /// Its lines in caches.
    pub(super) data: Data,
    /// Buffers of frames that no program has read.
    pub(super) loans: Loans,
    /// Bytes that readers are not told of.
    pub(super) held: Held,
    /// Threads that wait to read.
    pub(super) readers: Waiters,
    /// Threads that wait to write, or until it is established.
    pub(super) writers: Waiters,
    /// Whether it is one of those that [`Net::watcher`] waits for.
    pub(super) watched: Cell<bool>,
    /// Up to what the stack has done with the last frame.
    pub(super) path: RefCell<Path>,
    /// Up to the last segment of it that came or was sent: its timers run from there.
    last: RefCell<Path>,
    /// Whether it is established.
    pub(super) connected: Cell<bool>,
    /// Why it is over.
    pub(super) failed: Cell<Option<Error>>,
}

impl Connection {
    /// A segment has come, with so many bytes for a program. A reader may see them before it is told of them.
    pub(super) fn came(&self, readable: usize, path: &Path) {
        self.last.replace(path.clone());
        if readable > 0 || !self.connected.get() {
            self.path.replace(path.clone());
        }
    }

    /// The path of what the stack does now; where a timer has it do that, it goes on from the last segment.
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
pub(super) struct Waited {
    /// Threads that wait for a connection or a datagram.
    pub(super) readers: Waiters,
    /// Threads that wait for room.
    pub(super) writers: Waiters,
    /// Whether it is one of those that [`Net::watcher`] waits for.
    pub(super) watched: Cell<bool>,
    /// Up to what the stack has done with the last frame for it.
    pub(super) path: RefCell<Option<Path>>,
}

/// The network of a host.
pub(super) struct Net {
    pub(super) sim: Sim,
    pub(super) spec: Arc<EthernetSpec>,
    pub(super) card: Rc<Card>,
    pub(super) threads: Threads,
    pub(super) stack: RefCell<Stack>,
    pub(super) rings: Vec<SoftRing>,
    pub(super) programs: Rc<Programs>,
    pub(super) holding: Holding,
    connections: RefCell<FxHashMap<ConnectionId, Rc<Connection>>>,
    pub(super) listeners: RefCell<FxHashMap<ListenerId, Rc<Waited>>>,
    pub(super) datagrams: RefCell<FxHashMap<DatagramId, Rc<Waited>>>,
    /// A thread that waits for any of several sockets.
    pub(super) watcher: RefCell<Option<Thread>>,
    /// What has come for the sockets that it waits for, or would.
    pub(super) early: Early,
    /// Ranks whose stations the stack knows.
    known: RefCell<FxHashSet<u32>>,
    pub(super) system_calls: Cell<u64>,
    /// Interrupts of receive channels that were handled, and what their handlers took before they took frames.
    pub(super) handlers: Cell<(u64, Duration)>,
    /// The threads of interrupts, with their CPUs.
    pub(super) interrupted: RefCell<Vec<(usize, Thread)>>,
    /// When the timer's thread is to run.
    due: Cell<Option<Time>>,
    due_sooner: Signal,
}

impl Net {
    /// Starts the kernel's threads: those of interrupts, soft rings and timers.
    ///
    /// # Errors
    /// When there can be no stack with this spec.
    pub(super) fn start(sim: &Sim, spec: Arc<EthernetSpec>, card: Rc<Card>) -> Result<Rc<Net>, CardError> {
        let threads = Threads::new(sim, spec.threads, spec.cpus);
        let node = card.node;
        let stack = Stack::new(stack_spec(&spec, node, sim.rng("network stack").next_u64()));
        let stack =
            stack.map_err(|error| CardError::Input(format!("the protocols of this host: {error}")))?;
        let rings =
            (0..spec.stack.rings).map(|_| SoftRing::new(threads.thread(Placement::Anywhere))).collect();
        let net = Rc::new(Net {
            sim: sim.clone(),
            card,
            programs: Programs::start(sim, &threads),
            holding: Holding::default(),
            threads,
            stack: RefCell::new(stack),
            rings,
            connections: RefCell::default(),
            listeners: RefCell::default(),
            datagrams: RefCell::default(),
            watcher: RefCell::default(),
            early: Early::new(sim),
            known: RefCell::default(),
            system_calls: Cell::new(0),
            handlers: Cell::new((0, Duration::ZERO)),
            interrupted: RefCell::default(),
            due: Cell::new(None),
            due_sooner: Signal::new(sim),
            spec,
        });
        net.start_driver();
        for number in 0..net.rings.len() {
            sim.spawn(net.clone().serve_soft_ring(number));
        }
        let timer = net.threads.thread(Placement::Anywhere);
        sim.spawn(net.clone().watch_time(timer.clone()));
        sim.spawn(net.clone().serve_timer(timer));
        Ok(net)
    }

    /// Does something with the stack at this instant.
    pub(super) fn with<T>(&self, act: impl FnOnce(&mut Stack, Time) -> T) -> T {
        act(&mut self.stack.borrow_mut(), self.sim.now())
    }

    /// The number for transfers over the bus that belong to no frame.
    pub(super) fn no_frame(&self) -> MessageId {
        MessageId { source: self.card.node, sequence: NO_FRAME }
    }

    /// A connection that the stack has.
    pub(super) fn connection(&self, id: ConnectionId) -> Option<Rc<Connection>> {
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

    /// What follows from something that was done with the stack: threads that wait are woken, frames that are ready are sent,
    /// and the timer is set. All of it is work of `thread`.
    pub(super) async fn follow(self: &Rc<Net>, thread: &Thread, path: &mut Path) {
        loop {
            let event = self.stack.borrow_mut().next_event();
            let Some(event) = event else { break };
            let woken = self.changed(event, path);
            self.wake(thread, woken, path).await;
        }
        self.output(thread, path).await;
        self.set_timer();
    }

    /// Wakes threads; the path goes on beside that.
    pub(super) async fn wake(&self, thread: &Thread, woken: Vec<Thread>, path: &Path) {
        for other in woken {
            thread.wake(&other, &mut path.clone()).await;
        }
    }

    /// A socket has changed. Returns the threads to wake.
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

    /// Something has come for a socket: the thread that watches it, if one does.
    pub(super) fn came_for(&self, watched: &Cell<bool>) -> Option<Thread> {
        if watched.get() {
            self.early.note();
        }
        self.watcher.borrow().clone().filter(|_| watched.get())
    }

    /// Something has come for a listener or a datagram socket. Returns the threads to wake.
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
                let finish = Finish { checksum: out.needs_checksum, segment: out.segment };
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

    /// Lines of so many bytes.
    pub(super) fn lines(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil(self.spec.threads.caches.line)
    }

    /// Datagrams have left. Returns the threads to wake.
    fn emptied(&self, source: Source) -> Vec<Thread> {
        let Source::Datagram(id) = source else { return Vec::new() };
        self.datagrams.borrow().get(&id).map_or_else(Vec::new, |socket| socket.writers.all())
    }

    /// Sets the timer to what the stack has to do next.
    pub(super) fn set_timer(&self) {
        let stack = self.stack.borrow_mut().next_timer();
        let next = stack.into_iter().chain(self.holding.next()).min();
        let sooner = next.is_some_and(|next| self.due.get().is_none_or(|due| next < due));
        if sooner {
            self.due.set(next);
            self.due_sooner.notify_one();
        }
    }

    /// The clock of the kernel's timers: wakes their thread when something is due.
    async fn watch_time(self: Rc<Net>, timer: Thread) {
        loop {
            self.due_sooner.wait_until(|| self.due.get().is_some()).await;
            let Some(due) = self.due.get() else { continue };
            if let Either::Left(()) = race(self.sim.until(due), self.due_sooner.wait()).await {
                self.due.set(None);
                timer.interrupt();
            }
        }
    }

    /// The thread of the kernel's timers.
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

    /// A frame has changed a socket. Returns the threads to wake: those that read, and those that write, where there is as much
    /// room as wakes them.
    pub(super) fn arrived(&self, arrival: &Arrival, pushed: bool, path: &Path) -> Vec<Thread> {
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

    /// Whether a connection's send buffer has so much room that one who waits for it is woken.
    pub(super) fn has_room(&self, id: ConnectionId) -> bool {
        let stack = self.stack.borrow();
        let (room, used) = (stack.writable(id).unwrap_or(0), stack.unacknowledged(id).unwrap_or(0));
        room as u64 * 100 >= (room + used) as u64 * self.spec.sockets.wake_room
    }

    /// Forgets a connection whose handle was given back. Returns those who waited for it.
    pub(super) fn forget(&self, id: ConnectionId) -> Vec<Thread> {
        let known = self.connections.borrow_mut().remove(&id);
        known.map_or_else(Vec::new, |state| [state.readers.all(), state.writers.all()].concat())
    }

    /// Makes a rank's station known, as a network's administrator does who enters all of them by hand.
    pub(super) fn know(&self, rank: u32) {
        if rank >= self.card.nodes || rank == self.card.node.0 || !self.known.borrow_mut().insert(rank) {
            return;
        }
        let mac = wire::station(NodeId(rank));
        let mut stack = self.stack.borrow_mut();
        stack.add_neighbour(wire::ipv4(rank).into(), mac);
        stack.add_neighbour(wire::ipv6(rank).into(), mac);
    }
}

/// What the stack of a node is told.
pub(super) fn stack_spec(spec: &EthernetSpec, node: NodeId, seed: u64) -> StackSpec {
    let EthernetSpec { frames, sockets, tcp, .. } = spec;
    StackSpec {
        mac: wire::station(node),
        ipv4: Some(Network { address: wire::ipv4(node.0), prefix: 8, gateway: None }),
        // As operating systems do, the host goes without IPv6 where its packets have no room for it.
        ipv6: (frames.mtu as usize >= LEAST_MTU_V6).then_some(Network {
            address: wire::ipv6(node.0),
            prefix: 64,
            gateway: None,
        }),
        mtu: frames.mtu as usize,
        initial_rto: tcp.initial_rto,
        min_rto: tcp.min_rto,
        max_rto: tcp.max_rto,
        delayed_ack: Some(tcp.delayed_ack),
        ack_segments: tcp.ack_segments,
        timeout: tcp.timeout,
        connect_timeout: tcp.connect_timeout,
        time_wait: tcp.time_wait,
        initial_window: tcp.initial_window,
        congestion: tcp.congestion,
        sack: tcp.sack,
        loss_probe: tcp.sack,
        send_buffer: sockets.send_buffer as usize,
        receive_buffer: sockets.receive_buffer as usize,
        connections: sockets.connections as usize,
        memory: sockets.memory as usize,
        checksum_offload: frames.checksums,
        tso: (frames.tso > 0).then_some(frames.tso.min(u16::MAX.into()) as usize),
        seed,
        ..StackSpec::default()
    }
}
