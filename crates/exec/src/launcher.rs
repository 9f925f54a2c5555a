//! The launcher of a program's processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The launcher of a program's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Launcher {
    /// By the mpiexec of MPICH.
    Mpich,
    /// By the mpiexec of Open MPI.
    Openmpi,
    /// One by one, without MPI.
    None,
}
