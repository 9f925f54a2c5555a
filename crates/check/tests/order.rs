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
