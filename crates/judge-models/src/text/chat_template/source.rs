//! Rewrites the two things of transformers' Jinja that minijinja's grammar lacks: the `generation` block, which only
//! marks its body and becomes a scope, and the `%` operator on strings, which becomes a function call.

use super::python::MODULO;

/// The same template in minijinja's language. Everything that needs no change is copied; what cannot be read is too, so
/// that minijinja reports it.
pub(super) fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min() {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let Some(end) = translate_block(rest, &mut out) else { break };
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

/// Writes the block that `text` starts with and returns its length, or nothing if it never ends.
fn translate_block(text: &str, out: &mut String) -> Option<usize> {
    let close = match text.as_bytes().get(1)? {
        b'#' => {
            let end = text.find("#}")? + 2;
            out.push_str(&text[..end]);
            return Some(end);
        }
        b'%' => "%}",
        _ => "}}",
    };
    let (nodes, mut end) = block(text, close)?;
    if is_statement(&nodes, close, "raw") {
        end = end_of_raw(text, end);
    } else if let Some(inside) = rewrite(nodes, close) {
        out.push_str(&text[..2 + modifier(&text[2..])]);
        out.push_str(&inside);
        out.push_str(tail(&text[..end], close));
        return Some(end);
    }
    out.push_str(&text[..end]);
    Some(end)
}

/// A piece of an expression, with the white space before it.
#[derive(Clone, Debug)]
struct Node {
    space: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// A name or keyword.
    Name(String),
    /// A literal, or something already rewritten.
    Operand(String),
    /// An operator or separator.
    Operator(String),
    /// Brackets and what is in them.
    Group(char, Vec<Node>, char, String),
}

/// Words that cannot be part of an operand.
const KEYWORDS: [&str; 14] =
    ["and", "or", "not", "in", "is", "if", "else", "elif", "for", "set", "call", "filter", "print", "do"];

const OPERATORS: [&str; 8] = ["**", "//", "==", "!=", "<=", ">=", "||", "&&"];

/// Length of the white-space modifier at the start of a block's inside.
fn modifier(inside: &str) -> usize {
    usize::from(inside.starts_with(['-', '+']))
}

/// The closing delimiter with its white-space modifier.
fn tail<'s>(block: &'s str, close: &str) -> &'s str {
    let body = &block[..block.len() - close.len()];
    &block[body.len() - usize::from(body.len() > 3 && body.ends_with(['-', '+']))..]
}

/// Reads the block at the start of `text`; returns its expression and where the block ends.
fn block(text: &str, close: &str) -> Option<(Vec<Node>, usize)> {
    let mut reader = Reader { text, at: 2 + modifier(&text[2..]), close };
    let (nodes, _) = reader.nodes(None)?;
    Some((nodes, reader.at))
}

struct Reader<'s> {
    text: &'s str,
    at: usize,
    close: &'s str,
}

impl Reader<'_> {
    /// Reads up to `until`, or up to the block's end, and past it; returns also the white space before the end.
    fn nodes(&mut self, until: Option<char>) -> Option<(Vec<Node>, String)> {
        let mut nodes = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            let space = rest[..rest.len() - trimmed.len()].to_owned();
            self.at += space.len();
            let first = trimmed.chars().next()?;
            match until {
                None => {
                    let end = modifier(trimmed);
                    for end in [0, end] {
                        if trimmed[end..].starts_with(self.close) {
                            self.at += end + self.close.len();
                            return Some((nodes, space));
                        }
                    }
                }
                Some(bracket) if first == bracket => {
                    self.at += 1;
                    return Some((nodes, space));
                }
                Some(_) => {}
            }
            let kind = self.node(trimmed, first)?;
            nodes.push(Node { space, kind });
        }
    }

    fn node(&mut self, trimmed: &str, first: char) -> Option<Kind> {
        let length = match first {
            '(' | '[' | '{' => {
                let shut = match first {
                    '(' => ')',
                    '[' => ']',
                    _ => '}',
                };
                self.at += 1;
                let (nodes, space) = self.nodes(Some(shut))?;
                return Some(Kind::Group(first, nodes, shut, space));
            }
            ')' | ']' | '}' => return None,
            '"' | '\'' => string_length(trimmed, first)?,
            c if c.is_alphanumeric() || c == '_' => {
                let digits = c.is_ascii_digit();
                let more = |c: char| c.is_alphanumeric() || c == '_' || (digits && c == '.');
                let length = trimmed.find(|c| !more(c)).unwrap_or(trimmed.len());
                if !digits {
                    self.at += length;
                    return Some(Kind::Name(trimmed[..length].to_owned()));
                }
                length
            }
            c => {
                let length = OPERATORS.iter().find(|o| trimmed.starts_with(**o)).map_or(c.len_utf8(), |o| o.len());
                self.at += length;
                return Some(Kind::Operator(trimmed[..length].to_owned()));
            }
        };
        self.at += length;
        Some(Kind::Operand(trimmed[..length].to_owned()))
    }
}

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

fn is_statement(nodes: &[Node], close: &str, name: &str) -> bool {
    close == "%}" && matches!(nodes, [Node { kind: Kind::Name(n), .. }] if n == name)
}

/// Where the raw block that `text` starts with ends, or only its opening tag if it never does.
fn end_of_raw(text: &str, opened: usize) -> usize {
    let mut from = opened;
    while let Some(start) = text[from..].find("{%").map(|i| from + i) {
        if let Some((nodes, end)) = block(&text[start..], "%}")
            && is_statement(&nodes, "%}", "endraw")
        {
            return start + end;
        }
        from = start + 2;
    }
    opened
}

/// The new inside of a block, if it needs one.
fn rewrite(mut nodes: Vec<Node>, close: &str) -> Option<String> {
    for (name, replacement) in [("generation", "with"), ("endgeneration", "endwith")] {
        if is_statement(&nodes, close, name) {
            return Some(format!(" {replacement} "));
        }
    }
    // The white space before the end was lost, but a name must not run into the closing delimiter's modifier.
    replace_modulo(&mut nodes).then(|| text(&nodes) + " ")
}

/// Turns every `left % right` into a call, innermost and leftmost first; says whether there was one.
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
        from = 0;
    }
    changed
}

/// Start of what a multiplication ending before `at` multiplies.
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

/// End of the operand that starts after the operator at `at`: signs, a primary, and what is attached to it.
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
    fn is_operator(&self, operator: &str) -> bool {
        matches!(&self.kind, Kind::Operator(o) if o == operator)
    }

    fn ends_operand(&self) -> bool {
        match &self.kind {
            Kind::Name(name) => !KEYWORDS.contains(&name.as_str()),
            Kind::Operand(_) | Kind::Group(..) => true,
            Kind::Operator(_) => false,
        }
    }
}

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
            "{# a % b {% generation %} #}{{ '%' ~ \"a % b\" }}",
            "{% raw %}{{ a % b }}{% generation %}{% endraw %}",
            "{{ {'a': {'b': 1}} }}",
            "{{ unclosed % ",
            "{{ 'open }}",
            "{% raw %} {{ a % b",
        ] {
            assert_eq!(translate(source), source);
        }
    }

    #[test]
    fn operands_are_found() {
        for (source, translated) in [
            ("{{ '%s' % a }}", "{{ __modulo('%s', a) }}"),
            ("{{- '%s' % (a, b) -}}", "{{- __modulo('%s', (a, b)) -}}"),
            ("{{ x + -a.b[c] % d|f(e) ~ g }}", "{{ x +__modulo( -a.b[c], d|f(e)) ~ g }}"),
            ("{% if not a * b % c == 0 %}", "{% if not__modulo( a * b, c) == 0 %}"),
            ("{{ a % b % c }}", "{{ __modulo( __modulo( a, b), c) }}"),
            ("{{ f((a % b), [c % d]) }}", "{{ f((__modulo(a, b)), [__modulo(c, d)]) }}"),
        ] {
            let squeeze = |s: &str| s.replace(' ', "");
            assert_eq!(squeeze(&translate(source)), squeeze(translated), "{source}");
        }
    }

    #[test]
    fn generation_is_a_scope() {
        assert_eq!(translate("a{%- generation +%}b{%endgeneration%}"), "a{%- with +%}b{% endwith %}");
    }
}
