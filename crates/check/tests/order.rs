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
