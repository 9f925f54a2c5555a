//! Background noise on a host's cores, from daemons, interrupts and the operating system's own work.
//!
//! Noise does not depend on programs, so it needs no task and no event. The intervals of a core are drawn only up to
//! the time that the core's work has reached. So noise does not prolong a run.

mod trace;

pub use trace::{NoTrace, NoiseTrace};

use nicety_kernel::{Rng, Sim};
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::sync::Arc;

/// The times between noise intervals on a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regularity {
    /// The gap between two intervals is exponentially distributed.
    Exponential,
    /// Each period has one interval. The phase is random.
    Fixed,
}

/// Noise on every core of a host, at independent instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseSpec {
    /// Mean time from the start of one interval to the start of the next.
    pub period: Duration,
    /// Duration of an interval. It is shorter than the period.
    pub duration: Duration,
    /// The times between intervals.
    pub regularity: Regularity,
}

/// The source of the intervals in which noise occupies a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intervals {
    /// Intervals drawn from a distribution.
    Drawn(NoiseSpec),
    /// The intervals of a trace, which repeats. Each core starts at a random point of the trace.
    Recorded(Arc<NoiseTrace>),
}

impl Intervals {
    /// Returns the intervals of a core. `rng` is the core's own random stream.
    ///
    /// # Panics
    /// If the duration of drawn noise is not shorter than its period.
    pub fn timeline(&self, mut rng: Rng) -> Timeline {
        match self {
            Intervals::Drawn(spec) => Timeline::new(rng, *spec),
            Intervals::Recorded(trace) => {
                let offset = rng.below(trace.length_ps());
                Timeline::recorded(trace.clone(), offset)
            }
        }
    }
}

/// Maximum number of noise intervals that are processed at once, so that an interrupt can end a run with much noise.
const INTERVALS: u32 = 1 << 20;

/// The noise of a host's cores.
pub(crate) struct Noise(RefCell<Vec<Core>>);

struct Core {
    timeline: Timeline,
    /// Whether a program runs on the core.
    taken: bool,
}

/// A core on which a program runs. A drop of this value frees the core.
pub(crate) struct Pinned<'n> {
    noise: &'n Noise,
    core: usize,
}

impl Noise {
    /// # Panics
    /// If the duration of drawn noise is not shorter than its period.
    pub(crate) fn new(sim: &Sim, cores: usize, intervals: &Intervals) -> Noise {
        let core = |i| {
            let rng = sim.rng(&format!("noise on core {i}"));
            Core { timeline: intervals.timeline(rng), taken: false }
        };
        Noise(RefCell::new((0..cores).map(core).collect()))
    }

    /// Pins work to the first free core. Noise does not move a program to another core, so all work between two waits
    /// is on one core. The caller holds a core of the pool, so a core is free here.
    pub(crate) fn pin(&self) -> Pinned<'_> {
        let mut cores = self.0.borrow_mut();
        let core = cores.iter().position(|core| !core.taken).expect("as many cores as the pool has");
        cores[core].taken = true;
        Pinned { noise: self, core }
    }
}

impl Pinned<'_> {
    /// Like [`Timeline::work`], for at most [`INTERVALS`] noise intervals.
    pub(crate) fn work(&self, now: Time, left: &mut Duration, piece: impl FnMut(bool, Time, Time)) -> Time {
        self.noise.0.borrow_mut()[self.core].timeline.work(now, left, &mut { INTERVALS }, piece)
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.noise.0.borrow_mut()[self.core].taken = false;
    }
}

/// The intervals of noise on a core, one at a time.
#[derive(Debug)]
pub struct Timeline {
    source: Source,
    begin: Time,
    end: Time,
}

/// The source of a timeline's intervals.
#[derive(Debug)]
enum Source {
    Drawn(Rng, NoiseSpec),
    /// A trace, the number of its next interval, and the point of the trace at time zero, in picoseconds.
    Recorded(Arc<NoiseTrace>, usize, u64),
}

impl Timeline {
    /// Returns the noise of a trace from `offset_ps` after its start on. The offset is less than the trace's length.
    pub fn recorded(trace: Arc<NoiseTrace>, offset_ps: u64) -> Timeline {
        let next = trace.first_behind(offset_ps);
        let mut timeline =
            Timeline { source: Source::Recorded(trace, next, offset_ps), begin: Time::ZERO, end: Time::ZERO };
        timeline.advance();
        timeline
    }

    /// Returns drawn noise that began long before the run.
    ///
    /// # Panics
    /// If the duration of the noise is not shorter than its period.
    pub fn new(mut rng: Rng, spec: NoiseSpec) -> Timeline {
        assert!(spec.duration < spec.period, "noise of {} every {}", spec.duration, spec.period);
        // `over` is the time since the start of the current period. The interval is at the start of its period.
        let (period, duration) = (spec.period.ps(), spec.duration.ps());
        let over = rng.below(period);
        let (mut begin, mut end) = (Time::ZERO, Time::ZERO);
        if over < duration {
            end += Duration::from_ps(duration - over);
        } else {
            let wait = match spec.regularity {
                Regularity::Fixed => period - over,
                // The exponential distribution has no memory: the rest of a gap has the same distribution as a whole
                // gap.
                Regularity::Exponential => rng.exponential(period - duration),
            };
            begin += Duration::from_ps(wait);
            end = begin + spec.duration;
        }
        Timeline { source: Source::Drawn(rng, spec), begin, end }
    }

    /// Advances to the next interval.
    fn advance(&mut self) {
        (self.begin, self.end) = match &mut self.source {
            Source::Drawn(rng, spec) => {
                let mean = spec.period.ps() - spec.duration.ps();
                let gap = match spec.regularity {
                    Regularity::Fixed => mean,
                    Regularity::Exponential => rng.exponential(mean),
                };
                let begin = self.end + Duration::from_ps(gap);
                (begin, begin + spec.duration)
            }
            Source::Recorded(trace, next, offset) => {
                let time = |ps: u64| Time::from_ps(ps.saturating_sub(*offset));
                let found = trace.get(*next).map(|(begin, end)| (time(begin), time(end)));
                *next += 1;
                found.unwrap_or((Time::MAX, Time::MAX))
            }
        };
    }

    /// Advances towards the first interval that ends after `now`, by at most `intervals` intervals. Returns whether
    /// that interval was reached.
    fn skip_to(&mut self, now: Time, intervals: &mut u32) -> bool {
        while self.end <= now && self.end < Time::MAX {
            let Some(rest) = intervals.checked_sub(1) else { return false };
            *intervals = rest;
            self.advance();
        }
        true
    }

    /// Does `left` of work from `now` on, over at most `intervals` intervals of noise. `now` is not before the end of
    /// the work in the last call. Returns the end time. Updates `left` and `intervals` to the work and the intervals
    /// that remain. Calls `piece` for each piece of work and each interval between: whether it is noise, its start and
    /// its end.
    pub fn work(
        &mut self,
        mut now: Time,
        left: &mut Duration,
        intervals: &mut u32,
        mut piece: impl FnMut(bool, Time, Time),
    ) -> Time {
        while !left.is_zero() && now < Time::MAX && self.skip_to(now, intervals) {
            let (begun, noisy) = (now, self.begin <= now);
            if noisy {
                now = self.end;
            } else {
                now += (*left).min(self.begin.since(now));
                *left = left.saturating_sub(now.since(begun));
            }
            piece(noisy, begun, now);
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_kernel::{Config, World};

    const US: u64 = 1_000_000;

    fn rng(seed: u64) -> Rng {
        let mut world = World::<()>::new(Config { seed, ..Config::default() });
        let node = world.add_node();
        world.sim(node).rng("test")
    }

    fn spec(period: u64, duration: u64, regularity: Regularity) -> NoiseSpec {
        NoiseSpec { period: Duration::from_ps(period), duration: Duration::from_ps(duration), regularity }
    }

    #[test]
    fn noise_takes_its_share_of_a_core() {
        for regularity in [Regularity::Exponential, Regularity::Fixed] {
            for seed in 0..5 {
                let mut timeline = Timeline::new(rng(seed), spec(10 * US, US, regularity));
                let work = Duration::from_ps(900_000 * US);
                let (mut at, mut taken) = (Time::ZERO, [Duration::ZERO; 2]);
                let mut left = work;
                let end = timeline.work(Time::ZERO, &mut left, &mut { u32::MAX }, |noisy, from, to| {
                    assert_eq!(from, at);
                    at = to;
                    taken[usize::from(noisy)] += to.since(from);
                });
                assert!(left.is_zero());
                // The work gets nine tenths of the time, and noise gets one tenth.
                let expected = 1_000_000 * US;
                let off = end.ps().abs_diff(expected);
                assert!(off < expected / 100, "{regularity:?}, seed {seed}: {end}");
                assert_eq!((at, taken[0]), (end, work));
                assert_eq!(taken[1].ps(), end.ps() - work.ps());
            }
        }
    }

    #[test]
    fn fixed_noise_comes_every_period() {
        let mut timeline = Timeline::new(rng(3), spec(1000, 100, Regularity::Fixed));
        assert!(timeline.skip_to(timeline.end, &mut 1));
        let begin = timeline.begin;
        for i in 1..100 {
            assert!(timeline.skip_to(timeline.end, &mut 1));
            assert_eq!(timeline.begin, begin + Duration::from_ps(1000 * i));
            assert_eq!(timeline.end, timeline.begin + Duration::from_ps(100));
        }
    }

    #[test]
    fn phases_are_spread_and_noise_has_always_been_there() {
        let in_noise = |seed, regularity| {
            let timeline = Timeline::new(rng(seed), spec(1000, 250, regularity));
            timeline.begin == Time::ZERO && timeline.end > Time::ZERO
        };
        for regularity in [Regularity::Exponential, Regularity::Fixed] {
            let hit = (0..2000).filter(|&seed| in_noise(seed, regularity)).count();
            assert!((430..570).contains(&hit), "{regularity:?}: {hit} of 2000");
        }
    }

    #[test]
    fn work_that_takes_no_time_waits_for_nothing() {
        let mut timeline = Timeline::new(rng(4), spec(1000, 999, Regularity::Fixed));
        let now = Time::from_ps(5);
        let mut none = Duration::ZERO;
        assert_eq!(timeline.work(now, &mut none, &mut 1, |_, _, _| panic!("there is no work")), now);
    }

    #[test]
    fn work_in_parts_is_the_same_work() {
        let whole = |begin: Time, most: u32| {
            let mut timeline = Timeline::new(rng(5), spec(1000, 300, Regularity::Exponential));
            let (mut now, mut left, mut pieces, mut parts) =
                (begin, Duration::from_ps(100_000), Vec::new(), 0);
            while !left.is_zero() {
                now = timeline
                    .work(now, &mut left, &mut { most }, |noisy, from, to| pieces.push((noisy, from, to)));
                parts += 1;
            }
            pieces.retain(|(_, from, to)| from < to);
            (now, pieces, parts)
        };
        // The work starts at time zero, or a long time after the last look at the noise.
        for begin in [Time::ZERO, Time::from_ps(1_000_000)] {
            let (end, pieces, parts) = whole(begin, u32::MAX);
            assert_eq!(parts, 1);
            let (same, same_pieces, more) = whole(begin, 7);
            assert_eq!((end, &pieces), (same, &same_pieces));
            assert!(more > 10, "{more}");
        }
    }
}
