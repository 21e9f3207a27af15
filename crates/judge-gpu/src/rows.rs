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
    if comptime!(sharing.is_plane) {
        plane_sum(value)
    } else {
        let mut all = Shared::<[f32]>::new_slice(comptime!(sharing.units as usize));
        all[UNIT_POS_X as usize] = value;
        let mut half = comptime!(sharing.units / 2).runtime();
        sync_cube();
        while half > 0 {
            if UNIT_POS_X < half {
                all[UNIT_POS_X as usize] += all[(UNIT_POS_X + half) as usize];
            }
            sync_cube();
            half /= 2;
        }
        let total = all[0];
        // The next reduction writes where this one is read.
        sync_cube();
        total
    }
}

/// The largest of what the units of a row have.
#[cube]
pub(crate) fn largest(value: f32, #[comptime] sharing: Sharing) -> f32 {
    if comptime!(sharing.is_plane) {
        plane_max(value)
    } else {
        let mut all = Shared::<[f32]>::new_slice(comptime!(sharing.units as usize));
        all[UNIT_POS_X as usize] = value;
        let mut half = comptime!(sharing.units / 2).runtime();
        sync_cube();
        while half > 0 {
            if UNIT_POS_X < half {
                all[UNIT_POS_X as usize] = max(all[UNIT_POS_X as usize], all[(UNIT_POS_X + half) as usize]);
            }
            sync_cube();
            half /= 2;
        }
        let most = all[0];
        sync_cube();
        most
    }
}
