//! Markdown as HTML that can do nothing: markup in the text stays text, and nothing is loaded or linked. Nothing of the text is left out:
//! Markdown says how it looks, and its signs are shown too, since a model may have meant them as its own, as in `2*3*4`.

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{Event, Options, Parser, TagEnd};

const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

/// Tags within each other; beyond some hundreds browsers close them by themselves, and those of the page too.
const DEEPEST: usize = 100;

/// A text, shown readably.
pub(super) fn markdown(text: &str) -> Markup {
    match rendered(text) {
        Some(shown) => PreEscaped(shown),
        None => html! { p { (text) } },
    }
}

/// As HTML; `None` where a table would leave something out, or tags are too deep.
fn rendered(text: &str) -> Option<String> {
    let mut page = Page { text, html: String::with_capacity(text.len() * 2), shown: 0, is_fresh: true };
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, OPTIONS).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                depth += 1;
                if depth > DEEPEST {
                    return None;
                }
                let tag = tag.to_end();
                if is_of_table(tag) {
                    page.skip(range.start)?;
                }
                page.tag(tag, text.get(range).unwrap_or_default(), "<");
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                if is_of_table(tag) && tag != TagEnd::TableCell {
                    page.skip(range.end)?;
                } else {
                    let rest = text.get(page.shown..range.end).unwrap_or_default();
                    page.show(page.shown + rest.trim_end().len(), true)?;
                }
                page.tag(tag, text.get(range).unwrap_or_default(), "</");
            }
            Event::Code(_) => {
                page.show(range.start, true)?;
                page.html += "<code>";
                page.show(range.end, false)?;
                page.html += "</code>";
            }
            // A line across the page.
            Event::Rule => page.paragraph(range.end)?,
            // They are in front of what is shown next.
            Event::SoftBreak | Event::HardBreak => {}
            _ => {
                page.show(range.start, true)?;
                page.show(range.end, false)?;
            }
        }
    }
    if !text.get(page.shown..)?.trim().is_empty() {
        page.paragraph(text.len())?;
    }
    Some(page.html)
}

fn is_of_table(tag: TagEnd) -> bool {
    matches!(tag, TagEnd::Table | TagEnd::TableHead | TagEnd::TableRow | TagEnd::TableCell)
}

/// What is written of a text.
struct Page<'t> {
    text: &'t str,
    html: String,
    /// Up to where the text is shown.
    shown: usize,
    /// Whether nothing is shown behind the last tag of a block.
    is_fresh: bool,
}

impl Page<'_> {
    /// Shows the text up to here, as it is; `is_sign` where Markdown reads it as its own. Blank lines in front of a block are none of it.
    fn show(&mut self, end: usize, is_sign: bool) -> Option<()> {
        let end = end.max(self.shown);
        let mut piece = self.text.get(self.shown..end)?;
        self.shown = end;
        if self.is_fresh {
            let blank = &piece[..piece.len() - piece.trim_start().len()];
            piece = &piece[blank.rfind('\n').map_or(0, |line| line + 1)..];
            self.is_fresh = piece.is_empty();
        }
        if is_sign && !piece.trim().is_empty() && !piece.contains(char::is_alphanumeric) {
            self.html += "<span class=\"sign\">";
            piece.render_to(&mut self.html);
            self.html += "</span>";
        } else {
            piece.render_to(&mut self.html);
        }
        Some(())
    }

    /// Leaves out the lines of a table, which the page draws; `None` where there is more than those up to here.
    fn skip(&mut self, end: usize) -> Option<()> {
        let end = end.max(self.shown);
        let is_line = |c: char| c.is_whitespace() || "|-:>".contains(c);
        let is_drawn = self.text.get(self.shown..end)?.chars().all(is_line);
        self.shown = end;
        is_drawn.then_some(())
    }

    /// A paragraph of signs.
    fn paragraph(&mut self, end: usize) -> Option<()> {
        self.tag(TagEnd::Paragraph, "", "<");
        self.show(end, true)?;
        self.tag(TagEnd::Paragraph, "", "</");
        Some(())
    }

    /// A tag around a text. Links and images are none.
    fn tag(&mut self, tag: TagEnd, around: &str, opens: &str) {
        let name = match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => "p",
            TagEnd::Heading(_) => "h3",
            TagEnd::BlockQuote(_) => "blockquote",
            TagEnd::CodeBlock => "pre",
            TagEnd::List(_) => "ul",
            TagEnd::Item => "li",
            TagEnd::Table => "table",
            TagEnd::TableHead | TagEnd::TableRow => "tr",
            TagEnd::TableCell => "td",
            TagEnd::Emphasis => "em",
            TagEnd::Strong => "strong",
            // Not as in 5~10.
            TagEnd::Strikethrough if around.starts_with("~~") => "del",
            _ => return,
        };
        self.html.extend([opens, name, ">"]);
        self.is_fresh |= !matches!(name, "em" | "strong" | "del");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read on the page.
    fn visible(shown: &str) -> String {
        let texts = shown.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        let text = texts.collect::<String>();
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    }

    /// All but its white space.
    fn signs(text: &str) -> String {
        text.replace(char::is_whitespace, "")
    }

    #[test]
    fn markup_stays_text_and_nothing_is_linked_or_loaded() {
        let shown = |text: &str| markdown(text).into_string();
        let sign = "<span class=\"sign\">**</span>";
        assert_eq!(shown("**a** `b`\nc"), format!("<p><strong>{sign}a{sign}</strong> <code>`b`</code>\nc</p>"));
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
            for tag in ["<script", "<img", "<a ", "href", "src=\"", "style="] {
                assert!(!shown.contains(tag), "{text}: {shown}");
            }
        }
        assert!(shown("```rust\nfn f() {}\n```").contains("<pre>"));
        assert!(shown("|a|b|\n|-|:-:|\n|1|2|").contains("<td>2</td>"));
        assert!(shown("5~10 ml in 20~30 minutes, ~~gone~~").contains("<del>"));
        assert!(!shown("5~10 ml in 20~30 minutes").contains("<del>"));
    }

    /// Its letters, digits and signs, in their order.
    #[test]
    fn nothing_of_a_text_is_left_out() {
        for text in [
            "12.",
            "3) x",
            "1986. That was the year.",
            "7. a\n9. b\n   1. c\n10. d",
            "2*3*4 = 24",
            "2*3 + 4*5",
            "5*10^3*2",
            "_5_ ***6*** ~7~",
            "> 5",
            "- 5\n-\n* 6",
            "7\n---\n***\n=== 8",
            "# 9 #\n#",
            "\\(x\\) \\[y\\] C:\\new\\[x]\\_y\\\nz",
            "&lt;b&gt; is bold &copy;",
            "<div>\n  <b>a</b>\n\ntext <!-- note -->",
            "5~10 ml in 20~30 minutes, ~~gone~~",
            "`a` ``b`c`` `",
            "``` 42",
            "```rust\nfn f() {}\n```\nx",
            "- [x] done\n- [ ] open",
            "[Answer]: 42",
            "See [1].\n\n[1]: https://a.example \"A title\"",
            "> [1]: https://a.example \"A title\"\n\n[1]: b",
            "[a](b \"c\") ![d](e 'f') <http://g.example>",
            "|a|\n|-|\n|1|lost|",
        ] {
            let shown = visible(&markdown(text).into_string());
            assert_eq!(signs(&shown), signs(text), "{text:?}: {shown}");
        }
        // Of a table the lines are drawn, and no more is missing.
        let shown = visible(&markdown("> 1\n\n|*a*|b\\|c|\n|-|:-:|\n|-1|<http://x>|\n\n2").into_string());
        assert_eq!(shown, "> 1*a*b\\|c-1<http://x>2");
        let deep = markdown(&(">".repeat(600) + " end")).into_string();
        assert!(!deep.contains("<blockquote") && deep.contains("end"), "{deep}");
        assert!(markdown("> > a\n\n- b\n  - c").into_string().contains("<blockquote>"));
    }

    /// Of all short texts of what Markdown reads as its own.
    #[test]
    fn no_sign_is_left_out() {
        let parts = [
            "5", "x", " ", "\n", "    ", "*", "**", "_", "`", "```\n", "~", "#", "# ", "> ", "- ", "1. ", "\\", "[",
            "](", ")", "!", "]: ", "<", "<b>", "<!--", "&lt;", "---\n", "===",
        ];
        let count = parts.len();
        for n in 0..count.pow(3) {
            let text = [parts[n / count / count], parts[n / count % count], parts[n % count], "7"].concat();
            let shown = visible(&markdown(&text).into_string());
            assert_eq!(signs(&shown), signs(&text), "{text:?}: {shown}");
        }
    }

    #[test]
    fn lines_stay_as_they_are_indented() {
        for text in [
            "def __init__(self):\n    self.x = 1\n  y",
            "   a\n     b",
            "- a\n  b",
            "```\n  a\n    b\n```",
            "    a\n      b",
            "<div>\n  <p>\n</div>",
        ] {
            assert_eq!(visible(&markdown(text).into_string()), text);
        }
    }
}
