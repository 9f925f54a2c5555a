//! DMA: a card's reads and writes of its host's memories, with their bytes.
//!
//! The address selects the memory: the host's memory or a graphics processor's memory. For a graphics processor's
//! memory, each direction has one more stage after the bus. The bytes move at the lower of the rates of bus and memory,
//! and take the latencies of both.
//!
//! Writes are posted: the card continues when the bus has taken the bytes. The bytes of a write are in host memory when
//! they have crossed the bus, and writes keep their order. A read returns the content of memory at the time when its
//! request reaches the host, with all earlier writes. The caller decides how long transfers take on the card and how
//! many are in flight. `engine.rs` has channels for cards that set up each transfer.

use crate::parts::stages;
use nicety_host::{Bus, BusSpec, Gpu, Memory, MemoryError, is_of_gpu};
use nicety_kernel::{Signal, Sim};
use nicety_types::{Flight, Handover, MessageId, Path, Payload, Recorder, Stage, Stream, Time};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes in flight over the bus to host memory.
struct Landing {
    /// The time at which the bytes arrive in memory.
    landed: Time,
    address: u64,
    /// Number of payload bytes to write. The rest of the payload is not written.
    keep: u64,
    payload: Payload,
}

/// The bytes in flight over a bus to the memories of a host.
struct Landings {
    sim: Sim,
    /// The memory of a graphics processor.
    gpu: Option<Rc<Memory>>,
    /// The writes in the order of their arrival in memory.
    queue: RefCell<VecDeque<Landing>>,
}

impl Landings {
    /// Writes the bytes that have crossed the bus by now, to host memory or to the graphics processor's memory.
    fn land_due(&self, memory: &Memory) {
        let mut queue = self.queue.borrow_mut();
        while queue.front().is_some_and(|first| first.landed <= self.sim.now()) {
            let Landing { address, keep, payload, .. } = queue.pop_front().expect("just seen");
            let memory = self.gpu.as_deref().filter(|_| is_of_gpu(address)).unwrap_or(memory);
            memory.deposit(address, keep, &payload).expect(CHECKED);
        }
    }
}

/// The path between the bus and a graphics processor's memory.
struct GpuWay {
    memory: Rc<Memory>,
    read: RefCell<Stream>,
    write: RefCell<Stream>,
}

/// The path between a card and its host's memories.
///
/// The caller checks all addresses when it posts a transfer. An address outside the allocations is a defect of the
/// card's model, and panics.
pub struct Dma {
    sim: Sim,
    bus: Bus,
    memory: Rc<Memory>,
    gpu: Option<GpuWay>,
    landing: Rc<Landings>,
    /// Whether phantom bytes are written when memory is next read, instead of by a task.
    is_lazy: bool,
    handed: Signal,
}

impl Dma {
    /// Returns a card's access to host memory over an idle bus. Starts the task that writes bytes to memory when they
    /// have crossed the bus.
    pub fn new(sim: &Sim, bus: BusSpec, memory: Rc<Memory>, recorder: &Recorder) -> Rc<Dma> {
        Dma::with_gpu(sim, bus, memory, None, recorder)
    }

    /// Like [`Dma::new`], with access to the memory of a graphics processor, if there is one.
    pub fn with_gpu(
        sim: &Sim,
        bus: BusSpec,
        memory: Rc<Memory>,
        gpu: Option<&Gpu>,
        recorder: &Recorder,
    ) -> Rc<Dma> {
        let gpu = gpu.map(|Gpu { spec, memory }| {
            let way = |latency, gap| RefCell::new(Stream::new(latency, gap, stages::GPU, stages::GPU_QUEUED));
            let (read, write) =
                (way(spec.read_latency, spec.read_gap), way(spec.write_latency, spec.write_gap));
            GpuWay { memory: memory.clone(), read, write }
        });
        let bus = Bus::new(sim, bus);
        bus.record(recorder);
        let of_gpu = gpu.as_ref().map(|gpu| gpu.memory.clone());
        let landing = Rc::new(Landings { sim: sim.clone(), gpu: of_gpu, queue: RefCell::default() });
        let (theirs, handed) = (landing.clone(), Signal::new(sim));
        let is_lazy = memory.when_looked_at(move |memory| theirs.land_due(memory));
        let dma = Rc::new(Dma { sim: sim.clone(), bus, memory, gpu, landing, is_lazy, handed });
        sim.spawn(dma.clone().land());
        dma
    }

    /// Keeps the memory that transfers need [near](Sim::keep_near).
    pub fn keep_near(&self) {
        self.sim.keep_near(self);
        self.sim.keep_near(&*self.landing);
        self.memory.keep_near(&self.sim);
    }

    /// Returns the bus, for transfers that do not access host memory.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// Returns the memory of the host.
    pub fn memory(&self) -> &Rc<Memory> {
        &self.memory
    }

    /// Returns the graphics processor, if an address is in its memory.
    fn gpu(&self, address: u64) -> Option<&GpuWay> {
        self.gpu.as_ref().filter(|_| is_of_gpu(address))
    }

    fn memory_at(&self, address: u64) -> &Memory {
        self.gpu(address).map_or(&self.memory, |gpu| &gpu.memory)
    }

    /// Checks that a range is within one allocation.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] if the range is not within one allocation.
    pub fn check(&self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        self.memory_at(address).check(address, bytes)
    }

    /// Whether the range is phantom memory, which has a length but no bytes.
    pub fn is_phantom(&self, address: u64, bytes: u64) -> bool {
        self.memory_at(address).is_phantom(address, bytes)
    }

    /// Reads a range of memory as one transfer. Returns the bytes and the time of their arrival at the card, as soon as
    /// both are known.
    pub async fn read(&self, message: MessageId, address: u64, bytes: u64, path: Path) -> (Payload, Flight) {
        let transfer = self.bus.read(message, address, bytes, bytes, path).await;
        let payload = self.bytes(address, bytes);
        let flight = transfer.packet(0).await;
        match self.gpu(address) {
            None => (payload, flight),
            Some(gpu) => (payload, gpu.read.borrow_mut().cross(message, bytes, flight)),
        }
    }

    /// Like [`Dma::read`], but returns when the bytes have arrived at the card.
    pub async fn fetch(&self, message: MessageId, address: u64, bytes: u64, path: &mut Path) -> Payload {
        let (payload, flight) = self.read(message, address, bytes, path.clone()).await;
        *path = flight.landed();
        self.sim.until(path.at()).await;
        payload
    }

    /// A CPU rings a doorbell of the card: an empty write crosses the bus.
    pub async fn ring(&self, message: MessageId, path: &mut Path) {
        *path = self.bus.push(message, 0, 1, path.clone()).packet(0).await.landed();
        self.sim.until(path.at()).await;
    }

    /// Returns the bytes of host memory for a read request that reaches the host now.
    pub fn bytes(&self, address: u64, bytes: u64) -> Payload {
        self.land_due();
        self.memory_at(address).read(address, bytes).expect(CHECKED)
    }

    /// Writes the first `keep` bytes of a payload. The payload is complete in a buffer of the card.
    pub fn write(
        &self,
        message: MessageId,
        address: u64,
        keep: u64,
        payload: Payload,
        path: Path,
    ) -> Handover {
        let from = path.at();
        let handover = self.bus.write(message, address, keep, path);
        let handover = self.beyond(message, address, keep, from, handover);
        self.hand_over(handover, address, keep, payload)
    }

    /// Like [`Dma::write`], but returns when the last byte has been handed over to the bus. On a shared bus, the write
    /// takes turns with the transfers of other users.
    pub async fn deposit(
        &self,
        message: MessageId,
        address: u64,
        keep: u64,
        payload: Payload,
        path: Path,
    ) -> Handover {
        let from = path.at();
        let handover = self.bus.deposit(message, address, keep, path).await;
        let handover = self.beyond(message, address, keep, from, handover);
        self.sim.until(handover.path.at()).await;
        self.hand_over(handover, address, keep, payload)
    }

    /// Writes `bytes` bytes without a payload, such as an event, to host memory after earlier writes. Returns the path
    /// up to the instant at which the host can see these bytes.
    pub fn notify(&self, message: MessageId, address: u64, bytes: u64, path: Path) -> Path {
        let Handover { mut path, landed } = self.bus.write(message, address, bytes, path);
        let before = self.landing.queue.borrow().back().map_or(Time::ZERO, |last| last.landed);
        path.advance(Stage::DEPOSIT, landed.max(before));
        path
    }

    /// Extends a write to a graphics processor's memory by the stage after the bus. Returns other writes unchanged. The
    /// write began at `from`. The bus takes the bytes no faster than the graphics processor's memory.
    fn beyond(
        &self,
        message: MessageId,
        address: u64,
        bytes: u64,
        from: Time,
        handover: Handover,
    ) -> Handover {
        let Some(gpu) = self.gpu(address) else { return handover };
        let Handover { mut path, landed } = handover;
        let crossing = landed.since(path.at());
        let head = from + crossing;
        let flight = Flight { head, tail: landed, path: Path::clock(head), slowest: Stage::DEPOSIT };
        let mut write = gpu.write.borrow_mut();
        let written = write.cross(message, bytes, flight).tail;
        path.advance(stages::GPU, Time::from_ps(written.ps() - write.latency().ps() - crossing.ps()));
        Handover { path, landed: written }
    }

    /// Waits until the bytes of a write are in host memory.
    pub async fn landed(&self, write: &Handover) {
        self.sim.until(write.landed).await;
        self.land_due();
    }

    /// Writes a payload to memory now, as an atomic operation does when its request reaches the host.
    pub fn change(&self, address: u64, payload: &Payload) {
        self.memory_at(address).deposit(address, payload.len(), payload).expect(CHECKED);
    }

    fn hand_over(&self, handover: Handover, address: u64, keep: u64, payload: Payload) -> Handover {
        let mut landing = self.landing.queue.borrow_mut();
        let before = landing.back().map_or(Time::ZERO, |last| last.landed);
        debug_assert!(self.gpu.is_some() || before <= handover.landed, "writes keep their order");
        let landed = handover.landed.max(before);
        landing.push_back(Landing { landed, address, keep, payload });
        drop(landing);
        if self.is_lazy && self.gpu(address).is_none() && self.memory.is_phantom(address, keep) {
            self.sim.expect(landed);
            self.land_due();
        } else {
            self.handed.notify_one();
        }
        Handover { landed, ..handover }
    }

    /// Writes bytes to host memory when they have crossed the bus; never returns.
    async fn land(self: Rc<Dma>) {
        loop {
            self.handed.wait_until(|| !self.landing.queue.borrow().is_empty()).await;
            let landed = self.landing.queue.borrow().front().expect("just seen").landed;
            self.sim.until(landed).await;
            self.land_due();
        }
    }

    /// Writes the bytes that have crossed the bus by now to memory, so that reads and events never overtake a write.
    pub fn land_due(&self) {
        self.landing.land_due(&self.memory);
    }
}

const CHECKED: &str = "transfers are checked when they are posted";

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_host::PlainSpec;
    use nicety_kernel::{Config, World};
    use nicety_types::{Duration, Gap, NodeId};
    use proptest::prelude::*;

    const MESSAGE: MessageId = MessageId { source: NodeId(0), sequence: 0 };

    /// Runs a program with a bus of 250 ns and 100 ps per byte. The program gets the address of 64 KiB of host memory.
    fn on<F: Future<Output = ()> + 'static>(program: impl FnOnce(Sim, Rc<Dma>, u64) -> F) {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let (sim, memory) = (world.sim(node), Rc::new(Memory::new(1 << 20)));
        let address = memory.allocate(1 << 16).unwrap().address();
        let bus = PlainSpec { latency: Duration::from_ns(250), gap: Gap::new(100, 1) };
        let dma = Dma::new(&sim, BusSpec::Plain(bus), memory, &Recorder::off());
        sim.spawn_program("test", program(sim.clone(), dma, address));
        world.run().unwrap();
    }

    fn now(sim: &Sim) -> Path {
        Path::from(sim.now())
    }

    fn host(dma: &Dma, address: u64, bytes: u64) -> Vec<u8> {
        dma.memory().peek(address, bytes).unwrap().into_buffer().unwrap().to_vec()
    }

    #[test]
    fn a_write_is_in_memory_when_it_has_crossed() {
        on(async |sim, dma, at| {
            // The 40 bytes take 4 ns, and 250 ns to cross. Memory after the write is checked up to byte 50.
            let one = dma.write(MESSAGE, at, 40, Payload::copy_of(&[1; 40]), now(&sim));
            assert_eq!((one.path.at().ps(), one.landed.ps()), (4000, 254_000));
            // The second write follows the first. It writes 10 of 20 payload bytes.
            let two = dma.deposit(MESSAGE, at + 40, 10, Payload::copy_of(&[2; 20]), now(&sim)).await;
            assert_eq!((sim.now().ps(), two.landed.ps()), (5000, 255_000));
            sim.until(Time::from_ps(253_999)).await;
            assert_eq!(host(&dma, at, 50), [0; 50]);
            dma.landed(&one).await;
            assert_eq!(
                (sim.now().ps(), host(&dma, at, 50)),
                (254_000, [[1; 40].as_slice(), &[0; 10]].concat())
            );
            dma.landed(&two).await;
            assert_eq!(host(&dma, at, 60), [[1; 40].as_slice(), &[2; 10], &[0; 10]].concat());
        });
    }

    #[test]
    fn a_task_writes_what_no_one_waits_for() {
        on(async |sim, dma, at| {
            drop(dma.write(MESSAGE, at, 10, Payload::copy_of(&[3; 10]), now(&sim)));
            sim.until(Time::from_ps(251_001)).await;
            assert_eq!(host(&dma, at, 10), [3; 10]);
        });
    }

    #[test]
    fn lengths_without_bytes_have_landed_when_someone_looks_and_no_sooner() {
        on(async |sim, dma, _| {
            let phantom = dma.memory().allocate_phantom(100).unwrap().address();
            let written = || dma.memory().traffic().written;
            drop(dma.write(MESSAGE, phantom, 10, Payload::phantom(10), now(&sim)));
            drop(dma.write(MESSAGE, phantom, 30, Payload::copy_of(&[3; 30]), now(&sim)));
            // The two writes are handed over after 1 ns and after 4 ns. They cross in 250 ns.
            for (ps, bytes) in [(250_999, 0), (251_000, 10), (253_999, 10), (254_000, 40)] {
                sim.until(Time::from_ps(ps)).await;
                assert_eq!(written(), bytes, "after {ps} ps");
            }
        });
    }

    #[test]
    fn a_read_finds_the_writes_before_it_and_the_memory_as_its_request_does() {
        on(async |sim, dma, at| {
            drop(dma.write(MESSAGE, at, 10, Payload::copy_of(&[4; 10]), now(&sim)));
            let (other, task) = (dma.clone(), sim.clone());
            sim.spawn(async move {
                // This instant is after the request has reached the host, and before the bytes arrive at the card.
                task.until(Time::from_ps(251_002)).await;
                other.change(at, &Payload::copy_of(&[5; 10]));
            });
            // The request follows the write, which takes 1 ns, and crosses in 250 ns. The 20 bytes return in 2 ns and
            // 250 ns.
            let (payload, flight) = dma.read(MESSAGE, at, 20, now(&sim)).await;
            assert_eq!(flight.landed().at().ps(), 1000 + 250_000 + 2000 + 250_000);
            assert_eq!(payload.into_buffer().unwrap()[..], [[4; 10], [0; 10]].concat());
            sim.until(Time::from_ps(251_003)).await;
            assert_eq!(host(&dma, at, 10), [5; 10]);
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]
        /// Writes and reads in any order, some of them before earlier writes have landed. The contents of memory and
        /// the result of each read are as if each transfer took place at once, in order.
        #[test]
        fn transfers_take_effect_in_order(
            steps in prop::collection::vec((any::<bool>(), 0..200u64, 1..200u64, 0..400u64), 1..30)
        ) {
            on(async |sim, dma, at| {
                let mut expected = vec![0u8; 400];
                for (number, (writes, offset, bytes, pause)) in steps.into_iter().enumerate() {
                    let range = offset as usize..(offset + bytes) as usize;
                    if writes {
                        let payload = Payload::copy_of(&vec![number as u8 + 1; bytes as usize]);
                        expected[range].fill(number as u8 + 1);
                        drop(dma.write(MESSAGE, at + offset, bytes, payload, now(&sim)));
                    } else {
                        let (found, _) = dma.read(MESSAGE, at + offset, bytes, now(&sim)).await;
                        assert_eq!(found.into_buffer().unwrap()[..], expected[range], "read {number}");
                    }
                    sim.delay(Duration::from_ns(pause)).await;
                }
                sim.delay(Duration::from_us(1)).await;
                assert_eq!(host(&dma, at, 400), expected);
            });
        }
    }
}
