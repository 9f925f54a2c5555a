//! Results of LogGOPSim, compared with nicety's results by its rules, to the nanosecond.

use crate::schedules::network;
use nicety_goal::loggops::{self, Failure, Rules, Stuck};
use nicety_goal::{Schedule, text};
use std::path::{Path, PathBuf};

/// The parameter sets P1 to P4: L, o, g, G and O in nanoseconds, and S in bytes.
const SETS: [[u64; 6]; 4] = [
    [2500, 1500, 1000, 6, 0, 65535],
    [1000, 65, 7, 1, 0, 65535],
    [1500, 200, 50, 2, 1, 4096],
    [1000, 0, 0, 0, 0, 0],
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference")
}

fn read(name: &str) -> Schedule {
    let file = std::fs::File::open(folder().join(format!("{name}.goal"))).unwrap();
    text::read(file, text::DuplicateLabels::LastWins, &mut |_| true).unwrap()
}

/// Returns the output that LogGOPSim prints for a run.
fn told(schedule: &Schedule, set: usize) -> String {
    let run = loggops::run(schedule, &network(SETS[set]), Rules::LogGopSim, &mut |_| true);
    let (counts, lines) = match run {
        Ok(run) => {
            let hosts = run.finish_ps.iter().enumerate();
            (run.counts, hosts.map(|(host, ps)| format!("Host {host}: {}\n", ps / 1000)).collect())
        }
        Err(Failure::Stuck(stuck)) => (stuck.counts, queues(schedule, &stuck)),
        Err(other) => panic!("{other:?}"),
    };
    let events = counts.operations + counts.messages;
    format!("PERFORMANCE: Processes: {} \t Events: {events} \t \n{lines}", schedule.ranks())
}

fn queues(schedule: &Schedule, stuck: &Stuck) -> String {
    let op = |(rank, op): &(u32, u32)| (*rank, schedule.rank(*rank).ops[*op as usize]);
    let mut told = String::new();
    for host in 0..schedule.ranks() {
        let sends = stuck.sends.iter().map(op).filter(|(_, op)| op.peer == host);
        let receives = stuck.receives.iter().map(op).filter(|(rank, _)| *rank == host);
        let sends: Vec<_> = sends.map(|(rank, op)| (rank, op.tag)).collect();
        let receives: Vec<_> = receives.map(|(_, op)| (op.peer, op.tag)).collect();
        for (name, queue) in [("unexpected", sends), ("receive", receives)] {
            if queue.is_empty() {
                continue;
            }
            told += &format!("{name} queue on host {host} contains {} elements!\n", queue.len());
            told.extend(queue.iter().map(|(source, tag)| format!(" src: {source}, tag: {tag}\n")));
        }
    }
    told
}

#[test]
fn every_run_matches() {
    let mut runs = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let Some((name, set)) = name.strip_suffix(".expected").and_then(|name| name.rsplit_once(".P")) else {
            continue;
        };
        let found = told(&read(name), set.parse::<usize>().unwrap() - 1);
        let expected = std::fs::read_to_string(&path).unwrap();
        runs += 1;
        if found != expected {
            wrong.push(format!("{name} P{set}: {found}\n not {expected}"));
        }
    }
    assert_eq!(runs, 107);
    assert!(wrong.is_empty(), "{} of {runs}: {}", wrong.len(), wrong.join("\n"));
}
