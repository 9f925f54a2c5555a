//! Calls of helpers on maps.

use super::call::{Returned, returned};
use super::run::Registers;
use super::trap::{Fault, TrapKind};
use super::{Machine, REDIRECT, Redirect};
use crate::address;
use crate::helper::Helper;
use crate::map::{Errno, MapKind};

/// `redirect_map`: all devices of a map.
const BROADCAST: u64 = 8;
/// `redirect_map`: not the packet's own interface.
const EXCLUDE_INGRESS: u64 = 16;
/// `redirect_map`: the result where nothing is found.
const MISSING: u64 = 3;
/// `ringbuf_output`: whether to wake the reader.
const WAKE: u64 = 3;

impl Machine {
    pub(crate) fn map_helper(&mut self, helper: Helper, r: &Registers) -> Returned {
        match helper {
            Helper::MapLookup => self.lookup(helper, r, self.cpu),
            Helper::MapLookupPercpu => self.lookup_percpu(r),
            Helper::MapUpdate => self.update(r),
            Helper::MapDelete => self.delete(r),
            Helper::MapPush | Helper::MapPop | Helper::MapPeek => self.queue(helper, r),
            Helper::RedirectMap => self.redirect_map(r),
            Helper::SpinLock => self.lock(r[1]),
            Helper::SpinUnlock => self.unlock(r[1]),
            Helper::RingbufSubmit | Helper::RingbufDiscard => self.finish_record(helper, r),
            _ => self.ring(helper, r),
        }
    }

    fn lookup(&mut self, helper: Helper, r: &Registers, cpu: u32) -> Returned {
        let number = self.map_argument(r[1], helper, 1)?;
        let key = self.copied(r[2], self.maps[number].definition.key_size as usize)?;
        match self.maps[number].lookup(&key, cpu) {
            Some(Some(crate::map::Found::Value(at))) => Ok(address::value(number as u32, at)),
            Some(Some(crate::map::Found::Map(inner))) => Ok(address::map(inner)),
            Some(None) => Ok(0),
            None => Err(self.wrong_map(number, helper)),
        }
    }

    fn lookup_percpu(&mut self, r: &Registers) -> Returned {
        let number = self.map_argument(r[1], Helper::MapLookupPercpu, 1)?;
        if !self.maps[number].kind.is_per_cpu() {
            return Err(self.wrong_map(number, Helper::MapLookupPercpu));
        }
        self.lookup(Helper::MapLookupPercpu, r, r[3] as u32)
    }

    fn update(&mut self, r: &Registers) -> Returned {
        let number = self.map_argument(r[1], Helper::MapUpdate, 1)?;
        let (keys, values) = (self.maps[number].definition.key_size, self.maps[number].definition.value_size);
        let key = self.copied(r[2], keys as usize)?;
        let value = self.copied(r[3], values as usize)?;
        match self.maps[number].update(&key, &value, r[4], self.cpu) {
            Some(result) => Ok(returned(result)),
            None => Err(self.wrong_map(number, Helper::MapUpdate)),
        }
    }

    fn delete(&mut self, r: &Registers) -> Returned {
        let number = self.map_argument(r[1], Helper::MapDelete, 1)?;
        let key = self.copied(r[2], self.maps[number].definition.key_size as usize)?;
        match self.maps[number].delete(&key) {
            Some(result) => Ok(returned(result)),
            None => Err(self.wrong_map(number, Helper::MapDelete)),
        }
    }

    fn queue(&mut self, helper: Helper, r: &Registers) -> Returned {
        let number = self.map_argument(r[1], helper, 1)?;
        let size = self.maps[number].definition.value_size as usize;
        let value = self.copied(r[2], size)?;
        if self.maps[number].kind == MapKind::Bloom {
            let bloom = self.maps[number].bloom();
            return match (helper, bloom) {
                (Helper::MapPush, Some(bloom)) => Ok(returned(bloom.push(&value, r[3]))),
                (Helper::MapPeek, Some(bloom)) => Ok(returned(bloom.peek(&value))),
                _ => Err(self.wrong_map(number, helper)),
            };
        }
        let Some(queue) = self.maps[number].queue() else { return Err(self.wrong_map(number, helper)) };
        let result = match helper {
            Helper::MapPush => return Ok(returned(queue.push(&value, r[3]))),
            Helper::MapPop => queue.pop().map(|value| value.to_vec()),
            _ => queue.peek().map(<[u8]>::to_vec),
        };
        // An empty queue clears the value.
        let (code, bytes) = match result {
            Ok(bytes) => (0, bytes),
            Err(error) => (error.returned(), vec![0; size]),
        };
        self.put(r[2], &bytes)?;
        Ok(code)
    }

    fn redirect_map(&mut self, r: &Registers) -> Returned {
        let number = self.map_argument(r[1], Helper::RedirectMap, 1)?;
        let devices = match self.maps[number].kind {
            MapKind::Devices | MapKind::DeviceHash => BROADCAST | EXCLUDE_INGRESS,
            MapKind::Cpus | MapKind::Sockets => 0,
            _ => return Err(self.wrong_map(number, Helper::RedirectMap)),
        };
        let (key, flags) = (r[2] as u32, r[3]);
        if flags & !(MISSING | devices) != 0 {
            return Ok(0);
        }
        if flags & BROADCAST != 0 {
            let exclude_ingress = flags & EXCLUDE_INGRESS != 0;
            self.redirect = Some(Redirect::Broadcast { map: number, exclude_ingress });
            return Ok(u64::from(REDIRECT));
        }
        if self.maps[number].number(key).is_none() {
            self.redirect = None;
            return Ok(flags & MISSING);
        }
        self.redirect = Some(Redirect::Entry { map: number, key });
        Ok(u64::from(REDIRECT))
    }

    /// The map of a lock's address.
    fn check_lock(&mut self, at: u64) -> Result<(), Fault> {
        let (region, offset) = address::parts(at);
        let map = region.checked_sub(address::VALUES).and_then(|number| self.maps.get_mut(number as usize));
        let size = map.as_ref().map_or(0, |map| map.definition.value_size as usize);
        let begin = map.as_ref().and_then(|map| map.lock()).map(|lock| offset.wrapping_sub(lock as u32));
        let whole = map.zip(begin).is_some_and(|(map, begin)| map.bytes(begin, size).is_some());
        if whole {
            return Ok(());
        }
        let problem = format!("a lock at {at:#x}, not a bpf_spin_lock in a map's value");
        Err(Fault::new(TrapKind::Argument, problem))
    }

    fn lock(&mut self, at: u64) -> Returned {
        self.check_lock(at)?;
        if self.locked.is_some() {
            return Err(Fault::new(TrapKind::Kept, "a second lock; call bpf_spin_unlock first"));
        }
        self.locked = Some(at);
        Ok(0)
    }

    fn unlock(&mut self, at: u64) -> Returned {
        self.check_lock(at)?;
        if self.locked.take() != Some(at) {
            return Err(Fault::new(TrapKind::Kept, "an unlock of a lock that is not held"));
        }
        Ok(0)
    }

    fn ring(&mut self, helper: Helper, r: &Registers) -> Returned {
        let number = self.map_argument(r[1], helper, 1)?;
        if self.maps[number].kind != MapKind::Ring {
            return Err(self.wrong_map(number, helper));
        }
        // A record is cleared.
        if helper == Helper::RingbufReserve {
            let size = r[2].min(u64::from(self.maps[number].definition.max_entries));
            self.charge(size / 8)?;
        }
        let bytes = match helper {
            Helper::RingbufOutput => {
                if r[4] & !WAKE != 0 {
                    return Ok(Errno::EINVAL.returned());
                }
                Some(self.copied(r[2], r[3] as usize)?)
            }
            _ => None,
        };
        let Some(ring) = self.maps[number].ring() else { return Err(self.wrong_map(number, helper)) };
        match (helper, bytes) {
            (Helper::RingbufOutput, Some(bytes)) => Ok(returned(ring.output(&bytes))),
            (Helper::RingbufQuery, _) => Ok(ring.query(r[2])),
            _ if r[3] != 0 => Ok(0),
            _ => Ok(ring.reserve(r[2]).map_or(0, |at| address::value(number as u32, at))),
        }
    }

    fn finish_record(&mut self, helper: Helper, r: &Registers) -> Returned {
        let (region, offset) = address::parts(r[1]);
        let map = region.checked_sub(address::VALUES).and_then(|number| self.maps.get_mut(number as usize));
        let done = map.and_then(|map| map.ring()?.finish(offset, helper == Helper::RingbufSubmit));
        match done {
            Some(()) => Ok(0),
            None => {
                let problem =
                    format!("argument 1 of {} is {:#x}, not a reserved record", helper.name(), r[1]);
                Err(Fault::new(TrapKind::Argument, problem))
            }
        }
    }
}
