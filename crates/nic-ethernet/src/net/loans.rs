//! Receive buffers that are lent to the kernel with their frames. If the driver returns each entry separately, the code
//! that frees a frame returns the entry by a register write. If too many buffers are lent, the driver copies frames
//! instead and keeps the buffers.

use crate::card::Card;
use crate::card::receive::Held;
use crate::net::Net;
use crate::stages;
use nicety_host::threads::{Group, Page, Piece, Thread};
use nicety_stack::{Arrival, Source};
use nicety_types::Path;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The buffers of a frame in the kernel. Dropping the loan frees the buffers, and returns them to the card. The buffers
/// of a block return together.
pub(crate) struct Loan {
    card: Rc<Card>,
    channel: usize,
    held: Held,
    /// The page of the buffers, unless it is always in the TLB.
    page: Option<Rc<Page>>,
    freed: bool,
}

impl Loan {
    pub(crate) fn new(card: &Rc<Card>, channel: usize, held: Held, address: u64) -> Loan {
        let ring = &card.receive[channel];
        ring.lent.set(ring.lent.get() + held.buffers);
        Loan { card: card.clone(), channel, held, page: ring.page(address), freed: false }
    }

    /// The pages of these frames.
    pub(crate) fn pages<'l>(loans: impl IntoIterator<Item = &'l Loan>) -> Vec<Rc<Page>> {
        loans.into_iter().filter_map(|loan| loan.page.clone()).collect()
    }

    /// Frees the frame.
    fn free(&mut self) -> Emptied {
        let ring = &self.card.receive[self.channel];
        ring.lent.set(ring.lent.get() - self.held.buffers);
        self.freed = true;
        let returned = ring.free(self.held);
        Emptied { card: self.card.clone(), channel: self.channel, returned }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.freed {
            drop(self.free());
        }
    }
}

/// Buffers that a freed frame no longer uses: single buffers, a whole block, or none if the block still has frames.
/// Dropping this value returns the buffers to the card.
struct Emptied {
    card: Rc<Card>,
    channel: usize,
    returned: u64,
}

impl Drop for Emptied {
    fn drop(&mut self) {
        self.card.receive[self.channel].give_back(self.returned);
    }
}

/// The buffers of a connection's frames with unread bytes, in order.
#[derive(Default)]
pub(crate) struct Loans {
    frames: RefCell<VecDeque<(usize, Loan)>>,
    /// Number of bytes read of the first frame.
    read: Cell<usize>,
}

impl Loans {
    /// Adds a frame with `bytes` bytes.
    pub(crate) fn add(&self, bytes: usize, loan: Loan) {
        self.frames.borrow_mut().push_back((bytes, loan));
    }

    /// Records that `bytes` bytes were read, with `left` still unread. Returns the buffers of completely read frames.
    pub(crate) fn read(&self, bytes: usize, left: usize) -> Vec<Loan> {
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
    /// Lends a frame's buffers to its connection, if the frame's bytes wait for a program. Otherwise returns the
    /// buffers, so that the caller frees them.
    pub(crate) fn lend(&self, arrival: &Arrival, loan: Option<Loan>) -> Option<Loan> {
        let Source::Connection(id) = arrival.source else { return loan };
        match (self.connection(id), loan) {
            (Some(connection), Some(loan)) if arrival.readable > 0 => {
                connection.loans.add(arrival.readable, loan);
                None
            }
            (_, loan) => loan,
        }
    }

    /// Frees frames, one after another. Each frame's buffers return to the card. A block returns when all its buffers
    /// are free.
    pub(crate) async fn free(&self, thread: &Thread, loans: impl IntoIterator<Item = Loan>, path: &mut Path) {
        let driver = &self.spec.driver;
        for mut loan in loans {
            if driver.free > 0 {
                thread.run(Piece::new(Group::Driver, driver.free), stages::DRIVER_IN, path).await;
            }
            let ring = &self.card.receive[loan.channel];
            let emptied = loan.free();
            if emptied.returned == 0 {
                continue;
            }
            let touched = [&ring.posting];
            thread
                .run(Piece::new(Group::Driver, driver.post).touching(&touched), stages::DRIVER_IN, path)
                .await;
            self.write_register(thread).await;
            path.advance(stages::DRIVER_IN, self.sim.now());
        }
    }
}
