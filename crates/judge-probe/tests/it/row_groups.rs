//! Rows that belong together, by their texts. Issue 59: the answers to one question fell on both sides of every split.

use judge_probe::RowGroups;

fn groups(prompts: &[String]) -> RowGroups {
    RowGroups::of_prompts(&prompts.iter().map(|prompt| Some(prompt.as_str())).collect::<Vec<_>>())
}

#[test]
fn rows_that_share_nothing_stay_alone() {
    // One template, in which each question occurs once; questions differ by a word or two.
    let asked: Vec<String> = (0..40)
        .map(|i| format!("Grade this answer.\nQuestion: What is {i} plus {}?\nAnswer: It is 5.", i * i))
        .collect();
    assert_eq!(groups(&asked).n_groups(), 40);
    // A category in front, which many rows share.
    let sorted: Vec<String> =
        (0..40).map(|i| format!("Category: {}\nText: note number {i} of {}", i % 8, i * i)).collect();
    assert_eq!(groups(&sorted).n_groups(), 40);
    assert_eq!(RowGroups::alone(0).n_groups(), 0);
}

#[test]
fn equal_and_nearly_equal_texts_belong_together() {
    let text = |i: usize| (0..30).map(|k| format!("w{} ", (i * 31 + k * k) % 9973)).collect::<String>();
    let mut texts: Vec<String> = (0..20).map(|i| text(100 * i)).collect();
    texts.push(texts[3].to_uppercase().replace(' ', "  "));
    texts.push(format!("Please say: {}", texts[5]));
    let found = groups(&texts).group_of_row();
    assert_eq!((found[20], found[21]), (3, 5));
    assert_eq!(groups(&texts).n_shared(), 4);
    // What is not known is shared with nobody.
    assert_eq!(RowGroups::of_texts(&[None, Some("a"), None, Some("A ")]).group_of_row(), [0, 1, 2, 1]);
}

#[test]
fn a_shared_reference_behind_different_answers_is_found() {
    let words = |seed: usize, n: usize| {
        (0..n).map(|k| format!("v{} ", (seed * 7919 + k * k * 31) % 99_991)).collect::<String>()
    };
    let prompts: Vec<String> = (0..60)
        .map(|i| format!("Judge what is said. {} By this: {} Now judge.", words(1000 + i, 40), words(i / 3, 25)))
        .collect();
    let found = groups(&prompts);
    assert_eq!((found.n_groups(), found.largest()), (20, 3));
}
