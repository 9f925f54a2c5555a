//! The lines that handlers print while a benchmark runs.

use nicety::{Environment, Logged};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of lines that handlers printed in a benchmark, over all runs and cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HandlerLines {
    /// Lines that were shown. At most 1000 lines of each card in a run are shown.
    pub printed: u64,
    /// Lines that were not shown.
    pub suppressed: u64,
}

/// Counts the lines that are written to a log.
#[derive(Debug, Default)]
pub struct Printed {
    printed: AtomicU64,
    suppressed: AtomicU64,
}

impl Printed {
    /// Returns an environment with a log that counts its lines.
    pub fn count<'e>(environment: &Environment<'e>) -> (Environment<'e>, Arc<Printed>) {
        let printed = Arc::new(Printed::default());
        let (counted, log) = (printed.clone(), environment.log.clone());
        let count = move |logged: &Logged| {
            match logged {
                Logged::Line(line) => counted.printed.fetch_add(line.lines() as u64, Ordering::Relaxed),
                Logged::LeftOut { lines, .. } => counted.suppressed.fetch_add(*lines, Ordering::Relaxed),
            };
            log(logged);
        };
        (Environment { log: Arc::new(count), ..environment.clone() }, printed)
    }

    /// Returns the number of lines so far; `None` if handlers printed nothing.
    pub fn lines(&self) -> Option<HandlerLines> {
        let (printed, suppressed) =
            (self.printed.load(Ordering::Relaxed), self.suppressed.load(Ordering::Relaxed));
        (printed + suppressed > 0).then_some(HandlerLines { printed, suppressed })
    }
}
