//! [`Rows`] of activations, and the [`BufferPool`] that their memory comes from.
//!
//! The operations of a block take rows, return rows and give back those that they have used up. One
//! pool lives as long as the passes of a group, in `run.rs`. Fresh memory must be cleared by the
//! system, page by page, which costs as much as a small product; buffers that come back are used
//! again uncleared.
use judge_kernels::lines::Lines;

/// A matrix of activations, `[count, width]`, row-major.
pub(crate) struct Rows {
    /// `count * width` numbers.
    pub(super) data: Lines<f32>,
    /// Numbers of a row.
    pub(super) width: usize,
}

impl Rows {
    /// Number of rows; 0 if the width is.
    pub(super) fn count(&self) -> usize {
        self.data.len() / self.width.max(1)
    }
}

/// Buffers that are free. It only grows: it ends with as many as were in use at the same time.
#[derive(Default)]
pub(crate) struct BufferPool {
    /// Buffers that were given back, of any length.
    free: Vec<Lines<f32>>,
    /// Scratch memory of products; see [`PackedLinear::product`](judge_kernels::pack::PackedLinear::product).
    pub(super) words: Lines<u32>,
}

impl BufferPool {
    /// A buffer for `[count, width]`. Its numbers are unspecified: the caller writes all of them.
    ///
    /// Takes the smallest free buffer that is large enough, or else the largest, which then grows.
    /// So large buffers stay for large results, and few buffers grow.
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

    /// Takes back rows that are no longer needed.
    pub(super) fn give_back(&mut self, rows: Rows) {
        self.free.push(rows.data);
    }
}
