//! Rewrites a template from transformers' Jinja into minijinja's, and refuses what would overflow a
//! parser's stack. `ChatTemplate::new` calls [`translate`] once; what comes out is compiled.
//!
//! Only blocks that need a change are written anew:
//!
//! | transformers | minijinja | why |
//! |---|---|---|
//! | `{% generation %}…{% endgeneration %}` | `{% with %}…{% endwith %}` | minijinja lacks this block, which only marks its body |
//! | `a % b` | `__modulo(a,b)` | on strings `%` formats, which minijinja's operator does not |
//! | `a ~ b` | the same, with the filter `__joined` on both operands | counts the bytes that are made, and spells values as Python does |
//! | `a + b` | the same, with the filter `__added` on both operands | counts the bytes that are made |
//!
//! This is no parser of Jinja. It reads an expression as a flat list of pieces, in which only
//! brackets nest, and finds operands by looking at the pieces beside an operator:
//!
//! ```text
//! {{- '%s: %d' % (name, n) + x.y|f(z) -}}
//!     └──┬───┘ ┬ └───┬───┘ ┬ ┬┬┬┬┬└┬┘
//!     Operand  │   Group   │ │││││ Group       x, y and f are Names; `.` and `|` are Operators
//!           Operator     Operator
//! ```
//!
//! Invariants:
//!
//! - Text outside blocks, comments, and `raw` blocks as a whole are copied byte for byte.
//! - A rewritten block keeps its delimiters and white-space modifiers and all operands in their
//!   order.
//! - What cannot be read is copied from there on, so that minijinja reports it in its own words.
//! - Nesting is checked before anything recurses on it: [`DEEPEST`] for the recursion here,
//!   [`LONGEST`] and [`MOST_ELIFS`] for the depth of minijinja's tree.

use std::collections::BTreeMap;

use minijinja::{Error as JinjaError, ErrorKind};

use super::python::{ADDED, JOINED, MODULO};

/// Deepest nesting of brackets in one expression. It bounds the recursion of [`Reader::nodes`],
/// [`replace_modulo`], [`count_operands`] and [`text`], and that of minijinja's parser.
const DEEPEST: usize = 64;

/// Most pieces of an expression between brackets and commas. minijinja's tree is as deep as a chain
/// of operators, filters, calls or conditions is long, so it must be bounded; items of a list are
/// beside one another, so commas start the count again.
const LONGEST: usize = 1000;

/// Most `elif` of one template, wherever they are: minijinja nests each in the one before it.
const MOST_ELIFS: usize = 256;

/// The same template in minijinja's language.
///
/// Everything that needs no change is copied. From the first block that cannot be read, the rest is
/// copied too, so that minijinja reports the fault.
///
/// # Errors
/// A syntax error, with the line where the block begins, for what would overflow the stack.
pub(super) fn translate(source: &str) -> Result<String, JinjaError> {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let mut elifs = 0;
    while let Some(start) = next_block(rest) {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let refused = |problem: String| {
            let line = source[..source.len() - rest.len()].matches('\n').count() + 1;
            JinjaError::new(ErrorKind::SyntaxError, format!("line {line}: {problem}"))
        };
        match translate_block(rest, &mut out, &mut elifs) {
            Ok(end) => rest = &rest[end..],
            Err(Unread::Unfinished) => break,
            Err(Unread::TooDeep) => return Err(refused(format!("brackets are nested more than {DEEPEST} deep"))),
            Err(Unread::TooLong) => return Err(refused(format!("an expression has more than {LONGEST} pieces"))),
        }
        if elifs > MOST_ELIFS {
            return Err(refused(format!("the template has more than {MOST_ELIFS} elif")));
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Byte offset of the next `{{`, `{%` or `{#`; `None` if the rest is plain text.
fn next_block(text: &str) -> Option<usize> {
    text.as_bytes().windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"))
}

/// Why a block cannot be translated.
enum Unread {
    /// It never ends, or its brackets do not match. This is no error here: minijinja says so
    /// better.
    Unfinished,
    /// Brackets are nested more than [`DEEPEST`] deep.
    TooDeep,
    /// More than [`LONGEST`] pieces follow one another without a comma.
    TooLong,
}

/// Appends to `out` the translation of the block that `text` starts with, and returns the block's
/// length in `text`. A `raw` block counts as one block up to the end of its `endraw`. `elifs` is
/// increased by one where the block is an `elif`.
fn translate_block(text: &str, out: &mut String, elifs: &mut usize) -> Result<usize, Unread> {
    let close = match text.as_bytes().get(1) {
        Some(b'#') => {
            let end = text.find("#}").ok_or(Unread::Unfinished)? + 2;
            out.push_str(&text[..end]);
            return Ok(end);
        }
        Some(b'%') => "%}",
        _ => "}}",
    };
    let (nodes, mut end) = block(text, close)?;
    if is_statement(&nodes, close, "raw") {
        end = end_of_raw(text, end);
    } else {
        *elifs += usize::from(matches!(nodes.first(), Some(Node { kind: Kind::Name(n), .. }) if n == "elif"));
        if let Some(inside) = rewrite(nodes, close) {
            out.push_str(&text[..2 + modifier(&text[2..])]);
            out.push_str(&inside);
            out.push_str(tail(&text[..end], close));
            return Ok(end);
        }
    }
    out.push_str(&text[..end]);
    Ok(end)
}

/// A piece of an expression. The spaces keep names apart when the pieces are written again.
#[derive(Clone, Debug)]
struct Node {
    /// The white space before the piece.
    space: String,
    /// What the piece is.
    kind: Kind,
}

/// The kinds of pieces, as far as finding operands needs them.
#[derive(Clone, Debug)]
enum Kind {
    /// A name or keyword; which one it is, [`KEYWORDS`] says.
    Name(String),
    /// A string or number in its own spelling, or a whole operand that is rewritten already.
    Operand(String),
    /// An operator or separator: one of [`OPERATORS`], or any other single character, `,`, `:` and
    /// `.` included.
    Operator(String),
    /// Opening bracket, the pieces inside, closing bracket, and the white space before the latter.
    Group(char, Vec<Node>, char, String),
}

/// Words that cannot be part of an operand: an operator after one has no left operand. Words for
/// values (`true`, `none`) are missing on purpose.
const KEYWORDS: [&str; 14] =
    ["and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "call", "filter", "print", "do"];

/// Operators of two characters. They are tried before single characters, so that `**` is not read
/// as two.
const OPERATORS: [&str; 8] = ["**", "//", "==", "!=", "<=", ">=", "||", "&&"];

/// Length of the white-space modifier (`-` or `+`) that a block's inside starts with: 0 or 1.
fn modifier(inside: &str) -> usize {
    usize::from(inside.starts_with(['-', '+']))
}

/// The end of `block`: the closing delimiter with its white-space modifier. A modifier right behind
/// the opening delimiter belongs to that, as in `{{-}}`.
fn tail<'s>(block: &'s str, close: &str) -> &'s str {
    let body = &block[..block.len() - close.len()];
    &block[body.len() - usize::from(body.len() > 3 && body.ends_with(['-', '+']))..]
}

/// Reads the block at the start of `text`, which `close` ends. Returns its pieces and the offset
/// behind the closing delimiter.
fn block(text: &str, close: &str) -> Result<(Vec<Node>, usize), Unread> {
    let mut reader = Reader { text, at: 2 + modifier(&text[2..]), close };
    let (nodes, _) = reader.nodes(None, 0)?;
    Ok((nodes, reader.at))
}

/// A position in a block that is being read.
struct Reader<'s> {
    /// The template from the block's opening delimiter on.
    text: &'s str,
    /// Byte offset of the next piece in `text`.
    at: usize,
    /// The closing delimiter: `}}` or `%}`.
    close: &'s str,
}

impl Reader<'_> {
    /// Reads pieces up to the bracket `until`, or, with `None`, up to the block's end, and moves
    /// past it. Returns the pieces and the white space before that end.
    ///
    /// `depth` is the number of brackets that are open. Fails as [`Unread`] says; recursion is at
    /// most [`DEEPEST`] deep.
    fn nodes(&mut self, until: Option<char>, depth: usize) -> Result<(Vec<Node>, String), Unread> {
        if depth > DEEPEST {
            return Err(Unread::TooDeep);
        }
        let mut nodes = Vec::<Node>::new();
        let mut since_comma = 0;
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            let space = rest[..rest.len() - trimmed.len()].to_owned();
            self.at += space.len();
            let first = trimmed.chars().next().ok_or(Unread::Unfinished)?;
            match until {
                None => {
                    let end = modifier(trimmed);
                    for end in [0, end] {
                        if trimmed[end..].starts_with(self.close) {
                            self.at += end + self.close.len();
                            return Ok((nodes, space));
                        }
                    }
                }
                Some(bracket) if first == bracket => {
                    self.at += 1;
                    return Ok((nodes, space));
                }
                Some(_) => {}
            }
            let kind = self.node(trimmed, first, depth)?;
            since_comma = if first == ',' { 0 } else { since_comma + 1 };
            if since_comma > LONGEST {
                return Err(Unread::TooLong);
            }
            nodes.push(Node { space, kind });
        }
    }

    /// Reads the one piece that `trimmed` starts with, and moves past it. `first` is its first
    /// character. `trimmed` is the text at `self.at`.
    fn node(&mut self, trimmed: &str, first: char, depth: usize) -> Result<Kind, Unread> {
        let length = match first {
            '(' | '[' | '{' => {
                let shut = match first {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                };
                self.at += 1;
                let (nodes, space) = self.nodes(Some(shut), depth + 1)?;
                return Ok(Kind::Group(first, nodes, shut, space));
            }
            ')' | ']' | '}' => return Err(Unread::Unfinished),
            '"' | '\'' => string_length(trimmed, first).ok_or(Unread::Unfinished)?,
            c if c.is_alphanumeric() || c == '_' => {
                let digits = c.is_ascii_digit();
                let more = |c: char| c.is_alphanumeric() || c == '_' || (digits && c == '.');
                let length = trimmed.find(|c| !more(c)).unwrap_or(trimmed.len());
                if !digits {
                    self.at += length;
                    return Ok(Kind::Name(trimmed[..length].to_owned()));
                }
                length
            }
            c => {
                let length = OPERATORS.iter().find(|o| trimmed.starts_with(**o)).map_or(c.len_utf8(), |o| o.len());
                self.at += length;
                return Ok(Kind::Operator(trimmed[..length].to_owned()));
            }
        };
        self.at += length;
        Ok(Kind::Operand(trimmed[..length].to_owned()))
    }
}

/// Length of the string that `text` starts with, both quotes included; `None` if it never ends. A
/// backslash takes the next character along.
fn string_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(i, c)| {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(i + 1);
        }
        None
    })
}

/// Whether a block is the statement `name` without arguments, such as `{% raw %}`.
fn is_statement(nodes: &[Node], close: &str, name: &str) -> bool {
    close == "%}" && matches!(nodes, [Node { kind: Kind::Name(n), .. }] if n == name)
}

/// Offset in `text` behind the `endraw` of a raw block whose opening tag ends at `opened`. If there
/// is none, `opened` itself: minijinja then reports the fault.
fn end_of_raw(text: &str, opened: usize) -> usize {
    let mut from = opened;
    while let Some(start) = text[from..].find("{%").map(|i| from + i + 2) {
        let name = text[start + modifier(&text[start..])..].trim_start();
        if let Some(rest) = name.strip_prefix("endraw").map(str::trim_start)
            && let Some(rest) = rest[modifier(rest)..].strip_prefix("%}")
        {
            return text.len() - rest.len();
        }
        from = start;
    }
    opened
}

/// The new inside of a block, without delimiters and modifiers; `None` if the block can stay as it
/// is.
fn rewrite(mut nodes: Vec<Node>, close: &str) -> Option<String> {
    for (name, replacement) in [("generation", "with"), ("endgeneration", "endwith")] {
        if is_statement(&nodes, close, name) {
            return Some(format!(" {replacement} "));
        }
    }
    // The white space before the closing delimiter is not among the pieces. A space keeps a name
    // from running into the delimiter's modifier.
    let changed = replace_modulo(&mut nodes) | count_operands(&mut nodes);
    changed.then(|| text(&nodes) + " ")
}

/// Puts a filter on every operand of `~` and `+`, inside brackets too; returns whether there was
/// one.
///
/// A filter binds to the last primary of an operand: in `a * b + c` it is put on `b`, whose number
/// costs nothing, and on `c`. Unary signs have no left operand and are left alone. So is an
/// operator behind the name of a test, whose answer is no text.
///
/// ```text
/// x ~ -c|d         →  x|__joined ~ -c|d|__joined
/// 1 + b ~ c        →  1|__added + b|__joined ~ c|__joined
/// [x + y, -z]      →  [x|__added + y|__added, -z]
/// a if e is f + g  →  unchanged
/// ```
fn count_operands(nodes: &mut Vec<Node>) -> bool {
    let mut changed = false;
    // Filters by the index of the operand's last piece. `~` binds tighter than `+`, so an operand
    // of both gets the filter of `~`, which is inserted later.
    let mut filters = BTreeMap::new();
    for (operator, filter) in [("+", ADDED), ("~", JOINED)] {
        for at in (0..nodes.len()).filter(|&i| nodes[i].is_operator(operator)) {
            if at > 0 && nodes[at - 1].ends_operand() && !is_test(&nodes[..at]) {
                filters.insert(at - 1, filter);
                filters.extend((right_operand(nodes, at) > at + 1).then(|| (right_operand(nodes, at) - 1, filter)));
            }
        }
    }
    for (i, mut node) in std::mem::take(nodes).into_iter().enumerate() {
        if let Kind::Group(_, inner, ..) = &mut node.kind {
            changed |= count_operands(inner);
        }
        nodes.push(node);
        if let Some(filter) = filters.get(&i) {
            nodes.push(Node { space: String::new(), kind: Kind::Operand(format!("|{filter}")) });
            changed = true;
        }
    }
    changed
}

/// Whether the last of `nodes` is the name of a test, behind `is` or `is not`. The answer of a test
/// is no text, so there is nothing to count.
fn is_test(nodes: &[Node]) -> bool {
    let is = |node: &Node, name: &str| matches!(&node.kind, Kind::Name(n) if n == name);
    match nodes {
        [.., a, b, _] if is(b, "not") => is(a, "is"),
        [.., b, _] => is(b, "is"),
        _ => false,
    }
}

/// Turns every `left % right` into a call of [`MODULO`], inside brackets first and then from the
/// left, so that `a % b % c` groups as in Python. Returns whether there was one. A `%` without an
/// operand on either side is left for minijinja to report.
///
/// ```text
/// a % b % c         →  __modulo(__modulo(a,b),c)
/// not a * b % c     →  not __modulo(a * b,c)
/// '%s' % (a, b)     →  __modulo('%s',(a, b))
/// x + -a.b % d|f(e) →  x + __modulo(-a.b,d|f(e))
/// ```
fn replace_modulo(nodes: &mut Vec<Node>) -> bool {
    let mut changed = false;
    for node in nodes.iter_mut() {
        if let Kind::Group(_, inner, ..) = &mut node.kind {
            changed |= replace_modulo(inner);
        }
    }
    let mut from = 0;
    while let Some(at) = (from..nodes.len()).find(|&i| nodes[i].is_operator("%")) {
        let (start, end) = (left_operand(nodes, at), right_operand(nodes, at));
        if start == at || end == at + 1 {
            from = at + 1;
            continue;
        }
        let call = format!("{MODULO}({},{})", text(&nodes[start..at]), text(&nodes[at + 1..end]));
        let space = nodes[start].space.clone();
        nodes.splice(start..end, [Node { space, kind: Kind::Operand(call) }]);
        changed = true;
        from = start;
    }
    changed
}

/// Index of the first piece of the left operand of a `%` at `at`; `at` itself if there is none.
///
/// `%` has the rank of `*` and groups from the left, so the operand is the whole chain of products,
/// powers, filters, attributes and calls that ends there, with its unary signs. A sign is unary if
/// no operand is before it.
fn left_operand(nodes: &[Node], at: usize) -> usize {
    let mut start = at;
    while start > 0 {
        let sign = nodes[start - 1].is_operator("-") || nodes[start - 1].is_operator("+");
        let goes_on = match &nodes[start - 1].kind {
            Kind::Operator(_) if sign => start < 2 || !nodes[start - 2].ends_operand(),
            Kind::Operator(o) => matches!(o.as_str(), "." | "|" | "*" | "/" | "//" | "**"),
            _ => nodes[start - 1].ends_operand(),
        };
        if !goes_on {
            break;
        }
        start -= 1;
    }
    start
}

/// Index behind the last piece of the operand that follows the operator at `at`; `at + 1` if there
/// is none.
///
/// The operand is its signs, a primary, the calls, subscripts, attributes and filters attached to
/// it, and, with `**`, the power's exponent, read in the same way.
fn right_operand(nodes: &[Node], at: usize) -> usize {
    let is = |i: usize, operator: &str| nodes.get(i).is_some_and(|n| n.is_operator(operator));
    let mut end = at + 1;
    loop {
        while is(end, "-") || is(end, "+") {
            end += 1;
        }
        if !nodes.get(end).is_some_and(Node::ends_operand) {
            return at + 1;
        }
        end += 1;
        loop {
            match nodes.get(end).map(|n| &n.kind) {
                Some(Kind::Group('(' | '[', ..)) => end += 1,
                Some(Kind::Operator(o)) if o == "." || o == "|" => end = (end + 2).min(nodes.len()),
                _ => break,
            }
        }
        if !is(end, "**") {
            return end;
        }
        end += 1;
    }
}

impl Node {
    /// Whether the piece is this operator.
    fn is_operator(&self, operator: &str) -> bool {
        matches!(&self.kind, Kind::Operator(o) if o == operator)
    }

    /// Whether an operand may end with this piece, so that an operator behind it takes two
    /// operands.
    fn ends_operand(&self) -> bool {
        match &self.kind {
            Kind::Name(name) => !KEYWORDS.contains(&name.as_str()),
            Kind::Operand(_) | Kind::Group(..) => true,
            Kind::Operator(_) => false,
        }
    }
}

/// The pieces as source text, with the white space that each had before it.
fn text(nodes: &[Node]) -> String {
    let mut out = String::new();
    for Node { space, kind } in nodes {
        out.push_str(space);
        match kind {
            Kind::Name(s) | Kind::Operand(s) | Kind::Operator(s) => out.push_str(s),
            Kind::Group(open, inner, shut, space) => {
                out.push(*open);
                out.push_str(&text(inner));
                out.push_str(space);
                out.push(*shut);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn what_needs_no_change_is_copied() {
        for source in [
            "",
            "plain {{ a }} text {%- if b -%} x {%- endif %}",
            "{# a % b {% generation %} #}{{ '% ~' == \"a % b + c\" }}{{ -a }}",
            "{% raw %}{{ a % b }}{% generation %}{% endraw %}",
            "{{ {'a': {'b': 1}} }}",
            "{{ unclosed % ",
            "{{ 'open }}",
            "{% raw %} {{ a % b",
        ] {
            assert_eq!(translate(source).unwrap(), source);
        }
    }

    #[test]
    fn operands_are_found() {
        for (source, translated) in [
            ("{{ '%s' % a }}", "{{ __modulo('%s', a) }}"),
            ("{{- '%s' % (a, b) -}}", "{{- __modulo('%s', (a, b)) -}}"),
            ("{{ x + -a.b[c] % d|f(e) ~ g }}", "{{ x|__added +__modulo( -a.b[c], d|f(e))|__joined ~ g|__joined }}"),
            (
                "{{ a ~ (b ~ -c|d) if e is f + g }}",
                "{{ a|__joined ~ (b|__joined ~ -c|d|__joined)|__joined if e is f + g }}",
            ),
            ("{{ a[1 + b:] + +c ** d }}", "{{ a[1|__added + b|__added:]|__added + +c ** d|__added }}"),
            ("{% if not a * b % c == 0 %}", "{% if not__modulo( a * b, c) == 0 %}"),
            ("{{ a % b % c }}", "{{ __modulo( __modulo( a, b), c) }}"),
            ("{{ f((a % b), [c % d]) }}", "{{ f((__modulo(a, b)), [__modulo(c, d)]) }}"),
        ] {
            let squeeze = |s: &str| s.replace(' ', "");
            assert_eq!(squeeze(&translate(source).unwrap()), squeeze(translated), "{source}");
        }
    }

    #[test]
    fn generation_is_a_scope() {
        assert_eq!(translate("a{%- generation +%}b{%endgeneration%}").unwrap(), "a{%- with +%}b{% endwith %}");
    }
    #[test]
    fn what_would_overflow_the_stack_is_refused_with_its_line() {
        let long = |piece: &str| format!("a\n{{{{ a{} }}}}", piece.repeat(100_000));
        for (source, expected) in [
            (format!("a\n{{{{ {} }}}}", "(".repeat(100_000)), "line 2: brackets are nested more than 64 deep"),
            (format!("{{% if {}1{} %}}", "[{".repeat(50_000), "}]".repeat(50_000)), "line 1: brackets"),
            (long(" ~ a"), "line 2: an expression has more than 1000 pieces"),
            (long("|f"), "line 2: an expression"),
            (long("()"), "line 2: an expression"),
            (long(" if b else a"), "line 2: an expression"),
            (format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}\n".repeat(100_000)), "more than 256 elif"),
        ] {
            let error = translate(&source).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let nested = format!("{{{{ {}a{} }}}}", "(".repeat(64), ")".repeat(64));
        assert_eq!(translate(&nested).unwrap(), nested);
        let list = format!("{{{{ [{}] }}}}", "a, ".repeat(100_000));
        assert_eq!(translate(&list).unwrap(), list);
    }
}
