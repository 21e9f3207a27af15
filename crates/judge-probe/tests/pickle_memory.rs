//! However a pickle is made, reading it takes little memory beside its own size. One test in a binary of its own, so that nothing else
//! allocates meanwhile.

#[path = "it/pickles.rs"]
mod pickles;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what is allocated and remembers the most.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands every request to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(NOW.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that is allocated at once beyond what was before.
fn most_for(pickle: &[u8]) -> usize {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let _ = pickles::import(pickle);
    MOST.load(Relaxed) - before
}

#[test]
fn memory_is_bounded() {
    // What the default limits come to: 2¹⁸ opcodes and values of some hundred bytes each.
    const BOUND: usize = 128 << 20;
    for (name, pickle) in pickles::resource_attacks() {
        let most = most_for(&pickle);
        assert!(most < BOUND, "{name}: {most} bytes");
    }
    for pickle in pickles::honest() {
        assert!(most_for(pickle) < 1 << 20);
        for place in (0..pickle.len()).step_by(5) {
            let mut damaged = pickle.clone();
            damaged[place] ^= 1 << (place % 8);
            let most = most_for(&damaged);
            assert!(most < 4 << 20, "bit {} of byte {place}: {most} bytes", place % 8);
        }
    }
}
