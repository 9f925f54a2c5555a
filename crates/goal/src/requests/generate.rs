//! `nicety goal generate`: writes the schedule of a communication pattern.

use super::{goes_on, tell};
use crate::file::{self, Format};
use crate::generate::{self, Pattern, Shape};
use nicety::{Environment, Error};
use nicety_spec::units::parse_time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Maximum number of operations of a generated schedule. Memory holds them, at about 40 bytes each.
const MOST: u128 = 1_000_000_000;

const fn once() -> u32 {
    1
}

const fn usual_layers() -> u32 {
    4
}

fn nothing() -> String {
    "0".to_owned()
}

/// Make the schedule of a communication pattern.
///
/// Patterns: binomial-broadcast, binomial-reduce, dissemination, recursive-doubling, ring-allreduce, pairwise-alltoall,
/// linear-alltoall, gather, scatter, halo-2d, halo-3d, pipeline, data-parallel, mixture-of-experts. The last two are training
/// steps.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GenerateOptions")]
pub struct Request {
    /// The pattern.
    #[schemars(extend("format" = "derived"))]
    pub pattern: String,
    /// The file to write.
    #[schemars(extend("format" = "derived"))]
    pub output: String,
    /// The number of ranks.
    #[schemars(range(min = 1, max = 0xffff_fffe_u32))]
    pub ranks: u32,
    /// Bytes of the message, of the reduced vector, of a face, or of the data for each rank in an alltoall. For a training step:
    /// bytes of all gradients, and also of the tokens that a rank sends to all experts together.
    #[schemars(extend("metavar" = "SIZE"))]
    pub size: u64,
    /// Number of repetitions of the pattern by each rank, one after another.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub iterations: u32,
    /// The duration of a calculation, such as 20us, in patterns with calculations: an addition of two vectors, a stage, or a
    /// layer.
    #[serde(default = "nothing")]
    #[schemars(extend("metavar" = "TIME"))]
    pub compute: String,
    /// The number of layers in a training step.
    #[serde(default = "usual_layers")]
    #[schemars(range(min = 1, max = 10_000))]
    pub layers: u32,
}

/// The report of a generated schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Generated {
    /// The pattern.
    pub pattern: String,
    /// The file that was written.
    pub output: String,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of operations.
    pub operations: u64,
}

impl Request {
    /// Reads a request.
    ///
    /// # Errors
    /// When the text is not a valid request.
    pub fn from_json(text: &str) -> Result<Request, Error> {
        serde_json::from_str(text).map_err(|error| Error::Input(error.to_string()))
    }

    fn pattern(&self) -> Result<Pattern, Error> {
        let found = Pattern::ALL.iter().find(|(name, _)| *name == self.pattern);
        let names = Pattern::ALL.map(|(name, _)| name).join(", ");
        let unknown =
            || Error::Input(format!("there is no pattern {:?}; the patterns are {names}", self.pattern));
        found.map(|(_, pattern)| *pattern).ok_or_else(unknown)
    }

    fn shape(&self, pattern: Pattern) -> Result<Shape, Error> {
        let compute = super::network::time("compute", &self.compute, parse_time)?;
        if compute.ps() % 1000 != 0 {
            return Err(Error::Input(format!(
                "compute {}: a time in a schedule is a whole number of nanoseconds",
                self.compute
            )));
        }
        let without = |option: &str, part: &str| {
            Err(Error::Input(format!(
                "{option}: the pattern {} has no {part}; leave this option out",
                self.pattern
            )))
        };
        if compute.ps() > 0 && !pattern.has_calculations() {
            return without("compute", "calculations");
        }
        if self.layers != usual_layers() && !pattern.has_layers() {
            return without("layers", "layers");
        }
        if self.ranks == 0 || self.ranks == u32::MAX || self.iterations == 0 || self.layers == 0 {
            return Err(Error::Input(
                "ranks, iterations and layers are at least 1, and ranks at most 4294967294".to_owned(),
            ));
        }
        Ok(Shape {
            ranks: self.ranks,
            size: self.size,
            iterations: self.iterations,
            compute_ns: compute.ps() / 1000,
            layers: self.layers,
        })
    }
}

/// Generates a schedule and writes it to a file. If the file's name ends with `.bin`, the format is binary.
///
/// # Errors
/// When the pattern is unknown, the schedule would be too large, the file cannot be written, or the run was interrupted.
pub fn generate(request: &Request, environment: &Environment<'_>) -> Result<Generated, Error> {
    let pattern = request.pattern()?;
    let shape = request.shape(pattern)?;
    let about = shape.operations(pattern);
    if about > MOST {
        return Err(Error::Input(format!(
            "{} of {} ranks would have about {about} operations; the maximum is {MOST}; take fewer ranks or \
             iterations",
            request.pattern, shape.ranks
        )));
    }
    let total = u64::from(shape.ranks);
    let mut go_on = |rank: u32| match rank % 1024 {
        0 => tell(environment, u64::from(rank), total),
        _ => goes_on(environment),
    };
    let schedule = generate::generate(pattern, &shape, &mut go_on).ok_or(Error::Interrupted)?;
    let to = Path::new(&request.output);
    let format = Format::of_name(to).unwrap_or(Format::Text);
    file::write(&schedule, to, format, environment.interrupt.as_deref())?;
    Ok(Generated {
        pattern: request.pattern.clone(),
        output: request.output.clone(),
        ranks: shape.ranks,
        operations: schedule.ops().len() as u64,
    })
}
