//! Says before any model work that rows lack what is judged, or what is learnt from. Each costs itself alone.

use judge_data::Unread;

use crate::terminal::console::tell;

/// Says which rows get no score whatever the model says, and which grades of people are none.
pub fn tell_unread(unread: &Unread) {
    tell_unread_that(unread, "lack what is judged and get no score");
}

/// Says how many rows something costs, and `what`, if there are any.
pub fn tell_unread_that(unread: &Unread, what: &str) {
    for note in unread.notes(what) {
        tell(format_args!("note: {note}"));
    }
}
