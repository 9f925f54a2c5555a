//! Programs behind the kernel's packet buffer, for drivers without XDP of their own.

use super::Came;
use super::attached::{Attached, Verdict};
use super::native::Batch;
use super::targets::Target;
use crate::card::transmit::Finish;
use crate::net::Net;
use crate::net::softrings::Frame;
use crate::stages;
use nicety_host::threads::{Group, Piece, Thread};
use std::rc::Rc;

impl Net {
    /// Runs the program on a frame in its packet buffer. Returns the frame, if the verdict is to pass it.
    pub(super) async fn run_generic(
        self: &Rc<Net>,
        thread: &Thread,
        attached: &Attached,
        number: usize,
        (mut frame, came): (Frame, Came),
        batch: &mut Batch,
    ) -> Option<Frame> {
        let ran = self.run_program(attached, thread, number, &frame.bytes);
        let work = self.costs().program(ran.instructions, ran.calls);
        thread.run(Piece::new(Group::Driver, work), stages::XDP, &mut frame.path).await;
        if let Some(bytes) = ran.frame {
            frame.bytes = bytes;
        }
        match ran.verdict {
            Verdict::Pass => {
                self.card.xdp.done(came, self.sim.now());
                return Some(frame);
            }
            Verdict::Transmit => self.send_buffer(thread, frame, came).await,
            Verdict::Redirect(targets) => self.redirect_buffer(thread, (frame, came), targets, batch).await,
            _ => {
                self.free_buffer(thread, frame).await;
                self.card.xdp.done(came, self.sim.now());
            }
        }
        None
    }

    async fn redirect_buffer(
        self: &Rc<Net>,
        thread: &Thread,
        (mut frame, came): (Frame, Came),
        targets: Vec<Target>,
        batch: &mut Batch,
    ) {
        let redirect = Piece::new(Group::Driver, self.costs().redirect);
        thread.run(redirect, stages::XDP, &mut frame.path).await;
        // The generic path has one destination.
        match targets.first() {
            Some(&Target::Port(port)) if self.has_port(port) => self.send_buffer(thread, frame, came).await,
            Some(&Target::Cpu { cpu, room }) if (cpu as usize) < self.spec.cpus => {
                self.queue_frame(cpu, room, (frame, came), batch);
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

    async fn free_buffer(self: &Rc<Net>, thread: &Thread, frame: Frame) {
        let Frame { mut path, loan, .. } = frame;
        thread.run(Piece::new(Group::Buffers, self.spec.stack.buffer), stages::XDP, &mut path).await;
        self.free(thread, loan, &mut path).await;
    }
}
