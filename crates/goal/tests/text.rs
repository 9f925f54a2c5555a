//! The text format: texts that are accepted or refused, the error messages, and that written text equals the text that was read.

use crate::schedules::{any_schedule, cases, packed, read, written};
use nicety_goal::{ANY, Kind, binary, text};
use proptest::prelude::*;
use std::io::{self, Read};

#[test]
fn all_of_the_grammar_is_read() {
    let schedule = read(
        "// a comment\nnum_ranks 2 /* of two\nlines */\n\trank 0\n{\n  a: send 8b to 1 tag 7 cpu 1 nic 2 // behind\r\n\
         recv 18446744073709551615 b from -1 tag -1\n\n calc 5 cpu 3\n send: calc 1\n send requires a\n\
         calc_2:calc 2\n calc_2 irequires send}\nrank 1 {}",
    );
    assert_eq!(schedule.ranks(), 2);
    let rank = schedule.rank(0);
    assert_eq!(rank.ops.len(), 5);
    let a = rank.ops[0];
    assert_eq!((a.kind, a.size, a.peer, a.tag, a.cpu, a.nic, a.line), (Kind::Send, 8, 1, 7, 1, 2, 6));
    let any = rank.ops[1];
    assert_eq!((any.kind, any.size, any.peer, any.tag), (Kind::Recv, u64::MAX, ANY, ANY));
    assert_eq!((rank.ops[2].kind, rank.ops[2].cpu), (Kind::Calc, 3));
    assert_eq!(rank.dependents(0).iter().map(|d| (d.op(), d.on_start())).collect::<Vec<_>>(), [(3, false)]);
    assert_eq!(rank.dependents(3).iter().map(|d| (d.op(), d.on_start())).collect::<Vec<_>>(), [(4, true)]);
    assert!(schedule.rank(1).ops.is_empty());
}

#[test]
fn dependents_are_in_the_order_of_the_text_those_of_the_end_first() {
    let schedule = read(
        "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nd: calc 4\nd irequires a\nc requires a\n\
         b irequires a\nb requires a\nd requires b\n}",
    );
    let dependents: Vec<_> = schedule.rank(0).dependents(0).iter().map(|d| (d.op(), d.on_start())).collect();
    assert_eq!(dependents, [(2, false), (1, false), (3, true), (1, true)]);
    assert_eq!(schedule.rank(0).ops.iter().map(|op| op.dependencies).collect::<Vec<_>>(), [0, 2, 1, 2]);
}

#[test]
fn errors_have_their_place() {
    for (goal, expected) in [
        ("", "line 1, column 1: the file has no schedule; a schedule begins with num_ranks"),
        ("ranks 2", "line 1, column 1: num_ranks with the number of ranks is expected, not 'ranks'"),
        ("num_ranks 0", "line 1, column 11: a schedule has at least one rank"),
        ("num_ranks 1000000000000", "line 1, column 11: the number of ranks is at most 4294967294"),
        ("num_ranks x", "line 1, column 11: the number of ranks is expected, not 'x'"),
        ("num_ranks 2\nrank 0 {\n}\n", "line 4, column 1: rank 1 is missing: num_ranks is 2"),
        ("num_ranks 2\nrank 1 {\n}\n", "line 2, column 6: the next rank is 0, not 1: ranks come in order"),
        (
            "num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n",
            "line 4, column 1: the end of the file after rank 0, the last one, is expected, not 'rank'",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 5\n",
            "line 4, column 1: rank 0: the file ends inside the block that line 2 begins",
        ),
        ("num_ranks 1\nrank 0 calc", "line 2, column 8: rank 0: { is expected, not 'calc'"),
        ("num_ranks 1 /* x\n", "line 2, column 1: the comment of line 1 does not end"),
        (
            "num_ranks 1\nrank 0 {\n  send 8 to 0\n}",
            "line 3, column 10: rank 0: b, for bytes, is expected, not 'to'",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 8b to 3\n}",
            "line 3, column 12: rank 0: there is no rank 3; the last one is 0",
        ),
        (
            "num_ranks 1\nrank 0 {\nsend 8b to -1\n}",
            "line 3, column 12: rank 0: a send goes to one rank; only a receive may have rank -1 (any rank)",
        ),
        (
            "num_ranks 1\nrank 0 {\nrecv 8b from -2\n}",
            "line 3, column 14: rank 0: a rank is a whole number, or -1 for any",
        ),
        ("num_ranks 1\nrank 0 {\nrecv 8b to 0\n}", "line 3, column 9: rank 0: from is expected, not 'to'"),
        (
            "num_ranks 1\nrank 0 {\ncalc 5 tag 3\n}",
            "line 3, column 8: rank 0: the end of the statement is expected, not 'tag'",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 5 cpu 256\n}",
            "line 3, column 12: rank 0: the number of a CPU is at most 255",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 5 cpu 1 cpu 1\n}",
            "line 3, column 14: rank 0: this attribute is given twice",
        ),
        (
            "num_ranks 1\nrank 0 {\ncalc 18446744073709551616\n}",
            "line 3, column 6: rank 0: a time in ns is at most 18446744073709551615",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 5\na: calc 6\n}",
            "line 4, column 1: rank 0: label a already belongs to the operation in line 3",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 5\na requires b\nb: calc 1\n}",
            "line 4, column 12: rank 0: no earlier operation of this rank has label b",
        ),
        (
            "num_ranks 2\nrank 0 {\na: calc 5\n}\nrank 1 {\nb: calc 5\nb requires a\n}",
            "line 7, column 12: rank 1: no earlier operation of this rank has label a",
        ),
        (
            "num_ranks 1\nrank 0 {\na: calc 5\na wants a\n}",
            "line 4, column 3: rank 0: requires, irequires or ':' after label a is expected, not 'wants'",
        ),
        (
            "num_ranks 1\nrank 0 {\na: jump 5\n}",
            "line 3, column 4: rank 0: send, recv or calc is expected, not 'jump'",
        ),
        (
            "num_ranks 1\nrank 0 {\n*\n}",
            "line 3, column 1: rank 0: a statement: send, recv, calc, or a label is expected, not '*'",
        ),
    ] {
        let found = text::read(goal.as_bytes(), text::DuplicateLabels::Unique, &mut |_| true).unwrap_err();
        assert_eq!(found.to_string(), expected, "{goal}");
    }
}

#[test]
fn of_two_operations_with_a_label_the_later_one_has_it_where_that_is_asked() {
    let goal = "num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\nb: calc 3\nb requires a\n}";
    let schedule = text::read(goal.as_bytes(), text::DuplicateLabels::LastWins, &mut |_| true).unwrap();
    assert!(schedule.rank(0).dependents(0).is_empty());
    assert_eq!(schedule.rank(0).dependents(1).len(), 1);
}

#[test]
fn labels_of_any_length_are_told_apart() {
    let names: Vec<String> =
        (0..3000).map(|number| format!("{}{number}", "operation_".repeat(number % 4))).collect();
    let mut goal = "num_ranks 2\n".to_owned();
    for rank in 0..2 {
        goal += &format!("rank {rank} {{\n");
        names.iter().enumerate().for_each(|(number, name)| goal += &format!("x{name}: calc {number}\n"));
        (1..names.len()).for_each(|at| goal += &format!("x{} requires x{}\n", names[at], names[at - 1]));
        goal += "}\n";
    }
    let schedule = read(&goal);
    for rank in schedule.iter() {
        let follows = |at: usize| rank.dependents(at).iter().map(|d| d.op() as usize).collect::<Vec<_>>();
        assert!((0..names.len() - 1).all(|at| follows(at) == [at + 1]));
    }
}

#[test]
fn a_line_that_never_ends_is_refused_and_not_held() {
    let endless = io::repeat(b'a').take(1 << 40);
    let head = "num_ranks 1\nrank 0 {\n".as_bytes();
    let found = text::read(head.chain(endless), text::DuplicateLabels::Unique, &mut |_| true).unwrap_err();
    assert_eq!(found.to_string(), "line 3, column 1: rank 0: a line is at most 1048576 bytes long");
}

/// A source that returns only a few bytes at a time.
struct Drops<'b>(&'b [u8]);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.0.len().min(buffer.len()).min(3);
        buffer[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

#[test]
fn it_does_not_matter_in_which_pieces_a_text_comes() {
    let goal = written(&read("num_ranks 1\nrank 0 {\na: calc 1\nb: send 3b to 0 tag 4\nb requires a\n}"));
    let found = text::read(Drops(goal.as_bytes()), text::DuplicateLabels::Unique, &mut |_| true).unwrap();
    assert_eq!(found, read(&goal));
}

#[test]
fn reading_ends_when_it_is_told_to() {
    let goal = format!("num_ranks 1\nrank 0 {{\n{}}}", "calc 1\n".repeat(200_000));
    let found = text::read(goal.as_bytes(), text::DuplicateLabels::Unique, &mut |lines| lines < 100_000);
    assert!(found.unwrap_err().interrupted);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_schedule_survives_text_and_binary(schedule in any_schedule()) {
        let goal = written(&schedule);
        let from_text = read(&goal);
        let bytes = packed(&from_text);
        prop_assert_eq!(&bytes, &packed(&schedule));
        let from_binary = binary::read(&bytes[..], &mut |_| true).unwrap();
        prop_assert_eq!(written(&from_binary), goal);
    }

    #[test]
    fn no_text_makes_it_panic(parts in proptest::collection::vec(prop_oneof![
        8 => proptest::sample::select(vec![
            "num_ranks", "rank", "{", "}", "\n", "send", "recv", "calc", "b", "to", "from", "tag", "cpu", "nic", "-1", "0",
            "1", "7b", ":", "requires", "irequires", "a", "a1_", "//", "/*", "*/", "99999999999999999999", " ", "-", "/",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ], 0..60), begun in any::<bool>(), spaced in any::<bool>()) {
        let head = if begun { "num_ranks 1\nrank 0 {\na: calc 1\n" } else { "" };
        let goal = head.to_owned() + &parts.join(if spaced { " " } else { "" });
        if let Ok(schedule) = text::read(goal.as_bytes(), text::DuplicateLabels::Unique, &mut |_| true) {
            prop_assert_eq!(written(&read(&written(&schedule))), written(&schedule));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = text::read(&bytes[..], text::DuplicateLabels::Unique, &mut |_| true);
    }
}
