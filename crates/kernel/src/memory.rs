//! The memory of tasks' futures, recycled by size. So a task for each packet needs no allocation.

use crate::prefetch::prefetch_bytes;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::future::Future;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

/// Sizes are rounded up to multiples of this. Recycled blocks are aligned to it.
const STEP: usize = 64;
/// Blocks of larger futures, or of futures with a stricter alignment, go back to the allocator.
const LARGEST: usize = 16 * 1024;

/// Maximum size of the prefetched part of a future, in bytes.
const PREFETCHED: usize = 512;

/// Returns the block layout for a future of this layout.
fn block_of(layout: Layout) -> Layout {
    let size = layout.size().max(1).next_multiple_of(STEP);
    Layout::from_size_align(size, layout.align().max(STEP)).expect("a future that fits the address space")
}

fn is_recycled(block: Layout) -> bool {
    block.size() <= LARGEST && block.align() == STEP
}

/// A future in its own block, pinned there until it is dropped.
pub(crate) struct TaskFuture {
    /// Points to a live future at the start of a block of `block_of(its layout)`, owned by this value.
    future: NonNull<dyn Future<Output = ()>>,
}

impl TaskFuture {
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the future is alive, this value alone owns it, and it never moves out of its block.
        let future = unsafe { Pin::new_unchecked(self.future.as_mut()) };
        future.poll(context)
    }

    /// Prefetches the future, or its beginning if it is large.
    pub(crate) fn prefetch(&self) {
        // SAFETY: the future is alive, so its vtable may be read. `size_of_val` reads no byte of the future.
        let size = unsafe { size_of_val(self.future.as_ref()) };
        prefetch_bytes(self.future.cast().as_ptr(), size.min(PREFETCHED));
    }

    fn block(&self) -> Layout {
        // SAFETY: the future is alive, so its pointer may be read through.
        block_of(Layout::for_value(unsafe { self.future.as_ref() }))
    }
}

impl Drop for TaskFuture {
    fn drop(&mut self) {
        let block = self.block();
        // SAFETY: the future is alive and dropped once, here; its block came from `alloc` with the same layout.
        unsafe {
            self.future.drop_in_place();
            dealloc(self.future.cast().as_ptr(), block);
        }
    }
}

/// Reusable blocks, by size. The number of blocks of a size is at most the highest number that were in use at once. The
/// lists of free blocks are outside the blocks. So `Memory` never reads a block, which may not be in a cache.
pub(crate) struct Memory {
    free: [Vec<NonNull<u8>>; LARGEST / STEP + 1],
    /// Number of blocks made of each size.
    made: [usize; LARGEST / STEP + 1],
}

impl Memory {
    pub(crate) fn new() -> Memory {
        Memory { free: [const { Vec::new() }; LARGEST / STEP + 1], made: [0; LARGEST / STEP + 1] }
    }

    /// Returns a reusable block of this size. If there is none, returns `None` and the caller makes a block. The list
    /// then reserves room for all blocks of this size, so that a later free never allocates.
    fn pop(&mut self, step: usize) -> Option<NonNull<u8>> {
        let (free, made) = (&mut self.free[step], &mut self.made[step]);
        let block = free.pop();
        if block.is_none() {
            *made += 1;
            free.reserve(*made);
        }
        block
    }

    /// Returns a block for a future of this layout.
    pub(crate) fn block(&mut self, future: Layout) -> Block {
        let layout = block_of(future);
        let recycled = if is_recycled(layout) { self.pop(layout.size() / STEP) } else { None };
        let pointer = recycled.unwrap_or_else(|| {
            // SAFETY: the size of a block is never zero.
            let pointer = unsafe { alloc(layout) };
            NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout))
        });
        Block { pointer, layout }
    }

    /// Takes back the block of a future dropped by [`drop_future`].
    pub(crate) fn recycle(&mut self, block: Block) {
        if is_recycled(block.layout) {
            self.free[block.layout.size() / STEP].push(block.pointer);
        } else {
            // SAFETY: the block came from `alloc` with this layout, and its owner gave it up.
            unsafe { dealloc(block.pointer.as_ptr(), block.layout) };
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for (step, free) in self.free.iter_mut().enumerate() {
            let layout = Layout::from_size_align(step * STEP, STEP).expect("a block's layout");
            while let Some(pointer) = free.pop() {
                // SAFETY: only blocks of this size and alignment from `alloc` are in this list, and none is
                // in use.
                unsafe { dealloc(pointer.as_ptr(), layout) };
            }
        }
    }
}

/// A block without a future.
pub(crate) struct Block {
    pointer: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// Makes a future inside the block. This method is inlined so that the compiler builds the future in place. If
    /// `make` panics, the block is leaked.
    ///
    /// # Panics
    /// If the block is for futures of another layout.
    #[inline(always)]
    pub(crate) fn fill<F: Future<Output = ()> + 'static>(self, make: impl FnOnce() -> F) -> TaskFuture {
        assert!(self.layout == block_of(Layout::new::<F>()), "a block is for its own layout");
        let typed = self.pointer.cast::<F>();
        // SAFETY: the block is large and aligned enough for an F, and has no other owner.
        unsafe { typed.write(make()) };
        TaskFuture { future: typed }
    }
}

/// Drops a future and returns its block. This is separate from [`Memory::recycle`] because the drop of the future's
/// values may use [`Memory`].
pub(crate) fn drop_future(future: TaskFuture) -> Block {
    let future = std::mem::ManuallyDrop::new(future);
    let block = Block { pointer: future.future.cast(), layout: future.block() };
    // SAFETY: the future is alive, and `ManuallyDrop` keeps it from being dropped again. Should its drop panic,
    // the block is leaked.
    unsafe { future.future.drop_in_place() };
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    fn place<F: Future<Output = ()> + 'static>(memory: &mut Memory, future: F) -> TaskFuture {
        memory.block(Layout::new::<F>()).fill(|| future)
    }

    struct Bomb(Rc<Cell<u32>>);
    impl Drop for Bomb {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[repr(align(128))]
    struct Aligned(#[allow(dead_code, reason = "only its alignment matters")] u8);

    #[test]
    fn blocks_are_used_again_and_futures_dropped_once() {
        let dropped = Rc::new(Cell::new(0));
        let mut memory = Memory::new();
        let mut context = Context::from_waker(std::task::Waker::noop());

        let bomb = Bomb(dropped.clone());
        let mut future = place(&mut memory, async move { drop(bomb) });
        let address = future.future.cast::<u8>();
        assert!(future.poll(&mut context).is_ready());
        assert_eq!(dropped.get(), 1);
        let block = drop_future(future);
        memory.recycle(block);

        let bomb = Bomb(dropped.clone());
        let again = place(&mut memory, async move {
            let _bomb = bomb;
            std::future::pending().await
        });
        assert_eq!(again.future.cast::<u8>(), address, "the same size class uses the same block");
        drop(again);
        assert_eq!(dropped.get(), 2);
    }

    #[test]
    fn large_and_strictly_aligned_futures_work_too() {
        let mut memory = Memory::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let large = [7u8; 40_000];
        let mut future = place(&mut memory, async move {
            std::future::ready(()).await;
            assert!(large.iter().all(|&b| b == 7));
        });
        assert!(future.poll(&mut context).is_ready());
        let block = drop_future(future);
        memory.recycle(block);

        let aligned = Aligned(1);
        let mut future = place(&mut memory, async move {
            let aligned = aligned;
            std::future::ready(()).await;
            assert_eq!(std::ptr::from_ref(&aligned).addr() % 128, 0);
        });
        assert!(future.poll(&mut context).is_ready());
        let block = drop_future(future);
        memory.recycle(block);
    }
}
