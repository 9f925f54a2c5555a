//! Tours on the card: they are those of the native climbs, with any source of distances.

use crate::programs::{numbers, spec};
use nicety_apps::tsp::card::{self as tsp, Best, Climber, Distances, Placement, Source, TspJob};
use nicety_apps::tsp::cities::{Cities, DistanceTable, distance};
use nicety_nic_nfp::MemoryKind;

pub(crate) const TSP: &[u8] = include_bytes!("data/tsp.elf");
const TABLE: &[u8] = include_bytes!("data/tsp_table.elf");

fn points(count: usize, seed: u64) -> Vec<(u16, u16)> {
    let mut numbers = numbers(seed);
    let mut next = || (numbers.next().unwrap() % 4000) as u16;
    (0..count).map(|_| (next(), next())).collect()
}

fn cities(count: usize, seed: u64) -> Cities {
    points(count, seed).into()
}

fn best(job: &TspJob) -> Best {
    Climber::new(&job.cities, job.seed).best(job.first..job.first + job.climbs).unwrap()
}

fn length(cities: &Cities, tour: &[u8]) -> u32 {
    let (n, table) = (cities.count(), cities.table());
    let city = |k: usize| usize::from(tour[k % n]);
    (0..n).map(|k| table.distances()[city(k) * n + city(k + 1)]).sum()
}

#[test]
fn tours_are_those_of_the_native_climbs() {
    for (count, first, climbs, climbers) in [(5, 0, 3, 1), (20, 100, 12, 5), (31, 0, 30, 13)] {
        for distances in [Distances::Root, Distances::Table] {
            let job = TspJob { cities: cities(count, 7), first, climbs, climbers, seed: 11, distances };
            let run = tsp::run(&spec(&[]), TSP, &job, None).unwrap();
            assert_eq!(run.best, best(&job), "{count} {distances:?}");
            let mut seen = run.best.tour.clone();
            seen.sort_unstable();
            assert_eq!(seen, (0..count as u8).collect::<Vec<_>>());
            assert_eq!(length(&job.cities, &run.best.tour), run.best.length);
        }
    }
}

/// Five cities have few tours, so most climbs end in tours of equal length. The climb with the lowest number wins, on any
/// climber.
#[test]
fn of_equal_tours_the_first_is_taken() {
    let cities = Cities::from(vec![(0, 0), (10, 0), (10, 10), (0, 10), (5, 20)]);
    for climbers in [1, 2, 7, 40] {
        let job = TspJob {
            cities: cities.clone(),
            first: 3,
            climbs: 50,
            climbers,
            seed: 2,
            distances: Distances::Table,
        };
        let run = tsp::run(&spec(&[]), TSP, &job, None).unwrap();
        assert_eq!(run.best, best(&job), "{climbers}");
    }
}

#[test]
fn excess_climbers_find_nothing_to_do() {
    let job = TspJob {
        cities: cities(12, 3),
        first: 0,
        climbs: 2,
        climbers: 59,
        seed: 5,
        distances: Distances::Table,
    };
    let run = tsp::run(&spec(&[]), TSP, &job, None).unwrap();
    assert_eq!(run.best, best(&job));
}

#[test]
fn distances_are_rounded_to_the_nearest() {
    for (a, b, expected) in
        [((0, 0), (3, 4), 5), ((0, 0), (1, 1), 1), ((0, 0), (2, 1), 2), ((5, 9), (5, 9), 0)]
    {
        assert_eq!(distance(a, b), expected);
    }
    for (x, y) in points(2000, 9) {
        let exact = (f64::from(x).powi(2) + f64::from(y).powi(2)).sqrt().round() as u32;
        assert_eq!(distance((0, 0), (x, y)), exact);
    }
}

#[test]
fn invalid_jobs_are_refused() {
    let job = TspJob {
        cities: cities(20, 1),
        first: 0,
        climbs: 1,
        climbers: 1,
        seed: 1,
        distances: Distances::Table,
    };
    for (job, text) in [
        (TspJob { cities: cities(4, 1), ..job.clone() }, "4 cities; the card's program takes 5 to 256"),
        (
            TspJob { cities: vec![(0, 0), (1, 40_000), (2, 2), (3, 3), (4, 4)].into(), ..job.clone() },
            "a city at (1, 40000)",
        ),
        (TspJob { climbers: 60, ..job.clone() }, "60 climbers on 60 microengines, one for the manager"),
        (TspJob { climbs: 0, ..job.clone() }, "climbs 0, first 0: need at least one climb"),
        (TspJob { first: u32::MAX, ..job.clone() }, "numbers below 2^32"),
        (
            TspJob { cities: host(20, 1, 9), distances: Distances::Root, ..job.clone() },
            "--distances root: the card computes only EUC_2D distances of whole coordinates below 32768, and this problem",
        ),
    ] {
        let error = tsp::run(&spec(&[]), TSP, &job, None).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// Cities with distances below `end` that no plane has.
fn host(count: usize, seed: u64, end: u32) -> Cities {
    let distances: Vec<u32> = numbers(seed).take(count * count).map(|number| number % end).collect();
    Cities::Table(DistanceTable::new(count, |a, b| distances[a * count + b]).unwrap())
}

fn placement(cities: &Cities, overrides: &[&str]) -> Placement {
    match Source::of(cities, Distances::Table, &spec(overrides)).unwrap() {
        Source::Host(placement) => placement,
        other => panic!("{other:?}"),
    }
}

/// Each memory gives the same tours, in another time.
#[test]
fn tours_of_the_hosts_table_are_those_of_the_native_climbs() {
    let (no_cls, no_ctm) = ("memory.cls.size=64 B", "memory.ctm.size=64 B");
    // The job takes 18048 bytes of IMEM.
    let no_imem = "memory.imem.size=18112 B";
    let mut times = Vec::new();
    for (overrides, memory, received) in [
        (&[][..], MemoryKind::Cls, 0x4000_4680),
        (&[no_imem], MemoryKind::Cls, 0x8000_0000),
        (&[no_cls], MemoryKind::Ctm, 0x4000_4680),
        (&[no_cls, no_ctm], MemoryKind::Imem, 0x4000_4680),
        (&[no_cls, no_ctm, no_imem], MemoryKind::Emem, 0x8000_0000),
    ] {
        for (end, bytes) in [(60_000, 2), (160_000_000, 4)] {
            let job = TspJob {
                cities: host(25, 3, end),
                first: 7,
                climbs: 9,
                climbers: 14,
                seed: 4,
                distances: Distances::Table,
            };
            let place = placement(&job.cities, overrides);
            assert_eq!((place.memory, place.received, place.distance_bytes), (memory, received, bytes));
            let run = tsp::run(&spec(overrides), TABLE, &job, None).unwrap();
            assert_eq!(run.best, best(&job), "{memory:?} {bytes}");
            assert_eq!(length(&job.cities, &run.best.tour), run.best.length);
            times.push(run.time);
        }
    }
    let two: Vec<_> = times.iter().step_by(2).skip(1).collect();
    assert!(two.is_sorted(), "{times:?}");
}

#[test]
fn distances_of_an_odd_number_of_cities_fill_whole_references() {
    // 31 x 31 x 2 = 1922 bytes, in 31 references.
    let cities = host(31, 1, 60_000);
    let place = placement(&cities, &[]);
    assert_eq!((place.bytes, place.looked_up), (1984, 0x2000_0040));
    let job = TspJob { cities, first: 0, climbs: 5, climbers: 3, seed: 1, distances: Distances::Table };
    assert_eq!(tsp::run(&spec(&[]), TABLE, &job, None).unwrap().best, best(&job));
}

#[test]
fn the_nearest_memory_that_holds_the_table_has_it() {
    // CLS holds 64 + 65472 bytes: 180 cities of 2 bytes are 64800, and 181 are 65522.
    assert_eq!(placement(&host(180, 1, 9), &[]).memory, MemoryKind::Cls);
    assert_eq!(placement(&host(181, 1, 9), &[]).memory, MemoryKind::Ctm);
    // 127 cities of 4 bytes are 64516, and 128 are 65536. CTM holds the 262144 bytes of 256 cities.
    assert_eq!(placement(&host(127, 1, 70_000), &[]).memory, MemoryKind::Cls);
    assert_eq!(placement(&host(128, 1, 70_000), &[]).memory, MemoryKind::Ctm);
    assert_eq!(placement(&host(256, 1, 70_000), &[]).memory, MemoryKind::Ctm);
    let small = ["memory.cls.size=64 B", "memory.ctm.size=64 B"];
    assert_eq!(placement(&host(256, 1, 70_000), &small).memory, MemoryKind::Imem);
    // Cities in a plane have a table of the host only if the climbers' table does not fit CLS.
    let source = |count| Source::of(&cities(count, 1), Distances::Table, &spec(&[])).unwrap();
    assert_eq!((source(180), source(180).program()), (Source::Climbers, "nfp/tsp.c"));
    assert_eq!(
        (source(181), source(181).program()),
        (Source::Host(placement(&host(181, 1, 9), &[])), "nfp/tsp_table.c")
    );
    let none = ["memory.imem.size=18 KiB", "memory.emem.size=1 KiB"];
    let error = Source::of(&host(40, 1, 9), Distances::Table, &spec(&none)).unwrap_err().to_string();
    let text = "the distances of 40 cities take 3200 bytes, and neither IMEM (18432 bytes, 18048 of them for the job) nor \
                EMEM (1024 bytes) holds them; raise memory.imem.size";
    assert_eq!(error, text);
}

/// The differences and the sums of the longest distances fit the card's words.
#[test]
fn the_longest_distances_are_added_and_compared_without_overflow() {
    // Four cities have long roads to each other, and the fifth to none. A tour takes three of the long ones.
    let long = (1 << 30) - 1;
    let table = DistanceTable::new(5, |_, b| if b == 4 { 1 } else { long }).unwrap();
    let job = TspJob {
        cities: Cities::Table(table),
        first: 0,
        climbs: 6,
        climbers: 2,
        seed: 1,
        distances: Distances::Table,
    };
    let run = tsp::run(&spec(&[]), TABLE, &job, None).unwrap();
    assert_eq!(run.best, best(&job));
    assert_eq!(run.best.length, 3 * long + 2);
    // A ring of short roads, and long ones across it.
    let either = |a: usize, b: usize| if (a + 1) % 6 == b || (b + 1) % 6 == a { 7 } else { 700_000_000 };
    let table = DistanceTable::new(6, either).unwrap();
    let job = TspJob { cities: Cities::Table(table), climbs: 40, ..job };
    let run = tsp::run(&spec(&[]), TABLE, &job, None).unwrap();
    assert_eq!((run.best.length, run.best), (6 * 7, best(&job)));
}

/// The program for the cities of a plane finds the same tours, with the climbers' table and the host's.
#[test]
fn both_programs_find_the_same_tours() {
    let plane = cities(33, 5);
    let table = Cities::Table(plane.table().into_owned());
    let job =
        TspJob { cities: plane, first: 2, climbs: 20, climbers: 13, seed: 3, distances: Distances::Table };
    let own = tsp::run(&spec(&[]), TSP, &job, None).unwrap();
    let hosts = tsp::run(&spec(&[]), TABLE, &TspJob { cities: table, ..job.clone() }, None).unwrap();
    assert_eq!(own.best, hosts.best);
    // Without CLS, the same cities come as a table.
    let without = tsp::run(&spec(&["memory.cls.size=1 KiB"]), TABLE, &job, None).unwrap();
    assert_eq!(own.best, without.best);
}
