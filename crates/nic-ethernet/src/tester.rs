//! A tester at the end of a link. It sends frames when they are due, and takes all arriving frames. It has no host and
//! no card.

use crate::card::transmit::whole;
use crate::wire;
use nicety_fabric::{Channel, Label, Packet, Port};
use nicety_kernel::{Signal, Sim, race};
use nicety_nic_core::parts::{DueTime, Offered, Pace};
use nicety_types::{Flight, MessageId, NodeId, Recorder, Starter, Time};
use std::cell::Cell;
use std::rc::Rc;

/// A tester, with its own link.
pub struct Tester {
    sim: Sim,
    port: Port,
    recorder: Recorder,
    stopped: Cell<bool>,
    stopping: Signal,
    /// Number of received frames, and of their bytes.
    returned: Cell<(u64, u64)>,
}

impl Tester {
    /// Installs a tester at this end of a link. It takes all arriving frames.
    pub fn install(sim: &Sim, mut port: Port, recorder: &Recorder) -> Rc<Tester> {
        port.record(recorder);
        let tester = Rc::new(Tester {
            sim: sim.clone(),
            port,
            recorder: recorder.clone(),
            stopped: Cell::new(false),
            stopping: Signal::new(sim),
            returned: Cell::default(),
        });
        sim.spawn(tester.clone().swallow());
        tester
    }

    /// Sends frames to a station from `start` on. A frame is sent when it is due, or as soon after that as the receiver
    /// permits. `next` writes a frame and returns its due time, or `None` at the end. The frame's Ethernet addresses
    /// become those of this station and of the receiver.
    ///
    /// # Panics
    /// When a frame is too short for its addresses.
    pub async fn offer(
        &self,
        target: NodeId,
        start: Time,
        mut next: impl FnMut(&mut Vec<u8>) -> Option<DueTime>,
    ) -> Offered {
        let mut pace = Pace::from(start);
        let mut frame = Vec::new();
        let mut sequence = 0;
        while let Some(due) = next(&mut frame) {
            assert!(frame.len() >= 12, "a frame of {} bytes", frame.len());
            frame[..6].copy_from_slice(&wire::station(target));
            frame[6..12].copy_from_slice(&wire::station(self.sim.node()));
            let at = pace.next(due);
            if !self.stopped.get() && !self.sim.try_pass_until(at) {
                race(self.sim.until(at), self.stopping.wait()).await;
            }
            if self.stopped.get() {
                break;
            }
            let payload = whole(&frame);
            let (bytes, interval) = (payload.len(), self.port.serialisation(payload.len()));
            let message = MessageId { source: self.sim.node(), sequence };
            sequence += 1;
            let path = self.recorder.path(self.sim.now());
            self.recorder.sent(message, target, bytes, "frame", Starter::Card, &path);
            let turn = self.port.turn(Flight::resting(path.clone())).await;
            let began = self.sim.now();
            let header = wire::check_sequence(&frame_of(&payload));
            let label = Label { destination: target, message, offset: 0 };
            self.port.launch(Packet { label, channel: Channel::Data(0), header, payload, path }, turn);
            pace.sent(began, interval, bytes);
        }
        pace.end()
    }

    /// Stops sending.
    pub fn stop(&self) {
        self.stopped.set(true);
        self.stopping.notify_all();
    }

    /// Number of received frames, and of their bytes without check sequences.
    pub fn returned(&self) -> (u64, u64) {
        self.returned.get()
    }

    async fn swallow(self: Rc<Tester>) {
        loop {
            let packet = self.port.receive().await;
            if packet.is_control() {
                continue;
            }
            let (frames, bytes) = self.returned.get();
            self.returned.set((frames + 1, bytes + packet.payload.len()));
            self.recorder.message_matched(packet.label.message, self.sim.now(), "tester");
            self.port.free_slot();
        }
    }
}

/// Returns the bytes of a frame.
fn frame_of(payload: &nicety_types::Payload) -> nicety_types::Buffer {
    payload.clone().into_buffer().expect("frames are real bytes")
}
