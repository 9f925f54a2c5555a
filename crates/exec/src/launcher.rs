//! The launcher of a program's processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The launcher of a program's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Launcher {
    /// MPICH's mpiexec.
    Mpich,
    /// Open MPI's mpiexec.
    Openmpi,
    /// No launcher: each process is started by itself, without MPI.
    None,
}
