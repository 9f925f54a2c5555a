//! Programs of entries of device maps and CPU maps. They run behind a redirect, before the frame is sent or on its new CPU.

use super::Came;
use super::attached::{Attached, Front, Run, Verdict};
use super::native::{Batch, Polled};
use super::queues::Queued;
use crate::net::Net;
use crate::net::softrings::Frame;
use crate::stages;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_types::{Buffer, Path};
use std::rc::Rc;

/// The receive queue that a program behind a redirect sees. A frame in front of the packet buffer has lost its queue, and Linux
/// shows 0.
fn seen_queue(number: usize, buffered: bool) -> usize {
    if buffered { number } else { 0 }
}

impl Net {
    /// Runs the program of a device map's entry on a frame. Returns the frame, if it is to be sent by the port.
    pub(super) async fn run_for_port(
        &self,
        polled: &Polled<'_>,
        (attached, program): (&Attached, Option<usize>),
        (frame, front, port): (Buffer, &Front, u32),
        path: &mut Path,
    ) -> Option<Buffer> {
        let Some(program) = program else { return Some(frame) };
        let cpu = polled.thread.cpu().expect("it runs");
        let queue = seen_queue(polled.number, polled.buffered);
        let run = Run { queue, cpu, now: self.sim.now(), leaves: port };
        let ran = attached.run_second(program, (&frame, front), run);
        let passes = self.count_second(attached, &ran.verdict, (ran.instructions, ran.calls));
        let work = self.costs().program(ran.instructions, ran.calls);
        polled.thread.run(Piece::new(Group::Driver, work), stages::XDP, path).await;
        self.wake_readers(polled.thread, attached.program(), path).await;
        if !passes {
            self.drop_second(polled.came);
            return None;
        }
        ran.frame
    }

    /// Runs the program of a CPU map's entry on a frame of that CPU's queue. Returns the frame, if the protocols get it.
    pub(super) async fn run_on_cpu(
        self: &Rc<Net>,
        (thread, cpu): (&Thread, usize),
        queued: Queued,
    ) -> Option<(Frame, Came)> {
        let Queued { mut frame, front, buffered, came, number, second } = queued;
        let Some((program, attached)) = second else { return Some((frame, came)) };
        let queue = seen_queue(number, buffered);
        let run = Run { queue, cpu, now: self.sim.now(), leaves: 0 };
        let ran = attached.run_second(program, (&frame.bytes, &front), run);
        let passes = self.count_second(&attached, &ran.verdict, (ran.instructions, ran.calls));
        let work = self.costs().program(ran.instructions, ran.calls);
        thread.run(Piece::new(Group::Driver, work), stages::XDP, &mut frame.path).await;
        self.wake_readers(thread, attached.program(), &frame.path).await;
        match (ran.verdict, ran.frame) {
            (Verdict::Redirect(targets), Some(bytes)) => {
                let mut batch = Batch::default();
                let polled = Polled { thread, number, came, verified: frame.verified, lent: false, buffered };
                if buffered {
                    let frame = Frame { bytes, ..frame };
                    self.redirect_buffer(&polled, &attached, (frame, targets), &mut batch).await;
                } else {
                    let frame_path = (frame.path, &mut batch);
                    self.redirect(&polled, &attached, (bytes, ran.front, targets), frame_path).await;
                }
                self.flush(thread, batch).await;
                None
            }
            (_, Some(bytes)) if passes => {
                frame.bytes = bytes;
                Some((frame, came))
            }
            _ => {
                if buffered {
                    self.free_buffer(thread, frame).await;
                }
                self.drop_second(came);
                None
            }
        }
    }

    /// Counts a run, and returns whether its verdict is to pass the frame.
    fn count_second(
        &self,
        attached: &Attached,
        verdict: &Verdict,
        (instructions, calls): (u64, nicety_ebpf::Calls),
    ) -> bool {
        self.card.xdp.count(|counts| counts.add_second(verdict, (instructions, calls)));
        if let Verdict::Trapped(trap) = verdict {
            let text = format!("XDP, after {}: {trap}", attached.program().name);
            self.card.xdp.fail(self.card.node, self.sim.now(), text);
        }
        *verdict == Verdict::Pass
    }

    fn drop_second(&self, came: Came) {
        self.card.xdp.count(|counts| counts.second_dropped += 1);
        self.card.xdp.done(came, self.sim.now());
    }
}
