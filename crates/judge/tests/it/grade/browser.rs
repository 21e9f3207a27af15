//! A real browser grades: keys, undo, a kill, two raters, and a page of another origin that tries to.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use super::page::Page;
use super::{graded, with};
use crate::chromium::{Chromium, browser};
use crate::program::Desk;

#[test]
fn a_browser_grades_by_keys_and_survives_a_kill() {
    let Some(mut browser) = browser() else { return };
    let folder = &Desk::new();
    graded(folder, 4);
    let page = Page::open(folder, &with(&["--words", "1=bad,5=good"]));
    browser.open(&page.url());
    assert!(browser.text().contains("Who is grading?"));
    browser.value("document.querySelector('#rater').focus()");
    browser.write("Ann Lee");
    browser.loads(|page| page.press("Enter"));
    assert!(browser.text().contains("0 of 4 graded"), "{}", browser.text());
    // The page's own files were let through by its policy, and its style applies.
    assert_eq!(browser.value("getComputedStyle(document.querySelector('footer')).position"), json!("sticky"));
    let row = |browser: &mut Chromium| {
        browser.value("document.querySelector('[name=row]').value").as_str().map(str::to_owned).expect("a row")
    };
    let first = row(&mut browser);
    // A note is written, where keys are letters, and saved with the answer.
    browser.press("c");
    browser.write("see 5");
    browser.press("5");
    assert_eq!(browser.value("document.querySelector('textarea').value"), json!("see 55"));
    browser.press("Escape");
    browser.answer("4");
    assert!(browser.text().contains("1 of 4 graded"));
    browser.answer("2");
    // Undo twice, and answer anew: the first row shows what was said of it.
    browser.answer("u");
    browser.answer("u");
    assert_eq!(row(&mut browser), first);
    assert_eq!(browser.value("document.querySelector('.before .label').innerText"), json!("4"));
    assert_eq!(browser.value("document.querySelector('textarea').value"), json!("see 55"));
    browser.answer("5");
    // Skip with a reason of one's own: Enter sends it, and no answer.
    browser.press("s");
    browser.value("document.querySelector('[name=reason]').focus()");
    browser.write("not my field");
    browser.loads(|page| page.press("Enter"));
    assert!(browser.text().contains("2 of 4 graded"));
    // A second tab of the same rater shows the same row; what it answers later changes nothing.
    let here = page.url();
    let rate = format!("{here}/rate?rater=Ann+Lee");
    let second = browser.new_page();
    browser.open(&rate);
    let third = row(&mut browser);
    let first_tab = browser.new_page();
    browser.open(&rate);
    browser.answer("1");
    browser.go_to_page(&second);
    browser.answer("3");
    assert!(browser.text().contains("graded before"), "{}", browser.text());
    assert!(browser.text().contains("3 of 4 graded"));
    assert_ne!(row(&mut browser), third);
    browser.go_to_page(&first_tab);
    // Killed, the program resumes where it was.
    page.kill();
    let page = Page::open(folder, &with(&["--words", "1=bad,5=good"]));
    browser.open(&page.url());
    browser.loads(|page| {
        page.value("document.querySelector('button.rater').click()");
    });
    assert!(browser.text().contains("3 of 4 graded"), "{}", browser.text());
    // Another rater, at the same time.
    let other = browser.new_page();
    browser.open(&format!("{}/rate?rater=bob", page.url()));
    for key in ["1", "2", "3"] {
        browser.answer(key);
    }
    browser.go_to_page(&first_tab);
    browser.answer("3");
    assert!(browser.text().contains("All rows graded") && browser.text().contains("bob"), "{}", browser.text());
    browser.go_to_page(&other);
    browser.answer("4");
    browser.answer("Enter");
    assert!(browser.text().contains("Finished"), "{}", browser.text());
    // Nobody answers any more, and its style applies.
    assert_eq!(browser.value("getComputedStyle(document.body).margin"), json!("0px"));
    assert!(page.wait().status.success());
    let found = folder.rows("graded.jsonl");
    assert!(found.iter().all(|row| row["raters"] == json!(["Ann Lee", "bob"])), "{found:?}");
    let place: usize = first.parse().expect("a place");
    assert_eq!((&found[place]["human"][0], &found[place]["notes"][0]), (&json!(5), &json!("see 55")));
    assert!(found[place]["seconds"][0].is_number());
    let third: usize = third.parse().expect("a place");
    assert_eq!(found[third]["human"][0], json!(1), "the first answer counts");
    let of_ann: Vec<_> = found.iter().filter(|row| row["human"][0].is_null()).collect();
    assert!(of_ann.len() == 1 && of_ann[0]["skipped"][0] == json!("not my field"), "{of_ann:?}");
    let mut of_bob: Vec<_> = found.iter().map(|row| row["human"][1].as_u64()).collect();
    of_bob.sort();
    assert_eq!(of_bob, [1, 2, 3, 4].map(Some));
}

#[test]
fn questions_are_answered_by_keys_alone() {
    let Some(mut browser) = browser() else { return };
    let folder = &Desk::new();
    folder.write(
        "rows.jsonl",
        &[json!({"id": 1, "question": "Q?", "contexts": ["It is red."], "answer": "It is red. It is big. It is old."})],
    );
    let page = Page::open(folder, &with(&["--sentences", "--rater", "ann"]));
    browser.open(&page.url());
    browser.press("n");
    browser.press("y");
    // What is marked stays where the page is loaded again.
    browser.loads(|page| {
        page.value("location.reload()");
    });
    assert_eq!(browser.value("document.querySelectorAll(':checked').length"), json!(2));
    // Enter before the last answer goes nowhere.
    browser.press("Enter");
    assert_eq!(browser.value("document.querySelectorAll(':checked').length"), json!(2));
    browser.press("ArrowUp");
    browser.press("n");
    // They answer the question that has the focus; in a text that scrolls they answer none.
    browser.value("document.querySelector('[name=g0]').focus()");
    browser.press("y");
    browser.value("document.querySelector('.scroll').focus()");
    browser.press("ArrowUp");
    assert_eq!(browser.value("document.querySelector('.group.now').dataset.group"), json!("2"));
    browser.press("a");
    browser.answer("Enter");
    assert!(browser.text().contains("All rows graded"), "{}", browser.text());
    browser.answer("Enter");
    page.wait();
    let row = &folder.rows("graded.jsonl")[0];
    let marks: Vec<_> = (0..3).map(|sentence| row["sentences"][sentence]["human"][0].clone()).collect();
    assert_eq!(marks, [json!(1), json!(0), json!(1)]);
}

#[test]
fn numbers_and_signs_are_in_sight() {
    let Some(mut browser) = browser() else { return };
    let folder = &Desk::new();
    let row =
        json!({"id": 1, "question": "Q?", "contexts": ["C"], "response": "1986. That was the year.\n\n2*3*4 = 24"});
    folder.write("rows.jsonl", &[row]);
    let page = Page::open(folder, &with(&[]));
    browser.open(&format!("{}/rate?rater=ann", page.url()));
    let text = browser.text();
    assert!(text.contains("1986. That was the year.") && text.contains("2*3*4 = 24"), "{text}");
    // What begins further left than its box is cut off.
    let left = "const range = document.createRange(); range.selectNodeContents(document.querySelector('.response li')); \
                range.getBoundingClientRect().left >= document.querySelector('.response .scroll').getBoundingClientRect().left";
    assert_eq!(browser.value(left), json!(true));
    let numbers = "getComputedStyle(document.querySelector('.contexts > li')).listStylePosition";
    assert_eq!(browser.value(numbers), json!("inside"));
    page.kill();
}

#[test]
fn a_page_of_another_origin_can_neither_read_nor_post() {
    let Some(mut browser) = browser() else { return };
    let folder = &Desk::new();
    graded(folder, 2);
    let page = Page::open(folder, &with(&[]));
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = elsewhere.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in elsewhere.incoming() {
            let Ok(mut stream) = stream else { break };
            // Browsers open connections that they may never use.
            thread::spawn(move || {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let body = "<!doctype html><title>elsewhere</title>";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            });
        }
    });
    let (url, row) = (page.url(), page.row("ann").expect("a row").0);
    for origin in [format!("http://{address}"), format!("http://localhost:{}", address.port())] {
        browser.open(&origin);
        let read = format!("fetch('{url}/rate?rater=ann').then((answer) => answer.text()).catch(() => 'refused')");
        assert_eq!(browser.value(&read), json!("refused"));
        let blind = format!(
            "fetch('{url}/answer', {{method: 'POST', mode: 'no-cors', body: new URLSearchParams('rater=ann&row={row}&g0=4')}}) \
             .then((answer) => answer.type).catch(() => 'refused')"
        );
        assert_eq!(browser.value(&blind), json!("refused"));
        // A form that sends itself arrives, and is refused.
        let form = format!(
            "const form = document.createElement('form'); form.method = 'post'; form.action = '{url}/answer'; \
             for (const [name, value] of [['rater', 'ann'], ['row', '{row}'], ['g0', '4']]) {{ \
             const field = document.createElement('input'); field.name = name; field.value = value; form.append(field); }} \
             document.body.append(form); form.submit()"
        );
        browser.loads(|page| {
            page.value(&form);
        });
        assert!(browser.text().contains("Refused"), "{}", browser.text());
        // Nor can it be framed.
        browser.open(&origin);
        let framed = format!(
            "new Promise((done) => {{ const frame = document.createElement('iframe'); frame.src = '{url}/rate?rater=ann'; \
             frame.onload = () => done(frame.contentDocument === null ? 'closed' : frame.contentDocument.body.innerText); \
             document.body.append(frame) }})"
        );
        assert_eq!(browser.value(&framed), json!("closed"));
    }
    assert!(page.row("ann").expect("a row").1.contains("0 of 2 graded"));
    page.kill();
}
