//! The operating system's services for communication: system calls, pages locked and translated for a card, interrupts,
//! and thread wake-ups.
//!
//! Cards of different designs need different services. One design needs a driver for each message. A design with
//! user-level interfaces needs the kernel only to register memory. The costs of a service belong to the host, and are
//! the same for all designs. Every service is work of a CPU: it waits for a free CPU and holds this CPU until it is
//! done. No service is preempted.

use crate::cpu::Cpus;
use nicety_kernel::{Server, Sim};
use nicety_types::{Duration, Path, Stage};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;
use std::iter::Sum;
use std::rc::Rc;

/// CPU time of each service of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSpec {
    /// An empty system call: entry into the kernel and return.
    pub call: Duration,
    /// Lock pages and translate their addresses: the fixed part of the time.
    pub pin: Duration,
    /// Lock pages and translate their addresses: the time per page.
    pub pin_page: Duration,
    /// Unlock pages: the fixed part of the time.
    pub unpin: Duration,
    /// Unlock pages: the time per page.
    pub unpin_page: Duration,
    /// The handler of an interrupt, from the interrupt to the handler's end.
    pub interrupt: Duration,
    /// From the wake-up of a thread in a wait queue until the thread runs.
    pub wake: Duration,
    /// Size of a page in bytes.
    pub page: u64,
}

impl KernelSpec {
    /// Returns the number of pages that contain `bytes` from `address` on.
    pub const fn pages(&self, address: u64, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        (address % self.page + bytes).div_ceil(self.page)
    }
}

/// Counters of a host's operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "KernelReport")]
pub struct KernelCounters {
    /// Number of system calls.
    pub calls: u64,
    /// Number of times that the kernel locked and translated pages.
    pub pins: u64,
    /// Number of pages locked and translated.
    pub pages_pinned: u64,
    /// Number of times that the kernel unlocked pages.
    pub unpins: u64,
    /// Number of interrupts that ran a handler.
    pub interrupts: u64,
    /// Number of thread wake-ups.
    pub wakes: u64,
}

/// An interrupt vector. Its handlers run one after another, in the order of their interrupts. A clone is the same
/// vector.
#[derive(Clone, Debug)]
pub struct Vector(Server);

/// The operating system of a host.
pub struct Kernel {
    sim: Sim,
    cpus: Rc<Cpus>,
    spec: KernelSpec,
    counters: Cell<KernelCounters>,
}

impl Sum for KernelCounters {
    /// The counters of all kernels together, for example of a host with a driver for each of several cards.
    fn sum<I: Iterator<Item = KernelCounters>>(counters: I) -> KernelCounters {
        counters.fold(KernelCounters::default(), |sum, other| KernelCounters {
            calls: sum.calls + other.calls,
            pins: sum.pins + other.pins,
            pages_pinned: sum.pages_pinned + other.pages_pinned,
            unpins: sum.unpins + other.unpins,
            interrupts: sum.interrupts + other.interrupts,
            wakes: sum.wakes + other.wakes,
        })
    }
}

impl Kernel {
    /// Returns an operating system that runs on these CPUs.
    pub fn new(sim: &Sim, cpus: &Rc<Cpus>, spec: KernelSpec) -> Kernel {
        Kernel { sim: sim.clone(), cpus: cpus.clone(), spec, counters: Cell::default() }
    }

    /// The CPU time of each service.
    pub const fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// The CPUs on which the operating system runs.
    pub const fn cpus(&self) -> &Rc<Cpus> {
        &self.cpus
    }

    /// The counters so far.
    pub const fn counters(&self) -> KernelCounters {
        self.counters.get()
    }

    /// Takes the time of an empty system call. The caller adds the work of the call itself.
    pub async fn call(&self, path: &mut Path) {
        self.count(|counters| counters.calls += 1);
        self.cpus.spend(self.spec.call, Stage::SYSTEM_CALL, path).await;
    }

    /// Locks `pages` in memory and translates their addresses for the card, inside a system call or a handler.
    pub async fn pin(&self, pages: u64, path: &mut Path) {
        self.count(|counters| {
            counters.pins += 1;
            counters.pages_pinned += pages;
        });
        let time = whole(self.spec.pin, self.spec.pin_page, pages);
        self.cpus.spend(time, Stage::PIN, path).await;
    }

    /// Unlocks `pages`, inside a system call or a handler.
    pub async fn unpin(&self, pages: u64, path: &mut Path) {
        self.count(|counters| counters.unpins += 1);
        let time = whole(self.spec.unpin, self.spec.unpin_page, pages);
        self.cpus.spend(time, Stage::UNPIN, path).await;
    }

    /// Returns a vector for the interrupts of a card.
    pub fn vector(&self) -> Vector {
        Vector(Server::new(&self.sim))
    }

    /// Runs the handler of an interrupt. The handler waits for earlier handlers of the same vector and for a CPU.
    /// Returns at the end of the handler. `path` is the path of the event that caused the interrupt.
    pub async fn interrupt(&self, vector: &Vector, path: &mut Path) {
        self.count(|counters| counters.interrupts += 1);
        let running = vector.0.acquire().await;
        path.advance(Stage::INTERRUPT_QUEUED, self.sim.now());
        self.cpus.spend(self.spec.interrupt, Stage::INTERRUPT, path).await;
        drop(running);
    }

    /// Wakes a thread that waits in a wait queue. Returns when the thread runs again.
    pub async fn wake(&self, path: &mut Path) {
        self.count(|counters| counters.wakes += 1);
        self.cpus.spend(self.spec.wake, Stage::WAKE, path).await;
    }

    fn count(&self, change: impl FnOnce(&mut KernelCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }
}

/// Returns the cost of `pages` pages, with a fixed part and a part per page.
fn whole(fixed: Duration, each: Duration, pages: u64) -> Duration {
    Duration::from_ps(fixed.ps().saturating_add(each.ps().saturating_mul(pages)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostSpec;
    use nicety_kernel::{Config, World, join_all};
    use nicety_types::{Frequency, Gap, Recorder, Time};

    const SPEC: KernelSpec = KernelSpec {
        call: Duration::from_ps(100),
        pin: Duration::from_ps(1000),
        pin_page: Duration::from_ps(70),
        unpin: Duration::from_ps(500),
        unpin_page: Duration::from_ps(30),
        interrupt: Duration::from_ps(2000),
        wake: Duration::from_ps(3000),
        page: 4096,
    };

    const HOST: HostSpec = HostSpec {
        cores: 2,
        clock: Frequency::from_hz(1_000_000_000),
        post: Duration::ZERO,
        notice: Duration::ZERO,
        memory: 1 << 20,
        memory_latency: Duration::ZERO,
        memory_gap: Gap::new(1, 1),
        cache: 0,
        line: 64,
        line_fills: 1,
    };

    /// Runs a program on a host with `cores` cores.
    fn run<F: Future<Output = ()> + 'static>(cores: usize, program: impl FnOnce(Rc<Kernel>, Sim) -> F) {
        let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
        let node = world.add_node();
        let sim = world.sim(node);
        let cpus = Rc::new(Cpus::new(&sim, HostSpec { cores, ..HOST }, &Recorder::off()));
        let kernel = Rc::new(Kernel::new(&sim, &cpus, SPEC));
        sim.spawn_program("test", program(kernel, sim.clone()));
        world.run().unwrap();
    }

    #[test]
    fn a_range_lies_in_the_pages_that_it_touches() {
        for (address, bytes, pages) in [
            (0, 0, 0),
            (100, 0, 0),
            (0, 1, 1),
            (0, 4096, 1),
            (0, 4097, 2),
            (4095, 1, 1),
            (4095, 2, 2),
            (1, 4096, 2),
            (8192, 2 << 20, 512),
            (8193, 2 << 20, 513),
        ] {
            assert_eq!(SPEC.pages(address, bytes), pages, "{bytes} bytes from {address} on");
        }
    }

    #[test]
    fn each_service_takes_its_time_and_is_counted() {
        run(1, |kernel, sim| async move {
            let mut path = Path::from(Time::ZERO);
            kernel.call(&mut path).await;
            kernel.pin(3, &mut path).await;
            kernel.pin(0, &mut path).await;
            kernel.unpin(3, &mut path).await;
            kernel.interrupt(&kernel.vector(), &mut path).await;
            kernel.wake(&mut path).await;
            let stages: Vec<_> = path.stages().map(|(stage, time)| (stage.name(), time.ps())).collect();
            let expected = [
                ("system call", 100),
                ("pin", 1000 + 3 * 70 + 1000),
                ("interrupt", 2000),
                ("unpin", 500 + 3 * 30),
                ("wake", 3000),
            ];
            assert_eq!(stages, expected);
            assert_eq!((path.at(), sim.now().ps()), (sim.now(), 7900));
            let expected =
                KernelCounters { calls: 1, pins: 2, pages_pinned: 3, unpins: 1, interrupts: 1, wakes: 1 };
            assert_eq!(kernel.counters(), expected);
        });
    }

    #[test]
    fn handlers_of_one_vector_run_one_after_another_and_of_two_at_once() {
        run(2, |kernel, sim| async move {
            let one = kernel.vector();
            let ends = join_all((0..3).map(|_| {
                let (kernel, one) = (kernel.clone(), one.clone());
                async move {
                    let mut path = Path::from(Time::ZERO);
                    kernel.interrupt(&one, &mut path).await;
                    (path.total(Stage::INTERRUPT_QUEUED).ps(), path.at().ps())
                }
            }));
            assert_eq!(ends.await, [(0, 2000), (2000, 4000), (4000, 6000)]);
            let start = sim.now();
            let vectors = [kernel.vector(), kernel.vector()];
            let ends = join_all(vectors.iter().map(|vector| async {
                let mut path = Path::from(start);
                kernel.interrupt(vector, &mut path).await;
                path.at().since(start).ps()
            }));
            assert_eq!(ends.await, [2000, 2000]);
        });
    }

    #[test]
    fn the_kernel_works_on_a_cpu_that_is_free() {
        run(1, |kernel, sim| async move {
            let other = kernel.clone();
            let work =
                async { other.cpus().compute(Duration::from_ps(5000), &mut Path::from(Time::ZERO)).await };
            let call = async {
                let mut path = Path::from(Time::ZERO);
                kernel.call(&mut path).await;
                assert_eq!(path.total(Stage::CPU_QUEUED).ps(), 5000);
                assert_eq!(sim.now().ps(), 5100);
            };
            nicety_kernel::join(work, call).await;
        });
    }
}
