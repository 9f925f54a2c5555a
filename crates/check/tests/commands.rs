//! Commands, and transfers in flight.

use super::*;

#[test]
fn an_argument_without_a_value_is_found() {
    let of = |command, argument: u32| {
        let mut words = vec![addi(SP, SP, -16)];
        words.extend([A0, A1, A2, A3, A4].map(|register| addi(register, ZERO, 0)));
        words.extend([lw(argument, 4, SP), addi(A7, ZERO, command), ecall(), addi(SP, SP, 16)]);
        let mut trial = Trial::new(&program(&words));
        trial.run(1, Handler::Payload, 0, 0, 0);
        trial.kinds()
    };
    // PtlHandlerCTInc and PtlHandlerCTSet take 64 bits.
    for (command, argument) in [(0x120, A0), (0x120, A1), (0x122, A1), (0x170, A0), (0x171, A0), (0x172, A0)]
    {
        assert_eq!(of(command, argument), [Defect::Uninitialised], "{command:#x}");
    }
    assert_eq!(of(0x120, A2), []);
    assert_eq!(of(0x140, A0), []);
}
