//! A device that fails, for tests on a processor, in the thread that waits for it: a pass of a number that the test says.

use std::cell::{Cell, RefCell};

/// How a device fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The next wait says that an allocation found no memory.
    Wait,
    /// Burn panics with that while the pass is queued.
    Panic,
    /// A product finds no memory, which no wait tells.
    Product,
    /// The next wait says something else.
    Other,
}

const FULL: &str = "An IO error happened\nCaused by:\n  out of device memory allocating 4096 bytes\n";

thread_local! {
    static FAULTS: RefCell<Vec<(usize, Fault)>> = const { RefCell::new(Vec::new()) };
    static PASSES: RefCell<Vec<[usize; 2]>> = const { RefCell::new(Vec::new()) };
    static WAITS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static WAIT: Cell<Option<&'static str>> = const { Cell::new(None) };
    static PRODUCTS: Cell<u64> = const { Cell::new(0) };
}

/// What `work` does where passes fail, by their numbers, and the rows and columns of all passes.
pub(super) fn with<T>(faults: &[(usize, Fault)], work: impl FnOnce() -> T) -> (T, Vec<[usize; 2]>) {
    PASSES.take();
    FAULTS.set(faults.to_vec());
    let found = work();
    FAULTS.take();
    (found, PASSES.take())
}

/// For each wait of `work`, how many passes were queued before it.
pub(super) fn waits(work: impl FnOnce()) -> Vec<usize> {
    WAITS.take();
    with(&[], work);
    WAITS.take()
}

/// A pass is queued.
pub(super) fn pass(dims: [usize; 2]) {
    let number = PASSES.with_borrow_mut(|passes| {
        passes.push(dims);
        passes.len() - 1
    });
    match FAULTS.with_borrow(|faults| faults.iter().find(|&&(pass, _)| pass == number).map(|&(_, fault)| fault)) {
        Some(Fault::Wait) => WAIT.set(Some(FULL)),
        Some(Fault::Other) => WAIT.set(Some("an illegal address")),
        Some(Fault::Panic) => std::panic::resume_unwind(Box::new(FULL)),
        Some(Fault::Product) => PRODUCTS.set(PRODUCTS.get() + 1),
        None => {}
    }
}

/// What the next wait says instead of what it brings.
pub(super) fn wait() -> Option<&'static str> {
    WAITS.with_borrow_mut(|waits| waits.push(PASSES.with_borrow(Vec::len)));
    WAIT.take()
}

/// Products that found no memory, and what the last one said.
pub(super) fn products() -> (u64, String) {
    (PRODUCTS.get(), FULL.to_owned())
}
