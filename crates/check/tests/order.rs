//! The order of atomic operations, fences and cores.

use super::*;

#[test]
fn a_plain_store_behind_an_atomic_operation_of_its_run_is_a_race() {
    // if (__atomic_add_fetch(n, 1, RELAXED) > 1) *n = 0;
    let reset = program(&[addi(A1, ZERO, 1), amoadd_w(A2, A1, A0), beq(A2, ZERO, 8), sw(ZERO, 0, A0)]);
    // The store comes last, and races with the operation of the first run.
    assert_eq!(Trial::two(&reset), [Defect::Race]);
    // The store comes first.
    let mut trial = Trial::new(&reset);
    trial.state[0] = 1;
    trial.run(1, Handler::Payload, 0, 0, 0);
    trial.run(2, Handler::Payload, 0, 64, 0);
    assert_eq!(trial.kinds(), [Defect::Race]);
}

#[test]
fn a_word_by_the_core_is_stale_behind_a_yield_of_its_run() {
    let address = [csrrs(A1, 0xf14, ZERO), slli(A1, A1, 2), add(A1, A1, A0)];
    let yields = [addi(A7, ZERO, 0x140), ecall()];
    let counts = [lw(A2, 0, A1), addi(A2, A2, 1)];
    let store = [sw(A2, 0, A1)];
    let both = |words: &[u32]| {
        let mut trial = Trial::new(&program(words));
        let begin = |offset| Begin { handler: Handler::Payload, message: 0, offset: Some(offset), core: 0 };
        let mut first = trial.begin(1, begin(0), 0);
        assert_eq!(trial.go_on(&mut first), None);
        let mut second = trial.begin(2, begin(64), 0);
        trial.finish(&mut second);
        trial.finish(&mut first);
        trial.kinds()
    };
    assert_eq!(both(&[&address[..], &counts, &yields, &store].concat()), [Defect::Race]);
    assert_eq!(both(&[&address[..], &yields, &counts, &store].concat()), []);
    assert_eq!(both(&[&address[..], &counts, &store, &yields, &counts, &store].concat()), []);
}

/// A fence of these predecessors and successors: 1 for writes, 2 for reads.
fn fence_of(before: u32, after: u32) -> u32 {
    fence() & 0x000f_ffff | before << 24 | after << 20
}

#[test]
fn an_acquire_fence_makes_earlier_loads_acquire() {
    let acquire = [fence_of(2, 3)];
    let publishes = [addi(A1, ZERO, 1), sw(A1, 0, A0), fence_of(3, 1), sw(A1, 4, A0)];
    let polls = [lw(A1, 4, A0), beq(A1, ZERO, -4)];
    let uses = [lw(A2, 0, A0)];
    assert_eq!(after(&publishes, &[&polls[..], &acquire, &uses].concat()), []);
    assert_eq!(after(&publishes, &[&polls[..], &uses].concat()), [Defect::Race]);
    assert_eq!(after(&publishes, &[&uses[..], &polls, &acquire].concat()), [Defect::Race]);
    // A fence of stores is none of loads.
    assert_eq!(after(&publishes, &[&polls[..], &[fence_of(1, 1)], &uses].concat()), [Defect::Race]);
}

#[test]
fn a_release_fence_makes_later_stores_release() {
    let data = [addi(A1, ZERO, 1), sw(A1, 0, A0)];
    let flags = [sw(A1, 4, A0), sw(A1, 8, A0)];
    let late = [lw(A3, 60, A0), sw(A1, 8, A0)];
    let uses = [lw(A1, 8, A0), fence_of(2, 3), lw(A2, 0, A0)];
    let release = [fence_of(3, 1)];
    assert_eq!(after(&[&data[..], &release, &flags].concat(), &uses), []);
    assert_eq!(after(&[&data[..], &release, &late].concat(), &uses), []);
    // Without the fence, neither the data nor the flag has an order.
    assert_eq!(after(&[&data[..], &flags].concat(), &uses), [Defect::Race; 2]);
    // The data follow the fence.
    assert_eq!(after(&[&data[..1], &release, &flags, &data[1..]].concat(), &uses), [Defect::Race]);
    // A counter behind a fence remains a race.
    let counts = [lw(A1, 12, A0), addi(A1, A1, 1), sw(A1, 12, A0)];
    let counter = [&data[..1], &release, &flags[..1], &counts].concat();
    assert_eq!(after(&counter, &counter), [Defect::Race; 2]);
}
