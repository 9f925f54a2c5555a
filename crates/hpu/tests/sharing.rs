//! Several cores on one memory: LR/SC, AMOs and locks under many interleavings.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{AddressSpace, Context, Core, Exit, Image, OrderPoint, OrderedWords, Region, Reservations};
use proptest::prelude::*;
use std::sync::Arc;

/// Cores that run the same code on the same memory. Each has its own stack at the same address.
struct Cores {
    image: Arc<Image>,
    contexts: Vec<Context>,
    stacks: Vec<Vec<u8>>,
    memory: Vec<u8>,
    reservations: Reservations,
    /// Cores with a next instruction that waits for its turn.
    waiting: Vec<bool>,
    returned: Vec<Option<u32>>,
}

impl Cores {
    fn new(words: &[u32], args: &[&[u32]]) -> Cores {
        let image = Image::from_words(CODE, words, &Core::default());
        let call = |(hart, args): (usize, &&[u32])| {
            let mut context = Context::new(hart as u32);
            context.call(&image, CODE, STACK_TOP, args, 10_000_000);
            context
        };
        Cores {
            contexts: args.iter().enumerate().map(call).collect(),
            stacks: vec![vec![0; STACK_SIZE]; args.len()],
            memory: vec![0; MEMORY_SIZE],
            reservations: Reservations::new(),
            waiting: vec![false; args.len()],
            returned: vec![None; args.len()],
            image,
        }
    }

    fn word(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.memory[offset..offset + 4].try_into().unwrap())
    }

    /// Runs one slice of one core, of at most `cycles` cycles. An instruction that waits for its turn is performed
    /// first.
    fn step(&mut self, core: usize, cycles: u64) {
        let context = &mut self.contexts[core];
        let mut space = AddressSpace::new()
            .with(Region::stack("stack", STACK, &mut self.stacks[core], GUARD))
            .with(Region::memory("memory", MEMORY, &mut self.memory));
        if self.waiting[core] {
            context.perform(&self.image, &mut space, &mut self.reservations).unwrap();
            self.waiting[core] = false;
            return;
        }
        match context.run(&self.image, &mut space, &mut self.reservations, context.cycle() + cycles) {
            Exit::Order(_) => self.waiting[core] = true,
            Exit::Return(value) => self.returned[core] = Some(value),
            Exit::Limit => {}
            exit => panic!("core {core}: {exit:?}"),
        }
    }

    /// Steps random cores by random amounts until all have returned.
    fn finish(&mut self, seed: u64) {
        let mut random = seed | 1;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        for _ in 0..2_000_000 {
            let running: Vec<_> = (0..self.contexts.len()).filter(|&c| self.returned[c].is_none()).collect();
            if running.is_empty() {
                return;
            }
            let core = running[next(running.len() as u64) as usize];
            self.step(core, 1 + next(12));
        }
        panic!("seed {seed}: a core never comes to an end");
    }
}

const TURNS: u32 = 40;

/// Every core adds one, `TURNS` times, in its own way. No addition may be lost.
fn count_with(words: &[u32], offset: usize) {
    for seed in 1..=120u64 {
        let count = 2 + (seed % 4) as usize;
        let mut cores = Cores::new(words, &vec![&[MEMORY, TURNS][..]; count]);
        cores.finish(seed);
        assert_eq!(cores.word(offset), TURNS * count as u32, "seed {seed}, {count} cores");
    }
}

#[test]
fn amo_additions_are_never_lost() {
    count_with(&[addi(T0, ZERO, 1), amoadd_w(ZERO, T0, A0), addi(A1, A1, -1), bne(A1, ZERO, -8), ret()], 0);
}

#[test]
fn load_reserved_and_store_conditional_lose_nothing() {
    let words = [
        lr_w(T0, A0),
        addi(T0, T0, 1),
        sc_w(T1, T0, A0),
        bne(T1, ZERO, -12),
        addi(A1, A1, -1),
        bne(A1, ZERO, -20),
        ret(),
    ];
    count_with(&words, 0);
}

#[test]
fn a_lock_by_swap_protects_plain_loads_and_stores() {
    let words = [
        addi(T0, ZERO, 1),
        amoswap_w(T1, T0, A0), // lock at 0
        bne(T1, ZERO, -4),
        fence(),
        lw(T2, 8, A0), // counter at 8
        addi(T2, T2, 1),
        sw(T2, 8, A0),
        fence(),
        sw(ZERO, 0, A0),
        addi(A1, A1, -1),
        bne(A1, ZERO, -40),
        ret(),
    ];
    count_with(&words, 8);
}

#[test]
fn a_lock_by_compare_and_swap_protects_plain_loads_and_stores() {
    let words = [
        addi(T0, ZERO, 1),
        lr_w(T1, A0), // lock at 0
        bne(T1, ZERO, -4),
        sc_w(T1, T0, A0),
        bne(T1, ZERO, -12),
        lw(T2, 8, A0), // counter at 8
        addi(T2, T2, 1),
        sw(T2, 8, A0),
        amoswap_w(ZERO, ZERO, A0),
        addi(A1, A1, -1),
        bne(A1, ZERO, -40),
        ret(),
    ];
    count_with(&words, 8);
}

/// Core 0 does LR, SC; core 1 does `disturb` at each point between. Returns the result of SC for each point.
fn failures(disturb: &[u32], pointer: u32) -> Vec<u32> {
    let pair = [bne(A1, ZERO, 20), lr_w(T0, A0), nop(), sc_w(A0, A2, A0), ret()];
    let words = [&pair[..], disturb, &[ret()]].concat();
    let mut results = Vec::new();
    // Steps of core 0: branch, LR, nop, SC. Core 1 runs before step `at`.
    for at in 0..=6 {
        let mut cores = Cores::new(&words, &[&[MEMORY, 0, 5], &[pointer, 1, 9]]);
        for step in 0..100 {
            while step == at && cores.returned[1].is_none() {
                cores.step(1, 100);
            }
            if cores.returned[0].is_none() {
                cores.step(0, 1);
            }
        }
        let failed = cores.returned[0].unwrap();
        results.push(failed);
    }
    results
}

#[test]
fn a_reservation_is_broken_by_others_stores_to_its_word_only() {
    // Steps: the branch; the order point of LR; LR; the nop; the order point of SC; SC; the return.
    let broken = [0, 0, 0, 1, 1, 1, 0];
    for disturb in [sw(A2, 0, A0), sh(A2, 2, A0), sb(A2, 3, A0), sb(A2, 0, A0), amoadd_w(ZERO, A2, A0)] {
        assert_eq!(failures(&[disturb], MEMORY), broken, "{disturb:#010x}");
    }
    assert_eq!(failures(&[lr_w(T0, A0), sc_w(T0, A2, A0)], MEMORY), broken);
    // Twice from one register, to cover the fast path of stores.
    assert_eq!(failures(&[sw(A2, 4, A0), sw(A2, 0, A0)], MEMORY), broken);
    for harmless in [sw(A2, 4, A0), lw(T0, 0, A0), lr_w(T0, A0), sc_w(T0, A2, A0), sw(A2, -4, SP)] {
        assert_eq!(failures(&[harmless], MEMORY), [0; 7], "{harmless:#010x}");
    }
}

#[test]
fn stacks_at_one_address_do_not_disturb_each_other() {
    let words = [
        addi(A0, SP, -4),
        bne(A1, ZERO, 16),
        lr_w(T0, A0),
        sc_w(A0, A2, A0),
        ret(),
        sw(A2, 0, A0),
        amoadd_w(ZERO, A2, A0),
        ret(),
    ];
    for at in 0..6 {
        let mut cores = Cores::new(&words, &[&[0, 0, 5], &[0, 1, 9]]);
        for step in 0..20 {
            while step == at && cores.returned[1].is_none() {
                cores.step(1, 1);
            }
            if cores.returned[0].is_none() {
                cores.step(0, 1);
            }
        }
        assert_eq!(cores.returned, [Some(0), Some(STACK_TOP - 4)]);
        assert_eq!(
            (&cores.stacks[0][1020..], &cores.stacks[1][1020..]),
            (&[5, 0, 0, 0][..], &[18, 0, 0, 0][..])
        );
    }
}

#[test]
fn a_dma_write_breaks_a_reservation_and_the_end_of_a_handler_drops_it() {
    let words = [lr_w(T0, A0), sc_w(A0, A2, A0), ret()];
    let mut cores = Cores::new(&words, &[&[MEMORY, 0, 5]]);
    cores.step(0, 1);
    cores.step(0, 1);
    assert!(!cores.reservations.is_empty());
    cores.reservations.invalidate(MEMORY - 8, 9);
    cores.finish(1);
    assert_eq!((cores.returned[0], cores.word(0)), (Some(1), 0));

    for end in [ret(), ebreak()] {
        let mut cores = Cores::new(&[lr_w(T0, A0), end], &[&[MEMORY]]);
        cores.step(0, 1);
        cores.step(0, 1);
        assert!(!cores.reservations.is_empty());
        let mut space = AddressSpace::new().with(Region::memory("memory", MEMORY, &mut cores.memory));
        let exit = cores.contexts[0].run(&cores.image, &mut space, &mut cores.reservations, u64::MAX);
        assert!(matches!(exit, Exit::Return(_) | Exit::Trap(_)), "{exit:?}");
        assert!(cores.reservations.is_empty());
    }
}

#[test]
fn a_store_is_noticed_in_an_address_space_used_before() {
    let words =
        [bne(A1, ZERO, 16), lr_w(T0, A0), sc_w(A0, A2, A0), ret(), sw(A2, 0, A0), sw(A2, 0, A0), ret()];
    let mut cores = Cores::new(&words, &[&[MEMORY, 0, 5], &[MEMORY, 1, 9]]);
    let Cores { image, contexts, memory, reservations, .. } = &mut cores;
    let [one, two] = &mut contexts[..] else { unreachable!() };
    let mut space = AddressSpace::new().with(Region::memory("memory", MEMORY, memory));
    // The first store is remembered for the second one. In between, the word is reserved.
    assert_eq!(two.run(image, &mut space, reservations, 2), Exit::Limit);
    assert!(matches!(one.run(image, &mut space, reservations, 100), Exit::Order(_)));
    one.perform(image, &mut space, reservations).unwrap();
    assert_eq!(two.run(image, &mut space, reservations, 100), Exit::Return(MEMORY));
    assert!(matches!(one.run(image, &mut space, reservations, 100), Exit::Order(_)));
    one.perform(image, &mut space, reservations).unwrap();
    assert_eq!(one.run(image, &mut space, reservations, 100), Exit::Return(1));
    assert_eq!(space.read(MEMORY, 4), Ok(&[9, 0, 0, 0][..]));
}

/// One access of a core to one of two words, also used by a model of two lines.
#[derive(Clone, Copy, Debug)]
enum Touch {
    Reserve,
    Conditional,
    /// One of [`AMOS`].
    Amo(usize),
    Store,
}

/// Each AMO, and the value that it leaves in memory, from the word and the operand.
type Amo = (fn(u32, u32, u32) -> u32, fn(u32, u32) -> u32);
const AMOS: [Amo; 9] = [
    (amoswap_w, |_, operand| operand),
    (amoadd_w, u32::wrapping_add),
    (amoxor_w, |word, operand| word ^ operand),
    (amoand_w, |word, operand| word & operand),
    (amoor_w, |word, operand| word | operand),
    (amomin_w, |word, operand| if (word as i32) < operand as i32 { word } else { operand }),
    (amomax_w, |word, operand| if (word as i32) > operand as i32 { word } else { operand }),
    (amominu_w, |word, operand| if word < operand { word } else { operand }),
    (amomaxu_w, |word, operand| if word > operand { word } else { operand }),
];

fn touch() -> impl Strategy<Value = Touch> {
    prop_oneof![
        2 => prop::sample::select(vec![Touch::Reserve, Touch::Conditional, Touch::Store]),
        1 => (0..AMOS.len()).prop_map(Touch::Amo),
    ]
}

/// Difference of the operands of a core's consecutive accesses: of either sign, and with many bits.
const STRIDE: u32 = 0x9e37_79b9;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(400)) })]

    /// Random accesses of three cores in a random order, against the definition.
    #[test]
    fn memory_behaves_as_defined(
        touches in prop::collection::vec(
            (0..3usize, 0..2usize, touch()),
            1..60,
        )
    ) {
        // Each core's code is its own accesses in order. A0 points to the words, T0 has the operand.
        let mut code = vec![Vec::new(); 3];
        for &(core, word, touch) in &touches {
            let code: &mut Vec<u32> = &mut code[core];
            code.push(add(T0, T0, A2));
            code.push(addi(T1, A0, 4 * word as i32));
            code.push(match touch {
                Touch::Reserve => lr_w(T2, T1),
                Touch::Conditional => sc_w(T2, T0, T1),
                Touch::Amo(amo) => AMOS[amo].0(T2, T0, T1),
                Touch::Store => sw(T0, 0, T1),
            });
            code.push(slli(A1, A1, 1));
            code.push(add(A1, A1, T2));
        }
        let images: Vec<_> = code
            .iter()
            .map(|c| Image::from_words(CODE, &[&c[..], &[mv(A0, A1), ret()]].concat(), &Core::default()))
            .collect();
        let mut memory = vec![0; 8];
        let mut reservations = Reservations::new();
        let mut contexts: Vec<_> = (0..3).map(Context::new).collect();
        for (context, image) in contexts.iter_mut().zip(&images) {
            context.call(image, CODE, STACK_TOP, &[MEMORY, 0, STRIDE], u64::MAX);
        }
        // The model.
        let (mut words, mut reserved) = ([0u32; 2], [None; 3]);
        let (mut operands, mut sums, mut last) = ([0u32; 3], [0u32; 3], [0u32; 3]);

        for &(core, word, touch) in &touches {
            let mut space = AddressSpace::new().with(Region::memory("memory", MEMORY, &mut memory));
            let context = &mut contexts[core];
            let until = context.cycle() + 5;
            loop {
                match context.run(&images[core], &mut space, &mut reservations, until) {
                    Exit::Order(_) => context.perform(&images[core], &mut space, &mut reservations).unwrap(),
                    exit => break prop_assert_eq!(exit, Exit::Limit),
                }
            }
            operands[core] = operands[core].wrapping_add(STRIDE);
            let value = operands[core];
            let held = reserved[core] == Some(word);
            let mut write = |words: &mut [u32; 2], new: u32| {
                words[word] = new;
                let others = reserved.iter_mut().enumerate().filter(|(other, _)| *other != core);
                others.filter(|(_, r)| **r == Some(word)).for_each(|(_, r)| *r = None);
            };
            match touch {
                Touch::Reserve => {
                    last[core] = words[word];
                    reserved[core] = Some(word);
                }
                Touch::Conditional => {
                    if held {
                        write(&mut words, value);
                    }
                    reserved[core] = None;
                    last[core] = u32::from(!held);
                }
                Touch::Amo(amo) => {
                    last[core] = words[word];
                    let new = AMOS[amo].1(words[word], value);
                    write(&mut words, new);
                }
                Touch::Store => write(&mut words, value),
            }
            sums[core] = (sums[core] << 1).wrapping_add(last[core]);
            drop(space);
            prop_assert_eq!(&memory[..4], &words[0].to_le_bytes());
            prop_assert_eq!(&memory[4..], &words[1].to_le_bytes());
        }
        for (core, context) in contexts.iter().enumerate() {
            prop_assert_eq!(context.args()[1], sums[core]);
        }
    }
}

/// A word that is ordered by itself: accesses to it end the slice before them, and accesses beside it do not.
#[test]
fn a_word_is_ordered_and_its_neighbours_are_not() {
    let code = [lw(A1, 0, A0), sw(A1, 8, A0), lw(A2, 8, A0), sb(A1, 5, A0), lw(A2, 4, A0), ret()];
    let image = Image::from_words(0x1d00_0000, &code, &Core::default());
    let run = |words: &[u32]| {
        let ordered: OrderedWords = words.iter().copied().collect();
        let mut memory = [7; 64];
        let mut context = Context::new(0);
        context.call(&image, image.entry(), 0, &[0x1000], 1000);
        let mut seen = Vec::new();
        loop {
            let mut space = AddressSpace::new()
                .with(Region::memory("memory", 0x1000, &mut memory))
                .with_ordered_words(&ordered);
            match context.run(&image, &mut space, &mut Reservations::new(), u64::MAX) {
                Exit::Order(point) => {
                    seen.push(point);
                    context.perform(&image, &mut space, &mut Reservations::new()).unwrap();
                }
                Exit::Return(_) => break,
                other => panic!("{other:?}"),
            }
        }
        (seen, context.cycle(), context.instret(), memory)
    };
    let (none, ..) = run(&[]);
    assert_eq!(none, []);
    let (seen, cycles, instructions, memory) = run(&[0x0ff0, 0x1004]);
    assert_eq!(
        seen,
        [
            OrderPoint::Memory { address: 0x1005, size: 1, write: true },
            OrderPoint::Memory { address: 0x1004, size: 4, write: false },
        ]
    );
    let (_, as_many, as_much, the_same) = run(&[]);
    assert_eq!((cycles, instructions, memory), (as_many, as_much, the_same));
}
