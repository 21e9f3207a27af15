//! Projections and norms by the names of their tensors: the parts that every description is made
//! of.
//!
//! Engines turn them into weights through the trait `Build` of `engine/block.rs`. Nothing here
//! knows what a part is used for.

/// A projection `x · Wᵀ + b`, where `W` is one or more matrices of a checkpoint with their rows
/// below one another. Engines multiply by all of them at once.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSpec {
    /// Names without `.weight` and `.bias`, each with its number of rows, from the top down.
    pub stems: Vec<(String, usize)>,
    /// Columns of each matrix.
    pub d_in: usize,
    /// Whether each matrix has a bias; all have one or none has.
    pub bias: bool,
    /// Factors on what the projection gives, its bias included: runs of columns with the factor of
    /// each, all columns together (Falcon-H1). Empty: there are none.
    pub factors: Vec<(usize, f32)>,
}

/// Full names of tensors of a checkpoint, each with its number of rows.
pub type NamedRows = Vec<(String, usize)>;

impl LinearSpec {
    /// A projection without factors.
    pub(crate) fn plain(stems: Vec<(String, usize)>, d_in: usize, bias: bool) -> Self {
        Self { stems, d_in, bias, factors: Vec::new() }
    }

    /// The projection with these factors; none are kept where all are 1.
    pub(crate) fn with_factors(self, factors: &[(usize, f32)]) -> Self {
        let is_plain = factors.iter().all(|&(_, factor)| factor == 1.0);
        Self { factors: if is_plain { Vec::new() } else { factors.to_vec() }, ..self }
    }

    /// Names and shapes of its matrices, each followed by that of its bias where there is one.
    pub fn tensors(&self) -> Vec<NamedShape> {
        let mut all = Vec::with_capacity(self.stems.len());
        for (stem, rows) in &self.stems {
            all.push((format!("{stem}.weight"), vec![*rows, self.d_in]));
            if self.bias {
                all.push((format!("{stem}.bias"), vec![*rows]));
            }
        }
        all
    }

    /// Full names of its matrices, `[rows, d_in]` each, from the top down.
    pub fn weights(&self) -> NamedRows {
        self.stems.iter().map(|(stem, rows)| (format!("{stem}.weight"), *rows)).collect()
    }

    /// Full names of its biases, `[rows]` each, in the order of the matrices. Empty without biases.
    pub fn biases(&self) -> NamedRows {
        self.stems.iter().filter(|_| self.bias).map(|(stem, rows)| (format!("{stem}.bias"), *rows)).collect()
    }
}

/// The weight of a norm, and its bias where it has one. What the norm computes is
/// `ModelSpec::norm_kind`, LayerNorm in encoders; norms of heads are always root-mean-square norms.
#[derive(Clone, Debug, PartialEq)]
pub struct NormSpec {
    /// Full name of the tensor, `[len]`.
    pub name: String,
    /// Width of the rows that are normed.
    pub len: usize,
    /// Added to every stored number: 1 where a stored `w` stands for `1 + w` (Gemma 2 and 3,
    /// Qwen3.5), otherwise 0.
    pub offset: f32,
    /// Multiplies the weight: 1 unless a constant factor follows the norm, which is folded in here
    /// (the router of Gemma 4).
    pub factor: f32,
    /// Full name of the bias `[len]`, which is added after the weight; LayerNorm alone has one.
    /// Engines keep it behind the weight, as one vector `[2 * len]`.
    pub bias: Option<String>,
}

impl NormSpec {
    /// A norm `{stem}.weight` without offset and factor; with `bias` there is `{stem}.bias` too.
    pub fn plain(stem: &str, len: usize, bias: bool) -> Self {
        let name = |of: &str| format!("{stem}.{of}");
        Self { name: name("weight"), len, offset: 0.0, factor: 1.0, bias: bias.then(|| name("bias")) }
    }

    /// Names and shapes of the weight and of the bias where there is one.
    pub fn tensors(&self) -> impl Iterator<Item = NamedShape> {
        [&self.name].into_iter().chain(&self.bias).map(|name| (name.clone(), vec![self.len]))
    }

    /// `(stored + offset) * factor` in f32, the number that the norm multiplies by.
    pub fn weight(&self, stored: f32) -> f32 {
        (stored + self.offset) * self.factor
    }
}

/// A tensor of a checkpoint: its full name and its shape.
pub type NamedShape = (String, Vec<usize>);
