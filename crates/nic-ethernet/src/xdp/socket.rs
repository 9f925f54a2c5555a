//! Sockets of AF_XDP: frames of a receive queue that a program redirects to a program of the host.
//!
//! A socket has a memory of its own, with buffers in its fill ring. In copy mode the driver takes a buffer and copies the frame
//! to it. With zero copy the card's receive ring has buffers of that memory. The driver hands over the frame's buffer, and
//! replaces it by another one from the fill ring. Without one the place stays empty, until the program gives a buffer back.

use super::attached::{Attached, Verdict, XdpProgram};
use super::native::{Batch, Polled};
use super::targets::Target;
use super::xsk::{Xsk, XskOptions, XskReader};
use super::{Mode, XdpError};
use crate::card::receive::{Held, ReceiveRing};
use crate::net::Net;
use crate::net::loans::Loan;
use crate::spec::EthernetSpec;
use crate::stages;
use nicety_ebpf::MapKind;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_kernel::describe;
use nicety_types::{Buffer, Path};
use std::rc::Rc;

impl XdpProgram {
    /// Binds a socket to an entry of a map and to a receive queue of the card. This is set-up, and takes no virtual time.
    ///
    /// # Errors
    /// The map has no such sockets, the entry is in use, or the driver cannot do this.
    pub fn bind(
        &self,
        (map, key): (usize, u32),
        options: XskOptions,
        spec: &EthernetSpec,
    ) -> Result<(), XdpError> {
        let refuse = |problem: String| Err(XdpError::Socket(problem));
        let driver = spec.xdp.ok_or(XdpError::NoCosts)?;
        let mut machine = self.machine.borrow_mut();
        let map_of_sockets = &mut machine.maps[map];
        let entries = map_of_sockets.definition.max_entries;
        if map_of_sockets.kind != MapKind::Sockets {
            return refuse("it has no sockets; name an xskmap".to_owned());
        }
        if key >= entries {
            return refuse(format!("key {key} is beyond its {entries} entries"));
        }
        if options.queue >= spec.receive.channels {
            let channels = spec.receive.channels;
            return refuse(format!("queue {}: the card has {channels} receive channels", options.queue));
        }
        let mut sockets = self.sockets.borrow_mut();
        if sockets.iter().any(|other| other.entry == (map, key)) {
            return refuse(format!("key {key} has a socket already"));
        }
        let same = |other: &Rc<Xsk>| {
            other.options.queue == options.queue && (other.options.zero_copy || options.zero_copy)
        };
        if sockets.iter().any(same) {
            return refuse(format!(
                "queue {} has a socket already; with zero copy a queue has only one socket",
                options.queue
            ));
        }
        let ring = if options.zero_copy { spec.receive.entries * spec.receive.block } else { 0 };
        match options.zero_copy {
            true if !driver.zero_copy => {
                return refuse("the driver has no zero copy (host.xdp.zero_copy); leave it out".to_owned());
            }
            true if self.mode == Mode::Generic => {
                return refuse(
                    "a program in generic mode has no zero copy; attach it in native mode".to_owned(),
                );
            }
            _ if options.buffers <= ring || options.buffers == 0 => {
                return refuse(format!("{} buffers: write more than {ring}", options.buffers));
            }
            _ => {}
        }
        let value = vec![vec![1, 0, 0, 0]];
        if let Err(error) = map_of_sockets.set(&key.to_ne_bytes(), &value, 0) {
            return refuse(format!("key {key} cannot be set ({error})"));
        }
        sockets.push(Rc::new(Xsk::new((map, key), options, options.buffers - ring)));
        Ok(())
    }

    /// The socket of an entry.
    fn socket(&self, entry: (usize, u32)) -> Option<Rc<Xsk>> {
        self.sockets.borrow().iter().find(|socket| socket.entry == entry).cloned()
    }

    /// The socket with zero copy of a receive queue.
    fn zero_copy_of(&self, queue: usize) -> Option<Rc<Xsk>> {
        let sockets = self.sockets.borrow();
        sockets.iter().find(|socket| socket.options.zero_copy && socket.options.queue == queue).cloned()
    }

    /// Buffers in the fill ring of an entry's socket, and places of the card's ring without a buffer.
    pub fn buffers_of(&self, entry: (usize, u32)) -> Option<(u64, usize)> {
        let socket = self.socket(entry)?;
        let empty = socket.empty.borrow().len();
        Some((socket.fill.get(), empty))
    }
}

impl Net {
    /// The end of a frame in its ring: whether its buffer is one of a socket's memory, and goes to that socket. Otherwise the
    /// buffer goes back into the ring.
    pub(super) fn leave_ring(
        &self,
        attached: &Attached,
        (number, held, address): (usize, Held, u64),
        verdict: &Verdict,
    ) -> bool {
        let ring: &ReceiveRing = &self.card.receive[number];
        let program = attached.program();
        let socket = program.zero_copy_of(number).filter(|socket| {
            let (map, key) = socket.entry;
            matches!(verdict, Verdict::Redirect(targets) if targets[..] == [Target::Socket { map, key }])
        });
        ring.copies(held, &self.spec.driver);
        match &socket {
            Some(socket) if !socket.take_buffer() => {
                socket.empty.borrow_mut().push_back(Loan::new(&self.card, number, held, address));
            }
            _ => ring.emptied.set(ring.emptied.get() + ring.free(held)),
        }
        socket.is_some()
    }

    /// Copies a frame out of a socket's memory, if its queue has such buffers: all others need it elsewhere.
    pub(super) async fn copy_out(
        &self,
        thread: &Thread,
        attached: &Attached,
        (number, bytes): (usize, usize),
        path: &mut Path,
    ) {
        if attached.program().zero_copy_of(number).is_some() {
            self.copy_frame(thread, bytes, path).await;
        }
    }

    async fn copy_frame(&self, thread: &Thread, bytes: usize, path: &mut Path) {
        let lines = self.lines(bytes);
        let copy = Piece::new(Group::Driver, lines * self.spec.sockets.copy).streaming(lines);
        thread.run(copy, stages::XDP, path).await;
    }

    /// Hands a redirected frame to the socket of an entry.
    pub(super) async fn to_socket(
        &self,
        polled: &Polled<'_>,
        attached: &Attached,
        entry: (usize, u32),
        (frame, mut path): (Buffer, Path),
        batch: &mut Batch,
    ) {
        let found = attached.program().socket(entry);
        // As in Linux, a socket takes frames of its own queue alone.
        let own = |socket: &Rc<Xsk>| {
            socket.options.queue == polled.number && socket.options.zero_copy == polled.lent
        };
        let Some(socket) = found.filter(own) else { return self.unreachable(polled.came) };
        if !polled.lent {
            if !socket.take_buffer() {
                return self.card.xdp.count(|counts| counts.queue_full += 1);
            }
            self.copy_frame(polled.thread, frame.len(), &mut path).await;
        }
        socket.received.borrow_mut().push_back(frame);
        self.card.xdp.done(polled.came, self.sim.now());
        if !batch.sockets.iter().any(|(other, _)| Rc::ptr_eq(other, &socket)) {
            batch.sockets.push((socket, path));
        }
    }

    /// Wakes the readers of sockets with new frames.
    pub(super) async fn wake_sockets(&self, thread: &Thread, sockets: Vec<(Rc<Xsk>, Path)>) {
        for (socket, path) in sockets {
            self.wake(thread, socket.readers.all(), &path).await;
        }
    }

    /// Takes at most `most` frames of a socket for a reader. The buffers of the reader's last ones go back. Waits by a system call
    /// while there are none.
    pub(crate) async fn socket_frames(
        &self,
        (thread, reader): (&Thread, &XskReader),
        program: &XdpProgram,
        (entry, most): ((usize, u32), usize),
        path: &mut Path,
    ) -> Vec<Buffer> {
        let Some(socket) = program.socket(entry) else { return Vec::new() };
        reader.give_back(&socket);
        if socket.received.borrow().is_empty() {
            let _waiting = socket.readers.enter(thread);
            self.system_call(thread, path).await;
            while socket.received.borrow().is_empty() {
                let key = entry.1;
                describe(|| format!("frames of the AF_XDP socket at key {key}"), thread.sleep()).await;
            }
        }
        let mut received = socket.received.borrow_mut();
        let count = most.min(received.len());
        reader.take(&socket, count as u64);
        received.drain(..count).collect()
    }
}
