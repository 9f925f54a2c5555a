//! The Python extension module: what crosses the border, and nothing else. Requests and reports are JSON texts that the
//! `nicety` crate reads and writes, and what host programs ask is its commands, made in `program`; what they mean is
//! decided there.

mod calls;
mod channels;
mod errors;
mod interfaces;
mod processes;
mod program;
mod report;
mod tables;

use pyo3::prelude::*;

/// The extension module `nicety._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::calls::{
        bench, bench_plan, faults_check, handler_sources, hpu_run, line_rate_plan, line_rate_run, spec_check,
        spec_show, specs, version,
    };
    #[pymodule_export]
    use crate::channels::{channel_bench, channel_plan};
    #[pymodule_export]
    use crate::errors::{Deadlock, Error, HandlerTrap, InputError, RunError, TimedOut};
    #[pymodule_export]
    use crate::interfaces::{fairness_bench, registration_bench};
    #[pymodule_export]
    use crate::processes::{
        pcsa_bench, pcsa_count, pcsa_count_plan, pcsa_plan, tsp_lengths, tsp_plan, tsp_run,
    };
    #[pymodule_export]
    use crate::program::{
        Call, Calls, ChannelCalls, HandlerCalls, HostMemory, InterfaceCalls, MessageCalls, PortalsCalls,
        ProcessCalls, Simulation,
    };
    #[pymodule_export]
    use crate::tables::{Recording, Table};
}
