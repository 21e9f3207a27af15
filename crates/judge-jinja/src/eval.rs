//! Runs the tree of a template.
//!
//! Scopes are Jinja2's: loops, macros, `with`, `call`, `filter` and blocks that are set have one each, `if` has none. A name is
//! looked up from the inside out, then among the variables of the rendering, then among the functions of the environment. A macro
//! sees the scope in which it stands, as that is when it is called. Some names hide a variable before they have a value
//! (`scopes.rs`): they are bound as undefined when their scope is entered.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::access::{attribute, item, slice};
use super::arguments::Call;
use super::budget::{OUTPUT, Text, charge, looks, step};
use super::fault::{Result, fault, refuse};
use super::operators::{self, compares};
use super::syntax::{Arguments, Body, Expr, For, MacroNode, Statement, Step, StepKind, Target};
use super::value::{Dict, Frame, Loop, Macro, Value};
use super::{Date, checks, filters, functions, methods};

/// Deepest nesting of macro calls and recursive loops in a rendering.
const CALLS: usize = 64;

/// How a body ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// One rendering.
pub(crate) struct Renderer {
    pub(crate) date: Date,
    /// Macro calls and recursive loops that are open.
    calls: usize,
    /// Scopes that macros hold, and which hold those macros: they are emptied at the end.
    captured: Vec<Rc<Frame>>,
}

impl Drop for Renderer {
    fn drop(&mut self) {
        for frame in &self.captured {
            frame.names.take();
        }
    }
}

/// Renders a template with these variables.
pub(crate) fn render(body: &Body, date: Date, variables: HashMap<Arc<str>, Value>) -> Result<String> {
    let mut renderer = Renderer { date, calls: 0, captured: Vec::new() };
    let frame = Rc::new(Frame { names: RefCell::new(variables), parent: None });
    // What the template sets goes over the variables and is a scope of its own.
    let mut out = String::new();
    renderer.run(&body.statements, &entered(body, &frame), &mut out)?;
    Ok(out)
}

/// The scope of a body inside another one.
fn entered(body: &Body, outer: &Rc<Frame>) -> Rc<Frame> {
    let frame = Frame::inside(outer);
    body.unset.iter().for_each(|name| frame.set(name, Value::undefined(name)));
    frame
}

/// Writes a text.
fn write(out: &mut String, text: &str) -> Result<()> {
    charge(text.len())?;
    if out.len() + text.len() > OUTPUT {
        return fault(format!("more than {OUTPUT} bytes of output"));
    }
    out.push_str(text);
    Ok(())
}

impl Renderer {
    fn run(&mut self, statements: &[Statement], frame: &Rc<Frame>, out: &mut String) -> Result<Flow> {
        for statement in statements {
            step()?;
            let flow = self.statement(statement, frame, out)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn statement(&mut self, statement: &Statement, frame: &Rc<Frame>, out: &mut String) -> Result<Flow> {
        match statement {
            Statement::Data(text) => write(out, text)?,
            Statement::Print(expr, line) => {
                let text = self.eval(expr, frame).and_then(|value| value.text()).map_err(|e| e.at(*line))?;
                write(out, &text)?;
            }
            Statement::If(branches, otherwise, line) => {
                for (test, body) in branches {
                    if self.eval(test, frame).map_err(|e| e.at(*line))?.truth() {
                        return self.run(body, frame, out);
                    }
                }
                return self.run(otherwise, frame, out);
            }
            Statement::For(node) => {
                let items =
                    self.eval(&node.iter, frame).and_then(|value| value.iterate()).map_err(|e| e.at(node.line))?;
                return self.run_loop(node, items, 0, frame, out);
            }
            Statement::Set(target, expr, line) => {
                self.eval(expr, frame).and_then(|value| assign(target, value, frame)).map_err(|e| e.at(*line))?;
            }
            Statement::SetBlock(target, steps, body, line) => {
                let (text, flow) = self.captured(body, &entered(body, frame))?;
                if flow != Flow::On {
                    return Ok(flow);
                }
                self.steps(text, steps, frame)
                    .and_then(|value| assign(target, value, frame))
                    .map_err(|e| e.at(*line))?;
            }
            Statement::With(bound, body, line) => {
                let inner = entered(body, frame);
                for (target, expr) in bound {
                    self.eval(expr, frame).and_then(|value| assign(target, value, &inner)).map_err(|e| e.at(*line))?;
                }
                return self.run(&body.statements, &inner, out);
            }
            Statement::Macro(node) => frame.set(&node.name, self.new_macro(node, frame)),
            Statement::Call(callee, node, line) => {
                let caller = self.new_macro(node, frame);
                let text =
                    self.call_with(callee, caller, frame).and_then(|value| value.text()).map_err(|e| e.at(*line))?;
                write(out, &text)?;
            }
            Statement::Filter(steps, body, line) => {
                let (text, flow) = self.captured(body, &entered(body, frame))?;
                if flow != Flow::On {
                    return Ok(flow);
                }
                let value = self.steps(text, steps, frame).map_err(|e| e.at(*line))?;
                let Some(text) = value.as_str() else {
                    return fault(format!("a filter block makes a text, not {}", value.type_name()))
                        .map_err(|e| e.at(*line));
                };
                write(out, text)?;
            }
            Statement::Generation(node) => {
                let body = Macro { node: node.clone(), frame: frame.clone() };
                write(out, &self.call_macro(&body, Call::default())?.text()?)?;
            }
            Statement::Break => return Ok(Flow::Break),
            Statement::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    /// What a body writes, and how it ended. Jinja2 drops the text of one that `break` or `continue` leaves.
    fn captured(&mut self, body: &Body, frame: &Rc<Frame>) -> Result<(Value, Flow)> {
        let mut text = String::new();
        let flow = self.run(&body.statements, frame, &mut text)?;
        Ok((text.into(), flow))
    }

    fn new_macro(&mut self, node: &Arc<MacroNode>, frame: &Rc<Frame>) -> Value {
        if !self.captured.last().is_some_and(|last| Rc::ptr_eq(last, frame)) {
            self.captured.push(frame.clone());
        }
        Value::Macro(Rc::new(Macro { node: node.clone(), frame: frame.clone() }))
    }

    /// Runs a loop over items. Items that its condition refuses do not count.
    fn run_loop(
        &mut self,
        node: &Arc<For>,
        items: Vec<Value>,
        depth: usize,
        frame: &Rc<Frame>,
        out: &mut String,
    ) -> Result<Flow> {
        let before = looks();
        let mut passed = Vec::with_capacity(items.len());
        for item in &items {
            passed.push(self.passes(node, item, frame)?);
        }
        // Jinja2 asks for each item when it comes to it. Where the answer may have changed by then, this does too.
        let lazy = looks() != before;
        let kept = if lazy {
            Vec::new()
        } else {
            items.iter().zip(&passed).filter(|(_, passed)| **passed).map(|(item, _)| item.clone()).collect()
        };
        let variable = Rc::new(Loop {
            items: RefCell::new(kept),
            at: Cell::new(0),
            depth,
            changed: RefCell::new(None),
            lazy,
            node: node.clone(),
            frame: frame.clone(),
        });
        let mut count = 0;
        // Jinja2 takes a loop for empty until an item comes to the end of the body.
        let mut is_empty = true;
        for (item, passed) in items.into_iter().zip(passed) {
            step()?;
            if !(if lazy { self.passes(node, &item, frame)? } else { passed }) {
                continue;
            }
            if lazy {
                variable.items.borrow_mut().push(item.clone());
            }
            variable.at.set(count);
            count += 1;
            let inner = entered(&node.body, frame);
            assign(&node.target, item, &inner).map_err(|e| e.at(node.line))?;
            inner.set(&"loop".into(), Value::Loop(variable.clone()));
            match self.run(&node.body.statements, &inner, out)? {
                Flow::On => is_empty = false,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        if !is_empty {
            return Ok(Flow::On);
        }
        self.run(&node.otherwise.statements, &entered(&node.otherwise, frame), out)
    }

    /// Whether an item meets the condition of a loop.
    fn passes(&mut self, node: &For, item: &Value, frame: &Rc<Frame>) -> Result<bool> {
        let Some(test) = &node.test else { return Ok(true) };
        let inner = Frame::inside(frame);
        let passes = assign(&node.target, item.clone(), &inner).and_then(|()| self.eval(test, &inner));
        passes.map(|value| value.truth()).map_err(|e| e.at(node.line))
    }

    /// The value of an expression.
    fn eval(&mut self, expr: &Expr, frame: &Rc<Frame>) -> Result<Value> {
        step()?;
        Ok(match expr {
            Expr::None => Value::None,
            Expr::Bool(b) => Value::Bool(*b),
            Expr::Int(n) => Value::Int(*n),
            Expr::Float(x) => Value::Float(*x),
            Expr::Str(text) => Value::Str(text.clone()),
            Expr::Name(name) => match frame.get(name) {
                Some(value) => value,
                None if &**name == "self" => return refuse("the variable self"),
                None => functions::NAMES
                    .into_iter()
                    .find(|known| **known == **name)
                    .map_or_else(|| Value::undefined(name), Value::Function),
            },
            Expr::List(items) => Value::list(self.all(items, frame)?)?,
            Expr::Tuple(items) => Value::tuple(self.all(items, frame)?)?,
            Expr::Dict(entries) => {
                let mut dict = Dict::default();
                for (key, value) in entries {
                    let key = self.eval(key, frame)?;
                    dict.insert(key, self.eval(value, frame)?)?;
                }
                Value::Dict(Rc::new(dict))
            }
            Expr::Sign(sign, inner) => operators::signed(sign, &self.eval(inner, frame)?)?,
            Expr::Not(inner) => Value::Bool(!self.eval(inner, frame)?.truth()),
            Expr::And(all) => return self.first(all, frame, false),
            Expr::Or(all) => return self.first(all, frame, true),
            Expr::If(parts) => {
                let (yes, test, no) = &**parts;
                match (self.eval(test, frame)?.truth(), no) {
                    (true, _) => self.eval(yes, frame)?,
                    (false, Some(no)) => self.eval(no, frame)?,
                    (false, None) => Value::Undefined(
                        "the inline if-expression evaluated to false and no else section was defined.".into(),
                    ),
                }
            }
            Expr::Compare(first, rest) => {
                let mut left = self.eval(first, frame)?;
                for (compare, right) in rest {
                    let right = self.eval(right, frame)?;
                    if !compares(*compare, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Value::Bool(true)
            }
            Expr::Chain(first, rest) => {
                let mut left = self.eval(first, frame)?;
                for (operator, right) in rest {
                    left = operators::apply(*operator, &left, &self.eval(right, frame)?)?;
                }
                left
            }
            Expr::Concat(all) => {
                let mut text = Text::default();
                for part in all {
                    text.push_str(&self.eval(part, frame)?.text()?)?;
                }
                Value::from(text.into_string())
            }
            Expr::Postfix(operand, steps) => {
                let operand = self.eval(operand, frame)?;
                self.steps(operand, steps, frame)?
            }
        })
    }

    fn all(&mut self, exprs: &[Expr], frame: &Rc<Frame>) -> Result<Vec<Value>> {
        exprs.iter().map(|expr| self.eval(expr, frame)).collect()
    }

    /// The first value whose truth is `truth`, or the last one.
    fn first(&mut self, all: &[Expr], frame: &Rc<Frame>, truth: bool) -> Result<Value> {
        let mut value = Value::None;
        for expr in all {
            value = self.eval(expr, frame)?;
            if value.truth() == truth {
                break;
            }
        }
        Ok(value)
    }

    /// Attributes, items, calls, filters and tests behind a value.
    fn steps(&mut self, value: Value, steps: &[Step], frame: &Rc<Frame>) -> Result<Value> {
        steps.iter().try_fold(value, |value, step| self.step(value, step, frame).map_err(|e| e.at(step.line)))
    }

    fn step(&mut self, value: Value, what: &Step, frame: &Rc<Frame>) -> Result<Value> {
        step()?;
        match &what.kind {
            StepKind::Attribute(name) => attribute(&value, name),
            StepKind::Item(key) => item(&value, &self.eval(key, frame)?),
            StepKind::Slice(parts) => {
                let mut bounds = [Value::None, Value::None, Value::None];
                for (bound, part) in bounds.iter_mut().zip(parts) {
                    if let Some(part) = part {
                        *bound = self.eval(part, frame)?;
                    }
                }
                slice(&value, &bounds)
            }
            StepKind::Call(arguments) => {
                let call = self.arguments(arguments, frame)?;
                self.call(&value, call)
            }
            StepKind::Filter(name, arguments) => {
                let call = self.arguments(arguments, frame)?;
                filters::apply(name, &value, call)
            }
            StepKind::Test { name, arguments, negated } => {
                let call = self.arguments(arguments, frame)?;
                Ok(Value::Bool(checks::apply(name, &value, call, filters::is_filter)? != *negated))
            }
        }
    }

    fn arguments(&mut self, arguments: &Arguments, frame: &Rc<Frame>) -> Result<Call> {
        let mut call = Call { positional: self.all(&arguments.positional, frame)?, named: Vec::new() };
        for (name, expr) in &arguments.named {
            call.named.push((name.clone(), self.eval(expr, frame)?));
        }
        if let Some(star) = &arguments.star {
            call.positional.extend(self.eval(star, frame)?.iterate()?);
        }
        if let Some(stars) = &arguments.stars {
            let Value::Dict(dict) = self.eval(stars, frame)? else {
                return fault("argument after ** must be a mapping");
            };
            let written = call.named.len();
            for (key, value) in dict.entries() {
                step()?;
                match key {
                    // The keys of a mapping are each another one.
                    Value::Str(name) if !call.named[..written].iter().any(|(n, _)| n == name) => {
                        call.named.push((name.clone(), value.clone()));
                    }
                    Value::Str(name) => return fault(format!("got multiple values for keyword argument '{name}'")),
                    _ => return fault("keywords must be strings"),
                }
            }
        }
        Ok(call)
    }

    /// Calls a value.
    fn call(&mut self, callee: &Value, call: Call) -> Result<Value> {
        match callee.defined()? {
            Value::Macro(called) => self.call_macro(called, call),
            Value::Loop(variable) => {
                let [items] = call.required("loop", ["iterable"])?;
                if !variable.node.recursive {
                    return fault("The loop must have the 'recursive' marker to be called recursively.");
                }
                let (node, frame) = (variable.node.clone(), variable.frame.clone());
                let mut text = String::new();
                self.enter()?;
                self.run_loop(&node, items.iterate()?, variable.depth + 1, &frame, &mut text)?;
                self.calls -= 1;
                Ok(Value::from(text))
            }
            Value::Function(name) => functions::call(name, call, self.date),
            Value::Joiner(joiner) => {
                call.required("joiner", [])?;
                Ok(if joiner.1.replace(true) { Value::Str(joiner.0.clone()) } else { Value::from("") })
            }
            Value::Method(bound) => methods::call(&bound.0, &bound.1, call),
            _ => fault(format!("'{}' object is not callable", callee.type_name())),
        }
    }

    fn enter(&mut self) -> Result<()> {
        self.calls += 1;
        if self.calls > CALLS {
            return fault(format!("macros and recursive loops call one another more than {CALLS} deep"));
        }
        Ok(())
    }

    /// The call of a `call` block: the callee's own arguments, and the block as `caller`.
    fn call_with(&mut self, callee: &Expr, caller: Value, frame: &Rc<Frame>) -> Result<Value> {
        let Expr::Postfix(operand, steps) = callee else { return fault("expected call") };
        let Some((Step { kind: StepKind::Call(arguments), line }, before)) = steps.split_last() else {
            return fault("expected call");
        };
        let operand = self.eval(operand, frame)?;
        let callee = self.steps(operand, before, frame)?;
        let mut call = self.arguments(arguments, frame).map_err(|e| e.at(*line))?;
        call.named.push(("caller".into(), caller));
        self.call(&callee, call)
    }

    fn call_macro(&mut self, called: &Macro, mut call: Call) -> Result<Value> {
        let node = &called.node;
        let name = &node.name;
        let frame = entered(&node.body, &called.frame);
        let mut absent = Vec::new();
        let given = call.positional.len().min(node.parameters.len());
        let rest = call.positional.split_off(given);
        let mut positional = call.positional.into_iter();
        for (parameter, default) in &node.parameters {
            let value = positional.next().or_else(|| {
                let at = call.named.iter().position(|(n, _)| n == parameter)?;
                Some(call.named.remove(at).1)
            });
            if value.is_none() {
                absent.extend(default.as_ref().map(|default| (parameter, default)));
            }
            let why = || Value::Undefined(format!("parameter '{parameter}' was not provided").into());
            frame.set(parameter, value.unwrap_or_else(why));
        }
        if node.takes_caller {
            let at = call.named.iter().position(|(n, _)| &**n == "caller");
            let none = Value::Undefined("No caller defined".into());
            frame.set(&"caller".into(), at.map_or(none, |at| call.named.remove(at).1));
        }
        if node.takes_kwargs {
            let entries = call.named.into_iter().map(|(name, value)| (Value::Str(name), value));
            frame.set(&"kwargs".into(), Value::dict(entries)?);
        } else if let Some((unknown, _)) = call.named.first() {
            return fault(format!("macro '{name}' takes no keyword argument '{unknown}'"));
        }
        if node.takes_varargs {
            frame.set(&"varargs".into(), Value::tuple(rest)?);
        } else if !rest.is_empty() {
            return fault(format!("macro '{name}' takes not more than {} argument(s)", node.parameters.len()));
        }
        self.enter()?;
        for (parameter, default) in absent {
            let value = self.eval(default, &frame)?;
            frame.set(parameter, value);
        }
        // No `break` reaches out of a macro.
        let (text, _) = self.captured(&node.body, &frame)?;
        self.calls -= 1;
        Ok(text)
    }
}

/// Gives a target its value: a name in this scope, an attribute of a namespace, or several from the items of the value.
fn assign(target: &Target, value: Value, frame: &Rc<Frame>) -> Result<()> {
    match target {
        Target::Name(name) => frame.set(name, value),
        Target::Attribute(name, attribute) => match frame.get(name) {
            Some(namespace) => namespace.set_attribute(attribute, value)?,
            None => return fault(format!("'{name}' is undefined")),
        },
        Target::Tuple(targets) => {
            let values = value.iterate()?;
            if values.len() != targets.len() {
                return fault(format!("cannot unpack {} values into {} names", values.len(), targets.len()));
            }
            for (target, value) in targets.iter().zip(values) {
                assign(target, value, frame)?;
            }
        }
    }
    Ok(())
}
