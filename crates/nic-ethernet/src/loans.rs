//! Receive buffers lent to the kernel with their frames. If the driver returns each separately, the code that frees a
//! frame does so by a register write. A driver short of buffers copies frames instead, and keeps their buffers.

use super::card::Card;
use super::net::Net;
use super::stages;
use nicety_host::threads::{Group, Piece, Thread};
use nicety_stack::{Arrival, Source};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The buffers of a frame in the kernel. Dropping it returns them to the card.
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

/// The buffers of a connection's frames with unread bytes, in order.
#[derive(Default)]
pub(super) struct Loans {
    frames: RefCell<VecDeque<(usize, Loan)>>,
    /// Bytes read of the first frame.
    read: Cell<usize>,
}

impl Loans {
    /// Adds a frame with `bytes` bytes.
    pub(super) fn add(&self, bytes: usize, loan: Loan) {
        self.frames.borrow_mut().push_back((bytes, loan));
    }

    /// Records that `bytes` bytes were read, with `left` still unread. Returns the buffers of completely read frames.
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
    /// Lends a frame's buffers to its connection, if its bytes wait for a program. Otherwise returns them, to be freed.
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

    /// Frees frames: returns their buffers to the card, one after another.
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
