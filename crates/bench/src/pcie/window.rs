//! The window of host memory: addresses of transfers, and the state of the host's cache before a test.

use super::{Cache, Pattern, Point};
use nicety_host::Bus;
use nicety_kernel::Rng;

/// Address of the first buffer.
const BASE: u64 = 0x4000_0000;
/// Size of all buffers.
const BUFFERS: u64 = 64 << 20;
const LINE: u64 = 64;
const PAGE: u64 = 4096;
/// Maximum writes before a test that bring the cache into its steady state.
const MOST_WRITES: u64 = 1 << 21;

/// The addresses of a test's transfers, in their order. A transfer begins at its offset in a unit of whole lines, and does not
/// cross a page.
pub(super) struct Addresses {
    random: Option<Rng>,
    units: u64,
    unit: u64,
    offset: u64,
    size: u64,
    next: u64,
}

impl Addresses {
    pub(super) fn new(point: &Point, rng: Rng) -> Addresses {
        let unit = (point.size + point.host_offset).next_multiple_of(LINE);
        Addresses {
            random: (point.pattern == Pattern::Random).then_some(rng),
            units: point.window / unit,
            unit,
            offset: point.host_offset,
            size: point.size,
            next: 0,
        }
    }

    pub(super) fn next(&mut self) -> u64 {
        loop {
            let number = match &mut self.random {
                Some(rng) => rng.below(self.units),
                None => self.next % self.units,
            };
            self.next += 1;
            let at = number * self.unit + self.offset;
            if PAGE - at % PAGE >= self.size {
                return BASE + at;
            }
        }
    }
}

/// Declares the state of the IOMMU's TLB and of the cache before a test, if the host has them. The writes of the test itself follow, until they find the
/// cache as they leave it.
pub(super) fn prepare(bus: &Bus, point: &Point, addresses: &mut Addresses, rng: &mut Rng) {
    let window = BASE..BASE + point.window;
    bus.iommu(|iommu| iommu.warm(window.clone()));
    bus.root_cache(|cache| {
        let line = |at: u64| at..at + LINE;
        match point.cache {
            Cache::HostWarm => cache.warm(window.clone()),
            Cache::CardWarm => {
                for at in window.clone().step_by(LINE as usize).chain(window.step_by(LINE as usize)) {
                    cache.write(line(at));
                }
            }
            Cache::Cold => {}
            Cache::CardThrashed => {
                for _ in 0..2 * BUFFERS / LINE {
                    cache.write(line(BASE + rng.below(BUFFERS / LINE) * LINE));
                }
            }
        }
        if point.test.writes() {
            for _ in 0..(4 * point.window / LINE).min(MOST_WRITES) {
                let at = addresses.next();
                cache.write(at..at + point.size);
            }
        }
    });
}
