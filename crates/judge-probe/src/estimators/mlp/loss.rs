//! The loss of a batch and its gradient, by Burn's autodiff on the processor, in double precision.
//!
//! It is the only part that calls Burn. Weights go in as plain numbers and gradients come out as such; nothing of Burn's
//! is kept from one batch to the next. Tensors are double throughout, because weights are compared with scikit-learn's.

use burn::tensor::{DType, Device, Gradients, Tensor, TensorData, activation};

use super::MlpError;
use super::network::{LayerGradient, Network};
use crate::Matrix;
use crate::estimators::labels::EncodedLabels;

/// Rows to learn from together, one or more.
pub(super) struct Batch {
    /// At least 1.
    n_rows: usize,
    /// `[n_rows, n_features]`.
    features: Vec<f64>,
    /// 1 for the class of each row, 0 for the others: `[n_rows, n_classes]`.
    targets: Vec<f64>,
}

impl Batch {
    /// A copy of these rows, at least one.
    pub(super) fn of(features: &Matrix, labels: &EncodedLabels, rows: &[usize]) -> Self {
        let (n_features, n_classes) = (features.n_features(), labels.classes.len());
        let of_row = |&row: &usize| &features.values()[row * n_features..][..n_features];
        let mut targets = vec![0.0; rows.len() * n_classes];
        for (targets, &row) in targets.chunks_exact_mut(n_classes).zip(rows) {
            targets[labels.class_of_row[row]] = 1.0;
        }
        Self { n_rows: rows.len(), features: rows.iter().flat_map(of_row).copied().collect(), targets }
    }
}

/// Σ −ln p(yᵢ | xᵢ) / n + alpha ‖W‖² / (2 n) over the n rows, where ‖W‖² is of all layers' weights, and its gradient, layer by layer.
///
/// Gradients come in the order of the layers, from the features on, each shaped like its parameter. A loss or gradient
/// that is not finite is no error here: the caller looks at the loss and the weights after each pass.
///
/// Time and memory are O(n_rows · weights); the graph holds every layer's images of the batch.
///
/// [`MlpError::Backend`] where Burn gives back no numbers.
pub(super) fn of_batch(network: &Network, batch: Batch, alpha: f64) -> Result<(f64, Vec<LayerGradient>), MlpError> {
    let device = Device::flex().autodiff();
    let tensor = |values: Vec<f64>, shape: [usize; 2]| {
        Tensor::<2>::from_data(TensorData::new(values, shape), (&device, DType::F64))
    };
    let learnt = |values: &[f64], shape| tensor(values.to_vec(), shape).require_grad();
    let layers: Vec<[Tensor<2>; 2]> = network
        .layers()
        .map(|layer| {
            let weights = learnt(&layer.weights.values, [layer.n_units, layer.n_inputs]);
            [weights, learnt(&layer.intercepts.values, [1, layer.n_units])]
        })
        .collect();

    let n_rows = batch.n_rows;
    let per_row = |values: Vec<f64>| {
        let width = values.len() / n_rows;
        tensor(values, [n_rows, width])
    };
    // `per_row` divides by n_rows, which is 1 or more.
    let targets = per_row(batch.targets);
    let mut values = per_row(batch.features);
    for (index, [weights, intercepts]) in layers.iter().enumerate() {
        if index > 0 {
            values = activation::relu(values);
        }
        // [n_rows, n_inputs] x [n_inputs, n_units] + [1, n_units] -> [n_rows, n_units]
        values = values.matmul(weights.clone().transpose()) + intercepts.clone();
    }
    // Of two classes there is one function, the second's; the first's is 0.
    if values.dims()[1] == 1 {
        values = Tensor::cat(vec![tensor(vec![0.0; n_rows], [n_rows, 1]), values], 1);
    }
    // Σ ln p of the rows' classes: the targets leave one entry of each row.
    let likelihood = (activation::log_softmax(values, 1) * targets).sum();
    let squares = layers.iter().map(|[weights, _]| (weights.clone() * weights.clone()).sum());
    let penalised = squares.fold(likelihood.neg(), |sum, squares| sum + squares * (alpha / 2.0));
    // Not divided: Burn 0.22.1 takes the gradient of a division by a number through single precision.
    let loss = penalised * (1.0 / n_rows as f64);

    let mut gradients = loss.backward();
    let [loss] = host(loss)?[..] else { return Err(MlpError::Backend { message: "the loss is no number".to_owned() }) };
    let of_layer = |[weights, intercepts]: &[Tensor<2>; 2]| {
        Ok([gradient(weights, &mut gradients)?, gradient(intercepts, &mut gradients)?])
    };
    Ok((loss, layers.iter().map(of_layer).collect::<Result<_, MlpError>>()?))
}

/// Of one parameter, as numbers in the order of its values. Removes it from the gradients, so it can be asked for once.
fn gradient(learnt: &Tensor<2>, gradients: &mut Gradients) -> Result<Vec<f64>, MlpError> {
    // All that is learnt has a part in the loss.
    let gradient = learnt.grad_remove(gradients);
    host(gradient.ok_or_else(|| MlpError::Backend { message: "no gradient was kept".to_owned() })?)
}

/// A tensor's numbers, row by row. An error where they are not double.
fn host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>, MlpError> {
    tensor.into_data().try_into_vec().map_err(|error| MlpError::Backend { message: error.to_string() })
}
