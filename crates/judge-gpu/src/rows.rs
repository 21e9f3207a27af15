//! Sums and maxima over a row, by the units that share it.
//!
//! A row is shared by the units of one plane where all planes of a device are of one size, several
//! rows to a cube, and by all units of a cube elsewhere. Every unit of them gets the result. The
//! order of a sum depends on the width of a row and on the device, and on nothing else.

use cubecl::client::Client;
use cubecl::ir::features::Plane;
use cubecl::prelude::*;

/// Units of a cube where rows are shared by whole cubes.
const UNITS: u32 = 64;

/// Rows of a cube where each has a plane.
const ROWS: u32 = 4;

/// How rows are shared on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sharing {
    /// Units of a row.
    pub(crate) units: u32,
    /// Rows of a cube: more than one only where a row is a plane's.
    pub(crate) rows: u32,
    /// Whether a row is a plane's.
    pub(crate) is_plane: bool,
}

impl Sharing {
    /// How a device's units share rows.
    pub(crate) fn of(client: &Client) -> Self {
        let properties = client.properties();
        let (least, most) = (properties.hardware.plane_size_min, properties.hardware.plane_size_max);
        if least == most && most >= 8 && properties.features.plane.contains(Plane::Ops) {
            return Self { units: most, rows: ROWS, is_plane: true };
        }
        Self { units: UNITS.min(properties.hardware.max_units_per_cube), rows: 1, is_plane: false }
    }

    /// The cubes for so many rows, and the units of each.
    pub(crate) fn launch(self, rows: usize) -> (CubeCount, CubeDim) {
        /// Cubes along the first axis: every device has room for so many.
        const MOST: u32 = 1 << 15;
        let cubes = u32::try_from(rows).unwrap_or(u32::MAX).div_ceil(self.rows);
        let count = CubeCount::Static(cubes.min(MOST), cubes.div_ceil(MOST), 1);
        (count, CubeDim::new_2d(self.units, self.rows))
    }
}

/// The row of this unit.
#[cube]
pub(crate) fn row(#[comptime] sharing: Sharing) -> usize {
    CUBE_POS * (sharing.rows as usize) + UNIT_POS_Y as usize
}

/// The sum of what the units of a row have.
#[cube]
pub(crate) fn sum(value: f32, #[comptime] sharing: Sharing) -> f32 {
    if comptime!(sharing.is_plane) { plane_sum(value) } else { of_cube(value, true, sharing) }
}

/// The largest of what the units of a row have.
#[cube]
pub(crate) fn largest(value: f32, #[comptime] sharing: Sharing) -> f32 {
    if comptime!(sharing.is_plane) { plane_max(value) } else { of_cube(value, false, sharing) }
}

/// The sum, or else the largest, of what the units of a cube have: in pairs that are half of them apart.
#[cube]
fn of_cube(value: f32, #[comptime] is_sum: bool, #[comptime] sharing: Sharing) -> f32 {
    let unit = UNIT_POS_X as usize;
    let mut all = Shared::<[f32]>::new_slice(comptime!(sharing.units as usize));
    all[unit] = value;
    let mut half = comptime!(sharing.units as usize / 2).runtime();
    sync_cube();
    while half > 0 {
        if unit < half {
            if comptime!(is_sum) {
                all[unit] += all[unit + half];
            } else {
                all[unit] = max(all[unit], all[unit + half]);
            }
        }
        sync_cube();
        half /= 2;
    }
    let found = all[0];
    // The next reduction writes where this one is read.
    sync_cube();
    found
}

#[cfg(all(test, feature = "wgpu"))]
#[allow(clippy::print_stderr)] // what was skipped
mod tests {
    use burn::tensor::{DType, Device, DeviceType, Tensor};

    use super::*;
    use crate::tensors::{burn, contiguous, empty};

    #[cube(launch_unchecked)]
    fn sum_and_largest(x: &[f32], out: &mut [f32], #[comptime] sharing: Sharing) {
        let value = x[UNIT_POS_X as usize];
        let (total, most) = (sum(value, sharing), largest(value, sharing));
        if UNIT_POS_X == 0 {
            out[0] = total;
            out[1] = most;
        }
    }

    /// A device has one way to share rows; here each is taken, so that neither is left untried.
    #[test]
    fn planes_and_cubes_find_the_same() {
        let Some(device) = Device::enumerate(DeviceType::Wgpu).into_vec().into_iter().next() else {
            return eprintln!("skipped: wgpu finds no GPU and no software adapter");
        };
        let x = contiguous(Tensor::<1>::from_floats([1.0; 64], &device));
        let own = Sharing { rows: 1, ..Sharing::of(&x.client) };
        for sharing in
            [own, Sharing { units: 64, rows: 1, is_plane: false }, Sharing { units: 8, rows: 1, is_plane: false }]
        {
            // The largest is the last, which only the first of all pairs has.
            let mut values = vec![-2.0f32; sharing.units as usize];
            values[sharing.units as usize - 1] = 3.0;
            let given = contiguous(Tensor::<1>::from_floats(values.as_slice(), &device));
            let (client, out) = (given.client.clone(), empty(&given, [2], DType::F32));
            let (count, dim) = sharing.launch(1);
            // SAFETY: there are as many numbers as units, and two places for what comes out.
            unsafe {
                let (given, out) = (given.into_buffer_arg(), out.clone().into_buffer_arg());
                sum_and_largest::launch_unchecked(&client, count, dim, given, out, sharing);
            }
            let found = burn::<1>(out).into_data().try_to_vec::<f32>().unwrap();
            assert_eq!(found, [3.0 - 2.0 * (sharing.units - 1) as f32, 3.0], "{sharing:?}");
        }
    }
}
