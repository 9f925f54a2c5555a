//! Profiles of handlers: the first run of a line-rate check, with its cycles by instruction, line, function and call.
//!
//! | file | content |
//! |---|---|
//! | `row` | the results |
//! | `costs` | cycles by instruction, and sums by groups |
//! | `distribution` | percentiles of single runs |
//! | `processes` | processes of flow processors |

mod costs;
mod distribution;
pub mod processes;
mod row;

pub use row::{
    BankRow, CardRow, Cost, FrameRow, FunctionRow, InstructionRow, LineRow, LockRow, PathRow, ProcessRow,
    Row, SampleRow,
};

use crate::check::{handlers_of, point_name};
use crate::profiler::{Profiler, Taken};
use crate::request::Request;
use crate::rig::Rig;
use crate::tested::Tested;
use costs::Costs;
use nicety::cards::Card;
use nicety::{Environment, Error, Failure, Handlers, Manifest, VERSION};
use nicety_bench::{PointFailure, Points, Printed};
use nicety_hpu::profile::CallPath;
use nicety_hpu::{Image, Source, Totals};
use nicety_nic_processors::{BankUse, HandlerStatistics, HeldWord};
use nicety_types::Frequency;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The benchmark's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Benchmark {
    /// `profile`.
    Profile,
}

/// The profiles of handlers: one row for each card.
pub type Report = nicety_bench::Report<Row, Manifest, Benchmark>;

/// Bytes of a packet where the request names no size.
const USUAL_SIZE: u64 = 512;

/// Profiles handlers on the cards of a request.
///
/// # Errors
/// As [`run`](crate::run). Also for several packet sizes, and for a search.
pub fn profile(request: &Request, environment: &Environment<'_>) -> Result<Report, Error> {
    let (environment, printed) = &Printed::count(environment);
    let request = &with_one_size(request)?;
    let (cards, packet_sizes) = request.resolve()?.with_processors()?;
    let packet_bytes = packet_sizes[0];
    let progress = |done, total| (environment.progress)(done, total);
    let (mut points, mut failures) = (Points::new(&progress, cards.len()), Vec::new());
    for (nic, card) in &cards {
        let handlers = handlers_of(request, environment, nic, card)?;
        points.measure(
            || format!("{nic}, {}", point_name(request, packet_bytes)),
            || {
                let (row, failed) = profile_one(request, environment, (nic, card), &handlers, packet_bytes)?;
                failures.extend(failed.into_iter().map(|failure| PointFailure {
                    nic: nic.clone(),
                    point: point_name(request, packet_bytes),
                    failure,
                }));
                Ok(row)
            },
        );
    }
    let (rows, failed_points) = points.finish()?;
    Ok(Report {
        benchmark: Benchmark::Profile,
        version: VERSION,
        seed: request.seed,
        manifest: Manifest::of(cards.iter().map(|(nic, card)| (nic, card)), &request.overrides),
        rows,
        failed_points,
        failures,
        handler_lines: printed.lines(),
    })
}

/// Returns the request with one packet size, or with traffic.
fn with_one_size(request: &Request) -> Result<Request, Error> {
    if request.sensitivity {
        let why = "a profile covers one run, without other values of the card";
        return Err(Error::Input(format!("--sensitivity: {why}; leave it out")));
    }
    let packet_sizes = match &request.packet_sizes {
        Some(sizes) if sizes.len() > 1 => {
            let first = sizes[0];
            return Err(Error::Input(format!(
                "--packet-sizes: a profile covers packets of one size, not of {} sizes; write for example \
                 --packet-sizes {first}",
                sizes.len()
            )));
        }
        None if request.traffic.is_empty() => Some(vec![USUAL_SIZE]),
        given => given.clone(),
    };
    Ok(Request { packet_sizes, ..request.clone() })
}

/// Profiles handlers on a card.
fn profile_one(
    request: &Request,
    environment: &Environment<'_>,
    (nic, card): (&String, &Card),
    handlers: &Handlers,
    packet_bytes: u64,
) -> Result<(Row, Vec<Failure>), Error> {
    let profiler = Profiler::default();
    let rig = Rig {
        request,
        environment,
        card,
        handlers,
        packet_bytes,
        place: nic,
        profiler: Some(&profiler),
        rough: false,
    };
    let (checked, failures) = rig.first_run()?;
    let taken = profiler.taken().ok_or_else(|| Error::Program("no handler has run".to_owned()))?;
    let tested = Tested::of(card)?;
    let clock = tested.hpu().clock;
    let messages = request.messages();
    let packets = match request.traffic.is_empty() && !tested.has_frames() {
        true => messages.total() * messages.packets_each,
        false => checked.packets,
    };
    let Taken { programs, statistics, words, banks } = taken;
    let program = programs.first().ok_or_else(|| Error::Program("no handler has run".to_owned()))?;
    let row = Row {
        nic: nic.clone(),
        packet_bytes: checked.packet_bytes,
        packets,
        cycle_ns: clock.cycles(1000).ps() as f64 / 1e6,
        card: card_row(&statistics),
        locks: lock_rows(words, clock, packets),
        banks: banks.into_iter().map(|bank| bank_row(bank, packets)).collect(),
        ..row_of(&program.image, &program.totals, packets)
    };
    Ok((row, failures))
}

/// Returns the words that handlers have waited for.
fn lock_rows(words: Vec<HeldWord>, clock: Frequency, packets: u64) -> Vec<LockRow> {
    let cycles = |time| clock.cycles_in(time) as f64 / packets.max(1) as f64;
    let row = |word: HeldWord| LockRow {
        wait_cycles: cycles(word.waited),
        held_cycles: cycles(word.held),
        handover_cycles: cycles(word.handed_over),
        word: word.word,
        variable: word.variable,
        acquired_at: word.acquired_line,
        released_at: word.released_line,
        waited_at: word.waited_at,
        waits: word.waits,
    };
    let mut rows: Vec<LockRow> = words.into_iter().filter(|word| word.waits > 0).map(row).collect();
    rows.sort_by(|a, b| b.wait_cycles.total_cmp(&a.wait_cycles));
    rows
}

fn bank_row(bank: BankUse, packets: u64) -> BankRow {
    BankRow {
        level: bank.level,
        cluster: bank.memory,
        bank: bank.bank,
        data: bank.data,
        waits: bank.waits,
        wait_cycles: bank.cycles as f64 / packets.max(1) as f64,
    }
}

fn card_row(statistics: &HandlerStatistics) -> CardRow {
    CardRow {
        runs: statistics.runs,
        cycles: statistics.cycles,
        instructions: statistics.instructions,
        stalled_cycles: statistics.stalled,
        memory_wait_cycles: statistics.memory_waits,
        fetch_wait_cycles: statistics.fetch_waits,
        cache_wait_cycles: statistics.cache_waits,
    }
}

/// Groups of instructions, in the order of their first one.
#[derive(Default)]
struct Groups<K> {
    known: BTreeMap<K, usize>,
    keys: Vec<K>,
    /// The group of each instruction.
    of: Vec<usize>,
}

impl<K: Ord + Clone> Groups<K> {
    fn add(&mut self, key: K) {
        let index = *self.known.entry(key.clone()).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        self.of.push(index);
    }
}

/// Returns the profile of a program.
fn row_of(image: &Image, totals: &Totals, packets: u64) -> Row {
    let costs = Costs::of(image, totals, packets);
    let addresses = costs.addresses();
    let sources = image.sources(&addresses);
    let (mut functions, mut lines) = (Groups::default(), Groups::default());
    for source in &sources {
        let place = source.place.clone().unwrap_or_default();
        functions.add(place.function.clone());
        lines.add((place.function, place.file, place.line));
    }
    let all = vec![0; addresses.len()];
    let each: Vec<usize> = (0..addresses.len()).collect();
    let function_rows: Vec<FunctionRow> = functions
        .keys
        .iter()
        .zip(costs.of_groups(functions.keys.len(), &functions.of))
        .map(|(function, cost)| FunctionRow { function: function.clone(), cost })
        .collect();
    let line_rows: Vec<LineRow> = lines
        .keys
        .iter()
        .zip(costs.of_groups(lines.keys.len(), &lines.of))
        .map(|((function, file, line), cost)| LineRow {
            function: functions.known[function],
            file: file.clone(),
            line: *line,
            cost,
        })
        .collect();
    let instructions =
        (0..addresses.len()).zip(costs.of_groups(addresses.len(), &each)).map(|(index, cost)| {
            instruction_row(image, addresses[index], &sources[index], lines.of[index], cost)
        });
    let mut row = Row {
        nic: String::new(),
        place: None,
        packet_bytes: 0,
        packets,
        runs: totals.runs(),
        sampled_runs: totals.sample().len() as u64,
        cycle_ns: 0.0,
        cost: costs.of_groups(1, &all).pop().unwrap_or_default(),
        card: CardRow::default(),
        functions: function_rows,
        lines: line_rows,
        instructions: instructions.collect(),
        paths: path_rows(image, totals),
        samples: sample_rows(&costs, &addresses),
        locks: Vec::new(),
        banks: Vec::new(),
        processes: Vec::new(),
        missing: missing(&sources),
    };
    hottest_first(&mut row);
    row
}

/// Sorts functions and lines by their cycles.
fn hottest_first(row: &mut Row) {
    let mut order: Vec<usize> = (0..row.functions.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(row.functions[index].cost.cycles));
    let place = |order: &[usize]| {
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &index)| places[index] = place);
        places
    };
    let places = place(&order);
    row.functions = order.iter().map(|&index| row.functions[index].clone()).collect();
    row.lines.iter_mut().for_each(|line| line.function = places[line.function]);
    let mut order: Vec<usize> = (0..row.lines.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(row.lines[index].cost.cycles));
    let places = place(&order);
    row.lines = order.iter().map(|&index| row.lines[index].clone()).collect();
    row.instructions.iter_mut().for_each(|instruction| instruction.line = places[instruction.line]);
}

fn instruction_row(image: &Image, address: u32, source: &Source, line: usize, cost: Cost) -> InstructionRow {
    let frames = source.frames.iter().map(|frame| FrameRow {
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
    });
    let text = image.disassemble(address).map_or_else(|| "unknown".to_owned(), |(text, _)| text);
    InstructionRow { address, text, symbol: source.function.clone(), line, frames: frames.collect(), cost }
}

fn path_rows(image: &Image, totals: &Totals) -> Vec<PathRow> {
    let paths = totals.paths().borrow();
    let addresses: Vec<u32> = paths.all().iter().map(|path| path.function).collect();
    let sources = image.sources(&addresses);
    let row = |(path, source): (&CallPath, Source)| PathRow {
        caller: path.caller,
        address: path.function,
        symbol: source.function,
    };
    paths.all().iter().zip(sources).map(row).collect()
}

fn sample_rows(costs: &Costs<'_>, addresses: &[u32]) -> Vec<SampleRow> {
    let index: BTreeMap<u32, usize> = addresses.iter().enumerate().map(|(index, pc)| (*pc, index)).collect();
    let row = |(&(pc, path), on_path): (&(u32, u32), &costs::OnPath)| SampleRow {
        path,
        instruction: index[&pc],
        executions: on_path.executions,
        cycles: on_path.cycles,
    };
    costs.samples.iter().map(row).collect()
}

/// Returns the shortcomings of a program's file.
fn missing(sources: &[Source]) -> Vec<String> {
    let lineless = sources.iter().filter(|source| source.frames.is_empty()).count();
    let nameless = sources.iter().filter(|source| source.function.is_none()).count();
    let of = |count: usize| match count == sources.len() {
        true => "the program".to_owned(),
        false => format!("{count} of {} instructions", sources.len()),
    };
    let mut missing = Vec::new();
    if lineless > 0 {
        missing.push(format!(
            "no line tables for {}: cycles there have no line, and inlined functions count for their \
             callers; compile with -g",
            of(lineless)
        ));
    }
    if nameless > 0 {
        missing.push(format!(
            "no symbols for {}: functions have no names, and calls by jumps are not recognised; keep the \
             symbols",
            of(nameless)
        ));
    }
    missing
}
