//! What queries must not see.

use burn::tensor::{Bool, Device, Tensor, TensorData};

/// What queries must not see besides what comes after them, for each window that hides something.
pub(crate) struct Masks(Vec<(Option<usize>, Tensor<4, Bool>)>);

impl Masks {
    /// One mask for each of `windows` that `mask` makes one for.
    pub(crate) fn new(
        windows: &[Option<usize>],
        mut mask: impl FnMut(Option<usize>) -> Option<Tensor<4, Bool>>,
    ) -> Self {
        let mut masks: Vec<(Option<usize>, Tensor<4, Bool>)> = Vec::new();
        for &window in windows {
            if masks.iter().all(|(known, _)| *known != window)
                && let Some(mask) = mask(window)
            {
                masks.push((window, mask));
            }
        }
        Self(masks)
    }

    /// For each window shorter than the sequence, what lies before it.
    pub(crate) fn of_windows(windows: &[Option<usize>], seq: usize, device: &Device) -> Self {
        Self::new(windows, |window| {
            let window = window.filter(|&window| window < seq)?;
            let hidden: Vec<bool> = (0..seq).flat_map(|query| (0..seq).map(move |key| key + window <= query)).collect();
            Some(Tensor::from_data(TensorData::new(hidden, [1, 1, seq, seq]), device))
        })
    }

    pub(crate) fn get(&self, window: Option<usize>) -> Option<&Tensor<4, Bool>> {
        self.0.iter().find(|(known, _)| *known == window).map(|(_, mask)| mask)
    }
}
