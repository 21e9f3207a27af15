//! The page of `judge report` in a browser: its rows are sorted, filtered, opened and printed, and nothing in them runs.

use serde_json::{Value, json};

use crate::chromium::{Chromium, browser};
use crate::program::{Desk, succeed};

/// The ids of the rows that are in sight, in their order.
fn shown(page: &mut Chromium) -> Vec<u64> {
    let ids = page.value(
        "[...document.querySelectorAll('.row')].filter((row) => row.checkVisibility()) \
         .map((row) => Number(row.querySelector('[data-of=id]').textContent))",
    );
    serde_json::from_value(ids).expect("ids")
}

/// Sets a control as its reader does.
fn set(page: &mut Chromium, control: &str, value: &str) {
    let (control, value) = (json!(control), json!(value));
    page.value(&format!(
        "{{ const control = document.querySelector({control}); control.value = {value}; \
         control.dispatchEvent(new Event('input', {{bubbles: true}})) }}"
    ));
}

#[test]
fn rows_are_sorted_filtered_opened_and_printed() {
    let Some(mut page) = browser() else { return };
    let folder = &Desk::new();
    let attack = "<img src=x onerror=\"document.title='run'\"></script><script>document.title = 'run'</script>";
    let row = |id: u64| {
        let subject = if id.is_multiple_of(2) { " even  numbers" } else { "odd" };
        json!({"id": id, "score": id, "human": [(id * 7) % 10, (id * 7) % 10], "subject": subject,
            "instruction": format!("Question {id}? {attack}"), "labels": ["1", "2"], "layers": [3, 9], "logits": [[0.0, 0.0], [0.0, id]]})
    };
    folder.write("rows.jsonl", &(0..12).map(row).collect::<Vec<Value>>());
    succeed("report", folder, &["--input", "rows.jsonl", "--output", "page.html", "--group", "subject", "--quiet"]);
    page.open(&format!("file://{}", folder.join("page.html").display()));

    let difference = |id: u64| id.abs_diff((id * 7) % 10);
    let mut worst: Vec<u64> = (0..12).collect();
    worst.sort_by_key(|id| std::cmp::Reverse(difference(*id)));
    assert_eq!(shown(&mut page), worst, "the largest difference first");
    // By numbers, not by texts: 11 comes after 9.
    let head = |page: &mut Chromium, of: &str| {
        page.value(&format!("document.querySelector('.heads [data-of={of}]').click()"));
    };
    head(&mut page, "judge");
    assert_eq!(shown(&mut page), (0..12).rev().collect::<Vec<_>>());
    head(&mut page, "judge");
    assert_eq!(shown(&mut page), (0..12).collect::<Vec<_>>());

    // A group is what it is called, spaces and all.
    page.value(
        "{ const groups = document.querySelector('#groups'); groups.selectedIndex = 1; \
         groups.dispatchEvent(new Event('input', {bubbles: true})) }",
    );
    assert_eq!(shown(&mut page), [0, 2, 4, 6, 8, 10]);
    set(&mut page, "#groups", "odd");
    assert_eq!(shown(&mut page), [1, 3, 5, 7, 9, 11]);
    set(&mut page, "#least", "4");
    let odd: Vec<u64> = (0..12).filter(|id| id % 2 == 1 && difference(*id) >= 4).collect();
    assert_eq!(shown(&mut page), odd);
    assert!(page.text().contains(&format!("{} of 12 shown.", odd.len())), "{}", page.text());
    set(&mut page, "#words", "question 11?");
    assert_eq!(shown(&mut page), [11]);

    // Closed, a row keeps its texts to itself; opened, it shows them as texts.
    let visible = "document.querySelector('.row:not([hidden]) .text').checkVisibility({contentVisibilityAuto: true})";
    assert_eq!(page.value(visible), json!(false));
    // What has been opened is laid out with the next frame.
    page.value(
        "document.querySelector('.row:not([hidden]) summary').click(); \
         new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
    );
    assert_eq!(page.value(visible), json!(true));
    assert!(page.text().contains(attack) && page.text().contains("3: 1.50 · 9: 2.00"), "{}", page.text());
    assert_eq!(page.value("document.querySelectorAll('svg.curve').length"), json!(12));
    assert_ne!(page.value("document.title"), json!("run"));
    // A script that is put in later does not run either: the policy knows one digest.
    let ran = "{ const script = document.createElement('script'); script.textContent = 'document.title = \"run\"'; \
               document.body.append(script); document.title }";
    assert_ne!(page.value(ran), json!("run"));

    // On paper there are no controls, no box that scrolls, and what explains figures is open.
    let open = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => \
                done(document.querySelector('details:not(.row) > :not(summary)').checkVisibility()))))";
    assert_eq!(page.value(open), json!(false));
    page.call("Emulation.setEmulatedMedia", json!({"media": "print"}));
    let style = |page: &mut Chromium, of: &str, name: &str| {
        page.value(&format!("getComputedStyle(document.querySelector({})).{name}", json!(of)))
    };
    assert_eq!(page.value(open), json!(true));
    assert_eq!(style(&mut page, ".controls", "display"), json!("none"));
    assert_eq!(style(&mut page, ".rows", "overflow"), json!("visible"));
    assert_eq!(shown(&mut page), [11], "what was filtered stays so");
    page.call("Emulation.setEmulatedMedia", json!({"media": ""}));
    let phone = json!({"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    page.call("Emulation.setDeviceMetricsOverride", phone);
    assert_eq!(page.value("document.documentElement.scrollWidth"), json!(390));
}
