//! Runs of hand-made programs under the checker, one after the other or interleaved, as a driver reports them.

mod commands;
mod locks;
mod order;

use nicety_check::{Begin, Checker, Defect, Ending, Handler, Interface, Limits};
use nicety_hpu::asm::*;
use nicety_hpu::{AddressSpace, Context, Core, Exit, Image, Isa, Region, Reservations};

const STATE: u32 = 0x1400_0000;
const CODE: u32 = 0x1d00_0000;
const STACK: u32 = 0x2000_0000;
/// Sets the acquire and the release bit of an atomic instruction.
const ORDERED: u32 = 3 << 25;

/// A program, its state, and its runs: handler, message, packet's offset.
struct Trial {
    checker: Checker,
    image: std::sync::Arc<Image>,
    state: Vec<u8>,
}

/// A run in progress.
struct Going {
    key: u64,
    context: Context,
    memory: [u8; 512],
    reservations: Reservations,
}

impl Trial {
    fn new(words: &[u32]) -> Trial {
        let core = Core { isa: Isa::RV32IMAC, ..Core::default() };
        let image = Image::from_words(CODE, words, &core);
        let limits = Limits { interface: Interface::Nicety, packet_bytes: 4096, channels: 4 };
        Trial { checker: Checker::new(image.clone(), limits), image, state: vec![0; 64] }
    }

    /// Runs a handler from an instruction to its end. a0 is the address of the state.
    fn run(&mut self, key: u64, handler: Handler, message: u64, offset: u64, first: u32) {
        let mut going = self.begin(key, Begin { handler, message, offset: Some(offset), core: 0 }, first);
        self.finish(&mut going);
    }

    /// Begins a run at an instruction.
    fn begin(&mut self, key: u64, begin: Begin, first: u32) -> Going {
        self.checker.begin(key, begin);
        let mut context = Context::new(0);
        context.call(&self.image, CODE + 4 * first, STACK + 512, &[STATE], 100_000);
        Going { key, context, memory: [0; 512], reservations: Reservations::new() }
    }

    /// Goes on with a run until a command, without it, or until its end. Returns its value then.
    fn go_on(&mut self, going: &mut Going) -> Option<u32> {
        let Going { key, context, memory, reservations } = going;
        loop {
            let mut space = AddressSpace::new()
                .with(Region::memory("the state", STATE, &mut self.state))
                .with(Region::stack("the stack", STACK, memory, 256));
            self.checker.step(*key, context, &space);
            let until = context.cycle() + 1;
            match context.run(&self.image, &mut space, reservations, until) {
                Exit::Limit => {}
                Exit::Order(_) => context.perform(&self.image, &mut space, reservations).unwrap(),
                Exit::Ecall => return None,
                Exit::Return(value) => {
                    self.checker.end(*key, Ending::Returned(value));
                    return Some(value);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Goes on with a run until its end. Commands return 0.
    fn finish(&mut self, going: &mut Going) {
        while self.go_on(going).is_none() {
            going.context.finish_ecall(0, 1);
        }
    }

    /// Runs two payload handlers of one message, and returns the kinds of findings.
    fn two(words: &[u32]) -> Vec<Defect> {
        let mut trial = Trial::new(words);
        trial.run(1, Handler::Payload, 0, 0, 0);
        trial.run(2, Handler::Payload, 0, 64, 0);
        trial.kinds()
    }

    fn kinds(&mut self) -> Vec<Defect> {
        self.checker.finish().iter().map(|finding| finding.kind).collect()
    }
}

/// The program's end: `return 0`.
fn done() -> [u32; 2] {
    [addi(A0, ZERO, 0), ret()]
}

fn program(words: &[u32]) -> Vec<u32> {
    [words, &done()].concat()
}

/// Runs a first and a second program as payload handlers of one message, and returns the kinds of findings.
fn after(first: &[u32], second: &[u32]) -> Vec<Defect> {
    let first = program(first);
    let mut trial = Trial::new(&[&first[..], &program(second)].concat());
    trial.run(1, Handler::Payload, 0, 0, 0);
    trial.run(2, Handler::Payload, 0, 64, first.len() as u32);
    trial.kinds()
}

#[test]
fn a_plain_counter_is_a_race_although_its_runs_follow_one_another() {
    let plain = [lw(A1, 0, A0), addi(A1, A1, 1), sw(A1, 0, A0)];
    assert_eq!(Trial::two(&program(&plain)), [Defect::Race; 2]);
    assert_eq!(Trial::two(&program(&[addi(A1, ZERO, 1), amoadd_w(ZERO, A1, A0)])), []);
    // Bytes of one word are separate.
    let mut trial = Trial::new(&program(&[sb(A0, 0, A0), addi(A0, ZERO, 0), ret(), sb(A0, 1, A0)]));
    trial.run(1, Handler::Payload, 0, 0, 0);
    trial.run(2, Handler::Payload, 0, 64, 3);
    assert_eq!(trial.kinds(), []);
}

#[test]
fn handlers_of_a_message_are_ordered_and_those_of_two_are_not() {
    let plain = program(&[lw(A1, 0, A0), addi(A1, A1, 1), sw(A1, 0, A0), addi(A0, ZERO, 2), ret()]);
    let run = |kinds: &[(Handler, u64)]| {
        let mut trial =
            Trial::new(&[&plain[..3], &[addi(A0, ZERO, 0), ret(), addi(A0, ZERO, 2), ret()]].concat());
        for (key, &(handler, message)) in (1..).zip(kinds) {
            trial.run(key, handler, message, 0, if handler == Handler::Header { 5 } else { 0 });
        }
        trial.kinds()
    };
    use Handler::{Completion, Header, Payload};
    assert_eq!(run(&[(Header, 0), (Payload, 0), (Completion, 0)]), []);
    assert_eq!(run(&[(Completion, 0), (Completion, 1)]), [Defect::Race; 2]);
}

#[test]
fn memory_by_the_number_of_the_core_is_ordered_on_each_core() {
    let own = [
        csrrs(A1, 0xf14, ZERO),
        slli(A1, A1, 2),
        add(A1, A1, A0),
        lw(A2, 0, A1),
        addi(A2, A2, 1),
        sw(A2, 0, A1),
    ];
    assert_eq!(Trial::two(&program(&own)), []);
}

/// Takes the lock at offset 0 by exchange, and spins; three instructions.
fn take() -> [u32; 3] {
    [addi(A2, ZERO, 1), amoswap_w(A3, A2, A0) | ORDERED, bne(A3, ZERO, -4)]
}

fn give() -> [u32; 1] {
    [amoswap_w(ZERO, ZERO, A0) | ORDERED]
}

#[test]
fn a_lock_orders_what_it_protects() {
    let count = [lw(A1, 4, A0), addi(A1, A1, 1), sw(A1, 4, A0)];
    let locked = [&take()[..], &count, &give()].concat();
    assert_eq!(Trial::two(&program(&locked)), []);
    // Without acquire and release, the same exchange orders nothing.
    let relaxed: Vec<u32> =
        locked.iter().map(|&word| if word & 0x7f == 0x2f { word & !ORDERED } else { word }).collect();
    assert_eq!(Trial::two(&program(&relaxed)), [Defect::Race; 2]);
    // A store behind a fence releases as well.
    let fenced = [&take()[..], &count, &[fence(), sw(ZERO, 0, A0)]].concat();
    assert_eq!(Trial::two(&program(&fenced)), []);
}

#[test]
fn misuse_of_a_lock_is_found() {
    let twice = [&take()[..], &give(), &give()].concat();
    assert_eq!(Trial::two(&program(&twice)), [Defect::UnlockWithoutLock]);
    // The second run keeps the lock that the first one has released.
    let first = [&take()[..], &give(), &done()].concat();
    let mut trial = Trial::new(&[&first[..], &take(), &done()].concat());
    trial.run(1, Handler::Payload, 0, 0, 0);
    trial.run(2, Handler::Payload, 0, 64, first.len() as u32);
    assert_eq!(trial.kinds(), [Defect::LockKept]);
    // A word that a run counts up is that of several holders.
    let up = [lr_w(A1, A0), addi(A1, A1, 1), sc_w(A2, A1, A0)];
    for (times, found) in [(1, vec![Defect::LockKept]), (2, vec![])] {
        let counted = [&first[..], &up.repeat(times), &done()].concat();
        let mut trial = Trial::new(&counted);
        trial.run(1, Handler::Payload, 0, 0, 0);
        trial.run(2, Handler::Payload, 0, 64, first.len() as u32);
        assert_eq!(trial.kinds(), found, "{times}");
    }
    // A flag that is set once is no lock.
    let mut trial = Trial::new(&program(&take()[..2]));
    trial.run(1, Handler::Payload, 0, 0, 0);
    assert_eq!(trial.kinds(), []);
}

#[test]
fn a_copy_of_an_undefined_word_is_no_use_and_a_branch_is_one() {
    let copied = [addi(SP, SP, -16), lw(A1, 4, SP), sw(A1, 8, A0), addi(SP, SP, 16)];
    assert_eq!(Trial::two(&program(&copied[..2])), []);
    let mut trial = Trial::new(&program(&copied));
    trial.run(1, Handler::Payload, 0, 0, 0);
    assert_eq!(trial.kinds(), []);
    let branch = [addi(SP, SP, -16), lw(A1, 4, SP), addi(SP, SP, 16), beq(A1, ZERO, 4)];
    let mut trial = Trial::new(&program(&branch));
    trial.run(1, Handler::Payload, 0, 0, 0);
    assert_eq!(trial.kinds(), [Defect::Uninitialised]);
    // Half of the word has a value, and only that half is tested.
    let half = [
        addi(SP, SP, -16),
        sh(ZERO, 4, SP),
        lw(A1, 4, SP),
        slli(A1, A1, 16),
        beq(A1, ZERO, 4),
        addi(SP, SP, 16),
    ];
    let mut trial = Trial::new(&program(&half));
    trial.run(1, Handler::Payload, 0, 0, 0);
    assert_eq!(trial.kinds(), []);
}

#[test]
fn return_codes_are_those_of_the_handlers_kind() {
    let of = |handler, code| {
        let mut trial = Trial::new(&[addi(A0, ZERO, code), ret()]);
        trial.run(1, handler, 0, 0, 0);
        trial.kinds()
    };
    assert_eq!(of(Handler::Payload, 0), []);
    assert_eq!(of(Handler::Payload, 4), [Defect::ReturnCode]);
    assert_eq!(of(Handler::Header, 4), []);
    assert_eq!(of(Handler::Header, 0), [Defect::ReturnCode]);
    assert_eq!(of(Handler::Frame, 0x103), []);
    assert_eq!(of(Handler::Frame, 0x104), [Defect::ReturnCode]);
    assert_eq!(of(Handler::Payload, -1), []);
}

#[test]
fn a_pointer_into_an_ended_stack_is_found() {
    let leaves = [sw(SP, 8, A0), addi(A0, ZERO, 0), ret()];
    let uses = [lw(A1, 8, A0), lw(A2, -4, A1), addi(A0, ZERO, 0), ret()];
    let mut trial = Trial::new(&[&leaves[..], &uses].concat());
    trial.run(1, Handler::Payload, 0, 0, 0);
    trial.run(2, Handler::Completion, 0, 0, 3);
    assert_eq!(trial.kinds(), [Defect::UseAfterFree]);
}

#[test]
fn each_instruction_is_covered_once() {
    let mut trial = Trial::new(&program(&[beq(ZERO, ZERO, 8), nop(), nop()]));
    trial.run(1, Handler::Payload, 0, 0, 0);
    trial.run(2, Handler::Payload, 0, 64, 0);
    assert_eq!(trial.checker.covered().collect::<Vec<_>>(), [0, 2, 3, 4].map(|word| CODE + 4 * word));
}

#[test]
fn a_division_by_zero_is_found_where_no_compiler_checks_it() {
    let mut trial = Trial::new(&program(&[divu(A1, A0, ZERO)]));
    trial.run(1, Handler::Payload, 0, 0, 0);
    assert_eq!(trial.kinds(), [Defect::DivisionByZero]);
}
