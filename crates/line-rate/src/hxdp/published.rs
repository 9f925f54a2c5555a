//! Programs of the paper that has the card, as dumps of objdump: rows, and the rate of the simple firewall.

use nicety::Error;
use nicety::cards::load;
use nicety_ebpf::lanes::rows_by_registers;
use nicety_nic_hxdp::published::{FIREWALL, INSIDE, dump_rows, emitted_pps, firewall, read_dump};
use nicety_nic_hxdp::{HxdpError, HxdpSpec};
use serde::Serialize;

/// The rows of a dump on a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DumpReport {
    /// Instructions of eBPF; a 64-bit constant counts as two.
    pub slots: u64,
    /// Rows of the program on the card.
    pub rows: u64,
    /// Rows if loads and stores depended on registers alone. They might give wrong results.
    pub rows_by_registers: u64,
    /// Instructions for each row.
    pub slots_per_row: f64,
    /// Frames a second of 64 bytes, of a known flow from inside; none for a program other than the simple firewall.
    pub pps: Option<f64>,
}

/// Makes the rows of a dump for a card. None where the card has no eBPF core.
///
/// # Errors
/// There is no such card, the text is no dump, or the card cannot run the program.
pub fn dump(name: &str, text: &str, nic: &str) -> Result<Option<DumpReport>, Error> {
    let card = load(nic, &[])?;
    let Ok(spec) = card.spec.of::<HxdpSpec>() else { return Ok(None) };
    let program = read_dump(name, text).map_err(|error| of_card(nic, &error))?;
    let made = dump_rows(spec, &program).map_err(|error| of_card(nic, &error))?;
    let pps = if name == FIREWALL {
        let (core, _) = firewall(spec, &program, &made, INSIDE).map_err(|error| of_card(nic, &error))?;
        Some(emitted_pps(spec, core))
    } else {
        None
    };
    let by_registers = rows_by_registers(&program, &spec.core.switches)
        .map_err(|error| Error::Input(format!("{nic}: {error}")))?;
    Ok(Some(DumpReport {
        slots: made.slots as u64,
        rows: made.rows.len() as u64,
        rows_by_registers: by_registers as u64,
        slots_per_row: made.slots_per_row(),
        pps,
    }))
}

/// Names the card in an error of a program.
fn of_card(nic: &str, error: &HxdpError) -> Error {
    Error::Input(format!("{nic}: {error}"))
}
