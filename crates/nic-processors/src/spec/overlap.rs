//! Processors that overlap instructions: `hpu.pipeline` and `[hpu.overlap]`.

use nicety_hpu::{CycleCosts, Overlap};
use nicety_spec::{Reader, Section};

const KEYS: [&str; 23] = [
    "width",
    "window",
    "alus",
    "loads",
    "stores",
    "mispredict",
    "alu",
    "mul",
    "mul_high",
    "div",
    "div_word",
    "load",
    "store",
    "branch",
    "csr",
    "float_add",
    "float_mul",
    "float_fused",
    "float_div",
    "float_sqrt",
    "float_convert",
    "float_compare",
    "float_move",
];

/// Returns the latencies of instructions, and their overlap. The default is in-order execution with `costs`.
pub(super) fn read(reader: &Reader<'_>, costs: CycleCosts) -> (CycleCosts, Option<Overlap>) {
    let pipelines = ["in-order", "out-of-order"];
    let pipeline = reader.section("hpu").choice_or(
        "pipeline",
        &pipelines,
        "in-order",
        "whether an instruction may begin before the one before it has ended",
    );
    let s = reader.section("hpu.overlap");
    if pipeline == "in-order" {
        // An in-order spec may keep the section for a change of the pipeline. It must be valid nevertheless.
        if KEYS.iter().any(|key| s.has(key)) {
            read_section(&s, costs);
        }
        return (costs, None);
    }
    let (costs, overlap) = read_section(&s, costs);
    (costs, Some(overlap))
}

fn read_section(s: &Section<'_>, costs: CycleCosts) -> (CycleCosts, Overlap) {
    let most = 1 << 12;
    let width = s.count("width", 1..=64, "instructions that enter the window in a cycle, and that leave it");
    let window = s.count("window", 1..=most, "instructions in the window");
    let units = |key, doc| s.count_or(key, 1..=64, width.clamp(1, 64), doc) as u16;
    let overlap = Overlap {
        width: width as u16,
        window: window as u16,
        alus: units("alus", "integer operations and branches that begin in a cycle"),
        loads: units("loads", "loads that begin in a cycle"),
        stores: units("stores", "stores that begin in a cycle"),
        mispredict: s.count_or(
            "mispredict",
            0..=10_000,
            0,
            "cycles from the result of a mispredicted branch until instructions after it enter",
        ) as u16,
    };
    let latency = |key, of: u16, doc| s.count_or(key, 0..=10_000, of.into(), doc) as u16;
    let branch = latency("branch", costs.alu, "latency of branches and jumps");
    let costs = CycleCosts {
        alu: latency("alu", costs.alu, "latency of integer arithmetic, logic, shifts"),
        mul: latency("mul", costs.mul, "latency of mul"),
        mul_high: latency("mul_high", costs.mul_high, "latency of mulh, mulhu, mulhsu"),
        div: latency("div", costs.div, "latency of div, divu, rem, remu"),
        div_word: latency("div_word", costs.div_word, "latency of divw, divuw, remw, remuw"),
        load: latency(
            "load",
            costs.load + costs.load_use,
            "latency of a load from HPU memory, until its value is used",
        ),
        store: latency(
            "store",
            costs.store,
            "latency of a store to HPU memory, until a load has the stored value",
        ),
        load_use: 0,
        branch_not_taken: branch,
        branch_taken: branch,
        jump: branch,
        jump_register: branch,
        csr: latency("csr", costs.csr, "latency of an access to a control and status register"),
        float_add: latency("float_add", costs.float_add, "latency of fadd.s, fsub.s"),
        float_mul: latency("float_mul", costs.float_mul, "latency of fmul.s"),
        float_fused: latency("float_fused", costs.float_fused, "latency of fmadd.s and its variants"),
        float_div: latency("float_div", costs.float_div, "latency of fdiv.s"),
        float_sqrt: latency("float_sqrt", costs.float_sqrt, "latency of fsqrt.s"),
        float_convert: latency(
            "float_convert",
            costs.float_convert,
            "latency of fcvt, between floats and integers",
        ),
        float_compare: latency(
            "float_compare",
            costs.float_compare,
            "latency of comparisons, minima, maxima, fclass.s of floats",
        ),
        float_move: latency(
            "float_move",
            costs.float_move,
            "latency of moves, negations, absolute values of floats",
        ),
        ..costs
    };
    (costs, overlap)
}
