//! Soft rings: kernel threads that take frames from the interrupts' CPUs and run the protocols.

use crate::net::Net;
use crate::net::loans::Loan;
use crate::{stages, wire};
use nicety_host::threads::{Data, Group, Page, Piece, Thread};
use nicety_stack::{ChecksumStatus, Parsed, Source, TcpHeader};
use nicety_types::{Buffer, Path};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A received frame in the kernel.
pub(crate) struct Frame {
    pub(crate) bytes: Buffer,
    /// Whether the card found the frame's checksums valid.
    pub(crate) verified: bool,
    /// The cache lines of the frame's headers.
    pub(crate) headers: Data,
    pub(crate) path: Path,
    /// The frame's buffers, if the code that frees the frame must return them.
    pub(crate) loan: Option<Loan>,
}

/// A soft ring.
pub(crate) struct SoftRing {
    pub(crate) thread: Thread,
    frames: RefCell<VecDeque<Frame>>,
    /// Number of accepted frames.
    pub(crate) taken: Cell<u64>,
    /// Number of frames dropped because the backlog was full.
    pub(crate) dropped: Cell<u64>,
}

impl SoftRing {
    pub(crate) fn new(thread: Thread) -> SoftRing {
        SoftRing { thread, frames: RefCell::default(), taken: Cell::new(0), dropped: Cell::new(0) }
    }

    /// Adds a frame if fewer than `most` frames wait. Drops it otherwise. Returns whether the frame was added.
    pub(crate) fn push(&self, frame: Frame, most: usize) -> bool {
        let mut frames = self.frames.borrow_mut();
        let fits = frames.len() < most;
        if fits {
            frames.push_back(frame);
            self.taken.set(self.taken.get() + 1);
        } else {
            self.dropped.set(self.dropped.get() + 1);
        }
        fits
    }
}

impl Net {
    /// Runs the frames of a soft ring through the protocols, on the ring's thread.
    pub(crate) async fn serve_soft_ring(self: Rc<Net>, number: usize) {
        let ring = &self.rings[number];
        loop {
            let frame = ring.frames.borrow_mut().pop_front();
            match frame {
                Some(frame) => self.receive(&ring.thread, frame).await,
                None => ring.thread.sleep().await,
            }
        }
    }

    /// Runs a frame through the protocols.
    pub(crate) async fn receive(self: &Rc<Net>, thread: &Thread, frame: Frame) {
        let Frame { bytes, verified, headers, mut path, loan } = frame;
        let segment = Segment::of(&bytes);
        path.advance(stages::SOFT_RING, self.sim.now());
        let costs = &self.spec.stack;
        let work = if segment.has_payload { costs.receive } else { costs.acknowledge };
        let (status, summed) = match verified {
            true => (ChecksumStatus::Good, 0),
            false => (ChecksumStatus::Unknown, self.lines(bytes.len()) * costs.checksum),
        };
        let pages = Loan::pages(&loan);
        let pages: Vec<&Page> = pages.iter().map(Rc::as_ref).collect();
        let touched = [&headers];
        let piece = Piece::new(Group::Stack, work + summed).touching(&touched).within(&pages);
        thread.run(piece, stages::STACK_IN, &mut path).await;
        if let Some(rank) = wire::sender(&bytes) {
            self.know(rank);
        }
        let arrival = self.with(|stack, now| stack.receive(now, &bytes, status));
        if let Source::Connection(id) = arrival.source
            && let Some(state) = self.connection(id)
        {
            state.note_arrival(arrival.readable, &path);
            let touched = [&state.data];
            thread.run(Piece::new(Group::Stack, 0).touching(&touched), stages::STACK_IN, &mut path).await;
        }
        let loan = self.lend(&arrival, loan);
        let woken = self.arrived(&arrival, segment.is_pushed, &path);
        self.wake(thread, woken, &path).await;
        thread.run(Piece::new(Group::Buffers, costs.buffer), stages::STACK_IN, &mut path.clone()).await;
        self.free(thread, loan, &mut path.clone()).await;
        self.follow(thread, &mut path).await;
    }
}

/// Properties of a frame for the kernel.
struct Segment {
    /// Whether the frame has bytes for a program.
    has_payload: bool,
    /// Whether the frame's sender has no more bytes at present.
    is_pushed: bool,
}

impl Segment {
    fn of(frame: &[u8]) -> Segment {
        let ip = Parsed::read(frame).ok().and_then(|parsed| parsed.ip);
        let Some(segment) = ip.map(|ip| &frame[ip.payload.clone()]) else {
            return Segment { has_payload: false, is_pushed: true };
        };
        let tcp = TcpHeader::read(segment).ok();
        Segment {
            has_payload: tcp.map_or(!segment.is_empty(), |tcp| tcp.length < segment.len()),
            is_pushed: tcp.is_none_or(|tcp| tcp.flags & PUSHED != 0),
        }
    }
}

/// TCP's flags FIN and PSH.
const PUSHED: u8 = 1 | 8;
