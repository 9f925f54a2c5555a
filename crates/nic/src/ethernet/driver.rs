//! The driver: interrupts of received and sent frames, descriptors, doorbells.

use super::net::Net;
use super::receive::Arrived;
use super::softrings::Frame;
use super::stages;
use super::transmit::Finish;
use nicety_host::threads::{Data, Group, Piece, Placement, Thread};
use nicety_types::{Path, Stage};
use std::rc::Rc;

/// Lines of a received frame that the driver and the stack look at: descriptor, buffer's head, headers.
const HEADER_LINES: u64 = 3;
/// Lines of a channel's state in the driver: the ring's indices and counters.
const STATE_LINES: u64 = 4;

impl Net {
    /// Starts the threads of interrupts, those of receive channels spread over as many CPUs as the spec says.
    pub(super) fn start_driver(self: &Rc<Net>) {
        let cpus = self.spec.interrupts.cpus;
        for (number, ring) in self.card.receive.iter().enumerate() {
            let handler = self.threads.thread(Placement::Interrupt(number % cpus));
            let (card, woken) = (self.card.clone(), handler.clone());
            ring.coalescing.connect(move |_| {
                let (card, woken) = (card.clone(), woken.clone());
                card.count(|counted| counted.receive_interrupts += 1);
                card.sim.clone().spawn(async move {
                    card.interrupt().await;
                    woken.interrupt();
                });
            });
            self.sim.spawn(self.clone().serve_received(number, handler));
        }
        for (number, ring) in self.card.transmit.iter().enumerate() {
            let handler = self.threads.thread(Placement::Interrupt(number % cpus));
            ring.handler.replace(Some(handler.clone()));
            self.sim.spawn(self.clone().serve_sent(number, handler));
        }
    }

    /// The handler of a receive channel's interrupts.
    async fn serve_received(self: Rc<Net>, number: usize, thread: Thread) {
        let ring = &self.card.receive[number];
        let state = Data::new(STATE_LINES);
        loop {
            thread.sleep().await;
            let mut handler = Path::clock(self.sim.now());
            self.begin_interrupt(&thread, &state, &mut handler).await;
            let (handlers, busy) = self.handlers.get();
            self.handlers.set((handlers + 1, busy + self.sim.now().since(handler.origin())));
            let mut taken = 0;
            loop {
                let arrived = ring.arrived.borrow_mut().pop_front();
                let Some(arrived) = arrived else { break };
                ring.emptied.set(ring.emptied.get() + arrived.buffers);
                self.take_frame(&thread, &state, arrived, &handler).await;
                taken += 1;
                if taken == self.spec.driver.budget {
                    break;
                }
            }
            let buffers = ring.emptied.take();
            // The card learns of free buffers, and that it may interrupt again, by two registers.
            self.write_register(&thread).await;
            ring.give_back(buffers);
            self.write_register(&thread).await;
            let unseen = ring.arrived.borrow().len() as u64;
            ring.coalescing.arm(unseen);
        }
    }

    /// What a handler does before it looks at frames.
    async fn begin_interrupt(&self, thread: &Thread, state: &Data, path: &mut Path) {
        let driver = &self.spec.driver;
        thread
            .run(Piece::new(Group::Driver, driver.interrupt).touching(&[state]), stages::HANDLER, path)
            .await;
        for _ in 0..driver.interrupt_reads {
            let (registers, bus, no_frame) = (self.spec.registers, self.card.dma.bus(), self.no_frame());
            let read = async {
                self.sim.delay(registers.latency).await;
                bus.load(no_frame, registers.bytes, Path::clock(self.sim.now())).await;
            };
            thread.hold(Group::Driver, read).await;
            path.advance(stages::HANDLER, self.sim.now());
        }
    }

    /// Takes a frame from its ring to the soft ring of its connection.
    async fn take_frame(self: &Rc<Net>, thread: &Thread, state: &Data, arrived: Arrived, handler: &Path) {
        let Arrived { address, bytes, verified, message, mut path, .. } = arrived;
        path.advance(stages::COALESCED, handler.origin());
        path.advance(stages::HANDLER, handler.at());
        path.advance(Stage::CPU_QUEUED, self.sim.now());
        let (driver, costs) = (&self.spec.driver, &self.spec.stack);
        let headers = Data::new(HEADER_LINES);
        let touched = [state, &headers];
        let piece = Piece::new(Group::Driver, driver.receive).touching(&touched);
        thread.run(piece, stages::DRIVER_IN, &mut path).await;
        thread.run(Piece::new(Group::Buffers, costs.buffer), stages::DRIVER_IN, &mut path).await;
        let bytes = self.card.dma.bytes(address, bytes).into_buffer().expect("frames are real bytes");
        self.card.recorder.message_noticed(message, self.sim.now());
        if self.rings.is_empty() {
            return self.receive(thread, Frame { bytes, verified, headers, path }).await;
        }
        let number = self.card.hash(&bytes) / self.card.receive.len() % self.rings.len();
        let ring = &self.rings[number];
        if ring.push(Frame { bytes, verified, headers, path: path.clone() }, costs.backlog) {
            thread.wake(&ring.thread, &mut path).await;
        }
    }

    /// A register is written: the CPU hands the write to the bus. Returns when it has left the CPU.
    async fn write_register(&self, thread: &Thread) {
        let (bus, no_frame, bytes) = (self.card.dma.bus(), self.no_frame(), self.spec.registers.bytes);
        let store = async { drop(bus.store(no_frame, bytes, Path::clock(self.sim.now())).await) };
        thread.hold(Group::Driver, store).await;
    }

    /// Sends a frame: a descriptor in the ring of its connection, and the doorbell. Waits for a free descriptor.
    pub(super) async fn send(self: &Rc<Net>, thread: &Thread, frame: &[u8], finish: Finish, path: &mut Path) {
        let number = self.card.hash(frame) % self.card.transmit.len();
        let ring = &self.card.transmit[number];
        let touched = [&ring.data];
        loop {
            let _waiting = ring.waiting.enter(thread);
            while ring.is_full() {
                ring.wanted.set(true);
                thread.sleep().await;
                path.advance(stages::RING_QUEUED, self.sim.now());
            }
            let piece = Piece::new(Group::Driver, self.spec.driver.transmit).touching(&touched);
            thread.run(piece, stages::DRIVER_OUT, path).await;
            // Another thread may have been quicker.
            if !ring.is_full() {
                break;
            }
        }
        let bytes = self.spec.registers.bytes;
        let (bus, start) = (self.card.dma.bus(), self.sim.now());
        let message = self.card.post(number, frame, finish, path.clone());
        let landed = thread.hold(Group::Driver, bus.store(message, bytes, Path::clock(start))).await.landed;
        path.advance(stages::DRIVER_OUT, self.sim.now());
        let card = self.card.clone();
        self.sim.spawn(async move {
            card.sim.until(landed).await;
            card.ring();
        });
    }

    /// The handler of a transmit channel's interrupts: those who wait for descriptors look again.
    async fn serve_sent(self: Rc<Net>, number: usize, thread: Thread) {
        let ring = &self.card.transmit[number];
        let state = Data::new(STATE_LINES);
        loop {
            thread.sleep().await;
            let mut path = Path::clock(self.sim.now());
            self.begin_interrupt(&thread, &state, &mut path).await;
            for waits in ring.waiting.all() {
                thread.wake(&waits, &mut path).await;
            }
        }
    }
}
