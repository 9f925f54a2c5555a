//! A [`Path`] partitions the time from an origin to now into stages.
//!
//! A path follows the critical path forwards. Each step of a process advances the path of the process. A step may wait for
//! another part of the same message, such as the preceding packet on the link. The process then continues from that part's path.
//! A step may also wait for a resource that another message holds. The path then accounts the wait to the queued stage of the
//! resource. So a path's stages always add up exactly, and a step costs no memory.
//!
//! Few runs read the stages. A [clock](Path::clock) is a path that has a begin and an end, which models need, but no stages.
//! Paths that continue from a clock have no stages either.

use crate::{Duration, Stage, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::sync::Arc;

/// An account of time by stage: a [`Path`], or a part of one.
pub trait Account: Clone {
    /// Accounts the time until `until` to `stage`. Does nothing if the time until `until` is already accounted for.
    fn advance(&mut self, stage: Stage, until: Time);

    /// Whether another account may continue from this account without losing stages.
    fn leads(&self, _other: &Self) -> bool {
        true
    }
}

impl Account for Path {
    fn advance(&mut self, stage: Stage, until: Time) {
        Path::advance(self, stage, until);
    }

    fn leads(&self, other: &Path) -> bool {
        Path::leads(self, other)
    }
}

/// The stages with a time above zero, each with its time, in stage order.
type Totals = Vec<(Stage, Duration)>;

/// The stages of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Parts {
    /// Not recorded.
    Unknown,
    /// No stages yet.
    None,
    /// Recorded, in memory that clones share until one of them advances.
    Known(Shared),
}

/// Maximum number of unused `Totals` in a thread's memory pool.
const POOLED: usize = 1 << 15;
/// Initial capacity, in stages.
const USUAL: usize = 16;

thread_local! {
    static POOL: RefCell<Vec<Arc<Totals>>> = const { RefCell::new(Vec::new()) };
}

/// Totals that paths share, in recycled memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shared(Option<Arc<Totals>>);

const HELD: &str = "totals are there until they are dropped";

impl Shared {
    fn new(totals: &[(Stage, Duration)]) -> Shared {
        let pooled = POOL.with_borrow_mut(Vec::pop);
        let mut shared = Shared(Some(pooled.unwrap_or_else(|| Arc::new(Vec::with_capacity(USUAL)))));
        let memory = shared.get_mut();
        memory.clear();
        memory.extend_from_slice(totals);
        shared
    }

    fn get(&self) -> &Totals {
        self.0.as_ref().expect(HELD)
    }

    /// Returns the totals, in memory that no other path shares.
    fn get_mut(&mut self) -> &mut Totals {
        if self.0.as_ref().is_some_and(|totals| Arc::strong_count(totals) > 1) {
            *self = Shared::new(self.get());
        }
        self.0.as_mut().and_then(Arc::get_mut).expect(HELD)
    }
}

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Shared {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Shared, D::Error> {
        Totals::deserialize(from).map(|totals| Shared::new(&totals))
    }
}

impl Drop for Shared {
    #[inline]
    fn drop(&mut self) {
        // The last owner returns the memory to the thread's pool. A thread that is ending has already dropped its pool.
        if let Some(totals) = self.0.take().filter(|totals| Arc::strong_count(totals) == 1) {
            let _ = POOL.try_with(|pool| {
                let pool = &mut *pool.borrow_mut();
                if pool.len() < POOLED {
                    pool.push(totals);
                }
            });
        }
    }
}

/// A partition of the time from `origin` to `at` into stages, in picoseconds. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    origin: Time,
    at: Time,
    parts: Parts,
}

impl Path {
    /// Returns a path that begins at `origin`.
    #[inline]
    pub const fn from(origin: Time) -> Path {
        Path { origin, at: origin, parts: Parts::None }
    }

    /// Returns a path that begins at `origin` and records no stages; every stage reads as zero.
    #[inline]
    pub const fn clock(origin: Time) -> Path {
        Path { origin, at: origin, parts: Parts::Unknown }
    }

    /// Whether the path records no stages.
    pub fn is_clock(&self) -> bool {
        self.parts == Parts::Unknown
    }

    /// Whether `other` may continue from this path. Returns false if this path is a clock and `other` records stages,
    /// because `other` would lose these stages.
    pub fn leads(&self, other: &Path) -> bool {
        !self.is_clock() || other.is_clock()
    }

    /// The begin of the path.
    pub const fn origin(&self) -> Time {
        self.origin
    }

    /// The end of the path. Every picosecond before it is accounted for.
    pub const fn at(&self) -> Time {
        self.at
    }

    /// Accounts the time until `until` to `stage`. Does nothing if the time until `until` is already accounted for.
    #[inline]
    pub fn advance(&mut self, stage: Stage, until: Time) {
        if until <= self.at {
            return;
        }
        let took = until.since(self.at);
        self.at = until;
        if let Some(totals) = self.totals_mut() {
            add(totals, stage, took);
        }
    }

    #[inline]
    fn totals_mut(&mut self) -> Option<&mut Totals> {
        if self.parts == Parts::None {
            self.parts = Parts::Known(Shared::new(&[]));
        }
        match &mut self.parts {
            Parts::Known(totals) => Some(totals.get_mut()),
            _ => None,
        }
    }

    fn totals(&self) -> &[(Stage, Duration)] {
        match &self.parts {
            Parts::Known(totals) => totals.get(),
            _ => &[],
        }
    }

    /// Replaces this path with a copy of `other` if `other` ends later. This step has then waited for the end of
    /// `other`.
    #[inline]
    pub fn follow(&mut self, other: &Path) {
        if other.at > self.at {
            self.clone_from(other);
        }
    }

    /// Returns this path plus the stages from `earlier` to `later`, or `None` if `later` does not continue `earlier`.
    pub fn continued(&self, earlier: &Path, later: &Path) -> Option<Path> {
        let more = later.since(earlier)?;
        let mut path = self.clone();
        path.at += later.at.since(earlier.at);
        if let Some(totals) = path.totals_mut() {
            more.for_each(|(stage, took)| add(totals, stage, took));
        }
        Some(path)
    }

    /// Returns the stages of this path after `earlier`, in stage order, or `None` if this path does not continue `earlier`.
    pub fn since(&self, earlier: &Path) -> Option<impl Iterator<Item = (Stage, Duration)> + '_> {
        let goes_on = earlier.origin == self.origin
            && earlier.at <= self.at
            && earlier.stages().all(|(stage, before)| before <= self.total(stage));
        goes_on.then(|| {
            let before = earlier.clone();
            let more = self.stages().map(move |(stage, total)| (stage, total - before.total(stage)));
            more.filter(|(_, took)| !took.is_zero())
        })
    }

    /// The time accounted to a stage.
    pub fn total(&self, stage: Stage) -> Duration {
        let found = self.totals().iter().find(|(own, _)| *own == stage);
        found.map_or(Duration::ZERO, |(_, total)| *total)
    }

    /// The stages above zero, in stage order.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, Duration)> + '_ {
        self.totals().iter().copied()
    }
}

/// Adds `took`, which is above zero, to a stage's time.
fn add(totals: &mut Totals, stage: Stage, took: Duration) {
    match totals.iter_mut().find(|(own, _)| *own == stage) {
        Some((_, total)) => *total += took,
        None => totals.insert(totals.partition_point(|(own, _)| *own < stage), (stage, took)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_partitions_its_time_exactly() {
        let t = |ps| Time::from_ps(ps);
        let mut path = Path::from(t(100));
        path.advance(Stage::POST, t(165));
        path.advance(Stage::BUS, t(415));
        path.advance(Stage::BUS, t(400)); // already accounted for
        path.advance(Stage::POST, t(480));
        assert_eq!(path.total(Stage::POST), Duration::from_ps(130));
        assert_eq!(path.stages().map(|(_, d)| d).sum::<Duration>(), path.at().since(path.origin()));
        assert_eq!(path.stages().count(), 2);
    }

    #[test]
    fn a_path_goes_on_as_another_one_did() {
        let t = |ps| Time::from_ps(ps);
        let (mut own, mut other) = (Path::from(t(10)), Path::from(t(50)));
        own.advance(Stage::LINK, t(60));
        other.advance(Stage::COMPUTE, t(60));
        let mut later = other.clone();
        later.advance(Stage::LINK, t(63));
        later.advance(Stage::WAKE, t(70));
        let whole = own.continued(&other, &later).unwrap();
        assert_eq!((whole.origin(), whole.at()), (t(10), t(70)));
        assert_eq!(whole.total(Stage::LINK), Duration::from_ps(53));
        assert_eq!(whole.stages().map(|(_, d)| d).sum::<Duration>(), whole.at().since(whole.origin()));
        assert_eq!(own.continued(&later, &other), None);
        assert_eq!(own.continued(&own, &later), None);
        let more: Vec<_> = later.since(&other).unwrap().collect();
        assert_eq!(more, [(Stage::LINK, Duration::from_ps(3)), (Stage::WAKE, Duration::from_ps(7))]);
        assert!(later.since(&own).is_none());
    }

    #[test]
    fn a_clock_goes_like_a_path_and_has_no_parts() {
        let t = |ps| Time::from_ps(ps);
        let (mut path, mut clock) = (Path::from(t(10)), Path::clock(t(10)));
        for (stage, until) in [(Stage::POST, 30), (Stage::BUS, 20), (Stage::LINK, 45)] {
            path.advance(stage, t(until));
            clock.advance(stage, t(until));
            assert_eq!((clock.origin(), clock.at()), (path.origin(), path.at()));
        }
        assert_eq!((clock.stages().count(), clock.total(Stage::LINK)), (0, Duration::ZERO));
        assert_eq!(path.stages().count(), 2);
        let mut later = clock.clone();
        later.advance(Stage::WAKE, t(50));
        assert_eq!(clock.continued(&clock, &later), Some(later.clone()));
        assert_eq!(clock.continued(&later, &clock), None);
        clock.follow(&later);
        assert_eq!(clock, later);
        assert!(size_of::<Path>() <= 32, "what every packet carries, and moves at every step");
    }

    #[test]
    fn clones_of_a_path_go_their_own_ways() {
        let mut path = Path::from(Time::ZERO);
        path.advance(Stage::SWITCH, Time::from_ps(5));
        let kept = path.clone();
        path.advance(Stage::DEPOSIT, Time::from_ps(9));
        assert_eq!((kept.at(), kept.total(Stage::DEPOSIT)), (Time::from_ps(5), Duration::ZERO));
        assert_eq!(path.total(Stage::SWITCH), kept.total(Stage::SWITCH));
    }

    #[test]
    fn the_later_path_is_followed() {
        let mut early = Path::from(Time::ZERO);
        let mut late = Path::from(Time::ZERO);
        early.advance(Stage::SWITCH, Time::from_ps(5));
        late.advance(Stage::NOTICE, Time::from_ps(9));
        early.follow(&late);
        assert_eq!(early, late);
        late.follow(&Path::from(Time::from_ps(3)));
        assert_eq!(early, late);
    }
}
