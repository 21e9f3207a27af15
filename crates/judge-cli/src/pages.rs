//! What the pages of this program share: one stylesheet (`pages.css`), the frame around a page, and what browsers may do with one that
//! is served. Nothing of another origin is loaded.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::response::Response;
use maud::{DOCTYPE, Markup, html};

const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// The media type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// The media type of its style.
pub const STYLE: &str = "text/css; charset=utf-8";
/// The media type of its script.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The stylesheet of a page: what all share, and `own` behind it.
pub fn stylesheet(own: &str) -> String {
    include_str!("pages.css").to_owned() + own
}

/// A page with this title; `head` is what else its head holds.
pub fn page(title: &str, head: &Markup, body: &Markup) -> String {
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                (head)
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
            }
            (body)
        }
    };
    whole.into_string()
}

/// A page that is served, with `page.css` and `page.js` beside it.
pub fn served(title: &str, body: &Markup) -> String {
    let head = html! {
        link rel="icon" href="data:,";
        link rel="stylesheet" href="page.css";
        script src="page.js" defer {}
    };
    page(title, &head, body)
}

/// Says what browsers may do with an answer: `policy` is what it may load. What does not say how long it may be kept is not kept.
pub fn protect(response: &mut Response, policy: &'static str) {
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
        (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
        // The address may hold a token, which is nobody's business. Under `no-referrer` the page's own forms would have no origin.
        (REFERRER_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Whether a character is a control character, or one that turns the direction of writing or has no width.
#[must_use]
pub fn is_unseen(c: char) -> bool {
    let turns = matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    c.is_control() || turns
}
