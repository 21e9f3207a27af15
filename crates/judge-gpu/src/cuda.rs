//! What of CUDA a machine has, before anything runs on a GPU.

use cudarc::driver::{DriverError, result};

/// Whether the driver can be loaded.
pub fn has_driver() -> bool {
    // SAFETY: it only tries to load a library by each of its names.
    unsafe { cudarc::driver::sys::is_culib_present() }
}

/// Whether the compiler of kernels, NVRTC, can be loaded.
pub fn has_compiler() -> bool {
    // SAFETY: as above.
    unsafe { cudarc::nvrtc::sys::is_culib_present() }
}

/// Bytes of memory that GPU `index` has in all, used or not. There must be a [driver](has_driver).
///
/// # Errors
/// The driver's code, if it does not say it.
pub fn memory(index: usize) -> Result<u64, u32> {
    let code = |error: DriverError| error.0 as u32;
    result::init().map_err(code)?;
    let device = result::device::get(i32::try_from(index).unwrap_or(i32::MAX)).map_err(code)?;
    // SAFETY: the device is one that the driver has just given.
    let bytes = unsafe { result::device::total_mem(device) }.map_err(code)?;
    Ok(bytes as u64)
}
