//! Counters of cards. Each design has its own type of counters.

use nicety_host::KernelCounters;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The counters of a design's card.
pub trait Counters: Any + fmt::Debug + PartialEq + Send + Sync {
    /// The counters of the host's kernel, if the design has them.
    fn kernel(&self) -> KernelCounters {
        KernelCounters::default()
    }
}

/// A design without counters.
impl Counters for () {}

/// A card's counters, in the design's own type.
#[derive(Clone, Debug)]
pub struct CardReport(Arc<dyn Counted>);

impl CardReport {
    /// Wraps the counters of a design.
    pub fn new<R: Counters>(counters: R) -> CardReport {
        CardReport(Arc::new(counters))
    }

    /// Returns the counters if their type is `R`.
    pub fn of<R: Any>(&self) -> Option<&R> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    /// Like [`Counters::kernel`].
    pub fn kernel(&self) -> KernelCounters {
        self.0.kernel_entries()
    }
}

impl PartialEq for CardReport {
    fn eq(&self, other: &CardReport) -> bool {
        self.0.is_same(&*other.0)
    }
}

impl Eq for CardReport {}

/// [`Counters`] of any design, as a trait object.
trait Counted: Any + fmt::Debug + Send + Sync {
    fn kernel_entries(&self) -> KernelCounters;
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<R: Counters> Counted for R {
    fn kernel_entries(&self) -> KernelCounters {
        self.kernel()
    }

    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<R>().is_some_and(|other| self == other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Own(KernelCounters);

    impl Counters for Own {
        fn kernel(&self) -> KernelCounters {
            self.0
        }
    }

    #[test]
    fn a_design_says_what_its_reports_have() {
        let entries = KernelCounters { calls: 3, ..KernelCounters::default() };
        let own = CardReport::new(Own(entries));
        assert_eq!(own.kernel(), entries);
        assert_eq!(own.of::<Own>(), Some(&Own(entries)));
        assert_eq!(own, CardReport::new(Own(entries)));
        assert_ne!(own, CardReport::new(()));
    }
}
