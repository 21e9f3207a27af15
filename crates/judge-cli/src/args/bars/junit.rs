//! Bars as a JUnit file.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use judge_data::Outputs;

use super::bar::Held;
use crate::report::write_marked;

/// Whether a file of this name is a command's own, empty or absent.
pub(super) fn may_write(command: &str, path: &Path) -> bool {
    Outputs::default().reports(command, [path]).check().is_ok()
}

/// A test case for each bar; `against` are the rows in words that speak against a statistic.
pub(super) fn checked(command: &str, took: Duration, held: &[Held<'_>], against: impl Fn(&str) -> String) -> String {
    let missed = held.iter().filter(|held| !held.is_reached).count();
    let seconds = took.as_secs_f64();
    // The cases of a suite add up to its time.
    let each = seconds / held.len().max(1) as f64;
    let mut xml = head(command, held.len(), missed, 0, seconds);
    for held in held {
        let (found, against) = (escaped(&held.found), against(&held.bar.statistic));
        xml += &format!(
            "  <testcase classname=\"judge.{command}\" name=\"{}\" time=\"{each:.3}\">\n",
            escaped(&held.bar.text)
        );
        xml += &match held.is_reached {
            true => format!("    <system-out>{found}</system-out>\n"),
            false if against.is_empty() => format!("    <failure type=\"missed\" message=\"{found}\"/>\n"),
            false => {
                format!("    <failure type=\"missed\" message=\"{found}\">{}</failure>\n", escaped(&against))
            }
        };
        xml += "  </testcase>\n";
    }
    xml + "</testsuite>\n"
}

/// Of a command that did not come to its bars.
pub(super) fn failed(command: &str, why: &str) -> String {
    let why = escaped(why.trim());
    head(command, 1, 0, 1, 0.0)
        + &format!(
            "  <testcase classname=\"judge.{command}\" name=\"the command ends\" time=\"0.000\">\n    <error message=\"{why}\"/>\n  </testcase>\n</testsuite>\n"
        )
}

fn head(command: &str, tests: usize, failures: usize, errors: usize, seconds: f64) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"judge {command}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"0\" time=\"{seconds:.3}\">\n"
    )
}

/// As the text of an element or the value of an attribute. What XML has no character for is shown by [`write_marked`].
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    text.replace('\n', "&#10;")
}

/// Leaves an error in the JUnit file of a command line that could not be read, so that no earlier file is taken for its result. `words` are
/// what follows the program's name.
pub fn note_usage_error(command: &clap::Command, words: &[OsString], why: &str) {
    if command.get_arguments().all(|known| known.get_id() != "junit") {
        return;
    }
    let command = command.get_name();
    let is_junit = |word: &OsString| word == "--junit";
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix("--junit=").map(OsString::from));
    // Behind it another option says that the path is what is missing.
    let is_path = |word: &&OsString| !word.to_string_lossy().starts_with('-');
    let apart = words.iter().position(is_junit).and_then(|at| words.get(at + 1)).filter(is_path).cloned();
    if let Some(path) = joined.or(apart).filter(|path| may_write(command, path.as_ref())) {
        // Exit code and message are the same if it cannot be written.
        let _ = write_marked(path.as_ref(), command, &failed(command, why));
    }
}

#[cfg(test)]
mod tests {
    use super::super::bar::Bar;
    use super::*;

    #[test]
    fn a_junit_file_has_a_case_for_each_bar() {
        let bars: Vec<Bar> = ["a>=1", "b<=2"].map(|bar| bar.parse().unwrap()).to_vec();
        let held = [
            Held { bar: &bars[0], is_reached: false, found: "found 0.5 & less".to_owned() },
            Held { bar: &bars[1], is_reached: true, found: "found 1".to_owned() },
        ];
        let against = |of: &str| if of == "a" { "off most: <7>".to_owned() } else { String::new() };
        let xml = checked("agree", Duration::from_millis(1500), &held, against);
        assert!(
            xml.contains("name=\"judge agree\" tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\" time=\"1.500\"")
        );
        assert!(xml.contains("classname=\"judge.agree\" name=\"a&gt;=1\" time=\"0.750\""), "{xml}");
        assert!(xml.contains("message=\"found 0.5 &amp; less\">off most: &lt;7&gt;</failure>"), "{xml}");
        assert!(xml.contains("name=\"b&lt;=2\"") && xml.contains("<system-out>found 1</system-out>"), "{xml}");
        let xml = failed("drift", "no \"row\"");
        assert!(xml.contains("failures=\"0\" errors=\"1\"") && xml.contains("<error message=\"no &quot;row&quot;\"/>"));
    }
}
