//! Programs behind the kernel's packet buffer, for drivers without XDP of their own.

use super::Came;
use super::attached::{Attached, Front, Verdict};
use super::native::{Batch, HEADER_LINES, Polled};
use super::queues::Queued;
use super::targets::Target;
use crate::card::transmit::Finish;
use crate::net::Net;
use crate::net::softrings::Frame;
use crate::stages;
use nicety_host::threads::{Data, Group, Piece, Thread};
use std::rc::Rc;

impl Net {
    /// Runs the program on a frame in its packet buffer. Returns the frame, if the verdict is to pass it.
    pub(super) async fn run_generic(
        self: &Rc<Net>,
        thread: &Thread,
        attached: &Rc<Attached>,
        number: usize,
        (mut frame, came): (Frame, Came),
        batch: &mut Batch,
    ) -> Option<Frame> {
        let ran = self.run_program(attached, thread, number, &frame.bytes);
        let work = self.costs().program(ran.instructions, ran.calls);
        thread.run(Piece::new(Group::Driver, work), stages::XDP, &mut frame.path).await;
        self.wake_readers(thread, attached.program(), &frame.path).await;
        if let Some(bytes) = ran.frame {
            frame.bytes = bytes;
        }
        match ran.verdict {
            Verdict::Pass => {
                self.card.xdp.done(came, self.sim.now());
                return Some(frame);
            }
            Verdict::Transmit => self.send_buffer(thread, frame, came).await,
            Verdict::Redirect(targets) => {
                let polled =
                    Polled { thread, number, came, verified: frame.verified, lent: false, buffered: true };
                self.redirect_buffer(&polled, attached, (frame, targets), batch).await;
            }
            _ => {
                self.free_buffer(thread, frame).await;
                self.card.xdp.done(came, self.sim.now());
            }
        }
        None
    }

    /// Sends a packet buffer to its destinations. As in Linux, all but the last one get a clone.
    pub(super) async fn redirect_buffer(
        self: &Rc<Net>,
        polled: &Polled<'_>,
        attached: &Rc<Attached>,
        (mut frame, mut targets): (Frame, Vec<Target>),
        batch: &mut Batch,
    ) {
        let (thread, count) = (polled.thread, targets.len());
        let to_socket = matches!(targets[..], [Target::Socket { .. }]);
        let work = if to_socket { self.costs().socket } else { self.costs().redirect };
        thread.run(Piece::new(Group::Driver, work), stages::XDP, &mut frame.path).await;
        let last = targets.pop().unwrap_or(Target::Nowhere);
        for (copy, target) in targets.into_iter().enumerate() {
            let clone = Piece::new(Group::Buffers, self.spec.stack.buffer);
            thread.run(clone, stages::XDP, &mut frame.path).await;
            let (bytes, path, headers) = (frame.bytes.clone(), frame.path.clone(), Data::new(HEADER_LINES));
            let clone = Frame { bytes, verified: frame.verified, headers, path, loan: None };
            let came = Came { counts: copy == 0, ..polled.came };
            self.redirect_to(&Polled { came, ..*polled }, attached, (clone, target), batch).await;
        }
        let came = Came { counts: count < 2, ..polled.came };
        self.redirect_to(&Polled { came, ..*polled }, attached, (frame, last), batch).await;
    }

    async fn redirect_to(
        self: &Rc<Net>,
        polled: &Polled<'_>,
        attached: &Rc<Attached>,
        (frame, target): (Frame, Target),
        batch: &mut Batch,
    ) {
        let (thread, came) = (polled.thread, polled.came);
        match target {
            Target::Port { port, program } if self.has_port(port) => {
                let mut path = frame.path.clone();
                // Linux restores no metadata in front of a packet buffer.
                let (front, second) = (Front::default(), (&**attached, program));
                let own = (frame.bytes.clone(), &front, port);
                match self.run_for_port(polled, second, own, &mut path).await {
                    Some(bytes) => self.send_buffer(thread, Frame { bytes, path, ..frame }, came).await,
                    None => self.free_buffer(thread, frame).await,
                }
            }
            Target::Cpu { cpu, room, program } if (cpu as usize) < self.spec.cpus => {
                let second = program.map(|program| (program, attached.clone()));
                let (front, number) = (Front::default(), polled.number);
                let queued = Queued { frame, front, buffered: true, came, number, second };
                self.queue_frame((cpu, room), queued, batch);
            }
            Target::Socket { map, key } => {
                let own = (frame.bytes.clone(), frame.path.clone());
                self.to_socket(polled, attached, (map, key), own, batch).await;
                self.free_buffer(thread, frame).await;
            }
            _ => {
                self.free_buffer(thread, frame).await;
                self.unreachable(came);
            }
        }
    }

    /// Sends a packet buffer as it is.
    async fn send_buffer(self: &Rc<Net>, thread: &Thread, mut frame: Frame, came: Came) {
        let finish = Finish { checksum: false, segment: None, came: Some(came) };
        let mut path = frame.path.clone();
        self.send(thread, &frame.bytes, finish, &mut path).await;
        frame.path = path;
        self.free_buffer(thread, frame).await;
    }

    pub(super) async fn free_buffer(self: &Rc<Net>, thread: &Thread, frame: Frame) {
        let Frame { mut path, loan, .. } = frame;
        thread.run(Piece::new(Group::Buffers, self.spec.stack.buffer), stages::XDP, &mut path).await;
        self.free(thread, loan, &mut path).await;
    }
}
