//! Threads at work, in cases computed by hand and in random cases.

use super::*;
use nicety_kernel::{Config, Sim, World};
use nicety_types::{Duration, Frequency, Path, Stage, Time};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Two cores with two hardware threads each, at 1 GHz: an instruction takes 1000 ps. The caches have 16 and 64 lines.
pub(super) const SPEC: ThreadsSpec = ThreadsSpec {
    cores: 2,
    strands: 2,
    issue: 1,
    cycles_per_instruction: 1,
    clock: Frequency::from_hz(1_000_000_000),
    caches: CachesSpec {
        line: 64,
        first: 1024,
        second: 4096,
        second_latency: Duration::from_ns(20),
        memory_latency: Duration::from_ns(100),
        overlap: 1,
        code: None,
        tlb: None,
        code_tlb: None,
    },
    switch: 500,
    own_lines: 2,
    walk: 0,
    idle_walk: 0,
    wake: 50,
    cross_call: 30,
    cross_call_latency: Duration::from_ns(200),
    cross_call_taken: 70,
    interrupt: 300,
    quantum: Duration::from_us(10),
};

/// Duration in ns of a context switch to a thread if none of the thread's own lines are cached.
const COLD: u64 = 500 + 2 * 100;

type Log = Rc<RefCell<Vec<(&'static str, u64)>>>;

struct Rig {
    sim: Sim,
    threads: Threads,
    log: Log,
}

impl Rig {
    /// Runs `body` on a thread. Then logs the name and the time in ns.
    fn on<F: Future<Output = ()> + 'static>(
        &self,
        name: &'static str,
        thread: &Thread,
        body: impl FnOnce(Thread) -> F,
    ) {
        let (log, sim, thread) = (self.log.clone(), self.sim.clone(), thread.clone());
        let body = body(thread.clone());
        self.sim.spawn_program(name, async move {
            body.await;
            thread.exit();
            log.borrow_mut().push((name, sim.now().ps() / 1000));
        });
    }

    fn thread(&self, placement: Placement) -> Thread {
        self.threads.thread(placement)
    }
}

/// Runs threads on the first `cpus` CPUs. Returns the log of names and end times in ns, and the account.
fn run(cpus: usize, spec: ThreadsSpec, build: impl FnOnce(&Rig)) -> (Vec<(&'static str, u64)>, Account) {
    let mut world: World<()> = World::new(Config { seed: 1, ..Config::default() });
    let node = world.add_node();
    let sim = world.sim(node);
    let rig = Rig { threads: Threads::new(&sim, spec, cpus), sim, log: Log::default() };
    build(&rig);
    world.run().unwrap();
    (rig.log.take(), rig.threads.account())
}

fn piece(instructions: u64) -> Piece<'static> {
    Piece::new(Group::Application, instructions)
}

async fn work(thread: &Thread, instructions: u64) {
    thread.run(piece(instructions), Stage::COMPUTE, &mut Path::clock(Time::ZERO)).await;
}

#[test]
fn a_thread_pays_for_its_context_switch_and_its_work() {
    let (ends, account) = run(4, SPEC, |rig| {
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            work(&thread, 1000).await;
            work(&thread, 1000).await;
            assert_eq!(thread.busy().ps(), (COLD + 2000) * 1000);
            assert_eq!(thread.cpu(), Some(0));
        });
    });
    assert_eq!(ends, [("a", COLD + 2000)]);
    assert_eq!((account.context_switches, account.cross_calls, account.wakes), (1, 0, 0));
    assert_eq!(account.group(Group::Application).busy, Duration::from_ns(2000));
    let kernel = account.group(Group::Kernel);
    assert_eq!((kernel.instructions, kernel.l1_misses, kernel.shared_cache_misses), (500, 2, 2));
    assert_eq!(account.busy(), Duration::from_ns(COLD + 2000));
}

#[test]
fn a_piece_waits_for_its_code() {
    // The cache has 16 lines of 8 instructions. The application's 64 instructions take 8 lines, which are cached the
    // second time. The copy is a loop, so its code misses nothing.
    let code = Some(CodeSpec { first: 512, line: 32 });
    let spec = ThreadsSpec { switch: 0, own_lines: 0, caches: CachesSpec { code, ..SPEC.caches }, ..SPEC };
    let (ends, account) = run(4, spec, |rig| {
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            work(&thread, 64).await;
            work(&thread, 64).await;
            let copy = Piece::new(Group::Copy, 64).streaming(1);
            thread.run(copy, Stage::COMPUTE, &mut Path::clock(Time::ZERO)).await;
        });
    });
    assert_eq!(ends, [("a", 64 + 8 * 20 + 64 + 64 + 100)]);
    assert_eq!(account.group(Group::Application).l1_misses, 0);
}

#[test]
fn a_piece_waits_for_the_translation_of_its_pages() {
    let tlb = Some(TlbSpec { entries: 4, miss: Duration::from_ns(40) });
    let spec = ThreadsSpec { switch: 0, own_lines: 0, caches: CachesSpec { tlb, ..SPEC.caches }, ..SPEC };
    let (ends, _) = run(4, spec, |rig| {
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            let (one, two) = (Page::default(), Page::default());
            let pages = [&one, &two];
            for _ in 0..2 {
                let both = piece(100).within(&pages);
                thread.run(both, Stage::COMPUTE, &mut Path::clock(Time::ZERO)).await;
            }
        });
    });
    // The first piece has two misses. Since the first page's use, one of four TLB entries was filled. So the second
    // piece has a quarter of a miss, which is carried over.
    assert_eq!(ends, [("a", 100 + 2 * 40 + 100)]);
}

#[test]
fn a_piece_waits_for_the_translation_of_its_code() {
    let code_tlb = Some(CodeTlbSpec { entries: 4, page: 256, miss: Duration::from_ns(40) });
    let spec =
        ThreadsSpec { switch: 0, own_lines: 0, caches: CachesSpec { code_tlb, ..SPEC.caches }, ..SPEC };
    let (ends, account) = run(4, spec, |rig| {
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            for _ in 0..2 {
                thread.run(piece(100), Stage::COMPUTE, &mut Path::clock(Time::ZERO)).await;
            }
            // A loop is within one page, which is in the TLB.
            thread.run(piece(100).streaming(1), Stage::COMPUTE, &mut Path::clock(Time::ZERO)).await;
        });
    });
    // 100 instructions are in two pages, which stay in the TLB. The loop loads one line.
    assert_eq!(ends, [("a", 100 + 2 * 40 + 100 + 100 + 100)]);
    let group = account.group(Group::Application);
    assert_eq!((group.code_tlb_misses, group.tlb_misses), (2, 0));
}

#[test]
fn instructions_of_several_cycles_leave_most_of_them_to_others() {
    // An instruction takes four cycles, and the thread issues in one of them. Two threads demand half of the core.
    let spec = ThreadsSpec { switch: 0, own_lines: 0, cycles_per_instruction: 4, ..SPEC };
    let (ends, account) = run(2, spec, |rig| {
        for name in ["a", "b"] {
            rig.on(name, &rig.thread(Placement::Anywhere), |thread| async move { work(&thread, 1000).await });
        }
    });
    assert_eq!(ends, [("a", 4000), ("b", 4000)]);
    assert_eq!(account.group(Group::Application).instructions, 2000);
}

#[test]
fn threads_spread_over_cores_before_they_share_one() {
    run(4, SPEC, |rig| {
        for (name, cpu) in [("a", 0), ("b", 2), ("c", 1), ("d", 3)] {
            rig.on(name, &rig.thread(Placement::Anywhere), move |thread| async move {
                work(&thread, 1000).await;
                assert_eq!(thread.cpu(), Some(cpu), "{name}");
            });
        }
    });
}

#[test]
fn two_hardware_threads_of_a_core_take_turns() {
    // Both threads run on the first core. A context switch issues in 200 of 400 ns, so two switches fill the core.
    let (ends, _) = run(2, ThreadsSpec { switch: 200, ..SPEC }, |rig| {
        for name in ["a", "b"] {
            rig.on(name, &rig.thread(Placement::Anywhere), |thread| async move { work(&thread, 7000).await });
        }
    });
    // Thread a begins its work while b demands half of the core: 7000 * 1.5. Thread b begins while a demands the whole
    // core: 7000 * 2.
    assert_eq!(ends, [("a", 400 + 10_500), ("b", 400 + 14_000)]);
}

#[test]
fn a_thread_waits_for_a_cpu_and_takes_it_at_the_end_of_a_quantum() {
    let (ends, account) = run(1, SPEC, |rig| {
        for name in ["a", "b"] {
            rig.on(name, &rig.thread(Placement::Anywhere), |thread| async move {
                for _ in 0..3 {
                    work(&thread, 6000).await;
                }
            });
        }
    });
    // Thread a has the CPU for two pieces, which take longer than the quantum of 10 us. So does b. Then each has its
    // last piece. Thread a's own lines are still cached when it returns, since only two other lines were filled.
    let a = COLD + 12_000;
    let b = a + COLD + 12_000;
    let a_again = b + 500 + 6000;
    assert_eq!(ends, [("a", a_again), ("b", a_again + 500 + 6000)]);
    assert_eq!(account.context_switches, 4);
}

#[test]
fn to_wake_a_thread_on_another_cpu_takes_a_cross_call() {
    let (ends, account) = run(4, SPEC, |rig| {
        let sleeper = rig.thread(Placement::Anywhere);
        rig.on("sleeper", &sleeper, |thread| async move {
            thread.sleep().await;
            work(&thread, 100).await;
        });
        rig.on("waker", &rig.thread(Placement::Anywhere), |thread| async move {
            work(&thread, 1000).await;
            thread.wake(&sleeper, &mut Path::clock(Time::ZERO)).await;
            // The sleeper is already awake, so the second wake-up takes no time.
            thread.wake(&sleeper, &mut Path::clock(Time::ZERO)).await;
        });
    });
    let called = COLD + 1000 + 50;
    assert_eq!(ends, [("waker", called + 30), ("sleeper", called + 200 + 70 + COLD + 100)]);
    assert_eq!((account.wakes, account.cross_calls, account.context_switches), (1, 1, 2));
}

#[test]
fn a_wake_up_before_the_sleep_is_not_lost() {
    let (ends, account) = run(4, SPEC, |rig| {
        let sleeper = rig.thread(Placement::Anywhere);
        rig.on("sleeper", &sleeper, |thread| async move {
            work(&thread, 5000).await;
            thread.sleep().await;
            work(&thread, 100).await;
        });
        rig.on("waker", &rig.thread(Placement::Anywhere), |thread| async move {
            work(&thread, 1000).await;
            thread.wake(&sleeper, &mut Path::clock(Time::ZERO)).await;
        });
    });
    assert_eq!(ends, [("waker", COLD + 1000), ("sleeper", COLD + 5100)]);
    assert_eq!((account.wakes, account.cross_calls, account.context_switches), (0, 0, 2));
}

/// Returns an interrupt handler on the first CPU. It runs `pieces` pieces and logs the end of each.
fn handler(rig: &Rig, pieces: usize) -> Thread {
    let handler = rig.thread(Placement::Interrupt(0));
    let (log, sim) = (rig.log.clone(), rig.sim.clone());
    rig.on("handler", &handler, move |thread| async move {
        for _ in 0..pieces {
            thread.sleep().await;
            work(&thread, 400).await;
            log.borrow_mut().push(("handled", sim.now().ps() / 1000));
        }
    });
    handler
}

/// Interrupts a thread at these instants, in ns.
fn interrupt_at(rig: &Rig, thread: Thread, instants: &'static [u64]) {
    let sim = rig.sim.clone();
    rig.sim.spawn(async move {
        for &at in instants {
            sim.until(Time::ZERO + Duration::from_ns(at)).await;
            thread.interrupt();
        }
    });
}

#[test]
fn a_thread_whose_code_has_ended_takes_no_cpu() {
    let (ends, account) = run(1, SPEC, |rig| {
        let ended = rig.thread(Placement::Anywhere);
        rig.on("ended", &ended, |thread| async move { work(&thread, 100).await });
        let sim = rig.sim.clone();
        rig.on("other", &rig.thread(Placement::Anywhere), |thread| async move {
            sim.delay(Duration::from_ns(2000)).await;
            ended.interrupt();
            work(&thread, 100).await;
            thread.wake(&ended, &mut Path::clock(Time::ZERO)).await;
            work(&thread, 100).await;
        });
    });
    assert_eq!(ends, [("ended", COLD + 100), ("other", 2000 + COLD + 200)]);
    assert_eq!((account.wakes, account.context_switches), (0, 2));
}

#[test]
fn an_interrupt_takes_the_cpu_between_two_pieces() {
    let (ends, account) = run(1, SPEC, |rig| {
        interrupt_at(rig, handler(rig, 1), &[COLD + 500]);
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            work(&thread, 1000).await;
            work(&thread, 1000).await;
        });
    });
    // The interrupt is handled at the end of the first piece. Then a continues without a context switch.
    let handled = COLD + 1000 + 300 + 400;
    assert_eq!(ends, [("handled", handled), ("handler", handled), ("a", handled + 1000)]);
    assert_eq!((account.interrupts, account.context_switches, account.cross_calls), (1, 1, 0));
}

#[test]
fn an_interrupt_takes_an_idle_cpu_at_once_and_again_where_one_came_meanwhile() {
    let (ends, account) = run(1, SPEC, |rig| interrupt_at(rig, handler(rig, 2), &[1000, 1500]));
    // The second interrupt arrives while the handler runs. The handler checks for interrupts again before it leaves its
    // CPU.
    assert_eq!(ends, [("handled", 1700), ("handled", 2100), ("handler", 2100)]);
    assert_eq!((account.interrupts, account.context_switches), (1, 0));
}

#[test]
fn a_thread_that_waits_for_a_busy_cpu_goes_to_one_that_becomes_idle() {
    let (ends, account) = run(2, ThreadsSpec { cores: 2, strands: 1, ..SPEC }, |rig| {
        let third = rig.thread(Placement::Anywhere);
        for (name, instructions) in [("long", 9000), ("short", 2000)] {
            let third = third.clone();
            rig.on(name, &rig.thread(Placement::Anywhere), move |thread| async move {
                work(&thread, instructions).await;
                drop(third);
            });
        }
        let sim = rig.sim.clone();
        rig.on("third", &third, move |thread| async move {
            sim.delay(Duration::from_ns(1000)).await;
            work(&thread, 100).await;
            assert_eq!(thread.cpu(), Some(1));
        });
    });
    assert_eq!(ends, [("short", COLD + 2000), ("third", 2 * COLD + 2100), ("long", COLD + 9000)]);
    assert_eq!(account.migrations, 0);
}

#[test]
fn a_bound_thread_takes_its_cpu_when_the_thread_there_leaves_the_kernel() {
    let (ends, account) = run(2, ThreadsSpec { cores: 2, strands: 1, ..SPEC }, |rig| {
        let ring = rig.thread(Placement::Bound(0));
        rig.on("ring", &ring, |thread| async move {
            thread.sleep().await;
            work(&thread, 100).await;
            assert_eq!(thread.cpu(), Some(0));
        });
        rig.on("reader", &rig.thread(Placement::Anywhere), |thread| async move {
            for _ in 0..4 {
                thread.leave_kernel().await;
                work(&thread, 1000).await;
            }
            assert_eq!(thread.cpu(), Some(0));
        });
        rig.on("waker", &rig.thread(Placement::Anywhere), |thread| async move {
            work(&thread, 1500).await;
            thread.wake(&ring, &mut Path::clock(Time::ZERO)).await;
            work(&thread, 8000).await;
        });
    });
    // The waker calls the CPU of the ring's thread, because a reader runs there. The reader takes the call at the end
    // of its second piece, leaves the kernel, and waits until the ring's thread has run.
    let ring = COLD + 2000 + 70 + COLD + 100;
    let reader = ring + 500 + 2000;
    assert_eq!(ends, [("ring", ring), ("reader", reader), ("waker", COLD + 1500 + 50 + 30 + 8000)]);
    assert_eq!((account.wakes, account.cross_calls, account.context_switches), (1, 1, 4));
}

#[test]
fn a_bound_thread_keeps_its_cpu_beyond_a_quantum() {
    let (ends, _) = run(1, SPEC, |rig| {
        rig.on("ring", &rig.thread(Placement::Bound(0)), |thread| async move {
            work(&thread, 12_000).await;
            work(&thread, 1000).await;
        });
        rig.on("reader", &rig.thread(Placement::Anywhere), |thread| async move { work(&thread, 100).await });
    });
    assert_eq!(ends, [("ring", COLD + 13_000), ("reader", 2 * COLD + 13_100)]);
}

#[test]
fn a_cpu_that_is_left_idle_looks_at_all_others_before_it_halts() {
    let spec = ThreadsSpec { issue: 2, walk: 10, idle_walk: 20, ..SPEC };
    let woken_after = |instructions: u64| {
        run(4, spec, |rig| {
            let sleeper = rig.thread(Placement::Anywhere);
            rig.on("sleeper", &sleeper, |thread| async move {
                work(&thread, 1000).await;
                thread.sleep().await;
                work(&thread, 100).await;
            });
            rig.on("waker", &rig.thread(Placement::Anywhere), move |thread| async move {
                work(&thread, instructions).await;
                thread.wake(&sleeper, &mut Path::clock(Time::ZERO)).await;
            });
        })
    };
    // The sleeper looks at three other CPUs. It loads two lines for each of the four CPUs from memory. At `idle`, the
    // idle CPU begins to look, and it halts 60 ns later.
    let idle = COLD + 1000 + 3 * 10 + 8 * 100;
    // The sleeper is woken while it looks. It keeps its CPU, and no cross-call is needed.
    let (ends, account) = woken_after(1500);
    assert_eq!(ends, [("waker", COLD + 1550), ("sleeper", idle + 100)]);
    assert_eq!((account.wakes, account.cross_calls, account.context_switches), (1, 0, 2));
    // The CPU has not halted yet, so no cross-call is needed. Eight of 16 lines were filled since the thread's last
    // run, so one of its two lines is only in the second level.
    let (ends, account) = woken_after(1800);
    assert_eq!(ends, [("waker", COLD + 1850), ("sleeper", COLD + 1850 + 520 + 100)]);
    assert_eq!((account.wakes, account.cross_calls, account.context_switches), (1, 0, 3));
    let (ends, account) = woken_after(2000);
    assert_eq!(ends, [("waker", COLD + 2050 + 30), ("sleeper", COLD + 2050 + 200 + 70 + 520 + 100)]);
    assert_eq!((account.wakes, account.cross_calls, account.context_switches), (1, 1, 3));
    // Three context switches take 500 instructions each. The sleeper's look takes 30, the wake-up 50, and the
    // cross-call 30 + 70. The two threads that end do not look, and the looks of idle CPUs are accounted to no thread.
    assert_eq!(account.group(Group::Kernel).instructions, 3 * 500 + 30 + 50 + 30 + 70);
}

#[test]
fn a_stalled_cpu_leaves_the_core_to_its_other_hardware_thread() {
    let (ends, account) = run(2, SPEC, |rig| {
        rig.on("a", &rig.thread(Placement::Bound(0)), |thread| async move {
            let read = Piece::new(Group::Driver, 0).stalled(Duration::from_ns(5000));
            thread.run(read, Stage::COMPUTE, &mut Path::clock(Time::ZERO)).await;
        });
        let sim = rig.sim.clone();
        rig.on("b", &rig.thread(Placement::Bound(1)), |thread| async move {
            sim.delay(Duration::from_ns(1000)).await;
            work(&thread, 1000).await;
        });
    });
    assert_eq!(ends, [("b", 1000 + COLD + 1000), ("a", COLD + 5000)]);
    assert_eq!(account.group(Group::Driver).busy, Duration::from_ns(5000));
}

#[test]
fn a_thread_that_waits_for_a_register_keeps_its_cpu() {
    let (ends, account) = run(1, SPEC, |rig| {
        interrupt_at(rig, handler(rig, 1), &[COLD + 500]);
        let sim = rig.sim.clone();
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            let answer = thread.hold(Group::Driver, async {
                sim.delay(Duration::from_ns(2000)).await;
                7
            });
            assert_eq!(answer.await, 7);
        });
    });
    // The interrupt arrives while the CPU waits for the register. It is handled after the wait.
    let handled = COLD + 2000 + 300 + 400;
    assert_eq!(ends, [("handled", handled), ("handler", handled), ("a", handled)]);
    assert_eq!(account.group(Group::Driver).busy, Duration::from_ns(2000));
}

#[test]
fn data_that_other_threads_have_driven_out_comes_again() {
    let (ends, account) = run(1, SPEC, |rig| {
        rig.on("a", &rig.thread(Placement::Anywhere), |thread| async move {
            let (state, path) = (Data::new(4), &mut Path::clock(Time::ZERO));
            thread.run(piece(100).touching(&[&state]), Stage::COMPUTE, path).await;
            thread.run(piece(0).streaming(8), Stage::COPY, path).await;
            thread.run(piece(100).touching(&[&state]), Stage::COMPUTE, path).await;
        });
    });
    // Four lines come from memory, and eight lines are streamed from memory. These eight fills evict half of the four
    // lines from the first level, so two lines come from the second level. There, at least 4 of 64 lines were filled,
    // which evicts less than one of the two lines.
    assert_eq!(ends, [("a", COLD + 100 + 400 + 800 + 100 + 2 * 20)]);
    assert_eq!(account.group(Group::Application).l1_misses, 4 + 8 + 2);
}

/// The parameters of a random run: the number of CPUs, items and consumers, and the duration of their pieces.
#[derive(Clone, Debug)]
struct Load {
    cpus: usize,
    items: usize,
    consumers: usize,
    producers: usize,
    cost: Vec<u64>,
    bound: bool,
}

fn loads() -> impl Strategy<Value = Load> {
    let counts = (1usize..=4, 1usize..40, 1usize..5, 1usize..4);
    (counts, prop::collection::vec(0u64..9000, 1..20), any::<bool>()).prop_map(
        |((cpus, items, consumers, producers), cost, bound)| Load {
            cpus,
            items,
            consumers,
            producers,
            cost,
            bound,
        },
    )
}

proptest! {
    /// Interrupts hand items to producers, and producers hand them to consumers. No item is lost, no thread sleeps for
    /// ever, and the CPU time equals the work of the threads.
    #[test]
    fn every_item_is_consumed(load in loads()) {
        let consumed = Rc::new(Cell::new(0));
        let (_, account) = run(load.cpus, SPEC, |rig| {
            let queues: Vec<Rc<RefCell<VecDeque<usize>>>> = (0..load.consumers).map(|_| Rc::default()).collect();
            let place = |i: usize| if load.bound { Placement::Bound(i % load.cpus) } else { Placement::Anywhere };
            let consumers: Vec<Thread> = (0..load.consumers).map(|i| rig.thread(place(i))).collect();
            let all = load.items * load.producers;
            let mut threads = consumers.clone();
            for (i, consumer) in consumers.iter().enumerate() {
                let (queue, consumed, cost) = (queues[i].clone(), consumed.clone(), load.cost.clone());
                let own = (0..all).filter(|item| item % load.consumers == i).count();
                rig.on("consumer", consumer, move |thread| async move {
                    for _ in 0..own {
                        while queue.borrow().is_empty() {
                            thread.sleep().await;
                        }
                        let item = queue.borrow_mut().pop_front().unwrap();
                        work(&thread, cost[item % cost.len()]).await;
                        consumed.set(consumed.get() + 1);
                    }
                });
            }
            for p in 0..load.producers {
                let producer = rig.thread(Placement::Interrupt(p % load.cpus));
                threads.push(producer.clone());
                let (queues, consumers, arrived) = (queues.clone(), consumers.clone(), Rc::new(Cell::new(0)));
                let (sim, items, theirs, card) = (rig.sim.clone(), load.items, arrived.clone(), producer.clone());
                let cost = load.cost.clone();
                rig.sim.spawn(async move {
                    for item in 0..items {
                        sim.delay(Duration::from_ns(cost[(item + p) % cost.len()])).await;
                        theirs.set(theirs.get() + 1);
                        card.interrupt();
                    }
                });
                rig.on("producer", &producer, move |thread| async move {
                    for item in 0..items {
                        while arrived.get() <= item {
                            thread.sleep().await;
                        }
                        work(&thread, 100).await;
                        let item = p * items + item;
                        let to = item % queues.len();
                        queues[to].borrow_mut().push_back(item);
                        thread.wake(&consumers[to], &mut Path::clock(Time::ZERO)).await;
                    }
                });
            }
        });
        prop_assert_eq!(consumed.get(), load.items * load.producers);
        prop_assert!(account.context_switches >= account.migrations);
    }
}
