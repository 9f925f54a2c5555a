//! The driver's transmit side: from a call to descriptors in the transmit ring and the card's doorbell.
//!
//! A call that has entered the driver completes, even if its program stops waiting for the call. The ring thus never
//! has only a part of a message's descriptors.

use crate::transmit::{Job, Leaving};
use crate::wire::{Kind, Repr};
use crate::{Card, Endpoint, stages};
use nicety_kernel::Signal;
use nicety_types::{MessageId, Path, Stage};
use std::cell::RefCell;
use std::rc::Rc;

/// An operation that the driver hands to the card.
pub(super) struct Order {
    pub(super) message: MessageId,
    pub(super) kind: Kind,
    /// Whether the addresses are physical.
    pub(super) physical: bool,
    pub(super) from: u32,
    pub(super) to: Endpoint,
    /// First address of the bytes on this host. For a get, this is the destination of the bytes.
    pub(super) local: u64,
    /// First address of the bytes on the remote host.
    pub(super) remote: u64,
    pub(super) bytes: u64,
    pub(super) data: u64,
    pub(super) leaving: Rc<Leaving>,
}

impl Card {
    /// Makes the driver hand an operation to the card, in a system call. Returns when the driver has written the
    /// doorbell.
    pub(super) async fn post(self: &Rc<Card>, order: Order, path: &mut Path) {
        let (card, done) = (self.clone(), Signal::new(&self.sim));
        let (ended, given): (Rc<RefCell<Option<Path>>>, _) = (Rc::default(), path.clone());
        let (end, signal) = (ended.clone(), done.clone());
        self.sim.spawn(async move {
            let mut path = given;
            card.enter(order, &mut path).await;
            end.replace(Some(path));
            signal.notify_all();
        });
        done.wait_until(|| ended.borrow().is_some()).await;
        if let Some(its) = ended.take() {
            *path = its;
        }
    }

    async fn enter(self: &Rc<Card>, order: Order, path: &mut Path) {
        self.kernel.cpus().post(path, order.message).await;
        self.kernel.call(path).await;
        let writing = self.ring.writer.acquire().await;
        path.advance(stages::RING_QUEUED, self.sim.now());
        self.kernel.cpus().spend(self.spec.driver.operation, stages::DRIVER, path).await;
        let fetched = if order.kind == Kind::Get { 0 } else { order.bytes };
        let (mut offset, mut batch) = (0, Vec::new());
        let first = self.header(&order, self.ring.next_sequence(order.to.node, order.kind));
        self.ring.known.begin(first, order.local);
        loop {
            let address = order.local + offset;
            let page = self.page(address);
            let bytes = (page - address % page).min(fetched - offset);
            match self.ring.free.try_acquire(1) {
                Some(descriptor) => descriptor.forget(),
                None => {
                    // The card frees descriptors only after the doorbell that announces them.
                    self.ring_doorbell(&mut batch, path, order.message).await;
                    self.count(|counted| counted.ring_full += 1);
                    self.ring.free.acquire(1).await.forget();
                    path.advance(stages::RING_QUEUED, self.sim.now());
                }
            }
            self.kernel.cpus().spend(self.spec.driver.descriptor, stages::DRIVER, path).await;
            let (header, source, leaving) = (first.page(offset), address, order.leaving.clone());
            batch.push(Job { header, source, payload: bytes, leaving, path: path.clone() });
            self.ring.known.written();
            offset += bytes;
            if offset == fetched {
                break;
            }
        }
        self.ring_doorbell(&mut batch, path, order.message).await;
        drop(writing);
    }

    /// Returns the header of the packet for the first page, without its length.
    fn header(&self, order: &Order, sequence: u32) -> Repr {
        Repr {
            kind: order.kind,
            physical: order.physical,
            from: Endpoint { node: self.node, process: order.from },
            to: order.to,
            payload: 0,
            address: order.remote,
            number: order.message.sequence,
            offset: 0,
            bytes: order.bytes as u32,
            data: order.data,
            sequence,
        }
    }

    /// Announces the descriptors of `batch` to the card by a write of the doorbell register.
    async fn ring_doorbell(self: &Rc<Card>, batch: &mut Vec<Job>, path: &mut Path, message: MessageId) {
        if batch.is_empty() {
            return;
        }
        self.count(|counted| counted.doorbells += 1);
        let jobs = std::mem::take(batch);
        let landed = self.write_register(path, message).await;
        let mut seen = path.clone();
        seen.advance(Stage::BUS, landed);
        let card = self.clone();
        self.sim.spawn(async move {
            card.sim.until(landed).await;
            let jobs = jobs.into_iter().map(|job| Job { path: seen.clone(), ..job });
            card.ring.announced.borrow_mut().extend(jobs);
            card.ring.rung.notify_one();
        });
    }

    /// Writes a register of the card from a CPU. Returns the time at which the write reaches the card.
    pub(super) async fn write_register(&self, path: &mut Path, message: MessageId) -> nicety_types::Time {
        let cpu = self.kernel.cpus().hold(path).await;
        let handover = self.dma.bus().store(message, self.spec.ring.doorbell, path.clone()).await;
        *path = handover.path;
        drop(cpu);
        handover.landed
    }
}
