//! The driver: interrupts for received and sent frames, descriptors, and doorbells.

use crate::card::receive::Arrived;
use crate::card::transmit::Finish;
use crate::net::Net;
use crate::net::loans::Loan;
use crate::net::softrings::Frame;
use crate::stages;
use crate::xdp::Batch;
use nicety_host::threads::{Data, Group, Page, Piece, Placement, Thread};
use nicety_types::{Buffer, MessageId, Path, Stage};
use std::rc::Rc;

/// Cache lines of a received frame that the driver and the stack read: the descriptor, the buffer head, and the
/// headers.
const HEADER_LINES: u64 = 3;
/// Cache lines of a channel's state in the driver: the ring's indices and counters.
const STATE_LINES: u64 = 4;

impl Net {
    /// Starts the interrupt threads. The threads of receive channels are distributed over the CPUs that the spec
    /// states.
    pub(super) fn start_driver(self: &Rc<Net>) {
        for (number, ring) in self.card.receive.iter().enumerate() {
            let handler = self.interrupt_thread(self.spec.interrupts.cpu(number));
            // The card owns its rings, and they must not own it.
            let (card, woken) = (Rc::downgrade(&self.card), handler.clone());
            ring.coalescing.connect(move |_| {
                let Some(card) = card.upgrade() else { return };
                let woken = woken.clone();
                card.count(|counted| counted.receive_interrupts += 1);
                card.sim.clone().spawn(async move {
                    card.interrupt().await;
                    woken.interrupt();
                });
            });
            let card = Rc::downgrade(&self.card);
            ring.coalescing.connect_writes(move |channel| {
                if let Some(card) = card.upgrade() {
                    card.write_staged(channel);
                }
            });
            self.sim.spawn(self.clone().serve_received(number, handler));
        }
        let receiving = if self.spec.interrupts.vectors > 0 { self.card.receive.len() } else { 0 };
        for (number, ring) in self.card.transmit.iter().enumerate() {
            let handler = self.interrupt_thread(self.spec.interrupts.cpu(receiving + number));
            ring.handler.replace(Some(handler.clone()));
            self.sim.spawn(self.clone().serve_sent(number, handler));
        }
    }

    fn interrupt_thread(&self, cpu: usize) -> Thread {
        let thread = self.threads.thread(Placement::Interrupt(cpu));
        self.interrupted.borrow_mut().push((cpu, thread.clone()));
        thread
    }

    /// Handles the interrupts of a receive channel.
    async fn serve_received(self: Rc<Net>, number: usize, thread: Thread) {
        let ring = &self.card.receive[number];
        let state = Data::new(STATE_LINES);
        let mut goes_on = false;
        loop {
            let mut handler = Path::clock(self.sim.now());
            if !goes_on {
                thread.sleep().await;
                handler = Path::clock(self.sim.now());
                self.begin_interrupt(&thread, number, &state, &mut handler).await;
                let (handlers, busy) = self.handlers.get();
                self.handlers.set((handlers + 1, busy + self.sim.now().since(handler.origin())));
            }
            // A register gives the number of frames. Without the read of a register, the handler also takes frames that
            // arrive meanwhile.
            let there = match self.spec.driver.interrupt_reads {
                0 => self.spec.driver.budget,
                _ => self.spec.driver.budget.min(ring.arrived.borrow().len() as u64),
            };
            let (mut taken, mut chain, mut batch) = (0, Vec::new(), Batch::default());
            while taken < there {
                let arrived = ring.arrived.borrow_mut().pop_front();
                let Some(arrived) = arrived else { break };
                let taken_on = (&handler, &mut batch);
                if let Some(frame) = self.take(&thread, &state, number, arrived, taken_on).await {
                    match self.rings.is_empty() {
                        true => self.receive(&thread, frame).await,
                        false => chain.push(frame),
                    }
                }
                taken += 1;
            }
            self.flush(&thread, batch).await;
            // By register writes the card learns the number of taken frames and the returned buffers, and is armed
            // again.
            let returned = ring.emptied.take();
            self.write_register(&thread).await;
            ring.give_back(returned);
            ring.coalescing.taken(ring.arrived.borrow().len() as u64);
            ring.reported.set(ring.reported.get() - taken);
            self.hand_over(&thread, chain).await;
            let there = !ring.arrived.borrow().is_empty();
            goes_on = self.spec.driver.polls && taken == self.spec.driver.budget && there;
            if goes_on {
                continue;
            }
            for _ in 1..self.spec.driver.interrupt_writes {
                self.write_register(&thread).await;
            }
            let unseen = ring.arrived.borrow().len() as u64;
            ring.coalescing.arm(unseen);
        }
    }

    /// Runs the work of an interrupt's handler before the handler takes frames. `channel` is the channel's number among
    /// all channels of the card.
    async fn begin_interrupt(&self, thread: &Thread, channel: usize, state: &Data, path: &mut Path) {
        let (driver, interrupts) = (&self.spec.driver, &self.spec.interrupts);
        let taken = Piece::new(Group::Kernel, interrupts.taken).stalled(interrupts.taken_time);
        thread.run(taken, stages::HANDLER, path).await;
        thread
            .run(Piece::new(Group::Driver, driver.interrupt).touching(&[state]), stages::HANDLER, path)
            .await;
        let shares = interrupts.shares(channel, self.card.receive.len() + self.card.transmit.len());
        for _ in 0..driver.interrupt_reads + if shares { driver.shared_reads } else { 0 } {
            self.read_register(thread).await;
            path.advance(stages::HANDLER, self.sim.now());
        }
    }

    /// Takes a frame from its ring. If an XDP program may have changed the frame, `changed` has the bytes that replace
    /// those in the ring.
    pub(super) async fn take_frame(
        &self,
        thread: &Thread,
        state: &Data,
        number: usize,
        (arrived, changed): (Arrived, Option<Buffer>),
        handler: &Path,
    ) -> Frame {
        let Arrived { address, bytes, held, verified, message, mut path, .. } = arrived;
        path.advance(stages::COALESCED, handler.origin());
        path.advance(stages::HANDLER, handler.at());
        path.advance(Stage::CPU_QUEUED, self.sim.now());
        let (driver, costs) = (&self.spec.driver, &self.spec.stack);
        let headers = Data::new(HEADER_LINES);
        let touched = [state, &headers];
        let page = self.card.receive[number].page(address);
        let pages: Vec<&Page> = page.iter().map(Rc::as_ref).collect();
        let piece = Piece::new(Group::Driver, driver.receive).touching(&touched).within(&pages);
        thread.run(piece, stages::DRIVER_IN, &mut path).await;
        thread.run(Piece::new(Group::Buffers, costs.buffer), stages::DRIVER_IN, &mut path).await;
        let there = || self.card.dma.bytes(address, bytes).into_buffer().expect("frames are real bytes");
        let bytes = changed.unwrap_or_else(there);
        self.card.recorder.message_noticed(message, self.sim.now());
        let ring = &self.card.receive[number];
        let loan = (driver.post > 0).then(|| Loan::new(&self.card, number, held, address));
        let copies = ring.copies(held, driver);
        if loan.is_none() {
            ring.emptied.set(ring.emptied.get() + ring.free(held));
        }
        if loan.is_some() && copies {
            let lines = self.lines(bytes.len());
            let copy = Piece::new(Group::Driver, lines * self.spec.sockets.copy).streaming(lines);
            thread.run(copy, stages::DRIVER_IN, &mut path).await;
            self.free(thread, loan, &mut path).await;
            return Frame { bytes, verified, headers, path, loan: None };
        }
        Frame { bytes, verified, headers, path, loan }
    }

    /// Hands frames to the soft rings of their connections. Consecutive frames of a soft ring are handed over together.
    async fn hand_over(&self, thread: &Thread, chain: Vec<Frame>) {
        let of = |frame: &Frame| self.card.soft_ring(&frame.bytes);
        let mut frames = chain.into_iter().map(|frame| (of(&frame), frame)).peekable();
        while let Some((number, frame)) = frames.next() {
            let (ring, mut path) = (&self.rings[number], frame.path.clone());
            let mut added = ring.push(frame, self.spec.stack.backlog);
            while let Some((_, frame)) = frames.next_if(|(other, _)| *other == number) {
                added |= ring.push(frame, self.spec.stack.backlog);
            }
            if added {
                thread.wake(&ring.thread, &mut path).await;
            }
        }
    }

    /// Reads a register. The CPU waits for the answer.
    pub(super) async fn read_register(&self, thread: &Thread) {
        let (registers, bus, no_frame) = (self.spec.registers, self.card.dma.bus(), self.no_frame());
        let read = async {
            self.sim.delay(registers.latency).await;
            bus.load(no_frame, registers.bytes, Path::clock(self.sim.now())).await;
        };
        thread.hold(Group::Driver, read).await;
    }

    /// Writes a register. The CPU hands the write to the bus. Returns when the write has left the CPU.
    pub(super) async fn write_register(&self, thread: &Thread) {
        let (bus, no_frame, bytes) = (self.card.dma.bus(), self.no_frame(), self.spec.registers.bytes);
        let store = async { drop(bus.store(no_frame, bytes, Path::clock(self.sim.now())).await) };
        thread.hold(Group::Driver, store).await;
    }

    /// Sends a frame, or leaves the frame to the owner of its ring.
    pub(super) async fn send(self: &Rc<Net>, thread: &Thread, frame: &[u8], finish: Finish, path: &mut Path) {
        let number = self.card.transmit_ring(frame);
        let Some(serialiser) = self.serialisers.get(number) else {
            return self.send_by(number, thread, frame, finish, path).await;
        };
        let Some(owner) = serialiser.enter() else { return serialiser.leave(frame, finish, path) };
        self.send_by(number, thread, frame, finish, path).await;
        for _ in 1..self.spec.driver.serial {
            let Some(mut next) = serialiser.next() else { break };
            self.send_by(number, thread, &next.frame, next.finish, &mut next.path).await;
        }
        if let Some(worker) = owner.successor() {
            thread.wake(worker, &mut path.clone()).await;
        }
    }

    /// Sends the waiting frames of a serialiser, on the kernel's thread.
    pub(super) async fn serve_serialiser(self: Rc<Net>, number: usize) {
        let serialiser = &self.serialisers[number];
        loop {
            serialiser.worker().sleep().await;
            while let Some(mut next) = serialiser.next() {
                self.send_by(number, serialiser.worker(), &next.frame, next.finish, &mut next.path).await;
            }
            serialiser.release();
        }
    }

    /// Sends a frame: waits for a free descriptor in the ring, fills it, and rings the doorbell.
    async fn send_by(
        self: &Rc<Net>,
        number: usize,
        thread: &Thread,
        frame: &[u8],
        finish: Finish,
        path: &mut Path,
    ) {
        let ring = &self.card.transmit[number];
        let (driver, touched) = (&self.spec.driver, [&ring.data]);
        if driver.reclaim > 0 && ring.pending() >= driver.reclaim {
            self.read_register(thread).await;
            path.advance(stages::DRIVER_OUT, self.sim.now());
            ring.reclaim();
        }
        loop {
            let _waiting = ring.waiting.enter(thread);
            while ring.is_full() {
                ring.wanted.set(true);
                thread.sleep().await;
                path.advance(stages::RING_QUEUED, self.sim.now());
            }
            // The copied bytes were just written, so no miss is charged for them.
            let copied = if frame.len() as u64 <= driver.copy { self.lines(frame.len()) } else { 0 };
            let work = driver.transmit + copied * self.spec.sockets.copy;
            thread.run(Piece::new(Group::Driver, work).touching(&touched), stages::DRIVER_OUT, path).await;
            // Another thread may have taken the free descriptor.
            if !ring.is_full() {
                break;
            }
        }
        let message = self.card.post(number, frame, finish, path.clone());
        self.doorbell(thread, message).await;
        path.advance(stages::DRIVER_OUT, self.sim.now());
    }

    /// Tells the card of new descriptors. Returns when the write has left the CPU.
    pub(super) async fn doorbell(&self, thread: &Thread, message: MessageId) {
        let (bus, bytes, start) = (self.card.dma.bus(), self.spec.registers.bytes, self.sim.now());
        let landed = thread.hold(Group::Driver, bus.store(message, bytes, Path::clock(start))).await.landed;
        let card = self.card.clone();
        self.sim.spawn(async move {
            card.sim.until(landed).await;
            card.ring();
        });
    }

    /// Handles the interrupts of a transmit channel, and wakes the threads that wait for descriptors.
    async fn serve_sent(self: Rc<Net>, number: usize, thread: Thread) {
        let ring = &self.card.transmit[number];
        let state = Data::new(STATE_LINES);
        loop {
            thread.sleep().await;
            let mut path = Path::clock(self.sim.now());
            self.begin_interrupt(&thread, self.card.receive.len() + number, &state, &mut path).await;
            for waits in ring.waiting.all() {
                thread.wake(&waits, &mut path).await;
            }
        }
    }
}
