//! Markdown as HTML that can do nothing: markup in the text stays text, and nothing is loaded or linked.

use maud::{Markup, PreEscaped};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// A text, shown readably.
pub(super) fn markdown(text: &str) -> Markup {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut addresses: Vec<CowStr<'_>> = Vec::new();
    let events = Parser::new_ext(text, options).map(|event| match event {
        // Models write lines, not paragraphs.
        Event::SoftBreak => Event::HardBreak,
        Event::Html(markup) | Event::InlineHtml(markup) => Event::Text(markup),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Link { dest_url, .. }) => {
            addresses.push(dest_url);
            Event::Text("[".into())
        }
        Event::Start(Tag::Image { dest_url, .. }) => {
            addresses.push(dest_url);
            Event::Text("![".into())
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            Event::Text(format!("]({})", addresses.pop().unwrap_or("".into())).into())
        }
        other => other,
    });
    let events: Vec<Event<'_>> = events.collect();
    let mut shown = String::with_capacity(text.len() * 2);
    html::push_html(&mut shown, events.into_iter());
    PreEscaped(shown)
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
        assert!(shown("|a|b|\n|-|-|\n|1|2|").contains("<table>"));
    }
}
