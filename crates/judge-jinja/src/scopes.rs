//! Which names of a scope have no value before they are set, though a variable of the rendering has that name.
//!
//! Jinja2 decides for each scope, before anything runs, where its names come from (`jinja2.idtracking`). A name that the scope
//! reads before it sets it, or sets inside an `if` alone, comes from outside until then. A name that it mentions first in a `set`,
//! and that no scope around it mentions, is undefined until it is set. In the scope itself nobody can tell, since nothing reads it
//! before. In a scope inside, such as a loop or a macro, one can:
//!
//! ```text
//! {% for m in messages %}{% if tools is defined %}never{% endif %}{% endfor %}{% set tools = 1 %}
//! ```
//!
//! [`find`] puts those names down in each [`Body`], and `eval.rs` binds them when it enters it.

use std::collections::HashSet;
use std::sync::Arc;

use super::syntax::{Arguments, Body, Expr, Statement, Step, StepKind, Target};

/// Fills in [`Body::unset`] of a template and of all scopes in it.
pub(crate) fn find(template: &mut Body) {
    Level::default().of(template);
}

/// The names that one scope mentions.
#[derive(Default)]
struct Level<'o> {
    /// Names that have a place here: parameters, those that it sets, and those that it reads which no scope around it has.
    names: HashSet<Arc<str>>,
    /// Those that have no value until they are set.
    unset: Vec<Arc<str>>,
    /// How many `if` are open around what is visited.
    branches: usize,
    outer: Option<&'o Level<'o>>,
}

impl<'o> Level<'o> {
    fn inside(outer: &'o Self) -> Self {
        Self { outer: Some(outer), ..Self::default() }
    }

    /// Visits a body of this scope, and the scopes inside it.
    fn of(mut self, body: &mut Body) {
        self.visit(&body.statements);
        body.unset = std::mem::take(&mut self.unset);
        self.enter(&mut body.statements);
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name) || self.outer.is_some_and(|outer| outer.has(name))
    }

    fn reads(&mut self, name: &Arc<str>) {
        if !self.has(name) {
            self.names.insert(name.clone());
        }
    }

    fn sets(&mut self, name: &Arc<str>) {
        if !self.has(name) && self.branches == 0 {
            self.unset.push(name.clone());
        }
        self.names.insert(name.clone());
    }

    /// What is set here, or the variable that a loop or `with` begins with.
    fn target(&mut self, target: &Target, is_set: bool) {
        match target {
            Target::Name(name) if is_set => self.sets(name),
            Target::Name(name) => {
                self.names.insert(name.clone());
            }
            Target::Attribute(name, _) => self.reads(name),
            Target::Tuple(targets) => targets.iter().for_each(|target| self.target(target, is_set)),
        }
    }

    /// What the statements of this scope mention in their order; scopes inside are left out, but for what is evaluated out here.
    fn visit(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Print(expr, _) => self.expr(expr),
                Statement::If(branches, otherwise, _) => {
                    self.branches += 1;
                    for (test, body) in branches {
                        self.expr(test);
                        self.visit(body);
                    }
                    self.visit(otherwise);
                    self.branches -= 1;
                }
                Statement::For(node) => self.expr(&node.iter),
                Statement::Set(target, expr, _) => {
                    self.expr(expr);
                    self.target(target, true);
                }
                Statement::SetBlock(target, ..) => self.target(target, true),
                Statement::With(bound, ..) => bound.iter().for_each(|(_, expr)| self.expr(expr)),
                Statement::Macro(node) => self.sets(&node.name),
                Statement::Call(callee, ..) => self.expr(callee),
                Statement::Filter(steps, ..) => self.steps(steps),
                Statement::Data(_) | Statement::Generation(_) | Statement::Break | Statement::Continue => {}
            }
        }
    }

    fn all(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|expr| self.expr(expr));
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Name(name) => self.reads(name),
            Expr::List(all) | Expr::Tuple(all) | Expr::And(all) | Expr::Or(all) | Expr::Concat(all) => self.all(all),
            Expr::Dict(entries) => entries.iter().for_each(|(key, value)| {
                self.expr(key);
                self.expr(value);
            }),
            Expr::Sign(_, inner) | Expr::Not(inner) => self.expr(inner),
            Expr::If(parts) => {
                let (yes, test, no) = &**parts;
                [Some(yes), Some(test), no.as_ref()].into_iter().flatten().for_each(|part| self.expr(part));
            }
            Expr::Compare(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, expr)| self.expr(expr));
            }
            Expr::Chain(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, expr)| self.expr(expr));
            }
            Expr::Postfix(operand, steps) => {
                self.expr(operand);
                self.steps(steps);
            }
            Expr::None | Expr::Bool(_) | Expr::Int(_) | Expr::Float(_) | Expr::Str(_) => {}
        }
    }

    fn steps(&mut self, steps: &[Step]) {
        for step in steps {
            match &step.kind {
                StepKind::Attribute(_) => {}
                StepKind::Item(expr) => self.expr(expr),
                StepKind::Slice(parts) => parts.iter().flatten().for_each(|part| self.expr(part)),
                StepKind::Call(arguments) | StepKind::Filter(_, arguments) | StepKind::Test { arguments, .. } => {
                    self.arguments(arguments)
                }
            }
        }
    }

    fn arguments(&mut self, arguments: &Arguments) {
        self.all(&arguments.positional);
        arguments.named.iter().for_each(|(_, expr)| self.expr(expr));
        arguments.star.iter().chain(&arguments.stars).for_each(|expr| self.expr(expr));
    }

    /// The scopes inside these statements. All that this one mentions is known by now, also what comes later in the text.
    fn enter(&self, statements: &mut [Statement]) {
        for statement in statements {
            match statement {
                Statement::If(branches, otherwise, _) => {
                    branches.iter_mut().for_each(|(_, body)| self.enter(body));
                    self.enter(otherwise);
                }
                Statement::For(node) => {
                    // Nobody else has the node before the template is read.
                    let Some(node) = Arc::get_mut(node) else { continue };
                    let mut level = Level::inside(self);
                    level.target(&node.target, false);
                    level.of(&mut node.body);
                    Level::inside(self).of(&mut node.otherwise);
                }
                Statement::SetBlock(_, _, body, _) | Statement::Filter(_, body, _) => Level::inside(self).of(body),
                Statement::With(bound, body, _) => {
                    let mut level = Level::inside(self);
                    bound.iter().for_each(|(target, _)| level.target(target, false));
                    level.of(body);
                }
                Statement::Macro(node) | Statement::Call(_, node, _) | Statement::Generation(node) => {
                    let Some(node) = Arc::get_mut(node) else { continue };
                    let mut level = Level::inside(self);
                    level.names.extend(node.parameters.iter().map(|(name, _)| name.clone()));
                    node.parameters.iter().filter_map(|(_, default)| default.as_ref()).for_each(|d| level.expr(d));
                    level.of(&mut node.body);
                }
                Statement::Data(_)
                | Statement::Print(..)
                | Statement::Set(..)
                | Statement::Break
                | Statement::Continue => {}
            }
        }
    }
}
