//! The Python extension module. It has no logic of its own. Requests and reports are JSON texts, as the crates of nicety define
//! them. Programs of hosts use the commands of the crate `nicety`; the module `program` constructs these.
//!
//! A user can build an extension module with further card designs on top of this one; see [`stand_in`].

mod calls;
mod capture;
mod channels;
mod elf;
mod errors;
mod exec;
mod goal;
mod grid;
mod interfaces;
mod pcie;
mod peers;
mod processes;
mod program;
mod sockets;
mod tables;
mod units;
mod xdp;

use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The allocator of the module. A module that is loaded at run time has no static thread-local storage, so the feature
/// `local_dynamic_tls` is needed. On other systems, the module uses the system's allocator.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Replaces nicety's extension module by the calling module, so that `nicety` knows the designs that the calling module has
/// registered. Python must import the calling module before `nicety`.
///
/// # Errors
///
/// When `nicety` has already loaded an extension module.
pub fn stand_in(py: Python<'_>) -> PyResult<()> {
    const NAME: &str = "nicety._native";
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?.cast_into::<PyDict>()?;
    if modules.contains(NAME)? {
        return Err(PyImportError::new_err(
            "nicety was imported before; import the extension module with designs of its own first",
        ));
    }
    let module = pyo3::wrap_pymodule!(_native)(py);
    modules.set_item(NAME, module)
}

/// The extension module `nicety._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::calls::{
        bench, bench_plan, check_run, debug_run, faults_check, handler_sources, hpu_run, line_rate_frame,
        line_rate_plan, line_rate_run, plain_run, profile_run, spec_check, spec_show, specs, version,
    };
    #[pymodule_export]
    use crate::capture::{Capture, CapturedPackets};
    #[pymodule_export]
    use crate::channels::{channel_bench, channel_plan};
    #[pymodule_export]
    use crate::elf::{elf_has_code, elf_names};
    #[pymodule_export]
    use crate::errors::{Deadlock, Error, HandlerTrap, InputError, RunError, TimedOut};
    #[pymodule_export]
    use crate::exec::{exec_build, exec_check, exec_install, exec_plan, exec_run};
    #[pymodule_export]
    use crate::goal::{
        goal_compare, goal_compare_plan, goal_convert, goal_generate, goal_info, goal_run, goal_run_plan,
        goal_trace,
    };
    #[pymodule_export]
    use crate::grid::{grid_bench, torus_bench};
    #[pymodule_export]
    use crate::interfaces::{fairness_bench, registration_bench};
    #[pymodule_export]
    use crate::pcie::{pcie_bench, score_rows};
    #[pymodule_export]
    use crate::peers::Peers;
    #[pymodule_export]
    use crate::processes::{
        pcsa_bench, pcsa_count, pcsa_count_plan, pcsa_plan, tsp_lengths, tsp_plan, tsp_run,
    };
    #[pymodule_export]
    use crate::program::{
        Call, Calls, ChannelCalls, DebugSession, FrameCalls, HandlerCalls, HostMemory, InterfaceCalls,
        MessageCalls, PortalsCalls, ProcessCalls, RdmaCalls, Simulation, SocketCalls, XdpCalls,
    };
    #[pymodule_export]
    use crate::sockets::{exchange_bench, stream_bench};
    #[pymodule_export]
    use crate::tables::{Recording, Table};
    #[pymodule_export]
    use crate::units::{in_base_unit, parse_quantity};
    #[pymodule_export]
    use crate::xdp::{
        xdp_after, xdp_bench, xdp_build, xdp_choose, xdp_dump_rows, xdp_finish, xdp_has_program, xdp_rows,
        xdp_run, xdp_show,
    };
}
