//! No circles between modules and no crate that is too large, counted in the sources of every crate. A binary of its own, since it needs
//! none of them.
//!
//! An *arrow* runs from a module to the module that defines what it uses, whichever re-exports lie between. What counts:
//!
//! * a `use` that is not public, and a public one of something outside the module's own tree;
//! * a path in code: `crate::…`, `super::…`, `self::…`, or one that begins with a module declared here;
//! * a name in code that a public `use` brings in.
//!
//! What does not: `mod`, a re-export of what lies below a module, documentation, and what is under `#[cfg(test)]`.
//! Methods are called without naming a module, and are not seen. Modules in a circle are a strongly connected set of
//! two or more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const CRATES: [&str; 16] = [
    "judge",
    "judge-arch",
    "judge-cli",
    "judge-core",
    "judge-grade",
    "judge-hub",
    "judge-jinja",
    "judge-kernels",
    "judge-metrics",
    "judge-probe",
    "judge-data",
    "judge-gpu",
    "judge-models",
    "judge-serve",
    "judge-text",
    "judge-weights",
];

#[test]
fn no_module_is_in_a_circle() {
    for name in CRATES {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let circles = Crate::read(&source).circles();
        assert!(circles.is_empty(), "{name}: modules that need each other:\n{}", in_words(&circles));
    }
}

/// A crate is what a reader holds in mind and what the compiler takes at once.
#[test]
fn no_crate_has_more_than_20_000_lines_of_code_without_tests() {
    for name in CRATES {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let lines: usize = Crate::read(&source).lines.values().sum();
        assert!((100..=20_000).contains(&lines), "{name}: {lines} lines of code");
    }
    assert_eq!(
        lines_of_code("//! About.\n\nfn a() {\n    // why\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"),
        2
    );
    assert_eq!(lines_of_code("#[cfg(test)]\nmod tests;\n\nfn a() {}\n"), 3);
}

/// Lines that are neither blank nor comments, without the tests at a file's end.
fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn a_circle_through_re_exports_is_seen() {
    let modules = |files: &[(&str, &str)]| {
        let mut all = Crate::default();
        for (path, text) in files {
            let path = path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
            all.add(path, text);
        }
        let all = all.without_undeclared();
        all.circles().into_iter().map(|circle| circle.into_iter().map(|m| m.0).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let root = "mod a; mod b; pub use a::{A, Again as Other}; pub use b::B;";
    // Through the root, in a list, under another name.
    assert_eq!(
        modules(&[("", root), ("a", "use crate::B; struct A; struct Again;"), ("b", "use crate::{A};")]),
        [["a", "b"]]
    );
    assert_eq!(
        modules(&[("", root), ("a", "fn f(_: crate::B) {} struct Again;"), ("b", "use crate::Other;")]),
        [["a", "b"]]
    );
    // A facade above its parts is no circle; one that has items of its own which its parts use is.
    let facade = "mod c; pub use c::C;";
    assert!(modules(&[("", "mod a;"), ("a", facade), ("a::c", "pub struct C;")]).is_empty());
    let uses = "mod c; pub use c::C; pub struct D; fn f() -> C { c::g() }";
    assert_eq!(modules(&[("", "mod a;"), ("a", uses), ("a::c", "use super::D;")]), [["a", "a::c"]]);
    // A file of tests is none of the crate's code, whatever its name; a file called tests that is code counts.
    let of_tests = "mod a; #[cfg(test)] mod checks; pub use a::A; fn f() {}";
    let checks = ("checks", "use crate::f;");
    assert!(modules(&[("", of_tests), ("a", "struct A; fn g() { crate::checks::h() }"), checks]).is_empty());
    let own = "mod a_tests; mod b; pub use a_tests::A; pub use b::B;";
    assert_eq!(
        modules(&[("", own), ("a_tests", "use crate::B; struct A;"), ("b", "use crate::A; struct B;")]).len(),
        1
    );
    // Tests, documentation, text and comments are no code.
    let quiet =
        "/// [`crate::A`]\n// crate::A\nfn f() { \"crate::A\"; '\"'; } #[cfg(test)] mod tests { use crate::A; }";
    assert!(modules(&[("", root), ("a", "use crate::B;"), ("b", quiet)]).is_empty());
}

/// A module's path from the root of its crate, joined by `::`; empty for the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Module(String);

impl Module {
    fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}::{name}", self.0)) }
    }

    fn parent(&self) -> Self {
        Self(self.0.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned())
    }

    fn holds(&self, other: &Self) -> bool {
        self == other || self.0.is_empty() || other.0.starts_with(&format!("{}::", self.0))
    }
}

/// What one module's text says.
#[derive(Default)]
struct Text {
    /// Names that a `use` brings in, with the path behind each, and whether it is public.
    uses: BTreeMap<String, (Vec<String>, bool)>,
    /// Paths of `use x::*`.
    globs: Vec<Vec<String>>,
    /// Paths in code, names alone among them.
    paths: BTreeSet<Vec<String>>,
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Text>,
    /// What `mod` declares outside tests.
    declared: BTreeSet<Module>,
    lines: BTreeMap<Module, usize>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let mut all = Self::default();
        let mut folders = vec![source.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    all.add(module_of(source, &path), &fs::read_to_string(&path).expect("source"));
                }
            }
        }
        all.without_undeclared()
    }

    /// Without files of tests, which are declared `#[cfg(test)] mod tests;`, and what lies below them.
    fn without_undeclared(mut self) -> Self {
        let declared = std::mem::take(&mut self.declared);
        let is_code = |module: &Module| {
            let mut at = module.clone();
            while !at.0.is_empty() {
                if !declared.contains(&at) {
                    return false;
                }
                at = at.parent();
            }
            true
        };
        self.modules.retain(|module, _| is_code(module));
        self.lines.retain(|module, _| is_code(module));
        self
    }

    fn add(&mut self, path: Vec<String>, text: &str) {
        let module = Module(path.join("::"));
        let tokens = without_tests(tokens(text));
        self.lines.insert(module.clone(), lines_of_code(text));
        self.add_tokens(&module, &tokens);
    }

    fn add_tokens(&mut self, module: &Module, tokens: &[String]) {
        let mut at = 0;
        let mut text = Text::default();
        while at < tokens.len() {
            match tokens[at].as_str() {
                "use" => {
                    let end = at + tokens[at..].iter().position(|token| token == ";").unwrap_or(tokens.len() - at);
                    let public = at > 0 && (tokens[at - 1] == "pub" || tokens[at - 1] == ")");
                    use_tree(&tokens[at + 1..end], &[], public, &mut text);
                    at = end;
                }
                "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => {
                    let end = closing(tokens, at + 2);
                    self.declared.insert(module.child(&tokens[at + 1]));
                    self.add_tokens(&module.child(&tokens[at + 1]), &tokens[at + 3..end]);
                    at = end;
                }
                "mod" => {
                    at += 1;
                    self.declared.extend(tokens.get(at).map(|name| module.child(name)));
                }
                // How far something may be seen is no use of what it names.
                "pub"
                    if tokens.get(at + 1).is_some_and(|token| token == "(")
                        && (tokens.get(at + 2).is_some_and(|token| token == "in")
                            || tokens.get(at + 3).is_some_and(|token| token == ")")) =>
                {
                    at = closing(tokens, at + 1);
                }
                token if is_name(token) && !(at > 0 && [".", "::"].contains(&tokens[at - 1].as_str())) => {
                    let mut path = vec![token.to_owned()];
                    while tokens.get(at + 1).is_some_and(|token| token == "::")
                        && tokens.get(at + 2).is_some_and(|token| is_name(token))
                    {
                        path.push(tokens[at + 2].clone());
                        at += 2;
                    }
                    text.paths.insert(path);
                }
                _ => {}
            }
            at += 1;
        }
        self.modules.insert(module.clone(), text);
    }

    /// The module that defines what a path in `module` names; `None` for what is of another crate, or of the module itself by a bare name.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(Module::default(), rest, depth),
            "self" => self.walk(module.clone(), rest, depth),
            "super" => self.walk(module.parent(), rest, depth),
            _ if self.modules.contains_key(&module.child(first)) => self.walk(module.child(first), rest, depth),
            _ => {
                let (target, _) = self.modules.get(module)?.uses.get(first)?;
                if depth == 0 || target == path {
                    return None;
                }
                let whole: Vec<String> = target.iter().chain(rest).cloned().collect();
                self.resolve(module, &whole, depth - 1)
            }
        }
    }

    /// Follows a path from a module of this crate, through re-exports, to where its item is defined.
    fn walk(&self, module: Module, path: &[String], depth: usize) -> Option<Module> {
        let Some((first, rest)) = path.split_first() else { return Some(module) };
        if first == "super" {
            return self.walk(module.parent(), rest, depth);
        }
        let child = module.child(first);
        if self.modules.contains_key(&child) {
            return self.walk(child, rest, depth);
        }
        let text = self.modules.get(&module)?;
        if let Some((target, _)) = text.uses.get(first) {
            let whole: Vec<String> = target.iter().chain(rest).cloned().collect();
            return if depth == 0 { None } else { self.resolve(&module, &whole, depth - 1) };
        }
        Some(module)
    }

    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut arrows: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, text) in &self.modules {
            let mut targets = BTreeSet::new();
            for (path, public) in text.uses.values() {
                let target = self.resolve(module, path, 9);
                targets.extend(target.filter(|target| !public || !module.holds(target)));
            }
            targets.extend(text.globs.iter().filter_map(|path| self.resolve(module, path, 9)));
            targets.extend(text.paths.iter().filter_map(|path| self.resolve(module, path, 9)));
            targets.remove(module);
            arrows.insert(module.clone(), targets);
        }
        arrows
    }

    /// Sets of modules of which each leads to each.
    fn circles(&self) -> Vec<Vec<Module>> {
        let arrows = self.arrows();
        let reach = |from: &Module| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
            while let Some(module) = open.pop() {
                for next in arrows.get(&module).into_iter().flatten() {
                    if seen.insert(next.clone()) {
                        open.push(next.clone());
                    }
                }
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            arrows.keys().map(|module| (module, reach(module))).collect();
        let mut circles: BTreeSet<Vec<Module>> = BTreeSet::new();
        for (module, all) in &reached {
            let circle = all.iter().filter(|other| reached.get(other).is_some_and(|back| back.contains(module)));
            let circle: Vec<Module> = circle.cloned().collect();
            if !circle.is_empty() {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}

fn in_words(circles: &[Vec<Module>]) -> String {
    let line = |circle: &Vec<Module>| circle.iter().map(|module| module.0.as_str()).collect::<Vec<_>>().join(", ");
    circles.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn module_of(source: &Path, path: &Path) -> Vec<String> {
    let path: PathBuf = path.strip_prefix(source).expect("below the source").with_extension("");
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    parts.filter(|part| !["lib", "main", "mod"].contains(&part.as_str())).collect()
}

/// The names that a tree of `use` brings in.
fn use_tree(tree: &[String], before: &[String], public: bool, text: &mut Text) {
    let mut path = before.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "::" => {}
            "*" => {
                text.globs.push(path);
                return;
            }
            "{" => {
                let inside = &tree[at + 1..closing(tree, at)];
                let mut start = 0;
                while start < inside.len() {
                    let mut end = start;
                    while end < inside.len() && inside[end] != "," {
                        end = if inside[end] == "{" { closing(inside, end) + 1 } else { end + 1 };
                    }
                    use_tree(&inside[start..end], &path, public, text);
                    start = end + 1;
                }
                return;
            }
            "as" => {
                text.uses.insert(tree[at + 1].clone(), (path, public));
                return;
            }
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = path.last().cloned() {
        text.uses.insert(name, (path, public));
    }
}

/// Where the bracket that opens at `open` is closed.
fn closing(tokens: &[String], open: usize) -> usize {
    let (opens, closes) = match tokens[open].as_str() {
        "{" => ("{", "}"),
        "[" => ("[", "]"),
        _ => ("(", ")"),
    };
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token == opens {
            depth += 1;
        } else if token == closes {
            depth -= 1;
            if depth == 0 {
                return at;
            }
        }
    }
    tokens.len()
}

/// The same tokens without the items under `#[cfg(test)]`, and without other attributes.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let inner = tokens[at] == "#" && tokens.get(at + 1).is_some_and(|token| token == "!");
        if tokens[at] != "#" || tokens.get(at + 1 + usize::from(inner)).is_none_or(|token| token != "[") {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let open = at + 1 + usize::from(inner);
        let end = closing(&tokens, open);
        let attribute = tokens[open + 1..end].concat();
        at = end + 1;
        if attribute == "cfg(test)" || attribute.starts_with("cfg(all(test,") {
            // The item ends with a semicolon or its block, whichever comes first.
            while at < tokens.len() && tokens[at] != ";" && tokens[at] != "{" {
                at = if tokens[at] == "(" || tokens[at] == "[" { closing(&tokens, at) } else { at } + 1;
            }
            at = if tokens.get(at).is_some_and(|token| token == "{") { closing(&tokens, at) } else { at } + 1;
        }
    }
    kept
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single other characters; comments, texts, numbers and white space are left out.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = literal(rest) {
            length
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            if !first.is_numeric() {
                tokens.push(rest[..length].to_owned());
            }
            length
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of the string or character that a text begins with, a raw one included; a lifetime is none.
fn literal(text: &str) -> Option<usize> {
    let body = text.trim_start_matches(['b', 'c', 'r']);
    let prefix = text.len() - body.len();
    let hashes = body.len() - body.trim_start_matches('#').len();
    if prefix > 2 || (prefix == 0 && hashes > 0) {
        return None;
    }
    if text[..prefix].contains('r') && body[hashes..].starts_with('"') {
        let close = format!("\"{}", "#".repeat(hashes));
        let start = prefix + hashes + 1;
        return Some(text[start..].find(&close).map_or(text.len(), |end| start + end + close.len()));
    }
    let quote = body.chars().next().filter(|quote| hashes == 0 && ['"', '\''].contains(quote))?;
    let mut inside = body[1..].char_indices();
    if quote == '\'' {
        let (_, first) = inside.next()?;
        if first != '\\' {
            let (end, next) = inside.next()?;
            return (next == '\'').then_some(prefix + 1 + end + 1);
        }
        inside.next();
    }
    while let Some((at, c)) = inside.next() {
        if c == '\\' {
            inside.next();
        } else if c == quote {
            return Some(prefix + 1 + at + 1);
        }
    }
    Some(text.len())
}
