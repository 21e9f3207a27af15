//! What blocks are put together from: projections and norms, by the names of their tensors.

/// A projection: matrices of a checkpoint whose rows lie below one another, and their biases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinearSpec {
    /// Names without `.weight` and `.bias`, each with its number of rows.
    pub(crate) stems: Vec<(String, usize)>,
    pub(crate) d_in: usize,
    pub(crate) bias: bool,
}

/// Tensors of a checkpoint, each with its number of rows.
pub(crate) type NamedRows = Vec<(String, usize)>;

impl LinearSpec {
    /// Its matrices, each with its bias where there is one.
    pub(super) fn tensors(&self) -> Vec<NamedShape> {
        let mut all = Vec::with_capacity(self.stems.len());
        for (stem, rows) in &self.stems {
            all.push((format!("{stem}.weight"), vec![*rows, self.d_in]));
            if self.bias {
                all.push((format!("{stem}.bias"), vec![*rows]));
            }
        }
        all
    }

    /// Its matrices, `[rows, d_in]` each.
    pub(crate) fn weights(&self) -> NamedRows {
        self.stems.iter().map(|(stem, rows)| (format!("{stem}.weight"), *rows)).collect()
    }

    /// Its biases, `[rows]` each.
    pub(crate) fn biases(&self) -> NamedRows {
        self.stems.iter().filter(|_| self.bias).map(|(stem, rows)| (format!("{stem}.bias"), *rows)).collect()
    }
}

/// The weight of a norm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NormSpec {
    /// The tensor's full name.
    pub(crate) name: String,
    pub(crate) len: usize,
    /// What is added to what is stored: 1 where a weight `w` stands for `1 + w` (Gemma).
    pub(crate) offset: f32,
    /// What that is multiplied by, 1 unless what comes behind the norm has a factor.
    pub(crate) factor: f32,
}

impl NormSpec {
    /// The weight of a norm from what is stored.
    pub(crate) fn weight(&self, stored: f32) -> f32 {
        (stored + self.offset) * self.factor
    }
}

/// A tensor of a checkpoint: its name and shape.
pub(crate) type NamedShape = (String, Vec<usize>);
