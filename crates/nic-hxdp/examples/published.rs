//! The programs of the hXDP paper, from its published bytecode: rows beside table 3, and the rate of the simple firewall.
//!
//!     cargo run -p nicety-nic-hxdp --example published -- FOLDER
//!
//! FOLDER has the dumps of llvm-objdump, as parallelizer/xdp_prog_dump of the repository axbryd/hXDP-Artifacts has them.

use nicety_ebpf::Linked;
use nicety_ebpf::lanes::{Switches, rows_by_registers, schedule};
use nicety_nic_hxdp::published::{FIREWALL, INSIDE, OUTSIDE, emitted_pps, firewall, read_dump};
use nicety_nic_hxdp::{DESIGN, HxdpSpec};
use nicety_spec::{SHIPPED, Spec};
use std::path::Path;

/// A program of table 3: the file, and the paper's instructions and static IPC.
const TABLE: [(&str, u32, f64); 8] = [
    ("xdp1", 61, 1.70),
    ("xdp2", 78, 1.81),
    ("xdp_adjust_tail", 117, 2.72),
    ("xdp_router_ipv4", 119, 2.38),
    ("xdp_rxq_info", 81, 1.76),
    ("xdp_tx_iptunnel", 283, 2.83),
    (FIREWALL, 72, 2.66),
    ("katran", 268, 2.62),
];

/// The rate of the simple firewall, in Mpps (section 5.2.1).
const RATE: f64 = 6.53;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("published: name the folder with the dumps");
        std::process::exit(2);
    };
    let spec = sume();
    let all = spec.core.switches;
    println!(
        "program           instr.  rows  IPC   paper  deviation  without movement  results in all lanes  registers alone  both  no reduction"
    );
    for (name, instructions, ipc) in TABLE {
        let Some(program) = read(Path::new(&folder), name) else { continue };
        let rows = |switches: &Switches| schedule(&program, switches).map_or(0, |made| made.rows.len());
        let by_registers = |switches: &Switches| rows_by_registers(&program, switches).unwrap_or(0);
        let made = schedule(&program, &all).expect("it is in the paper");
        // The paper counts instructions as its dump does; table 3 divides them by rows.
        let own = made.slots_per_row();
        println!(
            "{name:16}  {:6}  {:4}  {own:.2}  {ipc:.2}   {:+7.1} %  {:16}  {:20}  {:15}  {:4}  {:12}   (table 3: {instructions} instructions)",
            made.slots,
            made.rows.len(),
            100.0 * (own / ipc - 1.0),
            rows(&Switches { movement: false, ..all }),
            rows(&Switches { lane_forwarding: false, ..all }),
            by_registers(&all),
            by_registers(&Switches { lane_forwarding: false, ..all }),
            rows(&Switches::none(all.lanes)),
        );
    }
    let Some(program) = read(Path::new(&folder), FIREWALL) else { return };
    let made = schedule(&program, &all).expect("it is in the paper");
    for (way, interface) in [("from inside", INSIDE), ("from outside", OUTSIDE)] {
        let (core, trace) = firewall(&spec, &program, &made, interface).expect("no trap");
        let mpps = emitted_pps(&spec, core) / 1e6;
        println!(
            "simple_firewall, {way}: {} rows, {core} cycles: {mpps:.2} Mpps, paper {RATE}, {:+.1} %",
            trace.rows,
            100.0 * (mpps / RATE - 1.0)
        );
    }
}

fn sume() -> HxdpSpec {
    let spec = Spec::load("hxdp-sume", &[], SHIPPED).unwrap_or_else(|errors| panic!("{errors}"));
    let (card, _) = nicety_nic_core::read(&spec, &[DESIGN]).unwrap_or_else(|errors| panic!("{errors}"));
    card.of::<HxdpSpec>().expect("it is of the design").clone()
}

fn read(folder: &Path, name: &str) -> Option<Linked> {
    let path = folder.join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(read_dump(name, &text).unwrap_or_else(|error| panic!("{error}"))),
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            None
        }
    }
}
