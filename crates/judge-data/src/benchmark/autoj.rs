use std::cmp::Ordering::{Equal, Greater, Less};

use judge_core::ItemId;

use super::pair::{BenchmarkPair, PairTexts, order_of};
use crate::{Error, Row};

/// The eight groups of scenarios in which Auto-J reports.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Summarization", &["post_summarization", "text_summarization", "note_summarization"]),
    ("Exam Questions", &["math_reasoning", "solving_exam_question_with_math", "solving_exam_question_without_math"]),
    (
        "Code",
        &[
            "code_simplification",
            "code_generation",
            "explaining_code",
            "code_correction_rewriting",
            "code_to_code_translation",
        ],
    ),
    (
        "Rewriting",
        &["text_simplification", "language_polishing", "instructional_rewriting", "text_correction", "paraphrasing"],
    ),
    (
        "Creative Writing",
        &[
            "writing_song_lyrics",
            "writing_social_media_post",
            "writing_blog_post",
            "writing_personal_essay",
            "creative_writing",
            "writing_advertisement",
            "writing_marketing_materials",
            "writing_presentation_script",
            "counterfactual",
        ],
    ),
    (
        "Functional Writing",
        &[
            "writing_product_description",
            "writing_job_application",
            "writing_news_article",
            "writing_biography",
            "writing_email",
            "writing_legal_document",
            "writing_technical_document",
            "writing_scientific_paper",
            "functional_writing",
            "writing_cooking_recipe",
        ],
    ),
    (
        "General Communication",
        &[
            "asking_how_to_question",
            "open_question",
            "analyzing_general",
            "explaining_general",
            "seeking_advice",
            "recommendation",
            "value_judgement",
            "verifying_fact",
            "chitchat",
            "roleplay",
            "planning",
            "brainstorming",
        ],
    ),
    (
        "NLP Tasks",
        &[
            "ranking",
            "text_to_text_translation",
            "data_analysis",
            "classification_identification",
            "title_generation",
            "question_generation",
            "reading_comprehension",
            "keywords_extraction",
            "information_extraction",
            "topic_modeling",
            "others",
        ],
    ),
];

pub(super) fn pair(row: &Row, number: usize) -> Result<BenchmarkPair, Error> {
    let scenario = row.string("scenario")?;
    let group = GROUPS.iter().find(|(_, scenarios)| scenarios.contains(&scenario.as_str()));
    let (group, _) = group.ok_or_else(|| row.wrong("scenario", "one of Auto-J's 58 scenarios"))?;
    let gold = order_of(row, "label", "0, 1 or 2", [(0, Greater), (1, Less), (2, Equal)])?;
    let texts = PairTexts::new(row.string("prompt")?, row.string("response 1")?, row.string("response 2")?);
    let groups = vec![(*group).to_owned()];
    Ok(BenchmarkPair { groups, ..BenchmarkPair::new(ItemId::from(number as u64), Some(gold), texts) })
}

#[cfg(test)]
mod tests {
    use super::GROUPS;

    #[test]
    fn there_are_58_scenarios_and_none_twice() {
        let mut all: Vec<&str> = GROUPS.iter().flat_map(|(_, scenarios)| *scenarios).copied().collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 58);
    }
}
