use super::*;
use crate::asm::*;
use crate::instruction::Instruction;

fn rows_of(slots: Vec<Instruction>, switches: &Switches) -> Vec<Vec<String>> {
    let linked = Linked::of_slots("test", slots).unwrap();
    let schedule = schedule(&linked, switches).unwrap();
    let text = |row: &Row| {
        let guards = row.guards.iter().map(|placed| placed.operation.to_string());
        let lanes = row.lanes.iter().map(|lane| lane.map_or(String::new(), |p| p.operation.to_string()));
        let mut all: Vec<String> = guards.chain(lanes).collect();
        while all.last().is_some_and(String::is_empty) {
            all.pop();
        }
        all
    };
    schedule.rows.iter().map(text).collect()
}

#[test]
fn a_constant_result_is_one_operation() {
    let drop = vec![mov_imm(0, 1), exit()];
    assert_eq!(rows_of(drop.clone(), &Switches::all(4)), [["exit 1"]]);
    // Otherwise the exit shares the row of its result.
    assert_eq!(rows_of(drop, &Switches::none(4)), [["r0 = 1", "exit"]]);
}

#[test]
fn a_result_reaches_the_next_row_in_its_own_lane_alone() {
    let slots = vec![mov_imm(2, 1), mov_imm(3, 2), alu64(ADD, 2, 3), mov(0, 2), exit()];
    let lanes = Switches::none(4);
    // The sum needs results of two lanes, and waits a row. The move follows it in its lane.
    assert_eq!(
        rows_of(slots.clone(), &lanes),
        [vec!["r2 = 1", "r3 = 2"], vec![], vec!["r2 = r2 + r3"], vec!["r0 = r2", "exit"]]
    );
    let any = Switches { lane_forwarding: false, ..lanes };
    assert_eq!(
        rows_of(slots, &any),
        [vec!["r2 = 1", "r3 = 2"], vec!["r2 = r2 + r3"], vec!["r0 = r2", "exit"]]
    );
}

#[test]
fn a_result_reaches_the_next_round_of_a_loop_in_its_own_lane_alone() {
    let slots = vec![
        alu64(ADD, 2, 4),
        alu64_imm(ADD, 3, 1),
        alu64(ADD, 4, 3),
        jump_imm(JGT, 2, 1000, 1),
        goto(-5),
        mov(0, 2),
        exit(),
    ];
    // The lone jump back goes beside the branch, so that values arrive from the row of the branch.
    assert_eq!(
        rows_of(slots, &Switches::none(4)),
        [
            vec![],
            vec!["r2 = r2 + r4", "r3 = r3 + 1"],
            vec!["if r2 > 1000 goto 3", "r4 = r4 + r3", "goto 0"],
            vec!["r0 = r2", "exit"],
        ]
    );
}

#[test]
fn a_move_goes_into_the_sum_behind_it() {
    let slots = vec![load(W, 6, 1, 12), mov(2, 6), alu64_imm(ADD, 2, 14), mov(0, 2), exit()];
    let three = Switches { three_operands: true, ..Switches::none(4) };
    assert_eq!(
        rows_of(slots, &three),
        [vec!["r6 = *(u32 *)(r1 +12)"], vec!["r2 = r6 + 14"], vec!["r0 = r2", "exit"]]
    );
}

/// A program that reads byte 12 of a packet with 14 bytes, and drops others.
fn checked() -> Vec<Instruction> {
    vec![
        load(W, 2, 1, 0),
        load(W, 3, 1, 4),
        mov(4, 2),
        alu64_imm(ADD, 4, 14),
        jump(JGT, 4, 3, 3),
        load(B, 5, 2, 12),
        mov_imm(0, 2),
        exit(),
        mov_imm(0, 1),
        exit(),
    ]
}

#[test]
fn a_comparison_with_data_end_becomes_a_check_of_the_core() {
    let all = Switches::all(4);
    // Nothing reads the pointers and the loaded byte any more.
    assert_eq!(rows_of(checked(), &all), [["below 14 B: exit 1", "exit 2"]]);
    let kept = Switches { remove_checks: false, ..all };
    let rows = rows_of(checked(), &kept);
    assert!(rows.iter().flatten().any(|text| text.starts_with("if r4 > r3")), "{rows:?}");
}

#[test]
fn the_stack_is_zero_at_the_begin() {
    let slots = vec![
        mov_imm(4, 0),
        store(W, 10, -4, 4),
        store(DW, 10, -16, 4),
        mov_imm(5, 7),
        store(DW, 10, -16, 5),
        store(DW, 10, -16, 4),
        load(DW, 0, 10, -16),
        exit(),
    ];
    let zeroed = Switches { remove_zeroing: true, ..Switches::none(4) };
    // The last store of 0 overwrites a 7 and stays.
    assert_eq!(
        rows_of(slots, &zeroed),
        [
            vec!["r5 = 7"],
            vec!["*(u64 *)(r10 -16) = r5"],
            vec!["*(u64 *)(r10 -16) = r4"],
            vec!["r0 = *(u64 *)(r10 -16)", "exit"],
        ]
    );
}

#[test]
fn an_ethernet_address_moves_at_once() {
    let slots = vec![
        load(W, 2, 1, 0),
        load(H, 3, 2, 4),
        store(H, 10, -12, 3),
        load(W, 3, 2, 0),
        store(W, 10, -16, 3),
        mov_imm(0, 0),
        exit(),
    ];
    let six = Switches { six_bytes: true, ..Switches::none(4) };
    assert_eq!(
        rows_of(slots.clone(), &six),
        [
            vec!["r2 = *(u32 *)(r1 +0)", "r0 = 0"],
            vec!["r3 = *(u48 *)(r2 +0)"],
            vec!["*(u48 *)(r10 -16) = r3", "exit"],
        ]
    );
    // A value that is read again stays.
    let mut read = slots;
    read[5] = mov(0, 3);
    assert_eq!(rows_of(read, &six).iter().flatten().filter(|text| text.contains("u48")).count(), 0);
}

#[test]
fn jumps_in_sequence_share_a_row() {
    let slots = vec![
        load(W, 6, 1, 12),
        jump_imm(JEQ, 6, 17, 3),
        jump_imm(JEQ, 6, 6, 2),
        mov_imm(0, 1),
        exit(),
        mov_imm(0, 2),
        exit(),
    ];
    let all = Switches { lane_forwarding: false, ..Switches::all(4) };
    assert_eq!(
        rows_of(slots.clone(), &all),
        [
            vec!["r6 = *(u32 *)(r1 +12)"],
            vec!["if r6 == 17 goto 2", "if r6 == 6 goto 2", "exit 1"],
            vec!["exit 2"],
        ]
    );
    // One lane alone has the value in the next row, so that the second jump waits.
    assert_eq!(
        rows_of(slots.clone(), &Switches::all(4)),
        [
            vec!["r6 = *(u32 *)(r1 +12)"],
            vec!["if r6 == 17 goto 3"],
            vec!["if r6 == 6 goto 3", "exit 1"],
            vec!["exit 2"],
        ]
    );
    let first = Switches { branches_in_any_lane: false, ..all };
    assert_eq!(rows_of(slots, &first).len(), 5);
}

#[test]
fn a_row_has_one_helper() {
    let slots = vec![call(Helper::Random), mov(6, 0), call(Helper::Random), mov_imm(0, 1), exit()];
    assert_eq!(
        rows_of(slots, &Switches::none(4)),
        [vec!["call get_prandom_u32"], vec!["r6 = r0", "call get_prandom_u32"], vec!["r0 = 1", "exit"]]
    );
}

#[test]
fn an_operation_fills_a_gap_of_an_equivalent_block() {
    // The sum of r7 runs whichever way the jump goes.
    let slots = vec![
        load(W, 6, 1, 12),
        jump_imm(JEQ, 6, 1, 1),
        store(W, 10, -4, 6),
        mov_imm(7, 5),
        mov(0, 7),
        exit(),
    ];
    let schedule = |movement| rows_of(slots.clone(), &Switches { movement, ..Switches::none(4) });
    assert_eq!(schedule(true)[0], ["r6 = *(u32 *)(r1 +12)", "r7 = 5"]);
    assert_eq!((schedule(true).len(), schedule(false).len()), (4, 5));
}

#[test]
fn programs_beyond_the_core_are_refused_in_one_line() {
    let refused = |slots: Vec<Instruction>| {
        let linked = Linked::of_slots("test", slots).unwrap();
        schedule(&linked, &Switches::all(4)).unwrap_err().to_string()
    };
    assert_eq!(
        refused(vec![call_local(1), exit(), mov_imm(0, 1), exit()]),
        "program test, instruction 0: it calls a function, but a core with lanes has no stack frames; \
         declare the function static __always_inline"
    );
    let error = refused(vec![call(Helper::TailCall), exit()]);
    assert!(error.contains("bpf_tail_call") && !error.contains('\n'), "{error}");
    let error = refused([vec![mov_imm(0, 1); MOST_SLOTS], vec![exit()]].concat());
    assert!(error.contains("4097 instructions"), "{error}");
}

#[test]
fn rows_by_registers_ignore_the_order_of_memory() {
    let slots = vec![mov_imm(2, 7), store(W, 10, -4, 2), load(W, 0, 10, -4), exit()];
    let linked = Linked::of_slots("test", slots).unwrap();
    let switches = Switches::none(4);
    // In order the load runs behind the store. By registers alone it shares the first row.
    assert_eq!(schedule(&linked, &switches).unwrap().rows.len(), 3);
    assert_eq!(rows_by_registers(&linked, &switches).unwrap(), 2);
}
