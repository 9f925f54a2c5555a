//! The threads of CPUs' queues.

use super::queues::{CpuQueue, Queued};
use crate::net::Net;
use crate::stages;
use nicety_host::threads::{Group, Piece, Placement, Thread};
use std::rc::Rc;

impl Net {
    /// Puts a frame into the queue of a CPU. Returns whether it had room.
    pub(super) fn enqueue(self: &Rc<Net>, cpu: u32, room: u32, queued: Queued) -> bool {
        let queue = self.cpu_queue(cpu);
        let mut frames = queue.frames.borrow_mut();
        if frames.len() >= room as usize {
            return false;
        }
        frames.push_back(queued);
        true
    }

    /// Wakes the thread of a CPU's queue.
    pub(super) async fn wake_cpu(self: &Rc<Net>, thread: &Thread, cpu: u32) {
        let queue = self.cpu_queue(cpu);
        let Some(mut path) = queue.frames.borrow().front().map(|queued| queued.frame.path.clone()) else {
            return;
        };
        thread.wake(&queue.thread, &mut path).await;
    }

    fn cpu_queue(self: &Rc<Net>, cpu: u32) -> Rc<CpuQueue> {
        if let Some(known) = self.cpu_queues.borrow().get(&cpu) {
            return known.clone();
        }
        let thread = self.threads.thread(Placement::Bound(cpu as usize));
        let queue = Rc::new(CpuQueue::new(thread, cpu as usize));
        self.cpu_queues.borrow_mut().insert(cpu, queue.clone());
        self.sim.spawn(self.clone().serve_cpu(queue.clone()));
        queue
    }

    /// The thread of a CPU's queue: makes packet buffers of frames without one, and runs the protocols.
    async fn serve_cpu(self: Rc<Net>, queue: Rc<CpuQueue>) {
        let thread = &queue.thread;
        loop {
            let next = queue.frames.borrow_mut().pop_front();
            let Some(queued) = next else {
                thread.sleep().await;
                continue;
            };
            let buffered = queued.buffered;
            let Some((mut frame, came)) = self.run_on_cpu((thread, queue.cpu), queued).await else {
                continue;
            };
            if !buffered {
                let buffer = Piece::new(Group::Buffers, self.spec.stack.buffer);
                thread.run(buffer, stages::XDP, &mut frame.path).await;
            }
            self.card.xdp.done(came, self.sim.now());
            self.receive(thread, frame).await;
        }
    }
}
