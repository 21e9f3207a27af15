//! The arguments of a call, and how Python gives them to parameters.

use std::sync::Arc;

use super::fault::{Result, fault};
use super::value::Value;

/// The arguments of a call.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(Arc<str>, Value)>,
}

impl Call {
    /// Gives the arguments to the parameters of `what`, in their order or by their names. Names that begin with `_` take no
    /// argument by name.
    ///
    /// # Errors
    /// For too many, for a name that is not among them, and for one that is given twice.
    pub(crate) fn bind<const N: usize>(self, what: &str, parameters: [&str; N]) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            return fault(format!("{what} takes at most {N} arguments, not {}", self.positional.len()));
        }
        let mut bound = [const { None }; N];
        for (slot, value) in bound.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (name, value) in self.named {
            match parameters.iter().position(|p| **p == *name && !p.starts_with('_')) {
                Some(i) if bound[i].is_none() => bound[i] = Some(value),
                Some(_) => return fault(format!("{what} got multiple values for argument '{name}'")),
                None => return fault(format!("{what} got an unexpected keyword argument '{name}'")),
            }
        }
        Ok(bound)
    }

    /// As [`bind`](Self::bind), where each parameter needs an argument.
    pub(crate) fn required<const N: usize>(self, what: &str, parameters: [&str; N]) -> Result<[Value; N]> {
        let bound = self.bind(what, parameters)?;
        if let Some(i) = bound.iter().position(Option::is_none) {
            return fault(format!("{what} missing required argument '{}'", parameters[i].trim_start_matches('_')));
        }
        Ok(bound.map(|value| value.unwrap_or(Value::None)))
    }

    /// Refuses arguments by name.
    pub(crate) fn unnamed(self, what: &str) -> Result<Vec<Value>> {
        match self.named.first() {
            None => Ok(self.positional),
            Some((name, _)) => fault(format!("{what} got an unexpected keyword argument '{name}'")),
        }
    }
}
