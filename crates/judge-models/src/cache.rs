use burn::tensor::Tensor;

/// Keys and values of the positions that one sequence has behind it, per block.
#[derive(Debug)]
pub(crate) struct Cache {
    blocks: Vec<Option<(Tensor<4>, Tensor<4>)>>,
}

impl Cache {
    /// An empty cache for a decoder of `n_layers` blocks.
    pub(crate) fn new(n_layers: usize) -> Self {
        Self { blocks: vec![None; n_layers] }
    }

    /// Puts new keys and values `[1, n_kv_heads, seq, head_dim]` of a block behind its old ones and returns all
    /// that a query may see. With a window, what no later query can see is forgotten.
    pub(crate) fn extend(
        &mut self,
        block: usize,
        keys: Tensor<4>,
        values: Tensor<4>,
        window: Option<usize>,
    ) -> (Tensor<4>, Tensor<4>) {
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

    /// How many blocks have seen a position.
    #[cfg(test)]
    pub(crate) fn blocks_run(&self) -> usize {
        self.blocks.iter().flatten().count()
    }
}
