//! From a device to the host, and the failures on the way as errors.
//!
//! Burn queues operations and returns handles; a failure shows when something waits, and in places
//! as a panic. Everything of this engine that waits, or that queues work which may panic, goes
//! through these functions, so that a full GPU is an [`Error::Device`] and not the end of the
//! program.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use burn::tensor::Tensor;
use judge_core::panicked;

use crate::Error;

/// The values of a tensor, row-major in f32 on the host. The tensor must be f32.
///
/// # Errors
/// [`Error::Device`] if an operation that the tensor depends on failed, or if its dtype is another
/// one.
pub(crate) fn host<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, Error> {
    let data = from_device(|| tensor.try_into_data())?;
    data.try_into_vec().map_err(|source| Error::Device { source: Box::new(source) })
}

/// The values of a tensor as [`host`] gives them, where work on a device has to know them and returns no errors: a failure unwinds to
/// the [`on_device`] around it, which returns it as it is.
pub(super) fn host_within<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    host(tensor).unwrap_or_else(|error| panic::resume_unwind(Box::new(error)))
}

/// What `wait` brings from a device, once all operations before it are done.
///
/// # Errors
/// [`Error::Device`] for an error or a panic of `wait`.
pub(crate) fn from_device<T, E>(wait: impl FnOnce() -> Result<T, E>) -> Result<T, Error>
where
    E: std::error::Error + Send + Sync + 'static,
{
    on_device(|| {
        #[cfg(test)]
        if let Some(said) = super::faults::wait() {
            return Err(Error::Device { source: said.into() });
        }
        let found = wait().map_err(|error| Error::Device { source: Box::new(error) })?;
        // Burn does not see products that are none of its own.
        #[cfg(any(feature = "cuda", feature = "wgpu"))]
        if let Some(failure) = judge_gpu::failure() {
            return Err(Error::Device { source: failure.into() });
        }
        Ok(found)
    })
}

/// Whether an error says that a device had no memory left for something, which may fit in a smaller pass. cubecl's errors reach this place
/// as text, in Burn's errors and in panics.
pub(super) fn is_memory(error: &Error) -> bool {
    const SAID: [&str; 3] =
        ["out of device memory allocating", "An out-of-memory error happened", "can't allocate buffer of size"];
    let Error::Device { source } = error else { return false };
    let text = source.to_string();
    SAID.iter().any(|said| text.contains(said)) && !text.contains("device is poisoned")
}

/// What `work` does with tensors, with a panic of Burn as an error. Burn panics in places where a
/// device has no memory left or an operation before failed.
///
/// `work` must take along what it works on, or drop it afterwards, so that nothing half done is
/// used later. Code of others, such as a request's sink, must not be called within: its panics are
/// its own.
///
/// # Errors
/// Those of `work`, unchanged, also where they unwind ([`host_within`]), and [`Error::Device`] with the message of a panic.
pub(crate) fn on_device<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let panicked = |panic: Box<dyn Any + Send>| match panic.downcast::<Error>() {
        Ok(error) => *error,
        Err(panic) => Error::Device { source: panicked::message(&*panic).into() },
    };
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(panic)))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{DType, Device};

    use super::*;

    #[test]
    fn a_device_s_failures_are_errors_where_burn_panics_too() {
        let failed = |wait: fn() -> Result<(), std::fmt::Error>| match from_device(wait) {
            Err(Error::Device { source }) => source.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(failed(|| Err(std::fmt::Error)), std::fmt::Error.to_string());
        assert_eq!(failed(|| panic!("never written")), "never written");
        assert_eq!(failed(|| panic!("tensor {} was never written", 3)), "tensor 3 was never written");
        assert_eq!(failed(|| panic::panic_any(3)), "a panic without a message");
        assert_eq!(from_device(|| Ok::<_, std::fmt::Error>(3)).unwrap(), 3);
        // An error that is one already stays what it is.
        let refused = on_device(|| Err::<(), _>(Error::UnknownDevice { found: "f8".to_owned() })).unwrap_err();
        assert!(matches!(refused, Error::UnknownDevice { .. }), "{refused}");
    }

    #[test]
    fn a_failure_within_work_that_returns_no_errors_is_the_error_of_the_wait() {
        let halves = Tensor::<1>::from_data([1.0_f32, 2.0], &Device::flex()).cast(DType::BF16);
        let Err(expected) = host(halves.clone()) else { panic!("numbers that are not f32") };
        let found = on_device(|| Ok(host_within(halves))).unwrap_err();
        assert_eq!(found.to_string(), expected.to_string());
        assert!(matches!(found, Error::Device { .. }));
        let numbers = Tensor::<1>::from_data([1.0_f32, 2.0], &Device::flex());
        assert_eq!(on_device(|| Ok(host_within(numbers))).unwrap(), [1.0, 2.0]);
    }
}
