//! Destinations of redirected frames: ports, queues of other CPUs, and sockets of programs.

use super::Came;
use super::queues::CpuQueue;
use crate::net::Net;
use crate::net::softrings::Frame;
use crate::stages;
use nicety_ebpf::{Machine, MapKind, Redirect};
use nicety_host::threads::{Group, Piece, Placement, Thread};
use std::rc::Rc;

/// A destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An interface, by its number from 1 on.
    Port(u32),
    /// Another CPU, with the room of its queue.
    Cpu {
        /// Its number.
        cpu: u32,
        /// The most frames that wait for it.
        room: u32,
    },
    /// A socket of a program, by its place in the map.
    Socket(u32),
    /// An entry that is gone.
    Nowhere,
}

/// The destinations of a redirected frame.
pub(super) fn targets(machine: &Machine, redirect: Option<Redirect>) -> Vec<Target> {
    let word = |value: &[u8]| value.first_chunk().map_or(0, |word| u32::from_ne_bytes(*word));
    match redirect {
        None => vec![Target::Nowhere],
        Some(Redirect::Interface(number)) => vec![Target::Port(number)],
        Some(Redirect::Entry { map, key }) => {
            let map = &machine.maps[map];
            let found = map.get(&key.to_ne_bytes());
            let Some(value) = found.as_ref().and_then(|values| values.first()) else {
                return vec![Target::Nowhere];
            };
            vec![match map.kind {
                MapKind::Cpus => Target::Cpu { cpu: key, room: word(value) },
                MapKind::Sockets => Target::Socket(key),
                _ => Target::Port(word(value)),
            }]
        }
        Some(Redirect::Broadcast { map, exclude_ingress }) => {
            let items = machine.maps[map].items();
            let ports = items.iter().filter_map(|item| item.values.first()).map(|value| word(value));
            // The host's frames all come from interface 1.
            ports.filter(|port| !exclude_ingress || *port != 1).map(Target::Port).collect()
        }
    }
}

impl Net {
    /// Puts a frame into the queue of a CPU. Returns whether it had room.
    pub(super) fn enqueue(self: &Rc<Net>, cpu: u32, room: u32, frame: Frame, came: Came) -> bool {
        let queue = self.cpu_queue(cpu);
        let mut frames = queue.frames.borrow_mut();
        if frames.len() >= room as usize {
            return false;
        }
        frames.push_back((frame, came));
        true
    }

    /// Wakes the thread of a CPU's queue.
    pub(super) async fn wake_cpu(self: &Rc<Net>, thread: &Thread, cpu: u32) {
        let queue = self.cpu_queue(cpu);
        let Some(mut path) = queue.frames.borrow().front().map(|(frame, _)| frame.path.clone()) else {
            return;
        };
        thread.wake(&queue.thread, &mut path).await;
    }

    fn cpu_queue(self: &Rc<Net>, cpu: u32) -> Rc<CpuQueue> {
        if let Some(known) = self.cpu_queues.borrow().get(&cpu) {
            return known.clone();
        }
        let thread = self.threads.thread(Placement::Bound(cpu as usize));
        let queue = Rc::new(CpuQueue::new(thread));
        self.cpu_queues.borrow_mut().insert(cpu, queue.clone());
        self.sim.spawn(self.clone().serve_cpu(queue.clone()));
        queue
    }

    /// The thread of a CPU's queue: makes a packet buffer of each frame, and runs the protocols.
    async fn serve_cpu(self: Rc<Net>, queue: Rc<CpuQueue>) {
        let thread = &queue.thread;
        loop {
            let next = queue.frames.borrow_mut().pop_front();
            let Some((mut frame, came)) = next else {
                thread.sleep().await;
                continue;
            };
            let buffer = Piece::new(Group::Buffers, self.spec.stack.buffer);
            thread.run(buffer, stages::XDP, &mut frame.path).await;
            self.card.xdp.done(came, self.sim.now());
            self.receive(thread, frame).await;
        }
    }
}
