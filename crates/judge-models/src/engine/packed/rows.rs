//! Rows of activations, and the memory that they lie in.

use super::lines::Lines;

/// Rows of one width.
pub(crate) struct Rows {
    pub(super) data: Lines<f32>,
    pub(super) width: usize,
}

impl Rows {
    pub(super) fn count(&self) -> usize {
        self.data.len() / self.width.max(1)
    }
}

/// Buffers of passes that are over, for those to come: fresh memory must be cleared by the system, page by page, which costs as much
/// as a small product.
#[derive(Default)]
pub(crate) struct BufferPool {
    free: Vec<Lines<f32>>,
    /// Activations as the products take them.
    pub(super) words: Lines<u32>,
}

impl BufferPool {
    /// Numbers that are anything: every body writes all of its output.
    pub(super) fn rows(&mut self, count: usize, width: usize) -> Rows {
        let len = count * width;
        // The smallest that is large enough, else the largest, which then grows.
        let fits = |buffer: &Lines<f32>| buffer.capacity() >= len;
        let best = self.free.iter().enumerate().min_by_key(|(_, buffer)| {
            (!fits(buffer), if fits(buffer) { buffer.capacity() } else { usize::MAX - buffer.capacity() })
        });
        let mut data = match best.map(|(index, _)| index) {
            Some(index) => self.free.swap_remove(index),
            None => Lines::default(),
        };
        data.resize(len);
        Rows { data, width }
    }

    pub(super) fn give_back(&mut self, rows: Rows) {
        self.free.push(rows.data);
    }
}
