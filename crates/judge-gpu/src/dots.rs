//! Scalar products of rows with rows, in f32.

use burn::tensor::{DType, Tensor};
use cubecl::prelude::*;

use crate::rows::{Sharing, row, sum};
use crate::tensors::{burn, contiguous, empty};

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    /// Numbers of a row.
    width: usize,
    sharing: Sharing,
}

/// The scalar product of each row of `x` `[rows, width]` with each of `with` `[others, width]`, all in f32: `[rows, others]`.
///
/// The order of a sum depends on the width and on the device alone: a number has the same bits whatever other rows there are.
pub fn dots(x: Tensor<2>, with: Tensor<2>) -> Tensor<2> {
    let ([rows, width], [others, _]) = (x.dims(), with.dims());
    let (x, with) = (contiguous(x), contiguous(with));
    let out = empty(&x, [rows, others], DType::F32);
    if rows * others == 0 {
        return burn(out);
    }
    let sharing = Sharing::of(&x.client);
    let (count, dim) = sharing.launch(rows * others);
    let client = x.client.clone();
    // SAFETY: units beyond the last product end at once, and the others read two rows within their width.
    unsafe {
        dots_of_rows::launch_unchecked(
            &client,
            count,
            dim,
            x.into_buffer_arg(),
            with.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            (rows * others) as u32,
            others as u32,
            Kind { width, sharing },
        );
    }
    burn(out)
}

#[cube(launch_unchecked)]
fn dots_of_rows(x: &[f32], with: &[f32], out: &mut [f32], products: u32, others: u32, #[comptime] kind: Kind) {
    let place = row(kind.sharing);
    if place >= products as usize {
        terminate!();
    }
    let width = comptime!(kind.width);
    let a = place / others as usize * width;
    let b = place % others as usize * width;
    let mut total = 0.0f32;
    for i in range_stepped(UNIT_POS_X as usize, width, comptime!(kind.sharing.units as usize)) {
        total += x[a + i] * with[b + i];
    }
    let total = sum(total, kind.sharing);
    if UNIT_POS_X == 0 {
        out[place] = total;
    }
}
