//! The DMA controller: the queue for its channels, and their transfers.

use crate::Card;
use crate::interface::{Completed, Kind, Progress, Receiving, Slot};
use crate::stages;
use nicety_kernel::{Permit, Sim};
use nicety_nic_core::parts::{self, Engine, Moving};
use nicety_types::{MessageId, Path, Payload, Recorder, Resource, Stage};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// A packet to fetch. `number` counts the packets staged for the interface.
pub(super) struct Fetch {
    pub(super) vni: u32,
    pub(super) number: u64,
    pub(super) message: MessageId,
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) path: Path,
}

/// A part of a message that a channel writes to host memory.
pub(super) struct Deposit {
    pub(super) receiving: Rc<Receiving>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) payload: Payload,
    pub(super) slot: Slot,
    pub(super) path: Path,
}

/// A completion that a doorbell reports to a process.
pub(super) struct Doorbell {
    pub(super) vni: u32,
    pub(super) operation: u64,
    pub(super) message: MessageId,
    pub(super) completed: Completed,
    pub(super) path: Path,
}

pub(super) enum Transfer {
    Deposit(Deposit),
    Doorbell(Doorbell),
}

/// The channels, and the queue of transfers for them.
pub(super) struct Transfers {
    engine: Engine,
    waiting: RefCell<VecDeque<Transfer>>,
    /// Finished deposits that the control program has not noticed.
    finished: RefCell<VecDeque<Deposit>>,
}

impl Transfers {
    pub(super) fn new(sim: &Sim, channels: usize, recorder: &Recorder) -> Transfers {
        Transfers {
            engine: Engine::new(sim, channels, recorder),
            waiting: RefCell::default(),
            finished: RefCell::default(),
        }
    }

    /// Whether a channel is free.
    pub(super) fn is_free(&self) -> bool {
        self.engine.is_free()
    }
}

impl Card {
    /// Whether the DMA controller has work for the control program.
    pub(super) fn has_transfer(&self) -> bool {
        let Transfers { waiting, finished, .. } = &self.transfers;
        !finished.borrow().is_empty() || (self.transfers.is_free() && !waiting.borrow().is_empty())
    }

    /// Queues a transfer for a channel.
    pub(super) fn enqueue(&self, transfer: Transfer) {
        self.transfers.waiting.borrow_mut().push_back(transfer);
    }

    /// Handles finished deposits, and programs a channel for the next transfer.
    pub(super) async fn serve_channels(self: &Rc<Card>) {
        let finished = std::mem::take(&mut *self.transfers.finished.borrow_mut());
        for deposit in finished {
            self.settle(deposit);
        }
        if !self.transfers.is_free() {
            return;
        }
        let next = self.transfers.waiting.borrow_mut().pop_front();
        match next {
            Some(Transfer::Deposit(mut deposit)) => {
                let channel = self.channel(deposit.receiving.message, &mut deposit.path).await;
                self.sim.spawn(self.clone().deposit(deposit, channel));
            }
            Some(Transfer::Doorbell(mut doorbell)) => {
                let channel = self.channel(doorbell.message, &mut doorbell.path).await;
                self.sim.spawn(self.clone().ring(doorbell, channel));
            }
            None => {}
        }
    }

    /// Takes a free channel, and programs it.
    pub(super) async fn channel(&self, message: MessageId, path: &mut Path) -> Permit {
        let channel = self.transfers.engine.channel(message, path).await;
        self.work(self.spec.program.transfer, path).await;
        channel
    }

    /// Frees a channel, which has moved its last byte at the end of `path`.
    fn release(&self, moving: Moving, message: MessageId, path: &Path) {
        self.transfers.engine.release(moving, message, path);
        self.changed.notify_all();
    }

    /// Sets up a channel for a packet, and waits until the channel may move bytes.
    async fn prepare(&self, channel: Permit, message: MessageId, path: &mut Path) -> Moving {
        let set_up = (self.spec.dma.setup, parts::stages::DMA_SETUP);
        self.transfers.engine.set_up(channel, set_up, message, path).await
    }

    /// Fetches a packet's bytes through a channel.
    pub(super) async fn fetch(self: Rc<Card>, fetch: Fetch, channel: Permit) {
        let Fetch { vni, number, message, address, bytes, mut path } = fetch;
        let moving = self.prepare(channel, message, &mut path).await;
        let start = self.sim.now();
        let payload = self.dma.fetch(message, address, bytes, &mut path).await;
        self.recorder.slice(Resource::DMA, start, path.at(), Some(message), Stage::FETCH.name());
        self.fetched(vni, number, payload, path.clone());
        self.release(moving, message, &path);
    }

    async fn deposit(self: Rc<Card>, mut deposit: Deposit, channel: Permit) {
        let message = deposit.receiving.message;
        let moving = self.prepare(channel, message, &mut deposit.path).await;
        let address = deposit.receiving.address + deposit.offset;
        let start = self.sim.now();
        let payload = std::mem::take(&mut deposit.payload);
        let handover = self.dma.deposit(message, address, deposit.bytes, payload, deposit.path).await;
        self.recorder.slice(Resource::DMA, start, self.sim.now(), Some(message), Stage::DEPOSIT.name());
        self.release(moving, message, &handover.path);
        self.dma.landed(&handover).await;
        deposit.path = handover.path;
        deposit.path.advance(Stage::DEPOSIT, handover.landed);
        self.transfers.finished.borrow_mut().push_back(deposit);
        self.changed.notify_all();
    }

    /// Sets the doorbell of an operation.
    async fn ring(self: Rc<Card>, mut doorbell: Doorbell, channel: Permit) {
        let message = doorbell.message;
        let set_up = (self.spec.dma.setup, stages::DOORBELL);
        let moving = self.transfers.engine.set_up(channel, set_up, message, &mut doorbell.path).await;
        let bytes = self.spec.dma.doorbell_bytes;
        let handover = self.dma.bus().deposit(message, 0, bytes, doorbell.path).await;
        self.release(moving, message, &handover.path);
        let mut path = handover.path;
        self.sim.until(handover.landed).await;
        path.advance(Stage::DEPOSIT, handover.landed);
        self.count(|counted| counted.doorbells += 1);
        let Doorbell { vni, operation, completed, .. } = doorbell;
        let rung = self.interface(vni, |interface| {
            let entry = interface.operations.get_mut(&operation)?;
            entry.1 = Progress::Done(completed, path.clone(), message);
            Some((entry.0, interface.rung.clone()))
        });
        if let Some(Some((kind, rung))) = rung {
            if kind == Kind::Receive {
                let outcome = if completed.truncated { "truncated" } else { "received" };
                self.recorder.message_completed(message, &path, outcome);
            }
            rung.notify_all();
        }
    }
}
