//! The values of Python that a template handles, and what Python does with any of them: truth, length, order, equality,
//! iteration, `str` and `repr`; and the keys of mappings, found as Python finds them: by hash.
//!
//! Values live for one rendering. Lists and mappings never change after they are made, as in transformers' sandbox; a namespace
//! does. How deep lists, mappings and namespaces lie inside one another is bounded when they are made ([`DEEPEST`]), so that
//! whatever walks them, or drops them, needs no bound of its own.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::budget::{Text, charge, read, step};
use super::fault::{Result, fault, refuse};
use super::python_text::{float_repr, string_repr};
use super::syntax::{For, MacroNode};

/// Deepest nesting of lists and mappings.
const DEEPEST: usize = 200;
/// What a namespace counts as: it may lie in a few lists, never in a namespace, which could then grow deeper unseen.
const NAMESPACE: usize = DEEPEST / 2;

/// What a value that is written costs, however short its text: a list that holds one list twice is short to make and, nested, long to
/// write.
pub(crate) const VISIT: usize = 256;

/// A value of Python.
#[derive(Clone)]
pub(crate) enum Value {
    /// Jinja2's `Undefined`, with the sentence that it raises.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    /// A whole number. Python's have no bound; more than 128 bits are an error here.
    Int(i128),
    Float(f64),
    Str(Arc<str>),
    /// A text that the filters `safe`, `escape` and `forceescape` made. Python's methods and operators escape what they put
    /// into it; those are refused here, so that it is only written.
    Markup(Arc<str>),
    List(Rc<Items>),
    Tuple(Rc<Items>),
    Dict(Rc<Dict>),
    /// What `keys()`, `values()` and `items()` return.
    View(View, Rc<Dict>),
    Range(Range),
    /// A generator, or another iterator: it gives its items to the first that asks.
    Once(Rc<Once>),
    Namespace(Rc<RefCell<Dict>>),
    Loop(Rc<Loop>),
    Macro(Rc<Macro>),
    Cycler(Rc<Cycler>),
    /// The separator, and whether it was asked before.
    Joiner(Rc<(Arc<str>, Cell<bool>)>),
    /// A function of the environment, by its name.
    Function(&'static str),
    /// A method that is looked up and not called yet.
    Method(Rc<(Value, Arc<str>)>),
}

/// The items of a list or a tuple.
pub(crate) struct Items {
    pub(crate) values: Vec<Value>,
    /// Whether it is a pair of the filter `groupby`, whose parts have the names `grouper` and `list`.
    pub(crate) is_group: bool,
    depth: usize,
}

/// A mapping in the order in which its keys were first put in.
#[derive(Default)]
pub(crate) struct Dict {
    entries: Vec<(Value, Value)>,
    /// The place in `entries` of each key.
    keys: Keys,
    depth: usize,
}

/// What an entry of a mapping costs: a key, a value, and where the key is found.
const ENTRY: usize = 3 * size_of::<Value>();

/// Which view of a mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Keys,
    Values,
    Items,
}

/// Python's `range`, of at most 100,000 items.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) start: i64,
    pub(crate) stop: i64,
    pub(crate) step: i64,
}

impl Range {
    /// How many items it has.
    pub(crate) fn len(self) -> usize {
        let (start, stop, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let span = if step > 0 { stop - start } else { start - stop };
        usize::try_from((span + step.abs() - 1) / step.abs()).unwrap_or(0)
    }

    /// The item of an index below [`len`](Self::len).
    pub(crate) fn item(self, i: usize) -> Value {
        Value::Int(i128::from(self.start) + i128::from(self.step) * i as i128)
    }
}

/// An iterator: its items until they are taken.
pub(crate) struct Once {
    items: RefCell<Option<Vec<Value>>>,
    /// Python's name of the type, such as `generator`.
    pub(crate) name: &'static str,
}

/// A scope.
#[derive(Default)]
pub(crate) struct Frame {
    pub(crate) names: RefCell<HashMap<Arc<str>, Value>>,
    pub(crate) parent: Option<Rc<Frame>>,
}

impl Frame {
    pub(crate) fn inside(parent: &Rc<Frame>) -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), parent: Some(parent.clone()) })
    }

    pub(crate) fn set(&self, name: &Arc<str>, value: Value) {
        self.names.borrow_mut().insert(name.clone(), value);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let mut frame = self;
        loop {
            if let Some(value) = frame.names.borrow().get(name) {
                return Some(value.clone());
            }
            frame = frame.parent.as_deref()?;
        }
    }
}

/// A macro with the scope that it sees.
pub(crate) struct Macro {
    pub(crate) node: Arc<MacroNode>,
    pub(crate) frame: Rc<Frame>,
}

/// The variable `loop`.
pub(crate) struct Loop {
    /// All items of the loop, or, if it is `lazy`, those that came so far.
    pub(crate) items: RefCell<Vec<Value>>,
    /// Index of the item that the body has.
    pub(crate) at: Cell<usize>,
    /// How many recursive loops are around it.
    pub(crate) depth: usize,
    /// What `changed` was asked last.
    pub(crate) changed: RefCell<Option<Value>>,
    /// Whether later items are not known yet, because the condition of the loop looks at what its body changes.
    pub(crate) lazy: bool,
    pub(crate) node: Arc<For>,
    pub(crate) frame: Rc<Frame>,
}

impl Loop {
    pub(crate) fn len(&self) -> usize {
        self.items.borrow().len()
    }
}

/// What `cycler` makes.
pub(crate) struct Cycler {
    pub(crate) items: Vec<Value>,
    pub(crate) at: Cell<usize>,
}

impl Dict {
    /// The value of a key. A key that cannot be hashed is an error.
    pub(crate) fn get(&self, key: &Value) -> Result<Option<&Value>> {
        Ok(self.keys.find(key)?.map(|place| &self.entries[place].1))
    }

    /// The value of a key that is a text.
    pub(crate) fn get_str(&self, key: &str) -> Option<&Value> {
        self.keys.find_text(key).map(|place| &self.entries[place].1)
    }

    /// Puts a value under a key, in the place of one that is there.
    pub(crate) fn insert(&mut self, key: Value, value: Value) -> Result<()> {
        charge(ENTRY)?;
        self.depth = deeper(self.depth.saturating_sub(1).max(value.depth()).max(key.depth()))?;
        match self.keys.find(&key)? {
            Some(place) => self.entries[place].1 = value,
            None => {
                self.keys.add(&key, self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    pub(crate) fn entries(&self) -> &[(Value, Value)] {
        &self.entries
    }
}

/// The depth of what holds something of `depth`.
fn deeper(depth: usize) -> Result<usize> {
    if depth >= DEEPEST {
        return fault(format!("values are nested more than {DEEPEST} deep"));
    }
    Ok(depth + 1)
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Self {
        Self::Int(n as i128)
    }
}

impl Value {
    /// An undefined value of a name.
    pub(crate) fn undefined(name: &str) -> Self {
        Self::Undefined(format!("'{name}' is undefined").into())
    }

    /// The undefined value of an attribute or item that `self` does not have.
    pub(crate) fn lacks(&self, name: &str) -> Self {
        Self::Undefined(format!("'{} object' has no attribute '{name}'", self.type_name()).into())
    }

    /// A list.
    pub(crate) fn list(values: Vec<Value>) -> Result<Self> {
        items(values).map(Self::List)
    }

    /// A tuple.
    pub(crate) fn tuple(values: Vec<Value>) -> Result<Self> {
        items(values).map(Self::Tuple)
    }

    /// A pair that the filter `groupby` makes.
    pub(crate) fn group(key: Value, values: Vec<Value>) -> Result<Self> {
        let values = vec![key, Self::list(values)?];
        let depth = deeper(values.iter().map(Value::depth).max().unwrap_or(0))?;
        Ok(Self::Tuple(Rc::new(Items { values, is_group: true, depth })))
    }

    /// An iterator over `values`, of the type that Python calls `name`.
    pub(crate) fn once(name: &'static str, values: Vec<Value>) -> Result<Self> {
        charge(values.len() * size_of::<Value>())?;
        deeper(values.iter().map(Value::depth).max().unwrap_or(0))?;
        Ok(Self::Once(Rc::new(Once { items: RefCell::new(Some(values)), name })))
    }

    /// A mapping.
    pub(crate) fn dict(entries: impl IntoIterator<Item = (Value, Value)>) -> Result<Self> {
        let mut dict = Dict::default();
        entries.into_iter().try_for_each(|(k, v)| dict.insert(k, v))?;
        Ok(Self::Dict(Rc::new(dict)))
    }

    /// Sets an attribute of a namespace. It may hold no other namespace.
    pub(crate) fn set_attribute(&self, name: &str, value: Value) -> Result<()> {
        let Self::Namespace(fields) = self else {
            return fault("cannot assign attribute on non-namespace object");
        };
        if name.starts_with('_') {
            return fault(format!("a name in a namespace must not begin with an underscore, found '{name}'"));
        }
        if value.depth() >= NAMESPACE {
            return refuse("a namespace inside a namespace");
        }
        fields.borrow_mut().insert(name.into(), value)
    }

    /// How deep values lie in this one: 0 if it holds none.
    fn depth(&self) -> usize {
        match self {
            Self::List(items) | Self::Tuple(items) => items.depth,
            Self::Dict(dict) | Self::View(_, dict) => dict.depth,
            Self::Once(once) => 1 + once.items.borrow().iter().flatten().map(Value::depth).max().unwrap_or(0),
            Self::Namespace(_) | Self::Loop(_) | Self::Cycler(_) => NAMESPACE,
            Self::Method(bound) => bound.0.depth(),
            _ => 0,
        }
    }

    /// The text, if it is one.
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) | Self::Markup(text) => Some(text),
            _ => None,
        }
    }

    /// The value itself, or the error of one that is undefined.
    pub(crate) fn defined(&self) -> Result<&Self> {
        match self {
            Self::Undefined(why) => fault(&**why),
            value => Ok(value),
        }
    }

    /// Whether it is Jinja2's `Undefined`.
    pub(crate) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    /// The whole number, where Python takes one: booleans count as 0 and 1.
    pub(crate) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(n) => Some(*n),
            Self::Bool(b) => Some(i128::from(*b)),
            _ => None,
        }
    }

    /// The number as a float.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Float(x) => Some(*x),
            _ => self.as_int().map(|n| n as f64),
        }
    }

    /// A whole number for an argument of the name `what`.
    pub(crate) fn index(&self, what: &str) -> Result<i64> {
        match self.as_int().map(i64::try_from) {
            Some(Ok(n)) => Ok(n),
            Some(Err(_)) => refuse(format!("{what} of more than 64 bits")),
            None => fault(format!("{what} must be a whole number, not {}", self.defined()?.type_name())),
        }
    }

    /// Python's name of the type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Markup(_) => "Markup",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::View(View::Keys, _) => "dict_keys",
            Self::View(View::Values, _) => "dict_values",
            Self::View(View::Items, _) => "dict_items",
            Self::Range(_) => "range",
            Self::Once(once) => once.name,
            Self::Namespace(_) => "namespace",
            Self::Loop(_) => "loop",
            Self::Macro(_) => "macro",
            Self::Cycler(_) => "cycler",
            Self::Joiner(_) => "joiner",
            Self::Function(_) => "function",
            Self::Method(_) => "method",
        }
    }

    /// Python's `bool`.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(b) => *b,
            Self::Int(n) => *n != 0,
            Self::Float(x) => *x != 0.0,
            Self::Str(text) | Self::Markup(text) => !text.is_empty(),
            _ => self.count() != Some(0),
        }
    }

    /// Python's `len`: characters of a text. `None` where Python raises.
    pub(crate) fn len(&self) -> Result<Option<usize>> {
        match self {
            Self::Str(text) | Self::Markup(text) => {
                read(text.len())?;
                Ok(Some(text.chars().count()))
            }
            _ => Ok(self.count()),
        }
    }

    /// The number of items, where Python has one and nothing needs to be read for it.
    fn count(&self) -> Option<usize> {
        Some(match self {
            Self::Undefined(_) => 0,
            Self::List(items) | Self::Tuple(items) => items.values.len(),
            Self::Dict(dict) | Self::View(_, dict) => dict.entries.len(),
            Self::Range(range) => range.len(),
            Self::Loop(l) => l.len(),
            _ => return None,
        })
    }

    /// Whether Python can iterate over it.
    pub(crate) fn is_iterable(&self) -> bool {
        self.count().is_some() || matches!(self, Self::Str(_) | Self::Markup(_) | Self::Once(_))
    }

    /// The items that Python's `iter` gives. An iterator has them once; who asks again gets an error, since Python would go on
    /// where the first stopped.
    pub(crate) fn iterate(&self) -> Result<Vec<Value>> {
        charge(self.len()?.unwrap_or(0).saturating_mul(size_of::<Value>()))?;
        Ok(match self {
            Self::Undefined(_) => Vec::new(),
            Self::Str(text) | Self::Markup(text) => {
                text.chars().map(|c| Value::from(&*c.encode_utf8(&mut [0; 4]))).collect()
            }
            Self::List(items) | Self::Tuple(items) => items.values.clone(),
            Self::Dict(dict) | Self::View(View::Keys, dict) => dict.entries.iter().map(|(k, _)| k.clone()).collect(),
            Self::View(View::Values, dict) => dict.entries.iter().map(|(_, v)| v.clone()).collect(),
            Self::View(View::Items, dict) => {
                dict.entries.iter().map(|(k, v)| Value::tuple(vec![k.clone(), v.clone()])).collect::<Result<_>>()?
            }
            Self::Range(range) => (0..range.len()).map(|i| range.item(i)).collect(),
            Self::Once(once) => match once.items.take() {
                Some(items) => items,
                None => return refuse(format!("a second look at the items of a {}", once.name)),
            },
            Self::Loop(_) => return refuse("iterating over loop"),
            _ => return fault(format!("'{}' object is not iterable", self.type_name())),
        })
    }

    /// Python's `==`.
    pub(crate) fn equals(&self, other: &Value) -> Result<bool> {
        step()?;
        if let (Some(a), Some(b)) = (self.as_int(), other.as_int()) {
            return Ok(a == b);
        }
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return Ok(number_order(self, other, a, b) == Some(Ordering::Equal));
        }
        if let (Some(a), Some(b)) = (self.as_str(), other.as_str()) {
            read(a.len().min(b.len()))?;
            return Ok(a == b);
        }
        Ok(match (self, other) {
            (Self::Undefined(_), Self::Undefined(_)) | (Self::None, Self::None) => true,
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => {
                if a.values.len() != b.values.len() {
                    return Ok(false);
                }
                for (a, b) in a.values.iter().zip(&b.values) {
                    if !a.equals(b)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Self::Dict(a), Self::Dict(b)) => {
                if a.entries.len() != b.entries.len() {
                    return Ok(false);
                }
                for (key, value) in &a.entries {
                    match b.get(key)? {
                        Some(found) if found.equals(value)? => {}
                        _ => return Ok(false),
                    }
                }
                true
            }
            (Self::Range(a), Self::Range(b)) => {
                let len = a.len();
                len == b.len() && (len == 0 || a.start == b.start && (len == 1 || a.step == b.step))
            }
            (Self::Function(a), Self::Function(b)) => a == b,
            (Self::Namespace(a), Self::Namespace(b)) => Rc::ptr_eq(a, b),
            (Self::Macro(a), Self::Macro(b)) => Rc::ptr_eq(a, b),
            (
                Self::Loop(_) | Self::Cycler(_) | Self::Joiner(_) | Self::Once(_) | Self::View(..) | Self::Method(_),
                _,
            ) if self.type_name() == other.type_name() => {
                return refuse(format!("comparing a {} with another", self.type_name()));
            }
            _ => false,
        })
    }

    /// Python's order, where it has one; `None` where a number is not a number.
    pub(crate) fn order(&self, other: &Value) -> Result<Option<Ordering>> {
        step()?;
        self.defined()?;
        other.defined()?;
        if let (Some(a), Some(b)) = (self.as_int(), other.as_int()) {
            return Ok(Some(a.cmp(&b)));
        }
        if let (Some(a), Some(b)) = (self.as_number(), other.as_number()) {
            return Ok(number_order(self, other, a, b));
        }
        if let (Some(a), Some(b)) = (self.as_str(), other.as_str()) {
            read(a.len().min(b.len()))?;
            // The order of UTF-8 is the order of code points.
            return Ok(Some(a.cmp(b)));
        }
        match (self, other) {
            (Self::List(a), Self::List(b)) | (Self::Tuple(a), Self::Tuple(b)) => {
                for (a, b) in a.values.iter().zip(&b.values) {
                    if !a.equals(b)? {
                        return a.order(b);
                    }
                }
                Ok(Some(a.values.len().cmp(&b.values.len())))
            }
            _ => fault(format!("cannot order '{}' and '{}'", self.type_name(), other.type_name())),
        }
    }

    /// Python's `item in self`.
    pub(crate) fn contains(&self, item: &Value) -> Result<bool> {
        match self {
            Self::Str(text) | Self::Markup(text) => match item.as_str() {
                Some(part) => {
                    read(text.len())?;
                    Ok(text.contains(part))
                }
                None => fault(format!("'in <string>' requires string as left operand, not {}", item.type_name())),
            },
            Self::Dict(dict) | Self::View(View::Keys, dict) => Ok(dict.get(item)?.is_some()),
            _ => {
                for found in self.iterate()? {
                    if found.equals(item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Python's `str`.
    pub(crate) fn text(&self) -> Result<Arc<str>> {
        match self {
            Self::Str(text) | Self::Markup(text) => Ok(text.clone()),
            Self::Undefined(_) => Ok("".into()),
            _ => {
                let mut out = Text::default();
                self.repr(&mut out)?;
                Ok(out.into_string().into())
            }
        }
    }

    /// Appends Python's `repr`.
    pub(crate) fn repr(&self, out: &mut Text) -> Result<()> {
        charge(VISIT)?;
        match self {
            Self::Undefined(_) => out.push_str("Undefined"),
            Self::None => out.push_str("None"),
            Self::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
            Self::Int(n) => out.push_str(&n.to_string()),
            Self::Float(x) => out.push_str(&float_repr(*x)),
            Self::Str(text) => out.push_str(&string_repr(text)?),
            Self::Markup(text) => out.push_str(&format!("Markup({})", string_repr(text)?)),
            Self::List(items) => {
                out.push('[')?;
                separated(out, &items.values)?;
                out.push(']')
            }
            Self::Tuple(items) => {
                out.push('(')?;
                separated(out, &items.values)?;
                out.push_str(if items.values.len() == 1 { ",)" } else { ")" })
            }
            Self::Dict(dict) => {
                out.push('{')?;
                for (i, (key, value)) in dict.entries.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" })?;
                    key.repr(out)?;
                    out.push_str(": ")?;
                    value.repr(out)?;
                }
                out.push('}')
            }
            Self::View(..) => {
                out.push_str(self.type_name())?;
                out.push_str("([")?;
                separated(out, &self.iterate()?)?;
                out.push_str("])")
            }
            Self::Range(r) => {
                out.push_str(&format!("range({}, {}", r.start, r.stop))?;
                out.push_str(&if r.step == 1 { ")".to_owned() } else { format!(", {})", r.step) })
            }
            // Python writes an address, another one each time, or fields that are nobody's business.
            _ => refuse(format!("writing a {}", self.type_name())),
        }
    }
}

/// The items of a list or tuple, charged and with their depth.
fn items(values: Vec<Value>) -> Result<Rc<Items>> {
    charge(values.len() * size_of::<Value>())?;
    let depth = deeper(values.iter().map(Value::depth).max().unwrap_or(0))?;
    Ok(Rc::new(Items { values, is_group: false, depth }))
}

/// Appends the `repr` of each, with commas between.
fn separated(out: &mut Text, values: &[Value]) -> Result<()> {
    for (i, value) in values.iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" })?;
        value.repr(out)?;
    }
    Ok(())
}

/// Compares a whole number with a float as Python does, by their exact values. `x` and `y` are both as floats.
fn number_order(a: &Value, b: &Value, x: f64, y: f64) -> Option<Ordering> {
    let exact = |n: i128, y: f64| {
        if y.is_nan() {
            return None;
        }
        // Beyond 2^127 a float is larger than any whole number here.
        if y.abs() >= 1.7e38 {
            return Some(if y > 0.0 { Ordering::Less } else { Ordering::Greater });
        }
        let whole = y.trunc();
        Some(n.cmp(&(whole as i128)).then_with(|| 0.0.partial_cmp(&(y - whole)).unwrap_or(Ordering::Equal)))
    };
    match (a.as_int(), b.as_int()) {
        (Some(n), None) => exact(n, y),
        (None, Some(n)) => exact(n, x).map(Ordering::reverse),
        _ => x.partial_cmp(&y),
    }
}

/// Keys with the place of each. They are equal as in Python: `1`, `1.0` and `true` are one key.
#[derive(Default)]
pub(crate) struct Keys {
    texts: HashMap<Arc<str>, usize>,
    numbers: HashMap<Number, usize>,
    /// Tuples, none and all others, which are few; they are searched one by one.
    others: Vec<(Value, usize)>,
}

/// A number, so that equal ones are one.
#[derive(PartialEq, Eq, Hash)]
enum Number {
    Whole(i128),
    /// The bits of a float that is no whole number of 128 bits.
    Float(u64),
}

impl Keys {
    /// The place of a key. One that Python cannot hash is an error.
    pub(crate) fn find(&self, key: &Value) -> Result<Option<usize>> {
        hashable(key)?;
        if let Some(text) = key.as_str() {
            return Ok(self.find_text(text));
        }
        if let Some(number) = Number::of(key) {
            return Ok(self.numbers.get(&number).copied());
        }
        for (other, place) in &self.others {
            if other.equals(key)? {
                return Ok(Some(*place));
            }
        }
        Ok(None)
    }

    /// The place of a key that is a text.
    pub(crate) fn find_text(&self, key: &str) -> Option<usize> {
        self.texts.get(key).copied()
    }

    /// Adds a key that is not there.
    pub(crate) fn add(&mut self, key: &Value, place: usize) {
        match (key, Number::of(key)) {
            (Value::Str(text) | Value::Markup(text), _) => drop(self.texts.insert(text.clone(), place)),
            (_, Some(number)) => drop(self.numbers.insert(number, place)),
            _ => self.others.push((key.clone(), place)),
        }
    }
}

impl Number {
    fn of(value: &Value) -> Option<Self> {
        match value {
            // The same bound as that of comparisons: beyond it a float equals no whole number here.
            Value::Float(x) if x.fract() == 0.0 && x.abs() < 1.7e38 => Some(Self::Whole(*x as i128)),
            Value::Float(x) => Some(Self::Float(x.to_bits())),
            _ => value.as_int().map(Self::Whole),
        }
    }
}

/// Refuses a key that Python cannot hash, and one that Python finds by its address.
pub(crate) fn hashable(key: &Value) -> Result<()> {
    step()?;
    match key {
        Value::List(_) | Value::Dict(_) | Value::View(View::Keys | View::Items, _) => {
            fault(format!("unhashable type: '{}'", key.type_name()))
        }
        Value::Float(x) if x.is_nan() => refuse("a key that is not a number"),
        Value::Tuple(items) => items.values.iter().try_for_each(hashable),
        _ => Ok(()),
    }
}
