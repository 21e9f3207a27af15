//! Many answers ranked, by comparing them and by grading each.

use std::error::Error as StdError;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::one;
use judge_core::testing::{ScriptedBackbone, check_judge};
use judge_core::{
    Error, ItemResult, Judge, Prompt, PromptTemplate, Reason, Scale, Score, Verdict,
    combine::{Compared, EachAnswer, OrderPolicy, Pairing, RoundRobin, Swapped, Tournament},
    prompted::{GradeConvention, PromptFamily, Task, WrittenJudge},
};

type Item = Vec<(&'static str, &'static str)>;

fn item(answers: &[&'static str]) -> Item {
    let names = ["response_1", "response_2", "response_3", "response_4", "response_5"];
    std::iter::once(("instruction", "How many?")).chain(names.into_iter().zip(answers.iter().copied())).collect()
}

/// Prefers the longer answer; says nothing of answers with a question mark. Written as `A: answer` and `B: answer`.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_reply(|prompt| {
        let lines: Vec<&str> = prompt.split(['\n', '|']).collect();
        let of = |side: &str| lines.iter().find_map(|line| line.strip_prefix(side));
        match (of("A: "), of("B: "), of("R: ")) {
            (Some(a), Some(b), _) if a.contains('?') || b.contains('?') => "I cannot say.".into(),
            (Some(a), Some(b), _) if a.len() == b.len() => "[[C]]".into(),
            (Some(a), Some(b), _) => {
                if a.len() > b.len() {
                    "[[A]]".into()
                } else {
                    "[[B]]".into()
                }
            }
            (_, _, Some(r)) if r.contains('?') => "I cannot say.".into(),
            (_, _, Some(r)) => format!("[[{}]]", r.len()),
            _ => unreachable!("{prompt}"),
        }
    })
}

fn pairs() -> Swapped<WrittenJudge> {
    let template = PromptTemplate::new(Prompt::Raw("A: {response_a}|B: {response_b}".into())).unwrap();
    let family = PromptFamily::built_in("pair").unwrap().with_template(template).unwrap();
    Swapped::new(WrittenJudge::new(family), OrderPolicy::Average)
}

fn grades() -> WrittenJudge {
    let template = PromptTemplate::new(Prompt::Raw("R: {response}".into())).unwrap();
    let task = Task::Single(GradeConvention::Strict);
    let family = PromptFamily::new("length", task, template, Scale::integers(1, 9).unwrap(), ("[[", "]]"), 8);
    WrittenJudge::new(family.unwrap())
}

fn judged<J: Judge<Item>>(judge: &J, answers: &[&'static str]) -> ItemResult<Item> {
    one::result(&model(), judge, item(answers)).unwrap()
}

fn values(score: &Score) -> Vec<Option<f64>> {
    score.parts.iter().map(|part| part.verdict.value()).collect()
}

/// The winner of the last comparison meets the next answer: one comparison a round.
#[derive(Default)]
struct Ladder {
    asked: AtomicUsize,
}

impl Pairing for Ladder {
    fn next(&self, n: usize, known: &[Compared]) -> Result<Vec<[usize; 2]>, Box<dyn StdError + Send + Sync>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let champion = known.iter().fold(0, |champion, compared| match compared.verdict.value() {
            Some(preference) if preference < 0.5 => compared.answers[1],
            _ => champion,
        });
        Ok(if known.len() + 1 < n { vec![[champion, known.len() + 1]] } else { Vec::new() })
    }
}

struct Stray([usize; 2]);

impl Pairing for Stray {
    fn next(&self, _: usize, _: &[Compared]) -> Result<Vec<[usize; 2]>, Box<dyn StdError + Send + Sync>> {
        Ok(vec![self.0])
    }
}

#[test]
fn all_pairs_give_win_rates() {
    let judge = Tournament::new(pairs(), RoundRobin);
    let result = judged(&judge, &["aaa", "a", "bbb", "aaaaa"]);
    let score = result.verdicts[0].score().unwrap();
    assert_eq!(values(score), [Some(0.5), Some(0.0), Some(0.5), Some(1.0)]);
    assert_eq!(score.value, 1.0);
    let compared = judge.comparisons(&result.item, &result.rounds(0)).unwrap();
    assert_eq!(
        compared.iter().map(|c| c.answers).collect::<Vec<_>>(),
        [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    );
    assert_eq!(compared[1].verdict.value(), Some(0.5));
    assert_eq!(result.rounds(0).as_slices().len(), 1, "all pairs are asked about at once");
    check_judge(&judge, &model(), &[item(&["aa", "a"]), item(&["a", "aa", "aaa"])]).unwrap();
}

#[test]
fn later_comparisons_depend_on_earlier_ones() {
    let judge = Tournament::new(pairs(), Ladder::default());
    let result = judged(&judge, &["aa", "a", "aaaa", "aaa", "aaaaa"]);
    let compared = judge.comparisons(&result.item, &result.rounds(0)).unwrap();
    assert_eq!(compared.iter().map(|c| c.answers).collect::<Vec<_>>(), [[0, 1], [0, 2], [2, 3], [2, 4]]);
    assert_eq!(result.rounds(0).as_slices().len(), 4);
    assert_eq!(result.rounds(0).outcomes().count(), 8, "each in both orders");
    assert!(judge.comparisons(&result.item, &judge_core::Rounds::default()).is_err(), "no outcomes, no comparisons");
}

#[test]
fn a_comparison_without_a_verdict_counts_for_nobody() {
    let judge = Tournament::new(pairs(), RoundRobin);
    let result = judged(&judge, &["aaa", "why?", "a"]);
    let score = result.verdicts[0].score().unwrap();
    assert_eq!(values(score), [Some(1.0), None, Some(0.0)]);
    let compared = judge.comparisons(&result.item, &result.rounds(0)).unwrap();
    assert_eq!(compared[0].verdict.unscored().map(|u| u.reason), Some(Reason::Unparsed));

    for (answers, reason) in
        [(&["a?", "b?"][..], Reason::Unparsed), (&["alone"], Reason::Missing), (&[], Reason::Missing)]
    {
        let result = judged(&judge, answers);
        assert_eq!(result.verdicts[0].unscored().map(|u| u.reason), Some(reason), "{answers:?}");
    }
}

#[test]
fn a_pairing_that_names_no_pair_ends_the_run() {
    for stray in [[0, 0], [0, 3]] {
        let judge = Tournament::new(pairs(), Stray(stray));
        let error = one::result(&model(), &judge, item(&["a", "b", "c"])).unwrap_err();
        let mut causes = std::iter::successors(Some(&error as &dyn StdError), |&error| error.source());
        let found = causes.any(|error| matches!(error.downcast_ref(), Some(Error::NotAPair { answers: 3, .. })));
        assert!(found, "{error:?}");
    }
}

#[test]
fn grades_of_each_answer_rank_them() {
    let judge = EachAnswer::new(grades());
    let result = judged(&judge, &["aaa", "why?", "aaaa"]);
    let score = result.verdicts[0].score().unwrap();
    assert_eq!((score.value, values(score)), (4.0, vec![Some(3.0), None, Some(4.0)]));
    assert_eq!(score.parts[2].name, "response_3");
    assert_eq!(judged(&judge, &["alone"]).verdicts[0].value(), Some(5.0));
    assert!(matches!(&judged(&judge, &["?"]).verdicts[0], Verdict::Unscored(u) if u.reason == Reason::Unparsed));
    assert!(matches!(&judged(&judge, &[]).verdicts[0], Verdict::Unscored(u) if u.reason == Reason::Missing));
    check_judge(&judge, &model(), &[item(&["aa", "a"])]).unwrap();
}
