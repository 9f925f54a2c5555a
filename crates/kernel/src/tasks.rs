//! The tasks of a shard. Each task is in a slot, and later tasks reuse the slot.

use crate::memory::TaskFuture;
use crate::prefetch::{Near, Needed, prefetch};
use nicety_types::{NodeId, Time};
use std::mem;

/// A task: a slot, and the generation that distinguishes the task from earlier and later tasks in the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRef {
    index: u32,
    generation: u32,
}

impl TaskRef {
    /// No task.
    pub(crate) const NONE: TaskRef = TaskRef { index: u32::MAX, generation: u32::MAX };

    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.generation)
    }

    pub(crate) fn from_bits(bits: u64) -> TaskRef {
        TaskRef { index: (bits >> 32) as u32, generation: bits as u32 }
    }
}

/// The slot of a task.
pub(crate) struct Slot {
    /// `None` while the task is polled and after its end.
    pub(crate) future: Option<TaskFuture>,
    pub(crate) generation: u32,
    pub(crate) node: NodeId,
    /// Whether the task has an entry in the queue of wakes.
    pub(crate) woken: bool,
    /// The time of the task's last poll.
    pub(crate) since: Time,
    /// The next free slot, if this slot is free.
    next_free: u32,
    /// The values, other than the future, that the first poll needs.
    needs: [Needed; 2],
}

/// No slot.
const NO_SLOT: u32 = u32::MAX;

/// The tasks of a shard.
pub(crate) struct Tasks {
    slots: Vec<Slot>,
    free: u32,
}

impl Tasks {
    pub(crate) const fn new() -> Tasks {
        Tasks { slots: Vec::new(), free: NO_SLOT }
    }

    /// Number of slots.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of a task, unless the task has ended.
    #[inline]
    pub(crate) fn get_mut(&mut self, task: TaskRef) -> Option<&mut Slot> {
        self.slots.get_mut(task.index as usize).filter(|slot| slot.generation == task.generation)
    }

    /// The slot of a task that has not ended.
    #[inline]
    pub(crate) fn slot(&mut self, task: TaskRef) -> &mut Slot {
        &mut self.slots[task.index as usize]
    }

    /// Puts a future into a slot. Does not schedule a poll.
    #[inline]
    pub(crate) fn place(
        &mut self,
        node: NodeId,
        now: Time,
        future: TaskFuture,
        needs: [Needed; 2],
    ) -> TaskRef {
        if self.free == NO_SLOT {
            let index = u32::try_from(self.slots.len()).expect("more than 2^32 tasks at once");
            let (future, since) = (Some(future), now);
            let slot = Slot { future, generation: 0, node, woken: false, since, next_free: NO_SLOT, needs };
            self.slots.push(slot);
            return TaskRef { index, generation: 0 };
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        slot.future = Some(future);
        slot.node = node;
        slot.woken = false;
        slot.needs = needs;
        self.free = slot.next_free;
        TaskRef { index, generation: slot.generation }
    }

    /// Ends a task, and frees its slot.
    #[inline]
    pub(crate) fn free(&mut self, task: TaskRef) {
        let slot = &mut self.slots[task.index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = mem::replace(&mut self.free, task.index);
    }

    /// Ends the task in a slot, and returns its future.
    pub(crate) fn close(&mut self, index: usize) -> Option<TaskFuture> {
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        slot.future.take()
    }

    /// Prefetches the memory that a poll of a task needs: its slot, then its future and the values that the first poll
    /// needs. In a large world, also prefetches the values that the task's node keeps near.
    pub(crate) fn prepare(&self, task: TaskRef, steps: usize, near: Option<&[Near]>) {
        let Some(slot) = self.slots.get(task.index as usize) else { return };
        let future = || slot.future.iter().for_each(TaskFuture::prefetch);
        let needed = || slot.needs.iter().for_each(|needed| needed.prefetch());
        let Some(near) = near else {
            return match steps {
                2 => prefetch(slot),
                1 => {
                    future();
                    needed();
                }
                _ => (),
            };
        };
        let of_node = near.get(slot.node.0 as usize);
        match steps {
            4 => prefetch(slot),
            3 => of_node.into_iter().for_each(prefetch),
            2 => {
                of_node.into_iter().for_each(Near::prefetch);
                needed();
            }
            1 => future(),
            _ => (),
        }
    }
}
