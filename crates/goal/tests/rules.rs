//! The rules of LogGOPS, with results computed by hand. The tests use nicety's own rules, and LogGOPSim's rules where the two
//! differ. Times are in nanoseconds.

use crate::schedules::{finish, network, read};
use nicety_goal::loggops::{self, Failure, Parameters, Rules};
use nicety_types::{Duration, Gap};

/// L, o, g, G and O in nanoseconds, and S in bytes.
const NET: [u64; 6] = [1000, 100, 50, 2, 1, 1000];

fn both(goal: &str) -> [Vec<u64>; 2] {
    [Rules::Own, Rules::LogGopSim].map(|rules| finish(goal, NET, rules))
}

#[test]
fn a_message_takes_o_l_o_and_its_bytes_behind_the_first() {
    // The send begins at 0, and keeps the sender's CPU busy for 100 + 10 x 1. The message arrives at 100 + 1000. Its receive
    // takes 100 + 10 x max(1, 2).
    let goal = "num_ranks 2\nrank 0 {\nsend 11b to 1\n}\nrank 1 {\nrecv 11b from 0\n}";
    assert_eq!(both(goal), [[110, 1220], [110, 1220]]);
}

#[test]
fn a_cpu_and_an_interface_hold_up_the_next_message() {
    let goal = |pair: &str| {
        format!(
            "num_ranks 2\nrank 0 {{\nsend 1b to 1\nsend 1b to 1 {pair}\n}}\nrank 1 {{\nrecv 1b from 0\nrecv 1b from 0\n}}"
        )
    };
    let with_gap = [1000, 100, 300, 2, 1, 1000];
    // The sender's CPU is free at 100, and its interface at 300. The messages are 300 apart at the receiver, too.
    assert_eq!(finish(&goal(""), with_gap, Rules::Own), [400, 1500]);
    // With a second interface, the second send begins when the CPU is free. The second receive begins when the first one ends.
    assert_eq!(finish(&goal("nic 1"), with_gap, Rules::Own), [200, 1300]);
    // A second CPU has to wait for the interface.
    assert_eq!(finish(&goal("cpu 1"), with_gap, Rules::Own), [400, 1500]);
    // With different CPUs and interfaces, both messages are sent at the same time, and arrive at the same time.
    assert_eq!(finish(&goal("cpu 1 nic 1"), with_gap, Rules::Own), [100, 1200]);
}

#[test]
fn simultaneous_operations_start_by_kind() {
    // The send starts first, although the schedule has it after the calculation.
    let goal = "num_ranks 2\nrank 0 {\ncalc 5000\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}";
    assert_eq!(both(goal), [[5100, 1200], [5100, 1200]]);
}

#[test]
fn a_start_is_earlier_than_an_end() {
    let goal = |verb: &str| {
        format!(
            "num_ranks 1\nrank 0 {{\nw: calc 300\na: calc 500\na requires w\nb: calc 5 cpu 1\nb {verb} a\n}}"
        )
    };
    assert_eq!(finish(&goal("requires"), NET, Rules::Own), [805]);
    // `b` begins at 300, when `a` begins. It ends long before `a`.
    let with_end = goal("irequires").replace("b irequires", "c: calc 1000 cpu 1\nc requires b\nb irequires");
    assert_eq!(finish(&with_end, NET, Rules::Own), [1305]);
}

#[test]
fn time_goes_from_one_cpu_to_another_where_loggopsim_forgets_it() {
    let goal = "num_ranks 1\nrank 0 {\na: calc 500\nb: calc 10 cpu 1\nb requires a\n}";
    assert_eq!(both(goal), [[510], [500]]);
    // `c` begins at the later of two ends, although the operation with this end began first.
    let goal = "num_ranks 1\nrank 0 {\na: calc 500\nb: calc 10 cpu 1\nc: calc 1 cpu 2\nc requires a\nc requires b\n}";
    assert_eq!(both(goal), [[501], [500]]);
    // The receive on CPU 1 finds a message that CPU 0 is still receiving, from 1100 to 1220.
    let goal = "num_ranks 2\nrank 0 {\nsend 11b to 1\n}\nrank 1 {\nw: calc 1110 cpu 1\nr: recv 11b from 0 cpu 1\nr requires w\n\
                c: calc 1 cpu 1\nc requires r\n}";
    assert_eq!(both(goal), [[110, 1221], [110, 1220]]);
}

#[test]
fn the_sender_of_a_long_message_hears_of_its_end_a_latency_after_it_is_taken() {
    // The message is sent at 0. The receiver's CPU is free at 5000. Then it takes the message, and finds the receive. The
    // receive lasts until 5000 + 100 + 1999 x 2.
    let late = "num_ranks 2\nrank 0 {\ns: send 2000b to 1\nc: calc 7\nc requires s\n}\n\
                rank 1 {\nc: calc 5000\nr: recv 2000b from 0\nr requires c\n}";
    assert_eq!(both(late), [[6007, 9098], [5007, 9098]]);
    // The receive is posted first, so it takes the message on arrival, at 1100. The sender's CPU is busy until 2099.
    let early = "num_ranks 2\nrank 0 {\ns: send 2000b to 1\nc: calc 7\nc requires s\n}\nrank 1 {\nrecv 2000b from 0\n}";
    assert_eq!(both(early), [[2107, 5198], [2106, 5198]]);
    // A message of exactly S bytes is not long.
    let short = early.replace("2000b", "1000b");
    assert_eq!(both(&short), [[1106, 3198], [1106, 3198]]);
}

#[test]
fn the_size_of_the_message_says_whether_it_is_long() {
    // By LogGOPSim's rules, the size of the receive decides if the message came first. Then the sender never ends.
    let goal = "num_ranks 2\nrank 0 {\ns: send 2000b to 1\nc: calc 7\nc requires s\n}\n\
                rank 1 {\nw: calc 9000 cpu 1\nr: recv 10b from 0 cpu 1\nr requires w\n}";
    assert_eq!(both(goal), [[10_007, 9000], [2099, 9000]]);
}

#[test]
fn a_message_without_bytes_costs_as_one_with_one() {
    let goal = "num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}";
    // LogGOPSim subtracts the time of a byte, even if the message has no byte.
    assert_eq!(both(goal), [[100, 1200], [99, 1199]]);
}

#[test]
fn messages_and_receives_meet_in_order_unless_a_tag_says_otherwise() {
    let net = [1000, 100, 100, 0, 0, 1000];
    let goal = |receives: &str| {
        format!(
            "num_ranks 3\nrank 0 {{\na: send 1b to 2 tag 1\nb: send 1b to 2 tag 2\nb requires a\n}}\n\
             rank 1 {{\nc: calc 50000\ns: send 1b to 2 tag 2\ns requires c\n}}\nrank 2 {{\n{receives}\n}}"
        )
    };
    let last = |receives: &str| finish(&goal(receives), net, Rules::Own)[2];
    // Rank 0's messages arrive at 1100 and 1200, and are received by 1200 and 1300. Rank 1's message arrives at 51100.
    let behind = |op: &str| format!("{op}\nx: calc 100000 cpu 1\nx requires r");
    assert_eq!(last(&behind("r: recv 1b from 0 tag 1\nrecv 1b from 0 tag 2\nrecv 1b from 1 tag 2")), 101_200);
    assert_eq!(
        last(&behind("recv 1b from -1 tag 2\nr: recv 1b from -1 tag 2\nrecv 1b from 0 tag 1")),
        151_200
    );
    assert_eq!(
        last(&behind("recv 1b from 0 tag -1\nr: recv 1b from -1 tag -1\nrecv 1b from 1 tag 2")),
        101_300
    );
    assert_eq!(
        last(&behind("r: recv 1b from 1 tag -1\nrecv 1b from -1 tag 1\nrecv 1b from 0 tag -1")),
        151_200
    );
    // These receives are posted after all messages have arrived. Each receive takes the first message that matches.
    let late = "w: calc 60000 cpu 1\nr: recv 1b from -1 tag 2 cpu 1\nr requires w\nq: recv 1b from 1 tag -1 cpu 1\n\
                q requires r\np: recv 1b from -1 tag -1 cpu 1\np requires q\nx: calc 1 cpu 1\nx requires p";
    assert_eq!(last(late), 60_001);
}

#[test]
fn a_tag_of_a_message_may_be_any() {
    let goal = "num_ranks 2\nrank 0 {\nsend 1b to 1 tag -1\n}\nrank 1 {\nrecv 1b from 0 tag 9\n}";
    assert_eq!(both(goal), [[100, 1200], [100, 1200]]);
}

#[test]
fn parts_of_a_nanosecond_count() {
    let parameters = Parameters {
        latency: Duration::from_ps(1_000_001),
        overhead: Duration::from_ps(65_500),
        gap: Duration::from_ps(7),
        gap_per_byte: Gap::new(78, 5),
        overhead_per_byte: Gap::ZERO,
        eager_bytes: 65_535,
    };
    let goal = "num_ranks 2\nrank 0 {\nsend 1002b to 1\ncalc 3\n}\nrank 1 {\nrecv 1002b from 0\n}";
    let run = loggops::run(&read(goal), &parameters, Rules::Own, &mut |_| true).unwrap();
    // 1001 bytes take 15.6 ps each. The whole amount is rounded up, to 15616 ps.
    assert_eq!(run.finish_ps, [65_500 + 3_000, 65_500 + 1_000_001 + 65_500 + 15_616]);
    let refused = loggops::run(&read(goal), &parameters, Rules::LogGopSim, &mut |_| true).unwrap_err();
    assert_eq!(refused, Failure::NotWhole(loggops::NotWhole("latency (L)")));
}

#[test]
fn without_a_latency_everything_still_comes_in_order() {
    // A message goes around a ring of three ranks. Only the calculations take time.
    let mut goal =
        "num_ranks 3\nrank 0 {\nc: calc 5\ns: send 8b to 1\ns requires c\nrecv 8b from 2\n}\n".to_owned();
    for (rank, next, calc) in [(1, 2, 7), (2, 0, 11)] {
        let before = rank - 1;
        goal += &format!(
            "rank {rank} {{\nr: recv 8b from {before}\nc: calc {calc}\nc requires r\ns: send 8b to {next}\ns requires c\n}}\n"
        );
    }
    assert_eq!(finish(&goal, [0; 6], Rules::Own), [23, 12, 23]);
    assert_eq!(finish(&goal, [0; 6], Rules::LogGopSim), [23, 12, 23]);
}

fn failure(goal: &str, rules: Rules) -> String {
    let schedule = read(goal);
    match loggops::run(&schedule, &network(NET), rules, &mut |_| true).unwrap_err() {
        Failure::Stuck(stuck) => stuck.describe(&schedule),
        Failure::Cycle(cycle) => cycle.describe(&schedule),
        other => format!("{other:?}"),
    }
}

#[test]
fn unmatched_operations_are_named() {
    let goal = "num_ranks 2\nrank 0 {\nsend 8b to 1 tag 4\n}\nrank 1 {\nr: recv 8b from 0 tag 5\nc: calc 1\nc requires r\n}";
    let expected = "the schedule cannot finish: 1 message without a receive, 1 receive without a message, 1 operation blocked \
                    by them\nrank 1: operation 0 (line 6: recv 8b from 0 tag 5): no message came\n\
                    rank 0: operation 0 (line 3: send 8b to 1 tag 4): no receive took it";
    assert_eq!(failure(goal, Rules::Own), expected);
    assert_eq!(failure(goal, Rules::LogGopSim), expected);
    let many = format!("num_ranks 1\nrank 0 {{\n{}}}", "recv 1b from 0\n".repeat(20));
    let text = failure(&many, Rules::Own);
    assert_eq!(text.lines().count(), 10);
    assert!(text.ends_with("\nand 12 more"), "{text}");
}

#[test]
fn operations_that_wait_for_each_other_are_named() {
    let goal = "num_ranks 2\nrank 0 {\n}\nrank 1 {\na: calc 1\nb: calc 2\nc: calc 3\nd: calc 4\nb requires a\nb requires c\n\
                c irequires b\nd requires c\n}";
    let text = failure(goal, Rules::Own);
    let cycles = [
        "rank 1: operations wait for each other: operation 1 (line 6: calc 2), which waits for operation 2 (line 7: calc 3), \
         which waits for operation 1",
        "rank 1: operations wait for each other: operation 2 (line 7: calc 3), which waits for operation 1 (line 6: calc 2), \
         which waits for operation 2",
    ];
    assert!(cycles.contains(&text.as_str()), "{text}");
    // LogGOPSim does not report operations that wait for each other.
    assert_eq!(finish(goal, NET, Rules::LogGopSim), [0, 1]);
    let itself = "num_ranks 1\nrank 0 {\na: calc 1\na requires a\n}";
    assert_eq!(
        failure(itself, Rules::Own),
        "rank 0: operations wait for each other: operation 0 (line 3: calc 1), which waits for operation 0"
    );
}

#[test]
fn time_has_an_end() {
    let goal = "num_ranks 1\nrank 0 {\na: calc 18446744073709551\nb: calc 615\nb requires a\n}";
    let run = loggops::run(&read(goal), &network(NET), Rules::Own, &mut |_| true);
    assert_eq!(run, Err(Failure::Endless(0, 1)));
}

#[test]
fn a_run_ends_when_it_is_told_to() {
    let goal = format!(
        "num_ranks 2\nrank 0 {{\n}}\nrank 1 {{\n{}a: calc 9\nb: calc 9\nb requires a\nc: calc 9\nc requires b}}",
        "calc 1\n".repeat(200_000)
    );
    let schedule = read(&goal);
    for (rules, threads) in [(Rules::Own, 1), (Rules::Own, 2), (Rules::LogGopSim, 1)] {
        // The run also ends if another thread than the caller's has all the work.
        let run = loggops::run_in_threads(&schedule, &network(NET), rules, threads, &mut |done| done < 10);
        assert_eq!(run, Err(Failure::Interrupted));
        let run = loggops::run_in_threads(&schedule, &network(NET), rules, threads, &mut |_| true).unwrap();
        assert_eq!(run.counts.operations, 200_003);
    }
}

#[test]
fn failures_are_the_same_in_threads() {
    let schedule = read(
        "num_ranks 3\nrank 0 {\nsend 8b to 2 tag 1\n}\nrank 1 {\nrecv 8b from 0\n}\nrank 2 {\nrecv 8b from -1 tag 2\n}",
    );
    let failure = |threads| {
        loggops::run_in_threads(&schedule, &network(NET), Rules::Own, threads, &mut |_| true).unwrap_err()
    };
    let Failure::Stuck(one) = failure(1) else { panic!("it cannot finish") };
    assert_eq!((one.sends.as_slice(), one.receives.as_slice()), (&[(0, 0)][..], &[(1, 0), (2, 0)][..]));
    assert_eq!(failure(3), Failure::Stuck(one));
    let endless = read("num_ranks 2\nrank 0 {\n}\nrank 1 {\ncalc 18446744073709551615\n}");
    let failed =
        |threads| loggops::run_in_threads(&endless, &network(NET), Rules::Own, threads, &mut |_| true);
    assert_eq!([failed(1), failed(2)], [(); 2].map(|()| Err(Failure::Endless(1, 0))));
}
