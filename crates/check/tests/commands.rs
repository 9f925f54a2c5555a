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

/// A DMA of 8 bytes from the host to an address in A1, with its handle on the stack.
fn from_host() -> Vec<u32> {
    let arguments = [addi(A0, ZERO, 0), addi(A2, ZERO, 8), addi(A3, ZERO, 0), addi(A4, SP, 0)];
    [&arguments[..], &[addi(A7, ZERO, 0x111), ecall()]].concat()
}

/// A wait for the DMA with the handle on the stack.
fn wait() -> [u32; 3] {
    [lw(A0, 0, SP), addi(A7, ZERO, 0x115), ecall()]
}

#[test]
fn another_run_may_not_access_the_bytes_of_a_transfer_in_flight() {
    let frame = [addi(SP, SP, -16), sw(ZERO, 0, SP), addi(A1, A0, 8), addi(S1, A0, 0)];
    let gives = [addi(A0, S1, 0), amoswap_w(ZERO, ZERO, A0) | ORDERED];
    let end = [addi(SP, SP, 16)];
    let both = |fetches: &[u32]| {
        let first = program(fetches);
        let reads = [&take()[..], &[lw(A1, 8, A0)], &give()].concat();
        let mut trial = Trial::new(&[&first[..], &program(&reads)].concat());
        let begin = |offset| Begin { handler: Handler::Payload, message: 0, offset: Some(offset), core: 0 };
        let mut one = trial.begin(1, begin(0), 0);
        // It goes on to its wait, which is its second command.
        trial.go_on(&mut one);
        one.context.finish_ecall(0, 1);
        trial.go_on(&mut one);
        let waits_first = trial.state[0] == 1;
        if waits_first {
            trial.finish(&mut one);
        }
        let mut two = trial.begin(2, begin(64), first.len() as u32);
        trial.finish(&mut two);
        if !waits_first {
            trial.finish(&mut one);
        }
        trial.kinds()
    };
    let early = [&take()[..], &frame, &from_host(), &gives, &wait(), &end].concat();
    assert_eq!(both(&early), [Defect::BufferReuse]);
    let late = [&take()[..], &frame, &from_host(), &wait(), &gives, &end].concat();
    assert_eq!(both(&late), []);
}

#[test]
fn a_transfer_of_the_stack_ends_before_the_handler() {
    let begins = [&[addi(SP, SP, -16), sw(ZERO, 0, SP), addi(A1, SP, 8)][..], &from_host()].concat();
    let end = [addi(SP, SP, 16)];
    let of = |words: &[u32]| {
        let mut trial = Trial::new(&program(words));
        trial.run(1, Handler::Payload, 0, 0, 0);
        trial.kinds()
    };
    assert_eq!(of(&[&begins[..], &end].concat()), [Defect::BufferReuse]);
    assert_eq!(of(&[&begins[..], &wait(), &end].concat()), []);
}
