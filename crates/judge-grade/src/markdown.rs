//! Markdown as HTML that can do nothing: markup in the text stays text, and nothing is loaded or linked. Nothing of the text is left out:
//! what Markdown would not show is shown all the same, or the whole text is plain.

use std::borrow::Cow;
use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH).union(Options::ENABLE_TASKLISTS);

/// Tags within each other; beyond some hundreds browsers close them by themselves, and those of the page too.
const DEEPEST: usize = 100;

/// How often definitions are looked for.
const ROUNDS: usize = 8;

/// A text, shown readably.
pub(super) fn markdown(text: &str) -> Markup {
    match rendered(&with_definitions(text)) {
        Some(shown) => PreEscaped(shown),
        None => html! { p.plain { (text) } },
    }
}

/// The text with definitions of addresses, such as `[1]: https://example.org`, as lines of text: Markdown shows them nowhere.
fn with_definitions(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    // Of several with one name the parser knows the first.
    for _ in 0..ROUNDS {
        let starts = definitions(&text);
        if starts.is_empty() {
            break;
        }
        let mut escaped = String::with_capacity(text.len() + starts.len());
        let mut from = 0;
        for start in starts {
            escaped += &text[from..start];
            escaped.push('\\');
            from = start;
        }
        escaped += &text[from..];
        text = Cow::Owned(escaped);
    }
    text
}

/// Where definitions begin.
fn definitions(text: &str) -> Vec<usize> {
    let parser = Parser::new_ext(text, OPTIONS);
    let mut starts: Vec<usize> = parser.reference_definitions().iter().map(|(_, found)| found.span.start).collect();
    starts.sort_unstable();
    starts
}

/// As HTML; `None` where a letter or a digit would be left out, or tags are too deep.
fn rendered(text: &str) -> Option<String> {
    let (mut events, mut addresses, mut is_numbered) = (Vec::new(), Vec::new(), Vec::new());
    let (mut depth, mut shown) = (0_usize, 0_usize);
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => shown = shown_to(text, shown, &range)?,
        }
        if depth > DEEPEST {
            return None;
        }
        let is_single = || !text.get(range.clone()).is_some_and(|struck| struck.starts_with("~~"));
        let is_image = matches!(event, Event::Start(Tag::Image { .. }));
        let event = match event {
            // Models write lines, not paragraphs.
            Event::SoftBreak => Event::HardBreak,
            Event::Html(markup) | Event::InlineHtml(markup) => Event::Text(markup),
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            // Alignments would be styles, which the page's policy refuses.
            Event::Start(Tag::Table(columns)) => Event::Start(Tag::Table(vec![Alignment::None; columns.len()])),
            // As in 5~10.
            Event::Start(Tag::Strikethrough) | Event::End(TagEnd::Strikethrough) if is_single() => {
                Event::Text("~".into())
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) if !info.is_empty() => {
                let line = text.get(range.start..).and_then(|fence| fence.lines().next()).unwrap_or_default();
                shown = shown_to(text, shown, &(range.start..range.start + line.len()))?;
                events.extend([Event::Start(Tag::Paragraph), Event::Text(info), Event::End(TagEnd::Paragraph)]);
                Event::Start(Tag::CodeBlock(CodeBlockKind::Indented))
            }
            Event::Start(Tag::List(first)) => {
                is_numbered.push(first.is_some());
                Event::Start(Tag::List(first))
            }
            Event::End(TagEnd::List(is_ordered)) => {
                is_numbered.pop();
                Event::End(TagEnd::List(is_ordered))
            }
            // Its own number, where Markdown would count from the first one on.
            Event::Start(Tag::Item) if is_numbered.last() == Some(&true) => {
                let behind = text.get(shown..).unwrap_or_default();
                let at = behind.find(char::is_alphanumeric).unwrap_or(behind.len());
                let number: String = behind[at..].chars().take_while(char::is_ascii_digit).collect();
                shown += at + number.len();
                Event::Html(format!("\n<li value=\"{number}\">").into())
            }
            Event::Start(Tag::Link { dest_url, title, .. } | Tag::Image { dest_url, title, .. }) => {
                shown = shown_to(text, shown, &(range.start..range.start))?;
                addresses.push((dest_url, title));
                Event::Text(if is_image { "![" } else { "[" }.into())
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                shown = shown.max(range.end);
                let (address, title) = addresses.pop()?;
                let title = if title.is_empty() { String::new() } else { format!(" \"{title}\"") };
                Event::Text(format!("]({address}{title})").into())
            }
            other => other,
        };
        events.push(event);
    }
    shown_to(text, shown, &(text.len()..text.len()))?;
    let mut html = String::with_capacity(text.len() * 2);
    push_html(&mut html, events.into_iter());
    Some(html)
}

/// Up to where a text is shown that was up to `shown`, and now is in this range; `None` if a letter or a digit between them is not.
fn shown_to(text: &str, shown: usize, range: &Range<usize>) -> Option<usize> {
    let is_lost = text.get(shown..range.start).is_some_and(|between| between.contains(char::is_alphanumeric));
    (!is_lost).then(|| shown.max(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_stays_text_and_nothing_is_linked_or_loaded() {
        let shown = |text: &str| markdown(text).into_string();
        assert_eq!(shown("**a** `b`\nc").trim(), "<p><strong>a</strong> <code>b</code><br />\nc</p>");
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[a](javascript:alert(1))",
            "![a](http://example.org/x.png)",
            "<http://example.org>",
            "```\"><script>\nx\n```",
            "[a]: http://example.org\n\n[a]",
        ] {
            let shown = shown(text);
            for tag in ["<script", "<img", "<a ", "href", "src=\""] {
                assert!(!shown.contains(tag), "{text}: {shown}");
            }
        }
        assert!(shown("[a](http://b.example)").contains("[a](http://b.example)"));
        assert!(shown("```rust\nfn f() {}\n```").contains("<pre><code"));
        assert!(shown("|a|b|\n|-|:-:|\n|1|2|").contains("<table>"));
    }

    #[test]
    fn nothing_of_a_text_is_left_out() {
        for (text, expected) in [
            ("[Answer]: 42", "<p>[Answer]: 42</p>"),
            ("> [1]: https://a.example \"A title\"\n\n[1]: b", "[1]: b"),
            ("See [1].\n\n[1]: https://a.example \"A title\"", "[1]: https://a.example \"A title\""),
            ("[a](b \"c\") ![d](e 'f') <http://g.example>", "[a](b \"c\") ![d](e \"f\") [http://g.example]"),
            ("|a|\n|-|\n|1|lost|", "|1|lost|"),
            ("``` 42", "<p>42</p>"),
            ("7. a\n9. b\n   1. c\n10. d", "<li value=\"9\">b"),
            ("5~10 ml in 20~30 minutes, ~~gone~~", "5~10 ml in 20~30 minutes, <del>gone</del>"),
            ("- [x] done &copy;", "done ©"),
            ("    code\n\ntext <!-- note -->", "note --"),
        ] {
            let shown = markdown(text).into_string();
            assert!(shown.contains(expected) && !shown.contains("style="), "{text:?}: {shown}");
            // A box that is ticked, and a sign by its name.
            let shown = shown + "x copy";
            for word in text.split(|c: char| !c.is_alphanumeric()) {
                assert!(shown.contains(word), "{word:?} of {text:?}: {shown}");
            }
        }
        let deep = markdown(&(">".repeat(600) + " end")).into_string();
        assert!(!deep.contains("<blockquote") && deep.contains("end"), "{deep}");
        assert!(markdown("> > a\n\n- b\n  - c").into_string().contains("<blockquote>"));
    }
}
