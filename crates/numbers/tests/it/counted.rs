//! An allocator that counts what the thread of a test has allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not given back.
pub(crate) fn allocated() -> isize {
    ALLOCATED.get()
}

/// How often this thread has allocated.
pub(crate) fn allocations() -> usize {
    ALLOCATIONS.get()
}

struct Counting;

fn count(bytes: isize) {
    ALLOCATED.set(ALLOCATED.get() + bytes);
}

// What is asked of it is asked of the system's allocator as it is.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
