//! A value of a pickle with the path to it, so that every complaint says where: `pickle.classifier.coef_`. Reading attributes and checking
//! their types is here, what they must be for a classifier is not.
//!
//! Every method that reads a type refuses another one. Nothing is converted except integers to floats in
//! `number` and whole floats to integers in `integers`.

use super::ImportError;
use crate::pickle::{Array, Data, Object, Value};

/// A value and the way to it.
///
/// `'p` is the borrow of the tree, `'a` that of the pickle's bytes.
#[derive(Debug)]
pub(super) struct Place<'p, 'a> {
    /// The value itself, never copied.
    pub(super) value: &'p Value<'a>,
    /// As Python would write it, from `pickle` on.
    pub(super) path: String,
}

impl<'p, 'a> Place<'p, 'a> {
    /// The pickle's own value, from which all paths begin.
    pub(super) fn root(value: &'p Value<'a>) -> Self {
        Self { value, path: "pickle".to_owned() }
    }

    /// A problem at this place.
    pub(super) fn error(&self, problem: impl Into<String>) -> ImportError {
        ImportError { path: self.path.clone(), problem: problem.into() }
    }

    /// The problem of a value that is of another kind than it must be.
    pub(super) fn unexpected(&self, expected: &'static str) -> ImportError {
        self.error(format!("expected {expected}, found {}", self.value.kind()))
    }

    /// The problem of so many things where there must be another number of them.
    pub(super) fn count_error(&self, what: &'static str, expected: usize, found: usize) -> ImportError {
        self.error(format!("expected {expected} {what}, found {found}"))
    }

    /// The problem of a number, the `index`th row by row, that is NaN, infinite or otherwise out of range.
    pub(super) fn number_error(&self, expected: &str, index: usize, found: f64) -> ImportError {
        self.error(format!("expected {expected} at {index}, found {found}"))
    }

    /// The problem of something that must be there and is not, as what a classifier that was not fitted lacks.
    pub(super) fn missing(&self) -> ImportError {
        self.error("missing")
    }

    /// The problem of a setting under which the object does otherwise than is done here.
    ///
    /// The text found is cut at 100 characters.
    pub(super) fn setting_error(&self, expected: &'static str, found: &str) -> ImportError {
        let found: String = found.chars().take(100).collect();
        self.error(format!("expected {expected}, found {found:?}"))
    }

    /// Refuses a setting of this object that is on.
    pub(super) fn check_off(&self, name: &str, expected: &'static str) -> Result<(), ImportError> {
        let setting = self.get(name)?;
        if setting.flag()? { Err(setting.setting_error(expected, "True")) } else { Ok(()) }
    }

    /// An attribute of an object or an entry of a dictionary, if it is there and not None.
    ///
    /// An absent attribute and None are the same here: scikit-learn uses None for settings that are not given.
    pub(super) fn find(&self, name: &str) -> Option<Self> {
        let value = match self.value {
            Value::Object(object) => object.get(name),
            other => other.get(name),
        };
        value.filter(|value| **value != Value::None).map(|value| self.within(value, &format!(".{name}")))
    }

    /// The same, where it must be there.
    ///
    /// # Errors
    ///
    /// That it is missing, at the path that the attribute would have.
    pub(super) fn get(&self, name: &str) -> Result<Self, ImportError> {
        self.find(name).ok_or_else(|| self.within(self.value, &format!(".{name}")).missing())
    }

    /// A value inside this one; `step` is how Python would write the way to it.
    ///
    /// The step is not checked; a dot or brackets are part of it.
    pub(super) fn within(&self, value: &'p Value<'a>, step: &str) -> Self {
        Self { value, path: format!("{}{step}", self.path) }
    }

    /// An object, whose class is still to be asked for.
    pub(super) fn object(&self) -> Result<&'p Object<'a>, ImportError> {
        match self.value {
            Value::Object(object) => Ok(object),
            _ => Err(self.unexpected("a fitted object of scikit-learn's")),
        }
    }

    /// The items of a list or tuple, each with its place. Their number is bounded by the pickle's limits.
    pub(super) fn items(&self) -> Result<Vec<Self>, ImportError> {
        match self.value {
            Value::List(items) | Value::Tuple(items) => {
                Ok(items.iter().enumerate().map(|(index, item)| self.within(item, &format!("[{index}]"))).collect())
            }
            _ => Err(self.unexpected("a list")),
        }
    }

    /// A text, copied.
    pub(super) fn text(&self) -> Result<String, ImportError> {
        match self.value {
            Value::Str(text) => Ok((*text).to_owned()),
            _ => Err(self.unexpected("text")),
        }
    }

    /// A truth value; 0 and 1 are none, because scikit-learn writes none.
    ///
    /// NumPy's truth values have become plain ones when the pickle was read.
    pub(super) fn flag(&self) -> Result<bool, ImportError> {
        match self.value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(self.unexpected("True or False")),
        }
    }

    /// A whole number of at least 0.
    ///
    /// # Errors
    ///
    /// For a negative one. An upper bound is the caller's to set, before anything is allocated by it.
    pub(super) fn count(&self) -> Result<usize, ImportError> {
        match self.value {
            Value::Int(count) => usize::try_from(*count).map_err(|_| self.number_error("at least 0", 0, *count as f64)),
            _ => Err(self.unexpected("an integer")),
        }
    }

    /// A finite number, whole or not.
    ///
    /// An integer beyond 2⁵³ is rounded.
    pub(super) fn number(&self) -> Result<f64, ImportError> {
        match self.value {
            Value::Float(number) => self.finite(vec![*number]).map(|_| *number),
            Value::Int(number) => Ok(*number as f64),
            _ => Err(self.unexpected("a number")),
        }
    }

    /// An array of any kind.
    fn array(&self) -> Result<&'p Array<'a>, ImportError> {
        match self.value {
            Value::Array(array) => Ok(array),
            _ => Err(self.unexpected("an array")),
        }
    }

    /// The shape of an array of two axes, both of at least 1.
    ///
    /// Without this check a matrix without rows or features would only fail later, with less to say about where.
    pub(super) fn shape(&self) -> Result<[usize; 2], ImportError> {
        match *self.array()?.shape() {
            [n_rows, n_columns] if n_rows > 0 && n_columns > 0 => Ok([n_rows, n_columns]),
            _ => Err(self.unexpected("an array of rows and columns")),
        }
    }

    /// The finite floats of an array of this shape, row by row.
    ///
    /// Arrays of integers are refused: coefficients of whole numbers would mean that something else was saved. The shape is compared
    /// before the numbers are decoded.
    pub(super) fn floats(&self, shape: &[usize]) -> Result<Vec<f64>, ImportError> {
        let array = self.array()?;
        self.check_shape(array, shape)?;
        self.finite(array.floats().ok_or_else(|| self.unexpected("an array of floats"))?)
    }

    /// One of the floats of an array of one axis: the others may be anything.
    pub(super) fn float_at(&self, index: usize) -> Result<f64, ImportError> {
        let array = self.array()?;
        self.check_shape(array, &[array.shape().iter().product()])?;
        let all = array.floats().ok_or_else(|| self.unexpected("an array of floats"))?;
        let too_few = || self.count_error("candidates or more", index.saturating_add(1), all.len());
        let found = *all.get(index).ok_or_else(too_few)?;
        self.finite(vec![found]).map(|_| found)
    }

    /// The integers of an array of one axis, of any length.
    ///
    /// Truth values count as 0 and 1, as a classifier fitted on them orders them. Floats must be whole.
    pub(super) fn integers(&self) -> Result<Vec<i64>, ImportError> {
        let array = self.array()?;
        self.check_shape(array, &[array.shape().iter().product()])?;
        match (array.integers(), array.floats()) {
            (Some(integers), _) => Ok(integers),
            (None, Some(floats)) => self.whole(&floats),
            _ => Err(self.unexpected("an array of integers")),
        }
    }

    /// The texts of an array of objects, at most eight; `None` where one of these is no text.
    ///
    /// Each is cut at 100 characters. An empty array gives an empty list. It is for error messages.
    pub(super) fn texts(&self) -> Option<Vec<String>> {
        let Data::Objects(objects) = self.array().ok()?.data() else { return None };
        let text = |value: &Value<'_>| match value {
            Value::Str(text) => Some(text.chars().take(100).collect()),
            _ => None,
        };
        objects.iter().take(8).map(text).collect()
    }

    /// Refuses an array of another shape, before its numbers are read.
    ///
    /// All axes must agree; there is no broadcasting and no squeezing of axes of length 1.
    fn check_shape(&self, array: &Array<'_>, expected: &[usize]) -> Result<(), ImportError> {
        if array.shape() == expected {
            return Ok(());
        }
        Err(self.error(format!("expected shape {expected:?}, found {:?}", array.shape())))
    }

    /// Refuses NaN and infinities: a classifier with one predicts nothing of worth.
    ///
    /// The index in the error counts row by row. A scalar has index 0.
    fn finite(&self, numbers: Vec<f64>) -> Result<Vec<f64>, ImportError> {
        match numbers.iter().position(|number| !number.is_finite()) {
            Some(index) => Err(self.number_error("a finite number", index, numbers[index])),
            None => Ok(numbers),
        }
    }

    /// Labels that were given to scikit-learn as floats.
    ///
    /// A float above 2⁵³ in magnitude is refused, since neighbouring integers cannot be told apart there.
    fn whole(&self, floats: &[f64]) -> Result<Vec<i64>, ImportError> {
        let whole = floats.iter().enumerate().map(|(index, &found)| {
            // Up to 2⁵³ every integer is a float, and the conversion exact.
            if found.fract() == 0.0 && found.abs() <= 9_007_199_254_740_992.0 {
                Ok(found as i64)
            } else {
                Err(self.number_error("a whole number", index, found))
            }
        });
        whole.collect()
    }
}
