//! Receive buffers whose frames the kernel has. Where the driver posts each by itself, whoever frees the frame does it, by a
//! register; a driver that would run out of buffers copies frames, and keeps theirs.

use super::card::Card;
use super::net::Net;
use super::stages;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_stack::{Arrival, Source};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Buffers of a frame that the kernel has. The card has them back when this is dropped.
pub(super) struct Loan {
    card: Rc<Card>,
    channel: usize,
    buffers: u64,
}

impl Loan {
    pub(super) fn new(card: &Rc<Card>, channel: usize, buffers: u64) -> Loan {
        let ring = &card.receive[channel];
        ring.lent.set(ring.lent.get() + buffers);
        Loan { card: card.clone(), channel, buffers }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        let ring = &self.card.receive[self.channel];
        ring.lent.set(ring.lent.get() - self.buffers);
        ring.give_back(self.buffers);
    }
}

/// The buffers of a connection's frames with bytes that no program has read, in their order.
#[derive(Default)]
pub(super) struct Loans {
    frames: RefCell<VecDeque<(usize, Loan)>>,
    /// Bytes read of the first.
    read: Cell<usize>,
}

impl Loans {
    /// A frame has brought so many bytes.
    pub(super) fn add(&self, bytes: usize, loan: Loan) {
        self.frames.borrow_mut().push_back((bytes, loan));
    }

    /// So many bytes were read, and so many are there still. Returns what was lent for frames that were read to their end.
    pub(super) fn read(&self, bytes: usize, left: usize) -> Vec<Loan> {
        let mut frames = self.frames.borrow_mut();
        if left == 0 {
            self.read.set(0);
            return frames.drain(..).map(|(_, loan)| loan).collect();
        }
        let mut read = self.read.get() + bytes;
        let mut ended = 0;
        for &(bytes, _) in frames.iter() {
            if bytes > read {
                break;
            }
            read -= bytes;
            ended += 1;
        }
        self.read.set(read);
        frames.drain(..ended).map(|(_, loan)| loan).collect()
    }
}

impl Net {
    /// The buffers of a frame whose bytes wait for a program are its connection's; those of others are returned, to be freed.
    pub(super) fn lend(&self, arrival: &Arrival, loan: Option<Loan>) -> Option<Loan> {
        let Source::Connection(id) = arrival.source else { return loan };
        match (self.connection(id), loan) {
            (Some(connection), Some(loan)) if arrival.readable > 0 => {
                connection.loans.add(arrival.readable, loan);
                None
            }
            (_, loan) => loan,
        }
    }

    /// Frames are freed: their buffers are posted again, one after another.
    pub(super) async fn free(&self, thread: &Thread, loans: impl IntoIterator<Item = Loan>, path: &mut Path) {
        for loan in loans {
            let touched = [&self.card.receive[loan.channel].posting];
            let piece = Piece::new(Group::Driver, self.spec.driver.post).touching(&touched);
            thread.run(piece, stages::DRIVER_IN, path).await;
            self.write_register(thread).await;
            path.advance(stages::DRIVER_IN, self.sim.now());
        }
    }
}
