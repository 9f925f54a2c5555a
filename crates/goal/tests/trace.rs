//! Traces of MPI programs: the operations that each call becomes, and damaged traces.

use crate::schedules::{cases, network, run, written};
use nicety_goal::loggops::Rules;
use nicety_goal::trace::{self, AmbiguousCalls, World};
use nicety_goal::{Builder, Kind, ReadError, Schedule, find_cycle};
use proptest::collection::vec;
use proptest::prelude::*;

const WORLD: &str = "0,RANK,RANKS";

/// Returns the trace of a rank with these calls, one microsecond apart.
pub fn traced(rank: u32, ranks: u32, calls: &[&str]) -> String {
    let mut text = "# a comment\n\nMPI_Init:-:1:2:10\n".to_owned();
    let mut now = 10;
    for call in calls {
        let call = call.replace("WORLD", WORLD).replace("RANKS", &ranks.to_string());
        let call = call.replace("RANK", &rank.to_string());
        let (name, arguments) = call.split_once(':').unwrap_or((&call, ""));
        let colon = if arguments.is_empty() { "" } else { ":" };
        text += &format!("MPI_{name}:{}{colon}{arguments}:{}\n", now + 1, now + 3);
        now += 3;
    }
    text + &format!("MPI_Finalize:{now}:-\n")
}

fn read_all(traces: &[String]) -> Result<(Schedule, AmbiguousCalls), ReadError> {
    let (mut builder, mut world, mut unsaid) = (Builder::new(), World::default(), AmbiguousCalls::default());
    for text in traces {
        let ranks = traces.len() as u32;
        trace::read(text.as_bytes(), ranks, &mut world, &mut unsaid, &mut builder, &mut || true)?;
    }
    Ok((builder.finish(), unsaid))
}

/// Returns the operations of rank 0 that these calls become, among `ranks` ranks.
fn rank_of(calls: &[&str], ranks: u32) -> String {
    let mut traces = vec![traced(0, ranks, calls)];
    // The others make only the collective calls.
    traces.extend((1..ranks).map(|rank| traced(rank, ranks, &[])));
    let text = written(&read_all(&traces).unwrap().0);
    let from = text.find("{\n").unwrap() + 2;
    text[from..from + text[from..].find("}").unwrap()].to_owned()
}

fn refused(text: &str) -> String {
    read_all(&[text.to_owned()]).err().unwrap().to_string()
}

fn refused_call(call: &str) -> String {
    refused(&traced(0, 2, &[call]))
}

/// Runs traces. For each rank, `calls` returns the lines from the fourth one on.
fn run_all(ranks: u32, calls: impl Fn(u32) -> Vec<String>) -> Schedule {
    let lines = |rank: u32| {
        let calls = calls(rank);
        traced(rank, ranks, &calls.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let traces: Vec<String> = (0..ranks).map(lines).collect();
    let (schedule, _) = read_all(&traces).unwrap();
    assert_eq!(find_cycle(&schedule), None);
    for eager in [0, 1 << 20] {
        let done = run(&schedule, &network([1000, 100, 50, 1, 0, eager]), Rules::Own);
        assert_eq!(done.counts.operations as usize, schedule.ops().len());
    }
    schedule
}

/// Returns the number of bytes that each rank sends.
fn sent(schedule: &Schedule) -> Vec<u64> {
    let sends = |op: &nicety_goal::Op| if op.kind == Kind::Send { op.size } else { 0 };
    schedule.iter().map(|rank| rank.ops.iter().map(sends).sum()).collect()
}

#[test]
fn calls_become_operations_and_the_time_between_them_calculations() {
    // MPI_Comm_rank is part of the calculation, and times may have decimals.
    let text = "MPI_Init:-:1:2:1225632902659000.000000\n\
                MPI_Comm_rank:1225632902659001:0,0,1:99:1225632902659002\n\
                MPI_Send:1225632902659002.5:7:3:11,8,8:0:5:0,0,1:1225632902659003\n\
                MPI_Recv:1225632902659003:7:3:11,8,8:-1:-1:0,0,1:9:1225632902659009\n\
                # Finalize clockdiff: 0.000000\n\
                MPI_Finalize:1225632902659010:-\n";
    let (schedule, unsaid) = read_all(&[text.to_owned()]).unwrap();
    assert_eq!(
        written(&schedule),
        "num_ranks 1\n\nrank 0 {\nl1: calc 2500\nl2: send 24b to 0 tag 5\nl3: recv 24b from -1 tag -1\nl4: calc 1000\n\
         l2 requires l1\nl3 requires l2\nl4 requires l3\n}\n"
    );
    assert_eq!((unsaid.total, unsaid.backwards), (5, 0));
}

#[test]
fn nonblocking_calls_go_on_at_their_start_and_end_with_the_wait() {
    let calls = ["Irecv:7:1:1,4,4:1:3:WORLD:4096", "Isend:7:2:1,4,4:1:4:WORLD:4104", "Waitall:2:4096:1"];
    assert_eq!(
        rank_of(&calls, 2),
        "l1: calc 1000\nl2: recv 4b from 1 tag 3\nl3: calc 1000\nl4: send 8b to 1 tag 4\nl5: calc 1000\n\
         l2 requires l1\nl3 irequires l2\nl4 requires l3\nl5 irequires l4\n"
    );
    // The last calculation follows all of them.
    let calls = [&calls[..], &["Send:7:1:1,4,4:1:0:WORLD"]].concat();
    let text = rank_of(&calls, 2);
    for end in ["l6 requires l5", "l6 requires l2", "l6 requires l4"] {
        assert!(text.contains(end), "{end} in {text}");
    }
}

#[test]
fn requests_of_four_bytes_are_known_by_their_addresses() {
    for (second, both) in [(4100, true), (4104, true), (4112, false)] {
        let post = format!("Irecv:7:1:1,4,4:1:4:WORLD:{second}");
        let calls = ["Irecv:7:1:1,4,4:1:3:WORLD:4096", &post, "Waitall:2:4096:1", "Send:7:1:1,4,4:1:0:WORLD"];
        let text = rank_of(&calls, 2);
        let waits = ["l6 requires l2", "l6 requires l4"].map(|end| text.contains(end));
        assert_eq!(waits, [true, both], "{second}: {text}");
    }
}

#[test]
fn of_several_the_one_that_was_posted_first_ends_first() {
    let posts = ["Irecv:7:1:1,4,4:1:3:WORLD:4104", "Irecv:7:1:1,4,4:1:4:WORLD:4096"];
    let text = rank_of(&[&posts[..], &["Waitany:2:4096:5:6", "Send:7:1:1,4,4:1:0:WORLD"]].concat(), 2);
    assert!(text.contains("l6 requires l2"), "{text}");
    assert!(!text.contains("l6 requires l4"), "{text}");
    let calls = ["Waitany:2:4096:5:6", "Test:4096:1:2", "Waitany:1:4096:5:6"];
    let (_, unsaid) = read_all(&[traced(0, 1, &calls)]).unwrap();
    let unsaid: Vec<(&str, u64)> = unsaid.calls.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    // A wait for one request is unambiguous.
    assert_eq!(unsaid, [("MPI_Test", 1), ("MPI_Waitany", 1)]);
}

#[test]
fn messages_to_nobody_are_none_and_each_mpi_has_its_own_nobody() {
    let any = |source: i32, handle: u64| {
        let call = format!("Recv:7:1:1,4,4:{source}:3:{handle},RANK,RANKS:1");
        rank_of(&[&call], 2)
    };
    assert!(any(-1, 94853248035456).contains("recv 4b from -1 tag 3"));
    assert_eq!(any(-2, 94853248035456), "calc 1000\n");
    // MPI_COMM_WORLD of MPICH.
    assert!(any(-2, 0x4400_0000).contains("recv 4b from -1 tag 3"));
    assert_eq!(any(-1, 0x4400_0000), "calc 1000\n");
    // A wait for a null request does not wait.
    let text = rank_of(&["Irecv:7:1:1,4,4:-2:3:WORLD:4096", "Wait:4096:1"], 2);
    assert!(!text.contains("recv"), "{text}");
}

#[test]
fn both_ways_at_once_waits_for_both() {
    let text = rank_of(&["Sendrecv:7:2:1,4,4:1:5:8:3:1,4,4:0:6:WORLD:1", "Send:7:1:1,4,4:1:0:WORLD"], 2);
    for part in ["send 8b to 1 tag 5", "recv 12b from 0 tag 6", "l4 requires l2", "l4 requires l3"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let text = rank_of(&["Sendrecv_replace:7:2:1,4,4:1:5:0:6:WORLD:1"], 2);
    assert!(text.contains("send 8b to 1 tag 5") && text.contains("recv 8b from 0 tag 6"), "{text}");
}

type Sent = Box<dyn Fn(u64) -> u64>;

/// Returns every collective call of `ranks` ranks, with 40 bytes for each rank. Also returns the bytes that rank r sends in the
/// call.
fn collectives(ranks: u32) -> Vec<(String, Sent)> {
    let n = u64::from(ranks);
    let counts: Vec<String> = (0..ranks).map(|rank| rank.to_string()).collect();
    let list = counts.join(",");
    let root = ranks - 1;
    let last = u64::from(root);
    let all: u64 = (0..n).sum();
    // Each passes on the parts that it got: all but the part of the rank before it, or of its own.
    let around = move |rank: u64| 8 * (all - (rank + 1) % n);
    let towards = move |rank: u64| 8 * (all - rank);
    vec![
        (
            format!("Gather:1:10:1,4,4:2:10:1,4,4:{root}:WORLD"),
            Box::new(move |rank| if rank == last { 0 } else { 40 }),
        ),
        (
            format!("Scatter:1:10:1,4,4:2:10:1,4,4:{root}:WORLD"),
            Box::new(move |rank| if rank == last { 40 * last } else { 0 }),
        ),
        ("Alltoall:1:10:1,4,4:2:10:1,4,4:WORLD".to_owned(), Box::new(move |_| 40 * last)),
        ("Allgather:1:10:1,4,4:2:10:1,4,4:WORLD".to_owned(), Box::new(move |_| 40 * last)),
        (format!("Allgatherv:1:RANK:11,8,8:2:3:{list}:4:{list}:11,8,8:WORLD"), Box::new(around)),
        ("Reduce_scatter_block:1:2:10:1,4,4:3:WORLD".to_owned(), Box::new(move |_| 40 * last)),
        (format!("Reduce_scatter:1:2:3:{list}:11,8,8:3:WORLD"), Box::new(towards)),
        (
            format!("Gatherv:1:RANK:11,8,8:2:3:{list}:4:{list}:11,8,8:{root}:WORLD"),
            Box::new(move |rank| if rank == last { 0 } else { 8 * rank }),
        ),
        (
            format!("Scatterv:3:4:{list}:5:{list}:11,8,8:2:RANK:11,8,8:{root}:WORLD"),
            Box::new(move |rank| if rank == last { 8 * (all - last) } else { 0 }),
        ),
        ("Scan:1:2:10:1,4,4:3:WORLD".to_owned(), Box::new(move |rank| if rank == last { 0 } else { 40 })),
    ]
}

#[test]
fn collective_calls_move_what_they_say() {
    for ranks in [1, 2, 3, 5, 8] {
        for (call, bytes) in collectives(ranks) {
            let schedule = run_all(ranks, |_| vec![call.clone()]);
            let expected: Vec<u64> =
                (0..u64::from(ranks)).map(|rank| if ranks == 1 { 0 } else { bytes(rank) }).collect();
            assert_eq!(sent(&schedule), expected, "{call} of {ranks}");
        }
    }
    // Alltoallv: rank r has r + 1 items for each.
    let schedule = run_all(3, |rank| {
        let own = [rank + 1; 3].map(|count| count.to_string()).join(",");
        vec![format!("Alltoallv:1:2:{own}:3:0,0,0:1,4,4:5:6:1,2,3:7:0,0,0:1,4,4:WORLD")]
    });
    assert_eq!(sent(&schedule), [8, 16, 24]);
}

#[test]
fn trees_and_sums_take_as_many_rounds_as_they_do_as_patterns() {
    let rounds = |call: &str, ranks: u32| {
        let schedule = run_all(ranks, |_| vec![call.to_owned()]);
        let done = run(&schedule, &network([1000, 0, 0, 0, 0, 1 << 30]), Rules::Own);
        // A microsecond is computed before the call, and the rest is latency.
        done.finish_ps.into_iter().max().unwrap() / 1_000_000 - 1
    };
    assert_eq!(rounds("Barrier:WORLD", 9), 4);
    assert_eq!(rounds("Bcast:1:10:1,4,4:3:WORLD", 8), 3);
    assert_eq!(rounds("Reduce:1:2:10:1,4,4:3:5:WORLD", 8), 3);
    assert_eq!(rounds("Allreduce:1:2:10:1,4,4:3:WORLD", 8), 3);
    // From 64 KiB on around a ring, twice.
    assert_eq!(rounds("Allreduce:1:2:16384:1,4,4:3:WORLD", 8), 14);
    assert_eq!(rounds("Comm_dup:WORLD:99", 4), 2);
    assert_eq!(rounds("Scan:1:2:10:1,4,4:3:WORLD", 5), 4);
    // A single rank sends no message.
    assert_eq!(rounds("Allreduce:1:2:10:1,4,4:3:0,0,1", 2), 0);
}

#[test]
fn a_collective_call_that_does_not_wait_goes_on_beside_the_program() {
    let calls = vec!["Iallreduce:1:2:10:1,4,4:3:WORLD:4096".to_owned(), "Wait:4096:1".to_owned()];
    let schedule = run_all(2, |_| calls.clone());
    // A calculation, an exchange that takes a latency, and meanwhile the next calculation of a microsecond.
    let done = run(&schedule, &network([5000, 0, 0, 0, 0, 1 << 30]), Rules::Own);
    assert_eq!(done.finish_ps, [6_000_000, 6_000_000]);
    let text = rank_of(&["Ibarrier:0,0,1:4096", "Wait:4096:1"], 2);
    assert!(!text.contains("send"), "{text}");
}

#[test]
fn impossible_traces_are_reported_with_line_and_column() {
    for (call, wrong) in [
        ("Send:7:1:1,4,4:1:3", "MPI_Send has 9 fields, not 8; is the line cut off?"),
        ("Send:7:x:1,4,4:0:3:0,0,1", "a whole number from 0 is expected, not 'x'"),
        ("Send:7:1:1,4:0:3:0,0,1", "a datatype, as in 11,8,8, is expected, not '1,4'"),
        ("Send:7:1:1,4,4:9:3:0,0,1", "a rank below 1 is expected, not '9'"),
        ("Send:7:1:1,4,4:-7:3:0,0,1", "a rank below 1 is expected, not '-7'"),
        ("Send:7:1:1,4,4:0:-1:0,0,1", "a tag from 0 to 2^31 - 1 is expected, not '-1'"),
        ("Send:7:1:1,4,4:0:3:0,1,1", "a communicator, as in 0,3,4, is expected, not '0,1,1'"),
        ("Send:7:9999999999:1,9999999999,4:0:3:0,0,1", "a number of items that fit into 2^64 bytes"),
        (
            "Send:7:1:1,4,4:0:3:0,0,4",
            "this program has 4 ranks, but there are traces of only 1; name the traces of all ranks",
        ),
        ("Bcast:7:1:1,4,4:1:0,0,1", "a root below 1 is expected, not '1'"),
        ("Gatherv:1:1:1,4,4:2:3:1,2:4:0:1,4,4:0:0,0,1", "a list of 1 numbers is expected, not '1,2'"),
        ("Put:1:2:3", "MPI_Put cannot be part of a schedule"),
        ("Win_fence:1:2", "MPI_Win_fence cannot be part of a schedule"),
        ("Send_init:1:2", "MPI_Send_init cannot be part of a schedule"),
        ("Init:1:2", "MPI_Init is called twice"),
    ] {
        let text = traced(0, 1, &[call]);
        let said = refused(&text);
        assert!(said.starts_with("line 4, column ") && said.contains(wrong), "{call}: {said}");
    }
    assert_eq!(
        refused_call("Send:7:1:1,4,4:0:x:0,0,1"),
        "line 4, column 25: rank 0: a whole number is expected, not 'x'"
    );
    let two = [traced(0, 2, &["Send:7:1:1,4,4:1:3:0,1,2"]), traced(1, 2, &[])];
    assert!(
        read_all(&two).unwrap_err().to_string().contains("rank 0 is rank 1 in a communicator of all 2 ranks")
    );
    let four: Vec<String> = (0..4).map(|rank| traced(rank, 4, &["Barrier:5,0,2"])).collect();
    assert!(read_all(&four).unwrap_err().to_string().contains("a communicator of 2 of the 4 ranks"));
}

#[test]
fn a_trace_that_is_cut_off_or_none_is_refused() {
    let whole = traced(0, 1, &["Barrier:WORLD"]);
    let without_end = whole.split_inclusive('\n').take(4).collect::<String>();
    assert!(refused(&without_end).contains("the trace ends before MPI_Finalize; it is cut off"));
    assert!(refused("").contains("it is cut off"));
    assert!(refused("num_ranks 1\n").contains("line 1, column 1: rank 0: a call is expected"));
    assert!(refused("MPI_Send:1\n").contains("a call is expected"));
    assert!(refused("MPI_Barrier:1:0,0,1:2\n").contains("MPI_Barrier comes before MPI_Init"));
    assert!(refused(&format!("{whole}MPI_Barrier:1:0,0,1:2\n")).contains("comes after MPI_Finalize"));
    assert!(refused("MPI_Init:-:1:2:1x\n").contains("a time in microseconds is expected, not '1x'"));
    let long = format!("MPI_Init:{}", "1".repeat(2 << 20));
    assert!(refused(&long).contains("a line is at most 1048576 bytes long"));
    // The clock may go back: such calls are counted.
    let (_, unsaid) = read_all(&["MPI_Init:-:1:2:10\nMPI_Finalize:9:-\n".to_owned()]).unwrap();
    assert_eq!(unsaid.backwards, 1);
}

#[test]
fn ranks_that_do_not_agree_on_collective_calls_are_told() {
    let pair = |second: &[&str]| {
        let first = ["Barrier:WORLD", "Bcast:7:1:1,4,4:0:WORLD"];
        read_all(&[traced(0, 2, &first), traced(1, 2, second)]).unwrap_err().to_string()
    };
    assert_eq!(
        pair(&["Barrier:WORLD", "Bcast:7:1:1,4,4:1:WORLD"]),
        "line 5, column 1: rank 1: collective call 2 is MPI_Bcast with root 1, but on rank 0 it is MPI_Bcast with root 0 (its line 5)"
    );
    assert!(
        pair(&["Barrier:WORLD"])
            .contains("collective call 2 is missing; on rank 0 it is MPI_Bcast (its line 5)")
    );
    let three = ["Barrier:WORLD", "Bcast:7:1:1,4,4:0:WORLD", "Barrier:WORLD"];
    assert!(pair(&three).contains("this is collective call 3, but rank 0 makes only 2"));
}

/// Returns programs for any number of ranks with matching messages. Each call is made by all ranks.
pub fn any_calls() -> impl Strategy<Value = (u32, Vec<u32>)> {
    (1..7_u32, vec(any::<u32>(), 0..12))
}

pub fn program(ranks: u32, rank: u32, choices: &[u32]) -> Vec<String> {
    let mut calls = Vec::new();
    for choice in choices {
        let of_all = collectives(ranks);
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        match choice % 8 {
            0 => calls.push(format!("Sendrecv:7:2:1,4,4:{next}:5:8:2:1,4,4:{before}:5:WORLD:1")),
            1 => {
                calls.push(format!("Irecv:7:{choice}:1,1,1:{before}:3:WORLD:4096"));
                calls.push(format!("Isend:7:{choice}:1,1,1:{next}:3:WORLD:4104"));
                calls.push("Waitall:2:4096:1".to_owned());
            }
            2 => calls.push(format!("Bcast:7:{choice}:1,1,1:{}:WORLD", choice / 8 % ranks)),
            3 => calls.push(format!("Allreduce:1:2:{}:1,1,1:3:WORLD", choice % 200_000)),
            4 => calls.push(format!("Reduce:1:2:7:1,1,1:3:{}:WORLD", choice / 8 % ranks)),
            5 => calls.push("Barrier:WORLD".to_owned()),
            _ => calls.push(of_all[*choice as usize / 8 % of_all.len()].0.clone()),
        }
    }
    calls
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn programs_that_match_end((ranks, choices) in any_calls()) {
        run_all(ranks, |rank| program(ranks, rank, &choices));
    }

    #[test]
    fn damaged_traces_are_read_or_refused((ranks, choices) in any_calls(), damage in vec((any::<u32>(), any::<u8>()), 1..4), cut in any::<u32>()) {
        let traces = (0..ranks).map(|rank| {
            let calls = program(ranks, rank, &choices);
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            let mut bytes = traced(rank, ranks, &calls).into_bytes();
            for (at, byte) in &damage {
                let at = *at as usize % bytes.len();
                // Signs that occur in lines, more often than others.
                bytes[at] = if byte % 2 == 0 { b":,-0123456789\nMx"[*byte as usize / 2 % 16] } else { *byte };
            }
            bytes.truncate(bytes.len().max(1) - if cut % 4 == 0 { cut as usize / 4 % bytes.len() } else { 0 });
            bytes
        });
        let (mut builder, mut world, mut unsaid) = (Builder::new(), World::default(), AmbiguousCalls::default());
        for bytes in traces {
            if trace::read(&bytes[..], ranks, &mut world, &mut unsaid, &mut builder, &mut || true).is_err() {
                break;
            }
        }
    }
}
