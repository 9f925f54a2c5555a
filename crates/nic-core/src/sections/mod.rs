//! Spec sections that several designs share. `node.rs` has host, network and launcher, `bus.rs` has the bus, `access.rs`
//! the card's access over PCI Express, and this file has the other sections.

mod access;
mod bus;
mod dma;
mod node;
mod threads;
mod transport;

pub use bus::read as read_bus;
pub use dma::read as read_engine;
pub use node::{NodeSpec, read_node, read_ports};
pub use threads::read_threads;
pub use transport::read as read_transport;

use nicety_host::KernelSpec;
use nicety_hpu::{CycleCosts, Isa, Misaligned};
use nicety_spec::{Reader, Section};

/// Reads the section of the host's operating system, for cards with software that enters it.
pub fn read_kernel(reader: &Reader<'_>) -> KernelSpec {
    let s = reader.section("kernel");
    let page = s.size_or("page", 64..=1 << 30, "4 KiB", "a page of host memory");
    if !page.is_power_of_two() {
        s.refuse("page", "a page is a power of two", "write for example \"4 KiB\"");
    }
    KernelSpec {
        call: s.time("call", "a system call that does nothing: into the kernel and out of it"),
        pin: s.time("pin", "time to lock and translate pages, apart from the time for each page"),
        pin_page: s.time("pin_page", "time to lock and translate each page"),
        unpin: s.time("unpin", "time to unlock pages, apart from the time for each page"),
        unpin_page: s.time("unpin_page", "time to unlock each page"),
        interrupt: s.time_or(
            "interrupt",
            "0 ns",
            "time of an interrupt handler, for cards that raise interrupts",
        ),
        wake: s.time_or("wake", "0 ns", "time from the wake-up of a thread in a wait queue until it runs"),
        page,
    }
}

/// Reads the cycle costs of a core's instructions.
pub fn read_costs(s: &Section<'_>) -> CycleCosts {
    let cost = |key, doc| s.count(key, 0..=10_000, doc) as u16;
    // These costs are for an extension that few cards have. The default is a pipelined FPU with a result that is used
    // at once.
    let float = |key, default, doc| s.count_or(key, 0..=10_000, default, doc) as u16;
    // A core without these instructions needs no cost for them.
    let div = s.count_or("div", 0..=10_000, 20, "div, divu, rem, remu, where the isa has them");
    CycleCosts {
        alu: cost("alu", "integer arithmetic, logic, shifts"),
        mul: cost("mul", "mul"),
        mul_high: cost("mul_high", "mulh, mulhu, mulhsu"),
        div: div as u16,
        div_word: s.count_or(
            "div_word",
            0..=10_000,
            div,
            "divw, divuw, remw, remuw of RV64; like div by default",
        ) as u16,
        load: cost("load", "a load from HPU memory"),
        store: cost("store", "a store to HPU memory"),
        load_use: cost("load_use", "added if the next instruction uses the result of a load"),
        branch_not_taken: cost("branch_not_taken", "a branch that falls through"),
        branch_taken: cost("branch_taken", "a branch that is taken"),
        jump: cost("jump", "jal"),
        jump_register: cost("jump_register", "jalr: calls through pointers, returns"),
        float_add: float("float_add", 2, "fadd.s, fsub.s"),
        float_mul: float("float_mul", 2, "fmul.s"),
        float_fused: float("float_fused", 2, "fmadd.s and its variants"),
        float_div: float("float_div", 19, "fdiv.s"),
        float_sqrt: float("float_sqrt", 19, "fsqrt.s"),
        float_convert: float("float_convert", 2, "between floats and integers"),
        float_compare: float("float_compare", 2, "comparisons, minima, maxima, fclass.s of floats"),
        float_move: float("float_move", 1, "fmv, fsgnj: moves, negations, absolute values of floats"),
        csr: cost("csr", "an access to a control and status register"),
        atomic: cost("atomic", "LR, SC or an AMO in HPU memory"),
        fence: cost("fence", "fence, fence.i"),
        ecall: cost("command", "issuing a command to the card"),
        misaligned_extra: cost(
            "misaligned_extra",
            "added to a misaligned access, if misaligned accesses are allowed",
        ),
    }
}

/// Reads the instruction set of a core. Returns its text and the parsed value, or `fallback` if the text is invalid.
pub fn read_isa(s: &Section<'_>, fallback: Isa) -> (String, Isa) {
    let text = s.text("isa", "instruction set");
    let isa = text.parse::<Isa>().unwrap_or_else(|error| {
        s.refuse("isa", error.problem(), "write for example \"rv32imac_zicsr\"");
        fallback
    });
    (text, isa)
}

/// Reads the effect of a misaligned access.
pub fn read_misaligned(s: &Section<'_>) -> Misaligned {
    match s.choice("misaligned", &["trap", "cost"], "what a misaligned access does") {
        "cost" => Misaligned::Costs,
        _ => Misaligned::Trap,
    }
}
