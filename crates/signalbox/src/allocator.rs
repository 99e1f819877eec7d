//! The allocator of the process: mimalloc, whose heap per thread fits one thread per core.
//!
//! The allocator of crate `mimalloc` calls the functions for aligned memory in any case. Those take three times as many
//! instructions as `mi_malloc`, and above 1 KiB they ask for more memory than is needed. What Rust asks for nearly always
//! has an alignment that `mi_malloc` guarantees.

use std::alloc::{GlobalAlloc, Layout};

use libmimalloc_sys as mi;

/// mimalloc as the global allocator.
pub(crate) struct Allocator;

/// Alignment of every block of `mi_malloc` that is at least as large (`MI_MAX_ALIGN_SIZE`).
const USUAL: usize = 16;

/// Whether `mi_malloc` guarantees the alignment: a block is aligned to [`USUAL`], and a smaller one to its size.
const fn is_usual(layout: Layout) -> bool {
    layout.align() <= USUAL && layout.align() <= layout.size()
}

// SAFETY: all four functions of one allocator, which is thread-safe; `is_usual` holds for the blocks that the functions
// without an alignment return (mimalloc, `MI_MAX_ALIGN_SIZE`), and `mi_free` takes the blocks of all of them. None of
// them unwinds.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the functions take any size; an alignment of a layout is a power of two.
        unsafe {
            match is_usual(layout) {
                true => mi::mi_malloc(layout.size()).cast(),
                false => mi::mi_malloc_aligned(layout.size(), layout.align()).cast(),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            match is_usual(layout) {
                true => mi::mi_zalloc(layout.size()).cast(),
                false => mi::mi_zalloc_aligned(layout.size(), layout.align()).cast(),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller passes a block of this allocator, once.
        unsafe { mi::mi_free(block.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block is of this allocator; the new size keeps the alignment.
        unsafe {
            match layout.align() <= USUAL && layout.align() <= size {
                true => mi::mi_realloc(block.cast(), size).cast(),
                false => mi::mi_realloc_aligned(block.cast(), size, layout.align()).cast(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_alignment_and_keep_their_bytes() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4_096] {
            for size in [1, 2, 7, 8, 15, 16, 24, 40, 100, 1_000, 1_025, 4_200, 70_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: each block is written within its size, and freed once with its layout.
                #[allow(unsafe_code)]
                unsafe {
                    let block = Allocator.alloc(layout);
                    block.write_bytes(7, size);
                    let grown = Allocator.realloc(block, layout, size * 2);
                    let zeroed = Allocator.alloc_zeroed(layout);
                    for one in [grown, zeroed] {
                        assert_eq!(one.addr() % align, 0, "{layout:?}");
                    }
                    assert!(
                        std::slice::from_raw_parts(grown, size)
                            .iter()
                            .all(|byte| *byte == 7)
                    );
                    assert!(
                        std::slice::from_raw_parts(zeroed, size)
                            .iter()
                            .all(|byte| *byte == 0)
                    );
                    Allocator.dealloc(grown, Layout::from_size_align(size * 2, align).unwrap());
                    Allocator.dealloc(zeroed, layout);
                }
            }
        }
    }
}
