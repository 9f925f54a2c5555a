//! Programs in the driver's poll, before the kernel's packet buffer.

use super::attached::{Attached, Front, Mode, Ran, Run, Verdict};
use super::queues::{Queued, Second};
use super::targets::Target;
use super::xsk::Xsk;
use super::{Came, Xdp};
use crate::card::receive::Arrived;
use crate::card::transmit::Finish;
use crate::net::Net;
use crate::net::softrings::Frame;
use crate::stages;
use crate::xdp_spec::XdpSpec;
use nicety_host::threads::{Data, Group, Piece, Thread};
use nicety_types::{Buffer, MessageId, Path, Stage};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The cache lines of a frame that another CPU reads.
pub(super) const HEADER_LINES: u64 = 3;

/// Work at the end of a poll, for all of its frames at once.
#[derive(Default)]
pub(crate) struct Batch {
    /// The last frame in a transmit ring that the card does not know of yet.
    posted: Option<MessageId>,
    /// CPUs with new frames in their queues.
    cpus: BTreeSet<u32>,
    /// Sockets of AF_XDP with new frames, each with the path of its first one.
    pub(super) sockets: Vec<(Rc<Xsk>, Path)>,
}

/// A frame in its ring, on the way through a program.
#[derive(Clone, Copy)]
pub(super) struct Polled<'a> {
    pub(super) thread: &'a Thread,
    /// The receive queue.
    pub(super) number: usize,
    pub(super) came: Came,
    pub(super) verified: bool,
    /// Whether its buffer is that of a socket.
    pub(super) lent: bool,
    /// Whether it is in a packet buffer of the kernel, behind a generic program.
    pub(super) buffered: bool,
}

impl Net {
    /// Takes a frame from its ring, with the attached program. Returns it, if it goes to the protocols.
    pub(crate) async fn take(
        self: &Rc<Net>,
        thread: &Thread,
        state: &Data,
        number: usize,
        arrived: Arrived,
        (handler, batch): (&Path, &mut Batch),
    ) -> Option<Frame> {
        let Some(attached) = self.card.xdp.attached() else {
            return Some(self.take_frame(thread, state, number, (arrived, None), handler).await);
        };
        let came = arrived.came;
        match attached.mode() {
            Mode::Native => {
                let (arrived, frame) =
                    self.run_native(thread, &attached, number, arrived, (handler, batch)).await?;
                let taken = self.take_frame(thread, state, number, (arrived, Some(frame)), handler).await;
                self.card.xdp.done(came, self.sim.now());
                Some(taken)
            }
            Mode::Generic => {
                let taken = self.take_frame(thread, state, number, (arrived, None), handler).await;
                self.run_generic(thread, &attached, number, (taken, came), batch).await
            }
        }
    }

    /// The costs of XDP. A program is attached only where there are some.
    pub(super) fn costs(&self) -> &XdpSpec {
        self.spec.xdp.as_ref().expect("a program is attached")
    }

    /// Runs a program on a frame, and counts it.
    pub(super) fn run_program(
        &self,
        attached: &Attached,
        thread: &Thread,
        queue: usize,
        frame: &[u8],
    ) -> Ran {
        let cpu = thread.cpu().expect("it runs");
        let ran = attached.run(frame, Run { queue, cpu, now: self.sim.now(), leaves: 0 });
        let xdp: &Xdp = &self.card.xdp;
        xdp.count(|counts| counts.add(&ran));
        if let Verdict::Trapped(trap) = &ran.verdict {
            xdp.fail(self.card.node, self.sim.now(), format!("XDP: {trap}"));
        }
        ran
    }

    /// Runs the program on a frame in its ring. Returns the frame, and its bytes, if the verdict is to pass it.
    async fn run_native(
        self: &Rc<Net>,
        thread: &Thread,
        attached: &Rc<Attached>,
        number: usize,
        arrived: Arrived,
        (handler, batch): (&Path, &mut Batch),
    ) -> Option<(Arrived, Buffer)> {
        let Arrived { address, bytes, held, verified, message, mut path, came } = arrived;
        path.advance(stages::COALESCED, handler.origin());
        path.advance(stages::HANDLER, handler.at());
        path.advance(Stage::CPU_QUEUED, self.sim.now());
        let frame = self.card.dma.bytes(address, bytes).into_buffer().expect("frames are real bytes");
        let ran = self.run_program(attached, thread, number, &frame);
        let costs = *self.costs();
        let work = costs.program(ran.instructions, ran.calls);
        if ran.verdict == Verdict::Pass {
            thread.run(Piece::new(Group::Driver, work), stages::XDP, &mut path).await;
            self.wake_readers(thread, attached.program(), &path).await;
            let frame = ran.frame.expect("a passed frame has bytes");
            self.copy_out(thread, attached, (number, frame.len()), &mut path).await;
            return Some((Arrived { address, bytes, held, verified, message, path, came }, frame));
        }
        // The frame ends here, and its buffer goes back into the ring, or to a socket.
        thread.run(Piece::new(Group::Driver, costs.frame + work), stages::XDP, &mut path).await;
        self.wake_readers(thread, attached.program(), &path).await;
        let lent = self.leave_ring(attached, (number, held, address), &ran.verdict);
        if let (false, Some(frame)) = (lent, &ran.frame) {
            self.copy_out(thread, attached, (number, frame.len()), &mut path).await;
        }
        self.card.recorder.message_noticed(message, self.sim.now());
        let polled = Polled { thread, number, came, verified, lent, buffered: false };
        self.carry_out(&polled, attached, ran, (path, batch)).await;
        None
    }

    /// Carries out a verdict that ends in the driver.
    async fn carry_out(
        self: &Rc<Net>,
        polled: &Polled<'_>,
        attached: &Rc<Attached>,
        ran: Ran,
        (path, batch): (Path, &mut Batch),
    ) {
        match (ran.verdict, ran.frame) {
            (Verdict::Transmit, Some(frame)) => self.post_raw(polled, &frame, path, batch).await,
            (Verdict::Redirect(targets), Some(frame)) => {
                self.redirect(polled, attached, (frame, ran.front, targets), (path, batch)).await;
            }
            _ => self.card.xdp.done(polled.came, self.sim.now()),
        }
    }

    /// Sends copies of a frame to their destinations, through the programs of their entries.
    pub(super) async fn redirect(
        self: &Rc<Net>,
        polled: &Polled<'_>,
        attached: &Rc<Attached>,
        (frame, front, targets): (Buffer, Front, Vec<Target>),
        (mut path, batch): (Path, &mut Batch),
    ) {
        let to_socket = matches!(targets[..], [Target::Socket { .. }]);
        let work = if to_socket { self.costs().socket } else { self.costs().redirect };
        polled.thread.run(Piece::new(Group::Driver, work), stages::XDP, &mut path).await;
        if targets.is_empty() {
            self.unreachable(polled.came);
        }
        for (copy, target) in targets.into_iter().enumerate() {
            let came = Came { counts: copy == 0, ..polled.came };
            let polled = Polled { came, ..*polled };
            match target {
                Target::Port { port, program } if self.has_port(port) => {
                    let mut path = path.clone();
                    let second = (&**attached, program);
                    if let Some(frame) =
                        self.run_for_port(&polled, second, (frame.clone(), &front, port), &mut path).await
                    {
                        self.post_raw(&polled, &frame, path, batch).await;
                    }
                }
                Target::Cpu { cpu, room, program } if (cpu as usize) < self.spec.cpus => {
                    let second = program.map(|program| (program, attached.clone()));
                    let frame = (frame.clone(), front.clone(), path.clone());
                    self.queue_for((cpu, room), &polled, (frame, second), batch);
                }
                Target::Socket { map, key } => {
                    let frame = (frame.clone(), path.clone());
                    self.to_socket(&polled, attached, (map, key), frame, batch).await;
                }
                _ => self.unreachable(came),
            }
        }
    }

    pub(super) fn unreachable(&self, came: Came) {
        self.card.xdp.count(|counts| counts.unreachable += 1);
        self.card.xdp.done(came, self.sim.now());
    }

    /// Whether the card has an interface. The first has number 1.
    pub(super) fn has_port(&self, port: u32) -> bool {
        (1..=self.spec.node.ports).contains(&port)
    }

    /// Queues a frame for another CPU.
    fn queue_for(
        self: &Rc<Net>,
        (cpu, room): (u32, u32),
        polled: &Polled<'_>,
        ((bytes, front, path), second): ((Buffer, Front, Path), Option<Second>),
        batch: &mut Batch,
    ) {
        let headers = Data::new(HEADER_LINES);
        let frame = Frame { bytes, verified: polled.verified, headers, path, loan: None };
        let (came, number) = (polled.came, polled.number);
        let queued = Queued { frame, front, buffered: false, came, number, second };
        self.queue_frame((cpu, room), queued, batch);
    }

    pub(super) fn queue_frame(self: &Rc<Net>, (cpu, room): (u32, u32), queued: Queued, batch: &mut Batch) {
        if self.enqueue(cpu, room, queued) {
            batch.cpus.insert(cpu);
        } else {
            self.card.xdp.count(|counts| counts.queue_full += 1);
        }
    }

    /// Puts a frame into a transmit ring as it is. The doorbell follows at the end of the poll.
    async fn post_raw(&self, polled: &Polled<'_>, frame: &[u8], mut path: Path, batch: &mut Batch) {
        let number = polled.number % self.card.transmit.len();
        let (ring, thread) = (&self.card.transmit[number], polled.thread);
        let reclaim = self.spec.driver.reclaim;
        if reclaim > 0 && ring.pending() >= reclaim {
            self.read_register(thread).await;
            ring.reclaim();
        }
        thread.run(Piece::new(Group::Driver, self.costs().transmit), stages::XDP, &mut path).await;
        if ring.is_full() {
            return self.card.xdp.count(|counts| counts.transmit_full += 1);
        }
        let finish = Finish { checksum: false, segment: None, came: Some(polled.came) };
        batch.posted = Some(self.card.post(number, frame, finish, path));
    }

    /// Does the work at the end of a poll: rings the doorbell, and wakes the CPUs with new frames.
    pub(crate) async fn flush(self: &Rc<Net>, thread: &Thread, batch: Batch) {
        if let Some(message) = batch.posted {
            self.doorbell(thread, message).await;
        }
        for cpu in batch.cpus {
            self.wake_cpu(thread, cpu).await;
        }
        self.wake_sockets(thread, batch.sockets).await;
    }
}
