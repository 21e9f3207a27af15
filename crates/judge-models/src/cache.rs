use burn::tensor::{Device, Tensor};

use crate::decoder::Masks;

/// Keys and values, each `[batch, n_kv_heads, seq, head_dim]`.
pub(crate) type KeysValues = (Tensor<4>, Tensor<4>);

/// What a pass knows of the positions before its own.
pub(crate) trait Past {
    /// Takes the new keys and values of a block, and returns all that its queries may look at, `[batch, n_kv_heads, seq_keys,
    /// head_dim]`. `window` is the number of keys that a query of the block sees.
    fn extend(&mut self, block: usize, new: KeysValues, window: Option<usize>) -> KeysValues;

    /// What the queries of the coming pass must not see of [`extend`](Self::extend)'s keys, for each of `windows`; `None`: what
    /// follows from positions that have no gap.
    fn masks(&self, windows: &[Option<usize>], n_kv_heads: usize, device: &Device) -> Option<Masks>;
}

/// Keys and values of the positions that one sequence has behind it, per block.
#[derive(Debug)]
pub(crate) struct Cache {
    blocks: Vec<Option<KeysValues>>,
}

impl Cache {
    /// An empty cache for a decoder of `n_layers` blocks.
    pub(crate) fn new(n_layers: usize) -> Self {
        Self { blocks: vec![None; n_layers] }
    }

    /// How many blocks have seen a position.
    #[cfg(test)]
    pub(crate) fn blocks_run(&self) -> usize {
        self.blocks.iter().flatten().count()
    }
}

impl Past for Cache {
    /// Puts new keys and values `[1, n_kv_heads, seq, head_dim]` behind the old ones. With a window, what no later query can see
    /// is forgotten.
    fn extend(&mut self, block: usize, (keys, values): KeysValues, window: Option<usize>) -> KeysValues {
        let (keys, values) = match self.blocks[block].take() {
            // [.., len, head_dim], [.., seq, head_dim] -> [.., len + seq, head_dim]
            Some((old_keys, old_values)) => {
                (Tensor::cat(vec![old_keys, keys], 2), Tensor::cat(vec![old_values, values], 2))
            }
            None => (keys, values),
        };
        let len = keys.dims()[2];
        // The next query sees itself and window - 1 keys before it.
        let keep = window.map_or(len, |window| len.min(window - 1));
        self.blocks[block] =
            (keep > 0).then(|| (keys.clone().narrow(2, len - keep, keep), values.clone().narrow(2, len - keep, keep)));
        (keys, values)
    }

    fn masks(&self, _: &[Option<usize>], _: usize, _: &Device) -> Option<Masks> {
        None
    }
}
