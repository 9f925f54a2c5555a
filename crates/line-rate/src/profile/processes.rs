//! Profiles of the processes of flow processors.

use super::row::{CardRow, ProcessRow, Row};
use super::row_of;
use nicety::cards::Card;
use nicety::nfp::{ContextCounters, ProcessProfile, ProgramProfile};
use nicety::{Cluster, Error};
use nicety_hpu::Image;

/// Profiles the processes of all cards of a cluster that start from now on.
///
/// # Errors
/// When a card has no processes.
pub fn profile(cluster: &Cluster, ranks: u32) -> Result<(), Error> {
    for rank in 0..ranks {
        let channels = cluster.host(rank).channels()?;
        for card in 0..channels.cards()? {
            channels.card(card)?.profile();
        }
    }
    Ok(())
}

/// Ends the profiles of a cluster. Returns a row for each card and program, in the order of ranks. `cards` are the cards of
/// the cluster's configuration.
///
/// # Errors
/// When a card has no processes.
pub fn rows(cards: &[Card], cluster: &Cluster, ranks: u32) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for rank in 0..ranks {
        let channels = cluster.host(rank).channels()?;
        let nic = &cards[if cards.len() == 1 { 0 } else { rank as usize }].listing.name;
        let of_host = channels.cards()?;
        for number in 0..of_host {
            let card = channels.card(number)?;
            let cycle_ns = card.spec().clock.cycles(1000).ps() as f64 / 1e6;
            let place = match of_host {
                1 => format!("rank {rank}"),
                _ => format!("rank {rank}, card {number}"),
            };
            rows.extend(card.take_profiles().iter().map(|program| Row {
                nic: nic.clone(),
                place: Some(place.clone()),
                cycle_ns,
                card: card_row(program),
                processes: process_rows(program),
                ..row_of(&program.image, &program.totals, 1)
            }));
        }
    }
    Ok(rows)
}

/// Returns the counters of the card for a program's processes.
fn card_row(ProgramProfile { totals, processes, .. }: &ProgramProfile) -> CardRow {
    let sum = |sum: ContextCounters, process: &ProcessProfile| sum + process.counters;
    let counters = processes.iter().fold(ContextCounters::default(), sum);
    CardRow {
        runs: totals.runs(),
        cycles: counters.computing + counters.asleep + counters.ready,
        instructions: counters.instructions,
        stalled_cycles: counters.asleep,
        ..CardRow::default()
    }
}

fn process_rows(ProgramProfile { image, processes, .. }: &ProgramProfile) -> Vec<ProcessRow> {
    let name = |image: &Image, entry| image.sources(&[entry]).pop().and_then(|source| source.function);
    let row = |process: &ProcessProfile| ProcessRow {
        function: name(image, process.entry),
        microengine: process.place.core,
        context: process.place.context,
        processes: process.processes,
        cycles_computing: process.counters.computing,
        cycles_asleep: process.counters.asleep,
        cycles_ready: process.counters.ready,
        instructions: process.counters.instructions,
        references: process.counters.references,
    };
    let mut rows: Vec<ProcessRow> = processes.iter().map(row).collect();
    rows.sort_by_key(|row| (row.microengine, row.context));
    rows
}
