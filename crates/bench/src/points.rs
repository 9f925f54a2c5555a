//! Runs the points of a benchmark, and collects their rows and the errors of failed points.

use nicety::Error;
use schemars::JsonSchema;
use serde::Serialize;

/// A point of a benchmark that has no row, because its run failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedPoint {
    /// The card and the point.
    pub point: String,
    /// The name of the Python exception for the error, such as `RunError` or `Deadlock`. `KeyboardInterrupt` means that the
    /// benchmark was interrupted at this point.
    pub kind: &'static str,
    /// The error.
    pub text: String,
}

/// Measures points one after another. A failed point does not end the benchmark, but an interrupt does.
pub struct Points<'e, R> {
    progress: &'e dyn Fn(usize, usize),
    total: usize,
    done: usize,
    rows: Vec<R>,
    failed: Vec<FailedPoint>,
    /// The error of the first failed point, with its place.
    error: Option<Error>,
    interrupted: bool,
}

impl<'e, R> Points<'e, R> {
    /// Returns an empty collection for `total` points, which reports progress.
    pub fn new(progress: &'e dyn Fn(usize, usize), total: usize) -> Points<'e, R> {
        progress(0, total);
        Points {
            progress,
            total,
            done: 0,
            rows: Vec::with_capacity(total),
            failed: Vec::new(),
            error: None,
            interrupted: false,
        }
    }

    /// The rows so far.
    pub fn rows(&self) -> &[R] {
        &self.rows
    }

    /// The number of points measured so far, including failed ones.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Measures the next point. Does nothing if an earlier point was interrupted.
    pub fn measure(&mut self, place: impl FnOnce() -> String, run: impl FnOnce() -> Result<R, Error>) {
        if self.interrupted {
            return;
        }
        match run() {
            Ok(row) => self.rows.push(row),
            Err(error) => {
                self.interrupted = error == Error::Interrupted;
                let point = place();
                let (kind, text) = (error.python(), error.to_string());
                self.error.get_or_insert(error.inside(&point));
                self.failed.push(FailedPoint { point, kind, text });
                if self.interrupted {
                    return;
                }
            }
        }
        self.done += 1;
        (self.progress)(self.done, self.total);
    }

    /// Returns the rows, and the points without rows.
    ///
    /// # Errors
    /// When all points failed: the error of the first one.
    pub fn finish(self) -> Result<(Vec<R>, Vec<FailedPoint>), Error> {
        match self.error {
            Some(error) if self.rows.is_empty() => Err(error),
            _ => Ok((self.rows, self.failed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// The rows, the failed points, and the reported progress.
    struct Outcome {
        found: Result<(Vec<u32>, Vec<String>), Error>,
        told: Vec<usize>,
    }

    fn measured(results: Vec<Result<u32, Error>>) -> Outcome {
        let told = RefCell::new(Vec::new());
        let progress = |done, _| told.borrow_mut().push(done);
        let mut points = Points::new(&progress, results.len());
        for (number, result) in results.into_iter().enumerate() {
            points.measure(|| format!("point {number}"), || result);
        }
        let text = |FailedPoint { point, kind, text }| format!("{point}: {kind}: {text}");
        let found = points.finish().map(|(rows, failed)| (rows, failed.into_iter().map(text).collect()));
        Outcome { found, told: told.into_inner() }
    }

    #[test]
    fn rows_outlive_points_that_fail() {
        let stuck = || Err(Error::Deadlock("stuck".into()));
        let Outcome { found, told } =
            measured(vec![stuck(), Ok(1), Err(Error::Program("wrong byte".into())), Ok(3)]);
        let failed = ["point 0: Deadlock: stuck", "point 2: RunError: wrong byte"].map(String::from).to_vec();
        assert_eq!((found, told), (Ok((vec![1, 3], failed)), vec![0, 1, 2, 3, 4]));
        // If no point has a row, the first error is the error of the benchmark.
        let found = measured(vec![stuck(), Err(Error::Input("too long".into()))]).found;
        assert_eq!(found, Err(Error::Deadlock("point 0: stuck".into())));
    }

    #[test]
    fn nothing_is_measured_behind_an_interrupt() {
        let Outcome { found, told } = measured(vec![Ok(0), Err(Error::Interrupted), Ok(2)]);
        let failed = vec!["point 1: KeyboardInterrupt: interrupted".to_owned()];
        assert_eq!((found, told), (Ok((vec![0], failed)), vec![0, 1]));
    }
}
