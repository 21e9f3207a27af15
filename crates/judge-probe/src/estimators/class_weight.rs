//! How much a row counts in a loss. Only the trainers read it: scoring and splitting weigh rows alike.

/// How much the rows of each class count, as scikit-learn's `class_weight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClassWeight {
    /// Every row counts 1 (`None`).
    #[default]
    Uniform,
    /// A row counts n_rows / (n_classes · rows of its class), so that every class counts the same and all rows n_rows together
    /// (`"balanced"`).
    Balanced,
}

/// What the rows of each class count, of all rows together 1.
pub(crate) struct Shares {
    /// A row of each class.
    pub(crate) of_row: Vec<f64>,
    /// All rows of each class.
    pub(crate) of_class: Vec<f64>,
    /// The sum of all rows' weights before they are scaled.
    pub(crate) sum: f64,
}

impl ClassWeight {
    /// [`of_classes`](Self::of_classes), scaled.
    pub(crate) fn shares(self, counts: &[usize]) -> Shares {
        let of_row = self.of_classes(counts);
        let of_class: Vec<f64> = of_row.iter().zip(counts).map(|(weight, &count)| weight * count as f64).collect();
        let sum: f64 = of_class.iter().sum();
        let scaled = |weights: Vec<f64>| weights.into_iter().map(|weight| weight / sum).collect();
        Shares { of_row: scaled(of_row), of_class: scaled(of_class), sum }
    }

    /// The weight of a row of each class, given the rows of each.
    ///
    /// Every count must be above 0, which those of `EncodedLabels` are.
    pub(crate) fn of_classes(self, counts: &[usize]) -> Vec<f64> {
        match self {
            Self::Uniform => vec![1.0; counts.len()],
            Self::Balanced => {
                let n_rows = counts.iter().sum::<usize>() as f64;
                counts.iter().map(|count| n_rows / (counts.len() * count) as f64).collect()
            }
        }
    }
}
