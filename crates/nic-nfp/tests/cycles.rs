//! Tests cycle counts that are calculated by hand from the shipped spec. An instruction takes 1 cycle, a return 3
//! cycles, and a switch 2 cycles. A read of CLS takes 37 cycles, a write of CLS 38 cycles, and a signal 10 cycles.

use crate::{Rig, program, spec};
use nicety_hpu::asm::*;
use nicety_hpu::profile::Cause;
use nicety_nic_nfp::{ContextCounters, CoreCounters, MemoryCounters, MemoryKind, Outcome, map, number};
use std::collections::BTreeMap;

/// Returns code that loads a word, uses it and returns. It takes 1 cycle, a reference, and 1 + 3 cycles.
fn load() -> [u32; 3] {
    [lw(T0, 0, A0), addi(A0, T0, 1), ret()]
}

fn context(computing: u64, asleep: u64, ready: u64, idle: u64, instructions: u64) -> ContextCounters {
    ContextCounters { computing, asleep, ready, idle, instructions, references: 1 }
}

/// Returns an instruction that sets a register to a small constant.
fn set(register: u32, value: i32) -> u32 {
    addi(register, ZERO, value)
}

#[test]
fn a_context_sleeps_while_a_memory_answers() {
    let mut rig = Rig::running(&spec(&[]), &load(), &[(0, 1)], &[map::CLS + 8]);
    rig.nfp.memory(MemoryKind::Cls, 0).poke(8, &41u32.to_le_bytes()).unwrap();
    // The load is at cycle 0, and CLS serves it from 1 to 38. The addition is at 38, and the return takes 39 to 42.
    assert_eq!(rig.run(), 42);
    assert_eq!(rig.nfp.outcome(0, 0), Some(Outcome::Returned(42)));
    assert_eq!(rig.nfp.context_counters(0, 0), context(5, 37, 0, 0, 3));
    let core = CoreCounters { computing: 5, switching: 0, asleep: 37, idle: 0, switches: 0 };
    assert_eq!(rig.nfp.core_counters(0), core);
    assert_eq!(rig.nfp.core_counters(1), CoreCounters { idle: 42, ..CoreCounters::default() });
}

#[test]
fn two_contexts_hide_the_latency_of_each_other() {
    let mut rig = Rig::running(&spec(&[]), &load(), &[(0, 2)], &[map::CLS]);
    // First context: load 0, CLS 1 to 38, switch 38 to 40, then 40 to 44. Second context: switch 1 to 3, load 3, CLS 4
    // to 41, core occupied until 44, switch to 46, then 46 to 50.
    assert_eq!(rig.run(), 50);
    assert_eq!(rig.nfp.context_counters(0, 0), context(5, 37, 2, 6, 3));
    assert_eq!(rig.nfp.context_counters(0, 1), context(5, 37, 3 + 5, 0, 3));
    let core = CoreCounters { computing: 10, switching: 6, asleep: 34, idle: 0, switches: 3 };
    assert_eq!(rig.nfp.core_counters(0), core);
}

#[test]
fn a_profile_charges_each_instruction_with_its_sleep() {
    let spec = spec(&[]);
    let mut rig = Rig::new(&spec);
    rig.nfp.profile();
    let program = program(&spec, &load());
    rig.nfp.load(0, &program, 2).unwrap();
    (0..2).for_each(|context| rig.nfp.start(0, context, map::CODE, &[map::CLS]));
    rig.run();
    let [profile] = &rig.nfp.take_profiles()[..] else { panic!("one program") };
    let mut found: BTreeMap<(u32, Cause), u64> = BTreeMap::new();
    profile.totals.for_each(&profile.image, |executed| {
        if executed.cycles > 0 {
            *found.entry((executed.pc - map::CODE, executed.cause)).or_default() += executed.cycles;
        }
    });
    // The second reference comes to CLS at 4, which the first one has left by then. The cycles are those of the test above.
    // Ready are 2 behind the first load, 3 before the second context begins, and 5 behind its load.
    let expected = [
        ((0, Cause::Issue), 2),
        ((0, Cause::Memory), 2 * 37),
        ((0, Cause::Ready), 2 + 3 + 5),
        ((4, Cause::Issue), 2),
        ((8, Cause::Issue), 2),
        ((8, Cause::Branch), 2 * 2),
    ];
    assert_eq!(found, BTreeMap::from(expected));
    let counters: Vec<_> = profile.processes.iter().map(|process| process.counters).collect();
    assert_eq!(counters, [context(5, 37, 2, 0, 3), context(5, 37, 3 + 5, 0, 3)]);
}

#[test]
fn a_running_context_is_not_preempted() {
    // The first context is ready at 38. The second context computes without a reference until 110.
    let words = [vec![beq(A1, ZERO, 4 * 102)], vec![nop(); 100], vec![ret()], load().to_vec()].concat();
    let rig = Rig::new(&spec(&[]));
    rig.nfp.load(0, &program(&spec(&[]), &words), 2).unwrap();
    rig.nfp.start(0, 0, map::CODE, &[map::CLS, 0]);
    rig.nfp.start(0, 1, map::CODE, &[map::CLS, 1]);
    let mut rig = rig;
    // First context: taken branch 0 to 3, load 3. Second context: switch 4 to 6, branch 6, nops 7 to 107, return to
    // 110. First context again: switch to 112, 112 to 116.
    assert_eq!(rig.run(), 116);
    // The first context is asleep from 4 to 41, and then ready until 112.
    assert_eq!(rig.nfp.context_counters(0, 0), context(3 + 1 + 4, 37, 71, 0, 4));
}

#[test]
fn references_queue_at_a_memory() {
    let spec = spec(&["memory.cls.gap=10"]);
    let mut rig = Rig::running(&spec, &load(), &[(0, 1), (1, 1), (12, 1)], &[map::CLS]);
    // Both references to the island's CLS are issued at cycle 1. One is done at 38. The other is served from 11 on and
    // done at 48. The third context uses another CLS.
    assert_eq!(rig.run(), 52);
    assert_eq!(rig.nfp.context_counters(0, 0), context(5, 37, 0, 10, 3));
    assert_eq!(rig.nfp.context_counters(1, 0), context(5, 47, 0, 0, 3));
    assert_eq!(rig.nfp.context_counters(12, 0), context(5, 37, 0, 10, 3));
    let counters = |island| rig.nfp.memory(MemoryKind::Cls, island).counters();
    assert_eq!(counters(0), MemoryCounters { references: 2, bytes: 8, busy: 20, queued: 10 });
    assert_eq!(counters(1), MemoryCounters { references: 1, bytes: 4, busy: 10, queued: 0 });
}

#[test]
fn each_memory_has_its_latency() {
    for (base, read, write, atomic) in [
        (map::CLS, 37, 38, 38),
        (map::CTM, 75, 75, 75),
        (map::IMEM, 200, 200, 200),
        (map::EMEM, 325, 325, 325),
    ] {
        let end = |word: u32| Rig::running(&spec(&[]), &[word, ret()], &[(0, 1)], &[base]).run();
        assert_eq!(end(lw(A1, 0, A0)), 1 + read + 3);
        assert_eq!(end(lhu(A1, 2, A0)), 1 + read + 3);
        assert_eq!(end(sb(A1, 1, A0)), 1 + write + 3);
        assert_eq!(end(amoadd_w(A1, A1, A0)), 1 + atomic + 3);
    }
}

#[test]
fn a_block_is_one_reference() {
    // 64 bytes are eight beats of 8 bytes. The last beat follows 7 cycles after the first.
    for (call, len, latency) in [
        (number::READ, 64, 75 + 7),
        (number::WRITE, 64, 75 + 7),
        (number::READ, 9, 75 + 1),
        (number::READ, 1, 75),
    ] {
        let words = [set(A2, len), set(A7, call as i32), ecall(), ret()];
        let (local, far) = (map::LOCAL + 16, map::CTM + 3);
        let arguments = if call == number::READ { [local, far] } else { [far, local] };
        let mut rig = Rig::running(&spec(&[]), &words, &[(0, 1)], &arguments);
        assert_eq!(rig.run(), 3 + latency + 3);
        let counters = rig.nfp.memory(MemoryKind::Ctm, 0).counters();
        assert_eq!((counters.references, counters.bytes), (1, len as u64));
    }
}

#[test]
fn signals_play_ping_pong() {
    let send = |core| [set(A0, core), set(A1, 0), set(A2, 5), set(A7, number::SIGNAL as i32), ecall()];
    let wait = [set(A0, 1 << 5), set(A7, number::WAIT_ALL as i32), ecall()];
    let ping = [&send(1)[..], &wait, &[ret()]].concat();
    let pong = [&wait[..], &send(0), &[ret()]].concat();
    let spec = spec(&[]);
    let mut rig = Rig::new(&spec);
    for (core, words) in [(0, &ping), (1, &pong)] {
        rig.nfp.load(core, &program(&spec, words), 1).unwrap();
        rig.nfp.start(core, 0, map::CODE, &[]);
    }
    // The signal is sent at 5 and arrives at 15. The reply arrives at 30, and the process returns at 33.
    assert_eq!(rig.run(), 33);
    assert_eq!(rig.nfp.outcome(0, 0), Some(Outcome::Returned(1 << 5)));
    let counters = |core| rig.nfp.context_counters(core, 0);
    // The first context waits from 8 to 30, and the second from 3 to 15.
    assert_eq!((counters(0).computing, counters(0).asleep, counters(0).idle), (8 + 3, 22, 0));
    assert_eq!((counters(1).computing, counters(1).asleep, counters(1).idle), (3 + 8, 12, 10));
}

#[test]
fn waiting_for_any_signal_takes_those_that_have_come() {
    let wait = |call: u32| [set(A7, call as i32), ecall(), ret()];
    let spec = spec(&[]);
    for (call, sent, expected) in [
        (number::WAIT_ANY, &[2, 3][..], Some(0b1100)),
        (number::WAIT_ANY, &[3, 9], Some(0b1000)),
        (number::WAIT_ANY, &[9], None),
        (number::WAIT_ALL, &[2, 3, 9], Some(0b1100)),
        (number::WAIT_ALL, &[3, 3], None),
    ] {
        let mut rig = Rig::running(&spec, &wait(call), &[(0, 1)], &[0b1100]);
        sent.iter().for_each(|&signal| rig.nfp.signal(0, 0, signal));
        rig.run();
        assert_eq!(rig.nfp.outcome(0, 0), expected.map(Outcome::Returned), "{call:#x} {sent:?}");
        // A signal that no context waits for is kept.
        if expected.is_some() && sent.contains(&9) {
            rig.nfp.start(0, 0, map::CODE, &[1 << 9]);
            rig.run();
            assert_eq!(rig.nfp.outcome(0, 0), Some(Outcome::Returned(1 << 9)));
        }
    }
}

#[test]
fn a_signal_wakes_before_a_memory_does() {
    // One context waits for EMEM, the other for a signal that arrives at 10.
    let words = [beq(A1, ZERO, 16), set(A7, number::WAIT_ALL as i32), ecall(), ret(), lw(A0, 0, A0), ret()];
    let spec = spec(&[]);
    let mut rig = Rig::new(&spec);
    rig.nfp.load(0, &program(&spec, &words), 2).unwrap();
    rig.nfp.start(0, 0, map::CODE, &[map::EMEM, 0]);
    rig.nfp.start(0, 1, map::CODE, &[1, 1]);
    rig.nfp.signal(0, 1, 0);
    // First context: branch 0 to 3, load 3, EMEM 4 to 329. Second context: switch 4 to 6, branch 6, set 7, wait at 9,
    // signal at 10, return 10 to 13. First context again: switch 329 to 331, return to 334.
    assert_eq!(rig.run(), 334);
    let second = rig.nfp.context_counters(0, 1);
    assert_eq!((second.computing, second.asleep, second.ready, second.idle), (6, 1, 6, 321));
}

#[test]
fn the_crc_holds_the_core() {
    let words = [set(A7, number::CRC32 as i32), ecall(), ret()];
    let mut rig = Rig::running(&spec(&[]), &words, &[(0, 1)], &[0, 0x0100_007f]);
    assert_eq!(rig.run(), 1 + 39 + 3);
    assert_eq!(rig.nfp.context_counters(0, 0).computing, 43);
    // The expected value is zlib.crc32(bytes([127, 0, 0, 1])).
    assert_eq!(rig.nfp.outcome(0, 0), Some(Outcome::Returned(0x651f_5f40)));
}

#[test]
fn ready_contexts_take_turns() {
    // Each context reads the cycle counter before and after its yield. It stores both values in CTM, in eight bytes per
    // hart.
    let words = [
        csrrs(T1, 0xc00, ZERO),
        set(A7, number::YIELD as i32),
        mv(A3, A0),
        ecall(),
        csrrs(T2, 0xc00, ZERO),
        csrrs(T0, 0xf14, ZERO),
        slli(T0, T0, 3),
        add(A3, A3, T0),
        sw(T1, 0, A3),
        sw(T2, 4, A3),
        ret(),
    ];
    let mut rig = Rig::running(&spec(&[]), &words, &[(0, 3)], &[map::CTM]);
    rig.run();
    let mut log = [0; 24];
    rig.nfp.memory(MemoryKind::Ctm, 0).peek(0, &mut log).unwrap();
    let noted = |at: usize| u32::from_le_bytes(*log[4 * at..].first_chunk().unwrap());
    let mut order = [0, 1, 2, 3, 4, 5];
    order.sort_by_key(|&at| noted(at));
    assert_eq!(order, [0, 2, 4, 1, 3, 5], "{log:?}");
}

#[test]
fn atomic_operations_lose_nothing() {
    // Every context of three microengines makes a hundred additions by AMO, and a hundred by LR and SC.
    let words = [
        set(T0, 100),
        set(T1, 1),
        amoadd_w(ZERO, T1, A0),
        addi(T2, A0, 4),
        lr_w(T3, T2),
        addi(T3, T3, 1),
        sc_w(T4, T3, T2),
        bne(T4, ZERO, -12),
        addi(T0, T0, -1),
        bne(T0, ZERO, -28),
        ret(),
    ];
    let mut rig = Rig::running(&spec(&[]), &words, &[(0, 8), (1, 8), (11, 8)], &[map::CLS + 16]);
    rig.run();
    let memory = rig.nfp.memory(MemoryKind::Cls, 0);
    assert_eq!((memory.peek_u32(16), memory.peek_u32(20)), (Ok(2400), Ok(2400)));
}

#[test]
fn cycles_begin_when_the_clock_says() {
    let mut rig = Rig::running(&spec(&[]), &load(), &[(0, 1)], &[map::EMEM]);
    rig.run();
    let clock = rig.nfp.spec().clock;
    for cycle in [0, 1, 2, 3, 599_999_999, 1 << 40] {
        assert_eq!(rig.nfp.time(cycle).since(nicety_types::Time::ZERO), clock.cycles(cycle), "{cycle}");
    }
    assert_eq!(rig.nfp.cycle(), 330);
}
