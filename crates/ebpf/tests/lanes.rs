//! Programs in rows beside the interpreter.

use crate::generate::{Generator, Random, maps};
use nicety_ebpf::asm::*;
use nicety_ebpf::lanes::{MOST_LANES, Operation, Registers, Row, Schedule, Switches, schedule};
use nicety_ebpf::{Instruction, Limits, Linked, Machine, MapKind, Packet};
use proptest::prelude::*;

fn switches(bits: u64, lanes: u8) -> Switches {
    let is_on = |bit: u32| bits >> bit & 1 != 0;
    Switches {
        lanes,
        branches_in_any_lane: is_on(0),
        lane_forwarding: is_on(1),
        remove_checks: is_on(2),
        remove_zeroing: is_on(3),
        three_operands: is_on(4),
        six_bytes: is_on(5),
        exit_values: is_on(6),
        movement: is_on(7),
    }
}

fn machine(linked: &Linked) -> (Machine, usize) {
    let mut machine = Machine::empty(Limits::default());
    for map in &maps() {
        machine.add_map(map).unwrap();
    }
    for number in 0..machine.maps.len() {
        if machine.maps[number].kind == MapKind::PerfEvents {
            machine.open_events(number).unwrap();
        }
    }
    let program = machine.add_program(linked.clone());
    (machine, program)
}

/// Keys and values of all maps that programs change.
fn contents(machine: &mut Machine) -> Vec<Vec<u8>> {
    let kinds = [
        MapKind::Programs,
        MapKind::ArrayOfMaps,
        MapKind::HashOfMaps,
        MapKind::PerfEvents,
        MapKind::Ring,
        MapKind::Bloom,
    ];
    let maps = machine.maps.iter_mut().filter(|map| !kinds.contains(&map.kind));
    maps.map(|map| {
        let items = map.items().into_iter();
        items.flat_map(|item| [item.key.to_vec(), item.values.concat()].concat()).collect()
    })
    .collect()
}

/// Checks the rules of rows: one writer of a register, one helper, and values of the row before in their own lane.
fn check_rows(schedule: &Schedule, switches: &Switches) {
    for (at, row) in schedule.rows.iter().enumerate() {
        let mut written: Registers = 0;
        for placed in row.operations() {
            let bit: Registers = placed.operation.writes().map_or(0, |register| 1 << register);
            assert_eq!(written & bit, 0, "row {at} writes a register twice");
            written |= bit;
        }
        let helpers = row.operations().filter(|placed| matches!(placed.operation, Operation::Helper(_)));
        assert!(helpers.count() <= 1, "row {at}");
        if !switches.branches_in_any_lane {
            assert!(row.lanes[1..].iter().flatten().all(|placed| !placed.operation.is_control()), "row {at}");
        }
        if switches.lane_forwarding {
            next(schedule, at)
                .into_iter()
                .for_each(|next| check_forwarding(row, &schedule.rows[next], at, next));
        }
    }
}

fn next(schedule: &Schedule, at: usize) -> Vec<usize> {
    let mut all = Vec::new();
    for placed in schedule.rows[at].operations() {
        match placed.operation {
            Operation::Branch { to, .. } => all.push(to),
            Operation::Jump(to) => return [all, vec![to]].concat(),
            Operation::Exit | Operation::ExitWith(_) => return all,
            _ => {}
        }
    }
    all.push(at + 1);
    all
}

fn check_forwarding(row: &Row, next: &Row, at: usize, to: usize) {
    for (lane, placed) in next.lanes.iter().enumerate() {
        let Some(placed) =
            placed.filter(|placed| !matches!(placed.operation, Operation::Exit | Operation::Helper(_)))
        else {
            continue;
        };
        for (other, writer) in row.lanes.iter().enumerate() {
            let register = writer.and_then(|writer| writer.operation.writes());
            let reads = register.is_some_and(|register| placed.operation.reads() >> register & 1 != 0);
            assert!(!reads || lane == other, "rows {at} and {to}: {}", placed.operation);
        }
    }
}

fn packets(random: &mut Random) -> Vec<Vec<u8>> {
    let mut packet = || {
        let length = [14, 39, 40, 60, 200][random.below(5) as usize];
        (0..length).map(|_| random.next() as u8).collect()
    };
    (0..4).map(|_| packet()).collect()
}

/// A program with loops that end in a lone jump, as compilers leave them. Scalars live across the way back.
fn loops(random: &mut Random) -> Vec<Instruction> {
    let mut out: Vec<Instruction> =
        (0..6).map(|register| mov_imm(register, random.below(100) as i32 + 1)).collect();
    for _ in 0..1 + random.below(2) {
        out.push(mov_imm(9, 1 + random.below(6) as i32));
        let begin = out.len();
        for _ in 0..random.below(3) {
            sums(random, &mut out);
            if random.below(3) == 0 {
                out.push(jump_imm(JGT, random.below(6) as u8, random.below(200) as i32, 1));
                out.push(alu64_imm(ADD, random.below(6) as u8, 1));
            }
        }
        out.push(alu64_imm(SUB, 9, 1));
        sums(random, &mut out);
        out.push(jump_imm(JEQ, 9, 0, 1));
        out.push(goto((begin as i64 - out.len() as i64 - 1) as i16));
    }
    (1..6).for_each(|register| out.extend([alu64_imm(MUL, 0, 31), alu64(ADD, 0, register)]));
    out.push(exit());
    out
}

fn sums(random: &mut Random, out: &mut Vec<Instruction>) {
    for _ in 0..random.below(4) {
        let (dst, src) = (random.below(6) as u8, random.below(6) as u8);
        out.push(match random.below(4) {
            0 => alu64_imm(ADD, dst, random.below(9) as i32),
            1 => mov(dst, src),
            _ => alu64(ADD, dst, src),
        });
    }
}

/// Runs a random program both ways. Returns whether the core takes it.
fn same(seed: u64, bits: u64, lanes: u8) -> bool {
    let mut random = Random(seed);
    let slots = match seed % 3 {
        0 => Generator::plain(random.clone()).slots,
        1 => Generator::generate(random.clone()).slots,
        _ => loops(&mut random.clone()),
    };
    let linked = Linked::of_slots("random", slots).unwrap();
    let switches = switches(bits, lanes);
    let Ok(schedule) = schedule(&linked, &switches) else { return false };
    check_rows(&schedule, &switches);
    let ((mut one, number), (mut rows, same)) = (machine(&linked), machine(&linked));
    for packet in packets(&mut random) {
        let (mut own, mut other) = (Packet::new(&packet, 0).unwrap(), Packet::new(&packet, 0).unwrap());
        let Ok(outcome) = one.run(number, &mut own) else { return true };
        let (result, _) = rows.run_rows(same, &schedule, &mut other).unwrap();
        assert_eq!(
            (outcome.value, outcome.redirect),
            (result.value, result.redirect),
            "seed {seed}, {switches:?}"
        );
        assert_eq!(own.bytes(), other.bytes(), "seed {seed}, {switches:?}");
        assert_eq!(contents(&mut one), contents(&mut rows), "seed {seed}, {switches:?}");
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn rows_give_what_the_interpreter_gives(seed: u64, bits: u64, lanes in 1..=MOST_LANES) {
        same(seed, bits, lanes);
    }
}

#[test]
fn the_core_takes_a_quarter_of_the_random_programs() {
    let taken = (0..200).filter(|seed| same(*seed, u64::MAX, 4)).count();
    assert!(taken > 50, "{taken}");
}
