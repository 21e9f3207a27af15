//! The tree of a template: what `parser.rs` makes and `eval.rs` runs.
//!
//! Chains of operators, filters, calls and `elif` are flat lists, so that the tree is only as deep as brackets and blocks lie
//! inside one another.

use std::sync::Arc;

/// The statements of a scope.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) statements: Vec<Statement>,
    /// Names that are undefined when the scope is entered, whatever is known outside; see `scopes.rs`.
    pub(crate) unset: Vec<Arc<str>>,
}

impl From<Vec<Statement>> for Body {
    fn from(statements: Vec<Statement>) -> Self {
        Self { statements, unset: Vec::new() }
    }
}

/// A statement, or a piece of output.
pub(crate) enum Statement {
    /// Plain text.
    Data(Arc<str>),
    /// `{{ expression }}`.
    Print(Expr, usize),
    /// The conditions with their bodies in order; the body without a condition is `else`.
    If(Vec<(Expr, Vec<Statement>)>, Vec<Statement>, usize),
    For(Arc<For>),
    /// `{% set a, b = value %}`.
    Set(Target, Expr, usize),
    /// `{% set a | filters %}body{% endset %}`.
    SetBlock(Target, Vec<Step>, Body, usize),
    With(Vec<(Target, Expr)>, Body, usize),
    Macro(Arc<MacroNode>),
    /// `{% call(parameters) callee(…) %}body{% endcall %}`; the body is a macro of the name `caller`.
    Call(Expr, Arc<MacroNode>, usize),
    Filter(Vec<Step>, Body, usize),
    /// `{% generation %}`: to transformers a `call` block that calls its body without arguments.
    Generation(Arc<MacroNode>),
    Break,
    Continue,
}

/// `{% for target in iter if test recursive %}body{% else %}otherwise{% endfor %}`.
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iter: Expr,
    pub(crate) test: Option<Expr>,
    pub(crate) recursive: bool,
    pub(crate) body: Body,
    pub(crate) otherwise: Body,
    pub(crate) line: usize,
}

/// A macro.
pub(crate) struct MacroNode {
    pub(crate) name: Arc<str>,
    /// Parameters with their defaults.
    pub(crate) parameters: Vec<(Arc<str>, Option<Expr>)>,
    pub(crate) body: Body,
    /// Whether the body looks at `varargs`, `kwargs` or `caller`: only then it takes them.
    pub(crate) takes_varargs: bool,
    pub(crate) takes_kwargs: bool,
    pub(crate) takes_caller: bool,
}

/// What a value is assigned to.
pub(crate) enum Target {
    Name(Arc<str>),
    /// An attribute of a namespace.
    Attribute(Arc<str>, Arc<str>),
    Tuple(Vec<Target>),
}

/// An expression.
pub(crate) enum Expr {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Arc<str>),
    Name(Arc<str>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    /// `-` or `+` before something.
    Sign(&'static str, Box<Expr>),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// `yes if test else no`.
    If(Box<(Expr, Expr, Option<Expr>)>),
    Compare(Box<Expr>, Vec<(Compare, Expr)>),
    /// Operators of one rank, from the left.
    Chain(Box<Expr>, Vec<(Operator, Expr)>),
    /// `a ~ b ~ c`.
    Concat(Vec<Expr>),
    Postfix(Box<Expr>, Vec<Step>),
}

/// What follows an operand, from the left, and its line.
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) line: usize,
}

/// The kinds of [`Step`].
pub(crate) enum StepKind {
    /// `.name`.
    Attribute(Arc<str>),
    /// `[item]`.
    Item(Expr),
    /// `[start:stop:step]`.
    Slice([Option<Expr>; 3]),
    /// `(…)`.
    Call(Arguments),
    /// `|name(…)`.
    Filter(Arc<str>, Arguments),
    /// `is name(…)`, or `is not`.
    Test { name: Arc<str>, arguments: Arguments, negated: bool },
}

/// The arguments of a call, in the order in which Python takes them.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) positional: Vec<Expr>,
    pub(crate) named: Vec<(Arc<str>, Expr)>,
    /// `*list`.
    pub(crate) star: Option<Box<Expr>>,
    /// `**mapping`.
    pub(crate) stars: Option<Box<Expr>>,
}

/// Operators that make one value of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}
