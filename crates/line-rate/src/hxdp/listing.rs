//! The rows of a program, as text.

use super::{Given, Program};
use crate::object::XdpObject;
use nicety::cards::load;
use nicety::{Environment, Error};
use nicety_nic_hxdp::HxdpSpec;
use serde::Serialize;

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedRow {
    /// Checks of the packet's length in front of the row.
    pub checks: Vec<String>,
    /// The operation of each lane; none in an empty one.
    pub lanes: Vec<Option<String>>,
}

/// The rows of a program on a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowsReport {
    /// The card.
    pub nic: String,
    /// The program.
    pub program: String,
    /// Instructions of eBPF; a 64-bit constant counts as two.
    pub slots: u64,
    /// Operations in lanes.
    pub operations: u64,
    /// Instructions for each row.
    pub slots_per_row: f64,
    /// Comparisons with `data_end` that became checks of the core.
    pub checks: u64,
    /// Zeroing that was left out.
    pub zeroing: u64,
    /// Moves that went into arithmetic.
    pub three_operands: u64,
    /// Copies of six bytes.
    pub six_bytes: u64,
    /// Exits with a constant result.
    pub exit_values: u64,
    /// Operations that fill gaps of earlier blocks.
    pub moved: u64,
    /// The rows.
    pub rows: Vec<ListedRow>,
}

/// Makes the rows of a program of an object for a card. None where the card has no eBPF core.
///
/// # Errors
/// There is no such card, or it cannot run the program.
pub fn rows(object: &[u8], nic: &str, program: Option<&str>) -> Result<Option<RowsReport>, Error> {
    let card = load(nic, &[])?;
    let Ok(spec) = card.spec.of::<HxdpSpec>() else { return Ok(None) };
    let chosen = XdpObject { program: program.map(str::to_owned), ..XdpObject::default() };
    let environment = Environment::default();
    let given =
        Given { nic, spec, object, program: &chosen, traffic: "", seed: 0, environment: &environment };
    let program: Program = given.load()?;
    let (schedule, number) = (program.schedule(), |count: usize| count as u64);
    let row = |row: &nicety_ebpf::lanes::Row| ListedRow {
        checks: row.guards.iter().map(|placed| placed.operation.to_string()).collect(),
        lanes: row.lanes.iter().map(|lane| lane.map(|placed| placed.operation.to_string())).collect(),
    };
    Ok(Some(RowsReport {
        nic: nic.to_owned(),
        program: program.name().to_owned(),
        slots: number(schedule.slots),
        operations: number(schedule.operations()),
        slots_per_row: schedule.slots_per_row(),
        checks: number(schedule.changes.checks),
        zeroing: number(schedule.changes.zeroing),
        three_operands: number(schedule.changes.three_operands),
        six_bytes: number(schedule.changes.six_bytes),
        exit_values: number(schedule.changes.exit_values),
        moved: number(schedule.changes.moved),
        rows: schedule.rows.iter().map(row).collect(),
    }))
}
