//! From pieces to the tree of a template, by Jinja2's own grammar (`jinja2.parser`), in the environment of transformers: with
//! `break`, `continue` and `generation`.
//!
//! Statements that are not rendered here, and filters and tests that Jinja2 does not have, are errors that name them. Jinja2
//! reports an unknown filter or test when it compiles a template, but inside `if` only where it comes to it; so does this.

use std::sync::Arc;
use std::vec;

use super::checks::is_test;
use super::fault::{Result, fault, refuse};
use super::filters::is_filter;
use super::lexer::{self, Kind, Piece, Token};
use super::scopes;
use super::syntax::{Arguments, Body, Compare, Expr, For, MacroNode, Operator, Statement, Step, StepKind, Target};

/// Deepest nesting of brackets, conditions, signs and blocks. It bounds all recursion over a template.
const DEEPEST: usize = 64;

/// Reads a template.
///
/// # Errors
/// What Jinja2 refuses to compile, what is not supported, and nesting beyond [`DEEPEST`]; with the line.
pub(crate) fn parse(source: &str) -> Result<Body> {
    let pieces = lexer::pieces(source)?.into_iter();
    let mut parser = Parser {
        pieces,
        tokens: Tokens { tokens: Vec::new(), at: 0, line: 1, depth: 0, soft: false, used: Vec::new() },
        loops: 0,
        fors: 0,
    };
    let (statements, end) = parser.statements(&[])?;
    match end {
        None => {
            let mut body = Body::from(statements);
            scopes::find(&mut body);
            Ok(body)
        }
        Some(end) => fault(format!("Encountered unknown tag '{end}'")).map_err(|e| e.at(parser.tokens.line)),
    }
}

struct Parser {
    pieces: vec::IntoIter<Piece>,
    /// The tag that is read.
    tokens: Tokens,
    /// How many loops of the same macro or block are open: `break` needs one.
    loops: usize,
    /// How many `for` are open in all, from their bodies to their ends.
    fors: usize,
}

impl Parser {
    /// Statements up to a tag whose name is among `ends`; the tag is read up to behind its name, which is returned. `None` at the end
    /// of the template.
    fn statements(&mut self, ends: &[&str]) -> Result<(Vec<Statement>, Option<Arc<str>>)> {
        self.tokens.enter()?;
        let mut statements = Vec::new();
        let end = loop {
            match self.pieces.next() {
                None => break None,
                Some(Piece::Data(text)) => statements.push(Statement::Data(text)),
                Some(Piece::Print(tokens, line)) => {
                    self.tokens.open(tokens, line);
                    let expr = self.tokens.tuple(true)?;
                    self.tokens.finish()?;
                    statements.push(Statement::Print(expr, line));
                }
                Some(Piece::Statement(tokens, line)) => {
                    self.tokens.open(tokens, line);
                    let name = self.tokens.name()?;
                    if ends.contains(&&*name) {
                        break Some(name);
                    }
                    self.statement(&name, line, &mut statements).map_err(|e| e.at(line))?;
                }
            }
        };
        self.tokens.depth -= 1;
        if end.is_none() && !ends.is_empty() {
            return self.tokens.fault(format!("Unexpected end of template: looking for one of {}", ends.join(", ")));
        }
        Ok((statements, end))
    }

    /// The body of a block up to its end tag, which has nothing else in it.
    fn body(&mut self, end: &str) -> Result<Vec<Statement>> {
        let (statements, _) = self.statements(&[end])?;
        self.tokens.finish()?;
        Ok(statements)
    }

    /// A body in which Jinja2 no longer takes itself to be inside `if`.
    fn scope<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let soft = std::mem::replace(&mut self.tokens.soft, false);
        let read = read(self);
        self.tokens.soft = soft;
        read
    }

    /// A body that becomes a function of its own, so that no `break` reaches out of it.
    fn function<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let loops = std::mem::replace(&mut self.loops, 0);
        let read = self.scope(read);
        self.loops = loops;
        read
    }

    /// The statement behind its `name`, with its body and end tag. A `print` of several values makes several statements.
    fn statement(&mut self, name: &str, line: usize, out: &mut Vec<Statement>) -> Result<()> {
        out.push(match name {
            "for" => self.for_statement(line)?,
            "if" => self.if_statement(line)?,
            "set" => {
                let target = self.tokens.target(true)?;
                if self.fors > 0 && target.has("loop") {
                    return fault("Can't assign to special loop variable in for-loop target");
                }
                if self.tokens.skip("=") {
                    let value = self.tokens.tuple(true)?;
                    self.tokens.finish()?;
                    Statement::Set(target, value, line)
                } else {
                    let mut filters = Vec::new();
                    self.tokens.filters(&mut filters, false)?;
                    self.tokens.finish()?;
                    Statement::SetBlock(target, filters, self.scope(|p| p.body("endset"))?.into(), line)
                }
            }
            "with" => {
                let mut bound = Vec::new();
                while !self.tokens.is_done() {
                    if !bound.is_empty() {
                        self.tokens.expect(",")?;
                    }
                    let target = self.tokens.target(false)?;
                    self.tokens.expect("=")?;
                    bound.push((target, self.tokens.expression(true)?));
                }
                Statement::With(bound, self.scope(|p| p.body("endwith"))?.into(), line)
            }
            "macro" => {
                let name = self.tokens.name()?;
                let parameters = self.tokens.parameters()?;
                self.tokens.finish()?;
                Statement::Macro(Arc::new(self.macro_body(name, parameters, "endmacro")?))
            }
            "call" => {
                let parameters = if self.tokens.peek("(") { self.tokens.parameters()? } else { Vec::new() };
                let callee = self.tokens.expression(true)?;
                self.tokens.finish()?;
                if !matches!(&callee, Expr::Postfix(_, steps) if matches!(steps.last(), Some(Step { kind: StepKind::Call(_), .. }))) {
                    return fault("expected call");
                }
                let body = self.macro_body("caller".into(), parameters, "endcall")?;
                Statement::Call(callee, Arc::new(body), line)
            }
            "filter" => {
                let mut filters = Vec::new();
                self.tokens.filters(&mut filters, true)?;
                self.tokens.finish()?;
                Statement::Filter(filters, self.scope(|p| p.body("endfilter"))?.into(), line)
            }
            "generation" => {
                self.tokens.finish()?;
                Statement::Generation(Arc::new(self.macro_body("caller".into(), Vec::new(), "endgeneration")?))
            }
            "print" => {
                while !self.tokens.is_done() {
                    let value = self.tokens.expression(true)?;
                    out.push(Statement::Print(value, line));
                    if !self.tokens.is_done() {
                        self.tokens.expect(",")?;
                    }
                }
                return Ok(());
            }
            "break" | "continue" => {
                self.tokens.finish()?;
                if self.loops == 0 {
                    return fault(format!("'{name}' outside loop"));
                }
                if name == "break" { Statement::Break } else { Statement::Continue }
            }
            "include" | "import" | "from" | "extends" | "block" | "autoescape" => return refuse(format!("the statement {name}")),
            _ => return fault(format!("Encountered unknown tag '{name}'")),
        });
        Ok(())
    }

    fn for_statement(&mut self, line: usize) -> Result<Statement> {
        let target = self.tokens.target(false)?;
        if target.has("loop") {
            return fault("Can't assign to special loop variable in for-loop target");
        }
        self.tokens.expect_name("in")?;
        let iter = self.tokens.tuple(false)?;
        let test = if self.tokens.skip_name("if") { Some(self.tokens.expression(true)?) } else { None };
        let recursive = self.tokens.skip_name("recursive");
        self.tokens.finish()?;
        self.scope(|p| {
            p.fors += 1;
            p.loops += 1;
            let read = p.statements(&["endfor", "else"]);
            p.loops -= 1;
            let (body, end) = read?;
            p.tokens.finish()?;
            let otherwise = match end.as_deref() {
                // A `break` here would leave a loop around this one, if there is one; a recursive one is a function of its own.
                Some("else") if recursive => p.function(|p| p.body("endfor"))?,
                Some("else") => p.body("endfor")?,
                _ => Vec::new(),
            };
            p.fors -= 1;
            let (body, otherwise) = (body.into(), otherwise.into());
            Ok(Statement::For(Arc::new(For { target, iter, test, recursive, body, otherwise, line })))
        })
    }

    fn if_statement(&mut self, line: usize) -> Result<Statement> {
        let soft = std::mem::replace(&mut self.tokens.soft, true);
        let mut branches = Vec::new();
        let mut otherwise = Vec::new();
        loop {
            let test = self.tokens.tuple(false)?;
            self.tokens.finish()?;
            let (body, end) = self.statements(&["elif", "else", "endif"])?;
            branches.push((test, body));
            match end.as_deref() {
                Some("elif") => continue,
                Some("else") => {
                    self.tokens.finish()?;
                    otherwise = self.body("endif")?;
                }
                _ => self.tokens.finish()?,
            }
            break;
        }
        self.tokens.soft = soft;
        Ok(Statement::If(branches, otherwise, line))
    }

    /// The body of a macro or of `call`.
    fn macro_body(
        &mut self,
        name: Arc<str>,
        parameters: Vec<(Arc<str>, Option<Expr>)>,
        end: &str,
    ) -> Result<MacroNode> {
        let outside = std::mem::take(&mut self.tokens.used);
        let body = self.function(|p| p.body(end))?.into();
        let used = std::mem::replace(&mut self.tokens.used, outside);
        let takes = |special: &str| used.contains(&special) && !parameters.iter().any(|(name, _)| &**name == special);
        let (takes_varargs, takes_kwargs, takes_caller) = (takes("varargs"), takes("kwargs"), takes("caller"));
        if parameters.iter().any(|(name, _)| &**name == "caller") {
            return refuse("a parameter of the name caller");
        }
        // A macro inside may look at those of the macro around it.
        self.tokens.used.extend(used);
        Ok(MacroNode { name, parameters, body, takes_varargs, takes_kwargs, takes_caller })
    }
}

impl Target {
    /// Whether the name is among those that are assigned.
    fn has(&self, name: &str) -> bool {
        match self {
            Self::Name(n) => &**n == name,
            Self::Attribute(..) => false,
            Self::Tuple(targets) => targets.iter().any(|t| t.has(name)),
        }
    }
}

/// The tokens of one tag, from which expressions are read.
struct Tokens {
    tokens: Vec<Token>,
    at: usize,
    /// Line of the tag.
    line: usize,
    /// How much is open around what is read.
    depth: usize,
    /// Whether an unknown filter or test is an error only when it runs.
    soft: bool,
    /// Which of `varargs`, `kwargs` and `caller` the macro that is read has looked at.
    used: Vec<&'static str>,
}

impl Tokens {
    /// Starts the next tag.
    fn open(&mut self, tokens: Vec<Token>, line: usize) {
        (self.tokens, self.at, self.line) = (tokens, 0, line);
    }

    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return self.fault(format!("the template is nested more than {DEEPEST} deep"));
        }
        Ok(())
    }

    fn fault<T>(&self, message: impl Into<String>) -> Result<T> {
        let line = self.tokens.get(self.at).map_or(self.line, |token| token.line);
        fault(message).map_err(|e| e.at(line))
    }

    fn kind(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|t| &t.kind)
    }

    fn is_done(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn finish(&self) -> Result<()> {
        if self.is_done() { Ok(()) } else { self.unexpected("the end of the tag") }
    }

    fn unexpected<T>(&self, wanted: &str) -> Result<T> {
        let found = match self.kind() {
            None => "the end of the tag".to_owned(),
            Some(Kind::Name(name)) => format!("'{name}'"),
            Some(Kind::Operator(operator)) => format!("'{operator}'"),
            Some(Kind::Str(text)) => format!("the text {text:?}"),
            Some(Kind::Int(n)) => n.to_string(),
            Some(Kind::Float(x)) => x.to_string(),
        };
        self.fault(format!("expected {wanted}, found {found}"))
    }

    fn peek(&self, operator: &str) -> bool {
        matches!(self.kind(), Some(Kind::Operator(o)) if *o == operator)
    }

    fn skip(&mut self, operator: &str) -> bool {
        let found = self.peek(operator);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, operator: &str) -> Result<()> {
        if self.skip(operator) { Ok(()) } else { self.unexpected(&format!("'{operator}'")) }
    }

    fn peek_name(&self, name: &str) -> bool {
        matches!(self.kind(), Some(Kind::Name(n)) if &**n == name)
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.peek_name(name);
        self.at += usize::from(found);
        found
    }

    fn expect_name(&mut self, name: &str) -> Result<()> {
        if self.skip_name(name) { Ok(()) } else { self.unexpected(&format!("'{name}'")) }
    }

    fn name(&mut self) -> Result<Arc<str>> {
        match self.kind() {
            Some(Kind::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.unexpected("a name"),
        }
    }

    /// The targets of `for`, `set` and `with`. `attributes` allows `namespace.name`.
    fn target(&mut self, attributes: bool) -> Result<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            targets.push(if self.peek("(") {
                self.at += 1;
                self.enter()?;
                let inner = self.target(false)?;
                self.depth -= 1;
                self.expect(")")?;
                inner
            } else {
                let name = self.name()?;
                if ["true", "false", "none", "True", "False", "None"].contains(&&*name) {
                    return self.fault(format!("can't assign to '{name}'"));
                }
                if attributes && !is_tuple && self.skip(".") {
                    Target::Attribute(name, self.name()?)
                } else {
                    Target::Name(name)
                }
            });
            if !self.skip(",") {
                break;
            }
            is_tuple = true;
        }
        Ok(if is_tuple { Target::Tuple(targets) } else { targets.remove(0) })
    }

    /// `(a, b=default)`.
    fn parameters(&mut self) -> Result<Vec<(Arc<str>, Option<Expr>)>> {
        self.expect("(")?;
        let mut parameters: Vec<(Arc<str>, Option<Expr>)> = Vec::new();
        while !self.peek(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let name = self.name()?;
            let default = if self.skip("=") { Some(self.expression(true)?) } else { None };
            if default.is_none() && parameters.last().is_some_and(|(_, default)| default.is_some()) {
                return self.fault("non-default argument follows default argument");
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return self.fault(format!("duplicate argument '{name}'"));
            }
            parameters.push((name, default));
        }
        self.expect(")")?;
        Ok(parameters)
    }

    /// One expression, or a tuple of several with commas between. `conditions` is false where `if` ends it.
    fn tuple(&mut self, conditions: bool) -> Result<Expr> {
        let mut items = Vec::new();
        loop {
            if self.is_done() || self.peek(")") || (!conditions && (self.peek_name("recursive"))) {
                break;
            }
            items.push(self.expression(conditions)?);
            if !self.skip(",") {
                if items.len() == 1 {
                    return Ok(items.remove(0));
                }
                break;
            }
            // A comma at the end makes a tuple too.
            if self.is_done() || self.peek(")") {
                break;
            }
        }
        if items.is_empty() { self.unexpected("an expression") } else { Ok(Expr::Tuple(items)) }
    }

    fn expression(&mut self, conditions: bool) -> Result<Expr> {
        self.enter()?;
        let mut expr = self.or()?;
        let outside = self.depth - 1;
        while conditions && self.skip_name("if") {
            self.enter()?;
            let soft = std::mem::replace(&mut self.soft, true);
            let test = self.or()?;
            let otherwise = if self.skip_name("else") { Some(self.expression(true)?) } else { None };
            self.soft = soft;
            expr = Expr::If(Box::new((expr, test, otherwise)));
        }
        self.depth = outside;
        Ok(expr)
    }

    /// Operands of one rank, separated by what `skip` skips.
    fn several(
        &mut self,
        skip: fn(&mut Self) -> bool,
        operand: fn(&mut Self) -> Result<Expr>,
        make: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr> {
        let first = operand(self)?;
        if !skip(self) {
            return Ok(first);
        }
        let mut all = vec![first, operand(self)?];
        while skip(self) {
            all.push(operand(self)?);
        }
        Ok(make(all))
    }

    fn or(&mut self) -> Result<Expr> {
        self.several(|tokens| tokens.skip_name("or"), Self::and, Expr::Or)
    }

    fn and(&mut self) -> Result<Expr> {
        self.several(|tokens| tokens.skip_name("and"), Self::not, Expr::And)
    }

    fn not(&mut self) -> Result<Expr> {
        if !self.skip_name("not") {
            return self.compare();
        }
        self.enter()?;
        let inner = self.not()?;
        self.depth -= 1;
        Ok(Expr::Not(Box::new(inner)))
    }

    fn compare(&mut self) -> Result<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let compare = match self.kind() {
                Some(Kind::Operator("==")) => Compare::Eq,
                Some(Kind::Operator("!=")) => Compare::Ne,
                Some(Kind::Operator("<")) => Compare::Lt,
                Some(Kind::Operator("<=")) => Compare::Le,
                Some(Kind::Operator(">")) => Compare::Gt,
                Some(Kind::Operator(">=")) => Compare::Ge,
                Some(Kind::Name(name)) if &**name == "in" => Compare::In,
                Some(Kind::Name(name))
                    if &**name == "not"
                        && matches!(self.tokens.get(self.at + 1), Some(Token { kind: Kind::Name(n), .. }) if &**n == "in") =>
                {
                    self.at += 1;
                    Compare::NotIn
                }
                _ => break,
            };
            self.at += 1;
            rest.push((compare, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    /// Operands of one rank with operators between, which group from the left.
    fn chain(&mut self, operators: &[(&str, Operator)], operand: fn(&mut Self) -> Result<Expr>) -> Result<Expr> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some((text, operator)) = operators.iter().find(|(text, _)| self.peek(text)) {
            self.expect(text)?;
            rest.push((*operator, operand(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Chain(Box::new(first), rest) })
    }

    fn sum(&mut self) -> Result<Expr> {
        self.chain(&[("+", Operator::Add), ("-", Operator::Sub)], Self::concat)
    }

    fn concat(&mut self) -> Result<Expr> {
        self.several(|tokens| tokens.skip("~"), Self::product, Expr::Concat)
    }

    fn product(&mut self) -> Result<Expr> {
        let operators = [("*", Operator::Mul), ("//", Operator::FloorDiv), ("/", Operator::Div), ("%", Operator::Mod)];
        self.chain(&operators, Self::power)
    }

    fn power(&mut self) -> Result<Expr> {
        self.chain(&[("**", Operator::Pow)], |tokens| tokens.unary(true))
    }

    /// A sign binds tighter than a filter: `-3|abs` is 3.
    fn unary(&mut self, filters: bool) -> Result<Expr> {
        let operand = match self.kind() {
            Some(&Kind::Operator(sign @ ("-" | "+"))) => {
                self.at += 1;
                self.enter()?;
                let inner = self.unary(false)?;
                self.depth -= 1;
                Expr::Sign(sign, Box::new(inner))
            }
            _ => self.primary()?,
        };
        let mut steps = Vec::new();
        self.postfix(&mut steps)?;
        if filters {
            self.filters_and_tests(&mut steps)?;
        }
        Ok(if steps.is_empty() { operand } else { Expr::Postfix(Box::new(operand), steps) })
    }

    fn primary(&mut self) -> Result<Expr> {
        let Some(kind) = self.kind().cloned() else { return self.unexpected("an expression") };
        self.at += 1;
        Ok(match kind {
            Kind::Name(name) => match &*name {
                "true" | "True" => Expr::Bool(true),
                "false" | "False" => Expr::Bool(false),
                "none" | "None" => Expr::None,
                _ => {
                    self.used.extend(["varargs", "kwargs", "caller"].into_iter().filter(|special| *special == &*name));
                    Expr::Name(name)
                }
            },
            Kind::Str(mut text) => {
                while let Some(Kind::Str(more)) = self.kind() {
                    text.push_str(more);
                    self.at += 1;
                }
                Expr::Str(text.into())
            }
            Kind::Int(n) => Expr::Int(n),
            Kind::Float(x) => Expr::Float(x),
            Kind::Operator("(") => {
                if self.skip(")") {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let inner = self.tuple(true)?;
                self.expect(")")?;
                inner
            }
            Kind::Operator("[") => {
                let mut items = Vec::new();
                self.items("]", |tokens| {
                    items.push(tokens.expression(true)?);
                    Ok(())
                })?;
                Expr::List(items)
            }
            Kind::Operator("{") => {
                let mut entries = Vec::new();
                self.items("}", |tokens| {
                    let key = tokens.expression(true)?;
                    tokens.expect(":")?;
                    entries.push((key, tokens.expression(true)?));
                    Ok(())
                })?;
                Expr::Dict(entries)
            }
            Kind::Operator(_) => {
                self.at -= 1;
                return self.unexpected("an expression");
            }
        })
    }

    /// Items with commas between them, and maybe one after the last, up to and including the bracket that closes them.
    fn items(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        while !self.peek(close) {
            item(self)?;
            if !self.peek(close) {
                self.expect(",")?;
            }
        }
        self.expect(close)
    }

    /// Attributes, items and calls.
    fn postfix(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        loop {
            let line = self.tokens.get(self.at).map_or(self.line, |t| t.line);
            let kind = if self.skip(".") {
                match self.kind().cloned() {
                    Some(Kind::Name(name)) => {
                        self.at += 1;
                        StepKind::Attribute(name)
                    }
                    Some(Kind::Int(n)) => {
                        self.at += 1;
                        StepKind::Item(Expr::Int(n))
                    }
                    _ => return self.unexpected("a name or number"),
                }
            } else if self.skip("[") {
                self.subscript()?
            } else if self.peek("(") {
                StepKind::Call(self.arguments()?)
            } else {
                return Ok(());
            };
            steps.push(Step { kind, line });
        }
    }

    /// What is between square brackets behind an operand.
    fn subscript(&mut self) -> Result<StepKind> {
        let mut parts = [None, None, None];
        let mut part = 0;
        let mut is_slice = false;
        while !self.peek("]") {
            if self.skip(":") {
                is_slice = true;
                part += 1;
                if part > 2 {
                    return self.unexpected("']'");
                }
                continue;
            }
            if self.peek(",") {
                return refuse("an item of several parts").map_err(|e| e.at(self.line));
            }
            parts[part] = Some(self.expression(true)?);
            if !self.peek("]") && !self.peek(":") && !self.peek(",") {
                return self.unexpected("']'");
            }
        }
        self.expect("]")?;
        match parts {
            [Some(item), None, None] if !is_slice => Ok(StepKind::Item(item)),
            parts if is_slice => Ok(StepKind::Slice(parts)),
            _ => self.fault("expected an expression in the brackets"),
        }
    }

    /// Filters, tests, and calls of what they give.
    fn filters_and_tests(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        loop {
            let line = self.tokens.get(self.at).map_or(self.line, |t| t.line);
            if self.peek("|") {
                self.filters(steps, false)?;
            } else if self.skip_name("is") {
                let kind = self.test()?;
                steps.push(Step { kind, line });
            } else if self.peek("(") {
                let call = StepKind::Call(self.arguments()?);
                steps.push(Step { kind: call, line });
            } else {
                return Ok(());
            }
        }
    }

    /// `|name(…)|name…`; with `inline` the first comes without its bar.
    fn filters(&mut self, steps: &mut Vec<Step>, inline: bool) -> Result<()> {
        let mut inline = inline;
        while inline || self.skip("|") {
            inline = false;
            let line = self.tokens.get(self.at).map_or(self.line, |t| t.line);
            let name = self.dotted()?;
            if !self.soft && !is_filter(&name) {
                return self.fault(format!("No filter named '{name}'"));
            }
            let arguments = if self.peek("(") { self.arguments()? } else { Arguments::default() };
            steps.push(Step { kind: StepKind::Filter(name, arguments), line });
        }
        Ok(())
    }

    /// The name of a filter or test, which may have dots.
    fn dotted(&mut self) -> Result<Arc<str>> {
        let mut name = self.name()?;
        while self.skip(".") {
            name = format!("{name}.{}", self.name()?).into();
        }
        Ok(name)
    }

    /// A test behind `is`.
    fn test(&mut self) -> Result<StepKind> {
        let negated = self.skip_name("not");
        let name = self.dotted()?;
        let arguments = if self.peek("(") {
            self.arguments()?
        } else if self.begins_argument() {
            if self.peek_name("is") {
                return self.fault("You cannot chain multiple tests with is");
            }
            let operand = self.primary()?;
            let mut steps = Vec::new();
            self.postfix(&mut steps)?;
            let argument = if steps.is_empty() { operand } else { Expr::Postfix(Box::new(operand), steps) };
            Arguments { positional: vec![argument], ..Arguments::default() }
        } else {
            Arguments::default()
        };
        if !self.soft && !is_test(&name) {
            return self.fault(format!("No test named '{name}'"));
        }
        Ok(StepKind::Test { name, arguments, negated })
    }

    /// Whether an argument follows the name of a test without brackets.
    fn begins_argument(&self) -> bool {
        match self.kind() {
            Some(Kind::Name(name)) => !["else", "or", "and"].contains(&&**name),
            Some(Kind::Operator(operator)) => ["(", "[", "{"].contains(operator),
            Some(_) => true,
            None => false,
        }
    }

    /// `(a, name=b, *list, **mapping)`.
    fn arguments(&mut self) -> Result<Arguments> {
        self.expect("(")?;
        let mut arguments = Arguments::default();
        self.items(")", |tokens| tokens.argument(&mut arguments))?;
        Ok(arguments)
    }

    /// One argument of a call.
    fn argument(&mut self, arguments: &mut Arguments) -> Result<()> {
        let is_named = matches!(self.kind(), Some(Kind::Name(_)))
            && matches!(self.tokens.get(self.at + 1), Some(Token { kind: Kind::Operator("="), .. }));
        let is_star = self.skip("*");
        let is_stars = !is_star && self.skip("**");
        let is_plain = !(is_star || is_stars || is_named);
        let is_behind_star = arguments.star.is_some() && (is_star || is_plain);
        if arguments.stars.is_some() || is_behind_star || is_plain && !arguments.named.is_empty() {
            return self.fault("invalid syntax for function call expression");
        }
        if is_star {
            arguments.star = Some(Box::new(self.expression(true)?));
        } else if is_stars {
            arguments.stars = Some(Box::new(self.expression(true)?));
        } else if is_named {
            let name = self.name()?;
            self.expect("=")?;
            if arguments.named.iter().any(|(n, _)| *n == name) {
                return self.fault(format!("keyword argument repeated: {name}"));
            }
            arguments.named.push((name, self.expression(true)?));
        } else {
            arguments.positional.push(self.expression(true)?);
        }
        Ok(())
    }
}
