use super::DecoderConfig;

/// Rows of one projection as a checkpoint stores them: the name's stem and the number of rows.
pub(crate) type Part = (&'static str, usize);

impl DecoderConfig {
    /// The projections whose rows, put below one another, make queries, keys and values.
    pub(crate) fn qkv_parts(&self) -> Vec<Part> {
        let (q, k) = (self.d_query(), self.d_key());
        if self.fused_projections {
            vec![("self_attn.qkv_proj", q + 2 * k)]
        } else {
            vec![("self_attn.q_proj", q), ("self_attn.k_proj", k), ("self_attn.v_proj", k)]
        }
    }

    /// The projections whose rows, put below one another, make gate and up.
    pub(crate) fn gate_up_parts(&self) -> Vec<Part> {
        if self.fused_projections {
            vec![("mlp.gate_up_proj", 2 * self.d_ff)]
        } else {
            vec![("mlp.gate_proj", self.d_ff), ("mlp.up_proj", self.d_ff)]
        }
    }

    /// Name and shape of every tensor of a checkpoint, in the order of the forward pass.
    pub(crate) fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let mut all = vec![("model.embed_tokens.weight".to_owned(), vec![self.d_vocab, self.d_model])];
        for block in 0..self.n_layers {
            let mut add = |stem: &str, shape: Vec<usize>| all.push((format!("model.layers.{block}.{stem}"), shape));
            let norms = |names: &[&'static str]| names.iter().map(|n| format!("{n}.weight")).collect::<Vec<_>>();
            let mut linear = |parts: &[Part], d_in: usize, bias: bool| {
                for &(stem, rows) in parts {
                    add(&format!("{stem}.weight"), vec![rows, d_in]);
                    if bias {
                        add(&format!("{stem}.bias"), vec![rows]);
                    }
                }
            };
            linear(&self.qkv_parts(), self.d_model, self.qkv_bias);
            linear(&[("self_attn.o_proj", self.d_model)], self.d_query(), self.o_bias);
            linear(&self.gate_up_parts(), self.d_model, self.mlp_bias);
            linear(&[("mlp.down_proj", self.d_model)], self.d_ff, self.mlp_bias);
            let of_heads: &[&'static str] = if self.qk_norm { &["self_attn.q_norm", "self_attn.k_norm"] } else { &[] };
            for name in norms(of_heads) {
                add(&name, vec![self.head_dim]);
            }
            let names = self.norm_names();
            for name in norms(
                &[Some(names.attention), names.after_attention, Some(names.mlp), names.after_mlp]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>(),
            ) {
                add(&name, vec![self.d_model]);
            }
        }
        all.push(("model.norm.weight".to_owned(), vec![self.d_model]));
        if !self.tied {
            all.push(("lm_head.weight".to_owned(), vec![self.d_vocab, self.d_model]));
        }
        all
    }

    /// What the norms of a block are called.
    pub(crate) fn norm_names(&self) -> NormNames {
        if self.post_norms {
            NormNames {
                attention: "input_layernorm",
                after_attention: Some("post_attention_layernorm"),
                mlp: "pre_feedforward_layernorm",
                after_mlp: Some("post_feedforward_layernorm"),
            }
        } else {
            NormNames {
                attention: "input_layernorm",
                after_attention: None,
                mlp: "post_attention_layernorm",
                after_mlp: None,
            }
        }
    }
}

/// Stems of the norms of a block, by what they do. Gemma's `post_attention_layernorm` norms what attention gave;
/// everywhere else that name is the norm before the MLP.
pub(crate) struct NormNames {
    pub(crate) attention: &'static str,
    pub(crate) after_attention: Option<&'static str>,
    pub(crate) mlp: &'static str,
    pub(crate) after_mlp: Option<&'static str>,
}
