//! The runs of messages' handlers on the handler cores.

use crate::Card;
use nicety_nic_processors::clusters::course;
use nicety_nic_processors::hpus::Thread;
use nicety_nic_processors::map;
use nicety_nic_processors::programs::program::Kind;
use nicety_nic_processors::ready::Run;
use nicety_nic_processors::run::Starting;
use nicety_nic_processors::running::{RunMemory, Running};
use nicety_portals::HeaderKind;
use nicety_types::Payload;
use std::rc::Rc;

impl Card {
    /// The task of a thread of a core. It runs one handler after another.
    pub(crate) async fn serve_thread(self: Rc<Card>, thread: Rc<Thread>) {
        loop {
            let run = thread.next().await;
            self.run(&thread, run).await;
        }
    }

    /// Makes a handler ready to run.
    pub(crate) fn ready(self: &Rc<Card>, run: Run) {
        match self.handlers.scheduler.clusters() {
            true => course::schedule(self, run),
            false => self.ready_on(None, run),
        }
    }

    /// Makes a handler ready to run, in a cluster if one is given.
    pub(crate) fn ready_on(self: &Rc<Card>, cluster: Option<usize>, run: Run) {
        let new = self.processors().hpus.ready(cluster, run, self.sim.now(), |run| {
            let attachment = self.attachment_of(run.place).expect("only messages with handlers run them");
            attachment.application().clone()
        });
        if let Some(new) = new {
            self.sim.spawn(self.clone().serve_thread(new));
        }
    }

    async fn run(self: &Rc<Card>, thread: &Rc<Thread>, mut run: Run) {
        let (now, ready) = (self.sim.now(), run.path.at());
        let message = self.incoming.borrow_mut().get(run.place).message;
        let attachment = self.attachment_of(run.place).expect("only messages with handlers run them");
        run.stay.began = now;
        if attachment.application().exhausted() {
            self.processors().hpus.release(thread, self.sim.now());
            course::left_cluster(self, thread.core, &run);
            return self.refused(run);
        }
        let starting = Starting {
            kind: run.kind,
            place: run.place,
            packet: run.packet.as_ref().map(|packet| packet.offset),
            message,
            attachment,
            memory: RunMemory::empty(),
            path: run.path.clone(),
        };
        let mut running = self.processors().start(thread, starting);
        let started = running.edges.at(0);
        let (entry, arguments) = self.arguments(&mut run, &mut running);
        let ended = self.processors().execute(self, thread, &mut running, entry, arguments).await;
        self.processors().end(&mut running);
        let parked = running.edges.at(0).since(started);
        self.processors().record_run(&running, [ready, now], parked, ended.name());
        if let Some(packet) = &mut run.packet {
            packet.payload = self.payload_after(thread, &mut running, packet.offset);
            packet.path = running.path.clone();
        }
        if running.issued.is_some() && thread.commands().hold_feedback().await {
            // The core has kept its task until its transfers ended. The cycles of the handler end begin now.
            self.sim
                .until(
                    self.processors()
                        .levels
                        .edges(thread.core, self.sim.now())
                        .at(self.processors().hpu.handler_end),
                )
                .await;
        }
        // The core is released first, because the result may start another handler on it.
        self.processors().hpus.release(thread, self.sim.now());
        match self.handlers.scheduler.clusters() {
            true => self.sim.spawn(course::feed_back(self.clone(), running, run, ended)),
            false => self.apply_result(thread.core, run, ended, running.path),
        }
    }

    /// Returns the payload of a packet after its handler has ended. A handler of PsPIN has used a copy of the packet in
    /// L1. The next handler on the packet gets a new copy from L2.
    fn payload_after(&self, thread: &Thread, running: &mut Running, offset: u64) -> Payload {
        let payload = running.memory.take_payload();
        let has_next = running.kind == Kind::Header
            || self.incoming.borrow_mut().get(running.place).keeps(offset, payload.len());
        match &thread.state.borrow().hardware {
            Some(hardware) if has_next && payload.is_real() => Payload::copy_of(hardware.l2()),
            _ => payload,
        }
    }

    /// Lets a handler yield. Its core runs other handlers, and then resumes this handler. The handler keeps its stack
    /// and its packet, and loses its reservation.
    pub(crate) async fn let_others_go(self: &Rc<Card>, running: &mut Running) {
        // Handlers that become ready at this instant compete for the core, too.
        self.sim.yield_now().await;
        let (thread, asked) = (running.thread.clone(), self.sim.now());
        if !self.processors().hpus.others_wait(thread.core) {
            return;
        }
        self.processors().leave_core(running);
        let application = running.application();
        application.reservations.borrow_mut().release(thread.core as u32);
        if let Some(new) = self.processors().hpus.park(&thread, application, asked) {
            self.sim.spawn(self.clone().serve_thread(new));
        }
        thread.resumed().await;
        running.since = self.sim.now();
        self.processors().queued(thread.core, running.message, &mut running.path);
        // During the yield, the handler's `cycle` counter does not advance, but its `time` counter does.
        let started = running.edges.at(0) + running.since.since(asked);
        running.edges = self.processors().levels.edges(thread.core, started);
        thread.state.borrow_mut().context.set_time_base(running.edges.card());
    }

    /// Fills the memory of a run. Returns the entry point and the arguments.
    fn arguments(&self, run: &mut Run, running: &mut Running) -> (u32, [u32; 3]) {
        let memory = &mut running.memory;
        let slots = run.slots;
        let mut table = self.incoming.borrow_mut();
        let incoming = table.get(run.place);
        let attachment = incoming.attachment.as_ref().expect("only messages with handlers run them");
        let program = &attachment.program.handlers;
        let payload = run.packet.as_mut().map(|p| std::mem::take(&mut p.payload)).unwrap_or_default();
        let delivery = incoming.delivery.expect("only matched messages run handlers");
        let offset = run.packet.as_ref().map_or(0, |p| p.offset);
        let kept = incoming.kept(offset, payload.len()) as u32;

        memory.hold(payload);
        if program.pspin.is_some() {
            let handler = match run.kind {
                Kind::Header => program.header,
                Kind::Payload => program.payload,
                Kind::Completion => program.completion,
            };
            drop(table);
            return self.begin_task(running, handler.expect("only handlers that exist are run"), slots);
        }
        let isa = &self.processors().hpu.core.isa;
        let pointer = if run.kind == Kind::Header { 40 } else { 0 };
        let behind = memory.put_pointer(pointer, map::PACKET, isa);
        let mut put = |at: usize, bytes: &[u8]| memory.arguments[at..at + bytes.len()].copy_from_slice(bytes);
        let (entry, registers) = match run.kind {
            Kind::Header => {
                let header = &incoming.header;
                put(0, &request_type(header.kind).to_le_bytes());
                put(4, &(header.length as u32).to_le_bytes());
                put(8, &header.source.0.to_le_bytes());
                put(12, &header.target.0.to_le_bytes());
                put(16, &header.match_bits.to_le_bytes());
                put(24, &header.hdr_data.to_le_bytes());
                put(32, &(delivery.remote_offset as u32).to_le_bytes());
                put(36, &(delivery.mlength as u32).to_le_bytes());
                put(behind, &kept.to_le_bytes());
                (program.header, [map::ARGUMENTS, attachment.state_address(), 0])
            }
            Kind::Payload => {
                put(behind, &kept.to_le_bytes());
                put(behind + 4, &(offset as u32).to_le_bytes());
                (program.payload, [map::ARGUMENTS, attachment.state_address(), 0])
            }
            Kind::Completion => {
                let flow_control = u32::from(incoming.flow_control);
                (
                    program.completion,
                    [incoming.dropped_bytes as u32, flow_control, attachment.state_address()],
                )
            }
        };
        (entry.expect("only handlers that exist are run"), registers)
    }
}

/// Returns the request type of a message, as numbered in nicety.h.
const fn request_type(kind: HeaderKind) -> u32 {
    match kind {
        HeaderKind::Put | HeaderKind::Reply | HeaderKind::Ack => 0,
        HeaderKind::Get => 1,
        HeaderKind::Atomic => 2,
        HeaderKind::FetchAtomic => 3,
        HeaderKind::Swap => 4,
    }
}
