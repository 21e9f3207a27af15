//! A projection with what belongs to it: its low-rank terms and its factors.

use burn::module::Param;
use burn::tensor::{DType, Tensor};

use super::ops;
use super::parameters::Linear;
use super::precision::{Precision, widen};

/// `x` `[batch, seq, d_in]` through a projection, `[batch, seq, d_out]`. It has the dtype of the matrix, or f32 where
/// there is a bias, a low-rank term or a factor.
pub(super) fn project(x: Tensor<3>, linear: &Linear, precision: Precision) -> Tensor<3> {
    let beside = low_rank(&x, linear);
    let y = ops::linear(x, linear.weight.val(), linear.bias.as_ref().map(Param::val), precision);
    let y = match beside {
        Some(beside) => widen(y) + beside,
        None => y,
    };
    ops::scaled(y, &linear.factors)
}

/// The residual stream `onto` `[batch, seq, d_out]` in f32 and `factor` times what a projection adds to it, in f32.
pub(super) fn project_onto(
    x: Tensor<3>,
    linear: &Linear,
    onto: Tensor<3>,
    factor: Option<f64>,
    precision: Precision,
) -> Tensor<3> {
    if linear.low_rank.is_empty() && linear.factors.is_empty() {
        let bias = linear.bias.as_ref().map(Param::val);
        return ops::linear_onto(x, linear.weight.val(), bias, onto, factor, precision);
    }
    ops::added(onto, project(x, linear, precision), factor)
}

/// The dtype in which a projection takes its rows without a conversion.
pub(super) fn taken(linear: &Linear) -> DType {
    if linear.low_rank.is_empty() { linear.weight.val().dtype() } else { DType::F32 }
}

/// The sum of a projection's low-rank terms, `[batch, seq, d_in]` to `[batch, seq, d_out]` in f32: zeros in
/// the columns of matrices without one. `None` if it has none.
fn low_rank(x: &Tensor<3>, linear: &Linear) -> Option<Tensor<3>> {
    let ([batch, seq, d_in], [d_out, _]) = (x.dims(), linear.weight.dims());
    let zeros = |columns: usize| Tensor::zeros([batch * seq, columns], (&x.device(), DType::F32));
    let rows = (!linear.low_rank.is_empty()).then(|| widen(x.clone()).reshape([batch * seq, d_in]))?;
    let (mut parts, mut end) = (Vec::new(), 0);
    for term in &linear.low_rank {
        if term.rows.start > end {
            parts.push(zeros(term.rows.start - end));
        }
        // [batch * seq, d_in] -> [batch * seq, rank] -> [batch * seq, rows of the matrix]
        let narrow = rows.clone().matmul(term.a.val().transpose());
        parts.push(narrow.matmul(term.b.val().transpose()).mul_scalar(term.scale));
        end = term.rows.end;
    }
    if end < d_out {
        parts.push(zeros(d_out - end));
    }
    let all = if parts.len() == 1 { parts.pop()? } else { Tensor::cat(parts, 1) };
    Some(all.reshape([batch, seq, d_out])) // [batch * seq, d_out] -> [batch, seq, d_out]
}
