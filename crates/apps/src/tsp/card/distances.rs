//! The source of distances on the card, and the place of a table there.

use super::JOB_BYTES;
use crate::experiment::ExperimentError;
use crate::tsp::cities::{Cities, DistanceTable};
use nicety_nic_nfp::{MemoryKind, NfpSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way in which a climber finds the distance of two cities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distances {
    /// The climber computes an integer square root each time.
    Root,
    /// The climber reads a table in the nearest memory that holds it.
    #[default]
    Table,
}

/// The source of the distances of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Climbers compute integer square roots.
    Roots,
    /// The climbers of an island compute a table, in CLS.
    Climbers,
    /// The host sends a table.
    Host(Placement),
}

/// The place of the host's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The memory in which climbers look distances up.
    pub memory: MemoryKind,
    /// The address at which the table arrives. It is in IMEM or EMEM.
    pub received: u32,
    /// The address at which climbers look distances up: the same one, or the address of a copy in CLS or CTM.
    pub looked_up: u32,
    /// Bytes of a distance: 2 or 4.
    pub distance_bytes: u32,
    /// Bytes of the table, with padding to whole references.
    pub bytes: u32,
}

/// The bytes in front of a table in CLS, as in `tsp_climb.h`. They have the count of climbers that have filled it.
const BEFORE: u32 = 64;

/// Bytes of a reference (`NFP_TRANSFER` of `nfp.h`).
const REFERENCE: u32 = 64;

impl Source {
    /// Returns the source for a job. With [`Distances::Table`] it is the climbers' table if the card can compute the distances
    /// and CLS holds them. Otherwise it is the host's table, in the nearest memory that holds it.
    ///
    /// # Errors
    /// [`ExperimentError::Input`] when the card cannot compute roots for these cities, or no memory holds the table.
    pub fn of(cities: &Cities, distances: Distances, spec: &NfpSpec) -> Result<Source, ExperimentError> {
        let count = cities.count() as u64;
        let cls = u64::from(spec.memory(MemoryKind::Cls).size);
        match (cities, distances) {
            (Cities::Plane(_), Distances::Root) => Ok(Source::Roots),
            (Cities::Table(_), Distances::Root) => Err(ExperimentError::Input(
                "--distances root: the card computes only EUC_2D distances of whole coordinates below \
                 32768, and this problem has other distances; write --distances table"
                    .into(),
            )),
            (Cities::Plane(_), Distances::Table) if u64::from(BEFORE) + 2 * count * count <= cls => {
                Ok(Source::Climbers)
            }
            (_, Distances::Table) => Placement::of(&cities.table(), spec).map(Source::Host),
        }
    }

    /// The source file of the card's program.
    pub const fn program(self) -> &'static str {
        match self {
            Source::Roots | Source::Climbers => "nfp/tsp.c",
            Source::Host(_) => "nfp/tsp_table.c",
        }
    }

    /// The word `table` of the host's order, as in `tsp.h`.
    pub(super) const fn word(self) -> u32 {
        match self {
            Source::Roots => 0,
            Source::Climbers => 1,
            Source::Host(placement) => placement.distance_bytes,
        }
    }
}

impl Placement {
    fn of(table: &DistanceTable, spec: &NfpSpec) -> Result<Placement, ExperimentError> {
        let distance_bytes = if table.is_narrow() { 2 } else { 4 };
        // At most 256 x 256 distances of 4 bytes.
        let bytes = (table.distances().len() as u32 * distance_bytes).next_multiple_of(REFERENCE);
        // The addresses of a place in a memory, if the table fits behind it.
        let fits = |memory: MemoryKind, offset: u32| {
            (u64::from(offset) + u64::from(bytes) <= u64::from(spec.memory(memory).size))
                .then(|| (memory, memory.base() + offset))
        };
        let received = fits(MemoryKind::Imem, JOB_BYTES).or_else(|| fits(MemoryKind::Emem, 0));
        let Some((far, received)) = received else {
            return Err(ExperimentError::Input(format!(
                "the distances of {} cities take {bytes} bytes, and neither IMEM ({} bytes, {JOB_BYTES} of them for \
                 the job) nor EMEM ({} bytes) holds them; raise memory.imem.size",
                table.rows().count(),
                spec.memory(MemoryKind::Imem).size,
                spec.memory(MemoryKind::Emem).size
            )));
        };
        let near = fits(MemoryKind::Cls, BEFORE).or_else(|| fits(MemoryKind::Ctm, 0));
        let (memory, looked_up) = near.unwrap_or((far, received));
        Ok(Placement { memory, received, looked_up, distance_bytes, bytes })
    }

    /// Returns the bytes of the table, as the host sends them.
    pub(super) fn contents(&self, table: &DistanceTable) -> Vec<u8> {
        let mut contents: Vec<u8> = table
            .distances()
            .iter()
            .flat_map(|distance| distance.to_le_bytes().into_iter().take(self.distance_bytes as usize))
            .collect();
        contents.resize(self.bytes as usize, 0);
        contents
    }
}
