//! Judges made of judges: panels, samples, both orders of a pair, calibrators.

use std::cmp::Ordering;

use crate::{asking, one, serving::Serving};
use judge_core::testing::{ScriptedBackbone, check_judge, check_text_model};
use judge_core::{
    Backbone, Error, Fields, ItemId, Judge, JudgeError, Layer, Outcome, Prompt, PromptTemplate, Reading, Reason,
    Request, Rounds, Runner, Scale, Score, TextModel, Unscored, Want,
    combine::{
        Calibrated, EachAnswer, GradedPair, OrderPolicy, Panel, PanelRule, PlaceCorrected, Repeated, RoundRobin,
        Swapped, Tournament,
    },
    lager::{LagerJudge, LagerSettings},
    model::{BackboneError, Exchange},
    reading::{Finish, Generated},
    request::{Generation, LabelRead, Sampling},
    scale::ScalePoint,
    testing::ContractBreach,
    verdict::{Calibration, CombinedBy, Part},
};

type Item = Vec<(&'static str, &'static str)>;

/// Reads the grade that the model writes; asks again once if the first reply says so.
struct Written {
    name: &'static str,
    word: &'static str,
    sampling: Sampling,
}

impl Written {
    fn new(name: &'static str, word: &'static str) -> Self {
        Self { name, word, sampling: Sampling::Greedy }
    }

    fn request(&self, text: String) -> Request {
        let generate = Some(Generation { sampling: self.sampling.clone(), ..Generation::default() });
        Request { prompt: Prompt::Raw(text), want: Want { generate, ..Want::default() } }
    }
}

impl<I: Fields + ?Sized> Judge<I> for Written {
    fn name(&self) -> &str {
        self.name
    }

    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        let missing = || Unscored::new(Reason::Missing, "no response");
        Ok(vec![self.request(format!("{} {}", self.word, item.field("response").ok_or_else(missing)?))])
    }

    fn follow_up(&self, _: &I, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        let again = rounds.as_slices().len() == 1 && rounds.only()?.text()? == "again";
        Ok(if again { vec![self.request(format!("{} once more", self.word))] } else { Vec::new() })
    }

    fn decide(&self, _: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let readings = rounds.readings()?;
        let text = readings.last().ok_or(Error::NotRead { what: "a reply" })?.text()?;
        let grade: f64 = text.parse().map_err(|_| Unscored::new(Reason::Unparsed, text))?;
        Ok(Score::new(grade).with_text(text))
    }
}

/// Grades a response by its length, and by what the judge's word is.
fn model() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_reply(|prompt| match prompt {
        "unsure ab" => "again".into(),
        "unsure once more" => "3".into(),
        prompt if prompt.contains("none") => "no grade".into(),
        prompt => prompt.len().to_string(),
    })
}

fn item(response: &'static str) -> Item {
    vec![("response", response)]
}

fn score(judge: &dyn Judge<Item>, response: &'static str) -> Result<Score, Reason> {
    check_judge(judge, &model(), [item(response)]).unwrap();
    match one::verdict(&model(), judge, item(response)) {
        judge_core::Verdict::Scored(score) => Ok(score),
        judge_core::Verdict::Unscored(unscored) => Err(unscored.reason),
    }
}

#[test]
fn a_panel_combines_by_its_rule_and_keeps_every_verdict() {
    // Replies for "ab": 4, 6 and, in a second round, 3.
    let (short, long, unsure) =
        (Written::new("short", "a"), Written::new("long", "abc"), Written::new("unsure", "unsure"));
    let panel = |rule| Panel::new("panel", vec![&short as &dyn Judge<Item>, &long, &unsure], rule).unwrap();
    let mean = score(&panel(PanelRule::Mean), "ab").unwrap();
    assert_eq!(mean.value, 13.0 / 3.0);
    let parts: Vec<(&str, Option<f64>)> =
        mean.parts.iter().map(|part| (part.name.as_str(), part.verdict.value())).collect();
    assert_eq!(parts, [("short", Some(4.0)), ("long", Some(6.0)), ("unsure", Some(3.0))]);
    assert_eq!(mean.combined_by, Some(CombinedBy::Panel(PanelRule::Mean)));
    assert_eq!(mean.distribution, None, "no member has one");
    assert_eq!(score(&panel(PanelRule::Median), "ab").unwrap().value, 4.0);
    assert_eq!(score(&panel(PanelRule::Weighted(vec![1.0, 0.0, 3.0])), "ab").unwrap().value, 13.0 / 4.0);
    // All differ, so the smallest is the most frequent; twice the same outvotes it.
    assert_eq!(score(&panel(PanelRule::Majority), "ab").unwrap().value, 3.0);
    let two = Panel::new("two", vec![&short as &dyn Judge<Item>, &long, &short], PanelRule::Majority).unwrap();
    assert_eq!(score(&two, "ab").unwrap().value, 4.0);
    // Panels nest.
    let inner = panel(PanelRule::Median);
    let outer = Panel::new("outer", vec![&inner as &dyn Judge<Item>, &long], PanelRule::Mean).unwrap();
    assert_eq!(score(&outer, "ab").unwrap().value, 5.0);
}

#[test]
fn a_panel_of_too_few_scores_nothing() {
    let (good, bad) = (Written::new("good", "a"), Written::new("bad", "none"));
    let panel = || Panel::new("panel", vec![&good as &dyn Judge<Item>, &bad], PanelRule::Mean).unwrap();
    assert_eq!(score(&panel(), "ab"), Err(Reason::Unparsed));
    let lenient = score(&panel().with_least(1), "ab").unwrap();
    assert_eq!((lenient.value, lenient.parts.len()), (4.0, 2));
    let missing: Item = vec![("title", "t")];
    check_judge(&panel(), &model(), [missing.clone()]).unwrap();
    let verdict = one::verdict(&model(), &panel(), missing);
    assert_eq!(verdict.unscored().map(|unscored| unscored.reason), Some(Reason::Missing));

    let new = |judges, rule| Panel::<Item>::new("panel", judges, rule).map(|_| ());
    assert!(matches!(new(vec![], PanelRule::Mean), Err(Error::Shape { .. })));
    assert!(matches!(new(vec![&good], PanelRule::Weighted(vec![1.0, 2.0])), Err(Error::Shape { .. })));
    assert!(matches!(new(vec![&good], PanelRule::Weighted(vec![0.0])), Err(Error::NotADistribution { .. })));
    let overflowing = PanelRule::Weighted(vec![1e308, 1e308]);
    assert!(matches!(new(vec![&good, &bad], overflowing), Err(Error::NotADistribution { .. })));
}

/// Preference for the response shown first, by the logits of "A" and "B" at the prompt's end.
struct Pairwise {
    template: PromptTemplate,
    read: LabelRead,
    scale: Scale,
}

impl Pairwise {
    fn new(model: &dyn Backbone) -> Self {
        Self::on(&[(0.0, "B"), (1.0, "A")], model)
    }

    fn on(points: &[(f64, &str)], model: &dyn Backbone) -> Self {
        let points = points.iter().map(|&(value, label)| ScalePoint { value, label: label.to_owned() });
        let scale = Scale::new(points.collect()).unwrap();
        let template = PromptTemplate::new(Prompt::Raw("A: {response_a} B: {response_b} ".into())).unwrap();
        Self { template, read: LabelRead::at_prompt_end(&scale, model).unwrap(), scale }
    }
}

impl<I: Fields + ?Sized> Judge<I> for Pairwise {
    fn name(&self) -> &str {
        "pairwise"
    }

    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        let want = Want { labels: vec![self.read.clone()], ..Want::default() };
        Ok(vec![Request { prompt: self.template.fill(item)?, want }])
    }

    fn decide(&self, _: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        Ok(Score::expected(rounds.only()?.distribution(&self.read, self.read.layers[0], &self.scale)?))
    }
}

/// Likes whatever is shown first, and "good" more.
fn pair_model() -> ScriptedBackbone {
    ScriptedBackbone::new(2).with_logits(|before, _, label| {
        let good_first = before.starts_with("A: good");
        match label {
            'A' => 1.0 + if good_first { 3.0 } else { 0.0 },
            _ => {
                if before.contains("B: good") {
                    3.0
                } else {
                    0.0
                }
            }
        }
    })
}

fn pair(a: &'static str, b: &'static str) -> Item {
    vec![("response_a", a), ("response_b", b)]
}

#[test]
fn both_orders_speak_of_the_given_one() {
    let model = pair_model();
    let judge = |policy| Swapped::new(Pairwise::new(&model), policy);
    let decide = |policy, item: Item| one::verdict(&model, &judge(policy), item).score().unwrap().clone();
    check_judge(&judge(OrderPolicy::Average), &model, [pair("good", "bad"), pair("same", "same")]).unwrap();
    let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());

    let won = decide(OrderPolicy::Average, pair("good", "bad"));
    let (given, swapped) = (sigmoid(4.0), 1.0 - sigmoid(-2.0));
    assert!((won.value - (given + swapped) / 2.0).abs() < 1e-12);
    assert_eq!(won.orders(), Some([Ordering::Greater, Ordering::Greater]));
    assert!((won.distribution.as_ref().unwrap().probabilities()[1] - won.value).abs() < 1e-12);
    // The same pair the other way round: the parts change places, and p becomes 1 - p.
    let lost = decide(OrderPolicy::Average, pair("bad", "good"));
    assert!((won.value + lost.value - 1.0).abs() < 1e-12);
    assert_eq!(lost.orders(), Some([Ordering::Less, Ordering::Less]));

    // Both shown first win: position decides, not the answer.
    let biased = decide(OrderPolicy::Average, pair("same", "other"));
    assert_eq!(biased.orders(), Some([Ordering::Greater, Ordering::Less]));
    assert!((biased.value - 0.5).abs() < 1e-12);
    let tie = decide(OrderPolicy::TieUnlessAgreed, pair("same", "other"));
    assert_eq!((tie.value, tie.distribution), (0.5, None));
    assert!((decide(OrderPolicy::TieUnlessAgreed, pair("good", "bad")).value - won.value).abs() < 1e-12);
    let first = decide(OrderPolicy::Given, pair("same", "other"));
    assert!((first.value - sigmoid(1.0)).abs() < 1e-12);
    assert_eq!(first.parts.len(), 2);

    // Log-odds of 4 and 2 for the better answer: the place adds 1 to one and takes it off the other.
    let pooled = decide(OrderPolicy::LogOdds, pair("good", "bad"));
    assert!((pooled.value - sigmoid(3.0)).abs() < 1e-12);
    assert!((pooled.distribution.as_ref().unwrap().probabilities()[1] - pooled.value).abs() < 1e-12);
    assert!((decide(OrderPolicy::LogOdds, pair("bad", "good")).value - sigmoid(-3.0)).abs() < 1e-12);
    assert!((decide(OrderPolicy::LogOdds, pair("same", "other")).value - 0.5).abs() < 1e-12);
}

#[test]
fn equal_logits_are_a_tie_whatever_a_third_option_leaves_of_one_half() {
    let mut rounded = 0;
    for c in 0..200_u8 {
        let model = ScriptedBackbone::new(2)
            .with_logits(move |_, _, label| if label == 'C' { f32::from(c) / 100.0 } else { 1.5 });
        for policy in [OrderPolicy::Average, OrderPolicy::TieUnlessAgreed] {
            let judge = Swapped::new(Pairwise::on(&[(0.0, "B"), (0.5, "C"), (1.0, "A")], &model), policy);
            let score = one::verdict(&model, &judge, pair("x", "y")).score().unwrap().clone();
            assert_eq!(score.orders(), Some([Ordering::Equal; 2]), "{c}: {:?}", score.parts[0].verdict.value());
            rounded += usize::from(score.parts[0].verdict.value() != Some(0.5));
        }
    }
    assert!(rounded > 0, "the expected values are one half up to rounding alone");
}

/// Whatever hangs on the verdict of the exchanged order speaks of the given one too.
#[test]
fn what_an_order_carries_is_turned_with_it() {
    let model = pair_model();
    let parts = |judge: &dyn Judge<Item>, item: Item| -> [Score; 2] {
        let score = one::verdict(&model, judge, item).score().unwrap().clone();
        let parts: Vec<Score> = score.parts.iter().map(|part| part.verdict.score().unwrap().clone()).collect();
        parts.try_into().unwrap()
    };
    let named = |score: &Score| -> Vec<(String, f64)> {
        score.parts.iter().map(|part| (part.name.clone(), part.verdict.value().unwrap())).collect()
    };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");

    let to_half = |value: f64| Ok::<_, Error>(Calibration { value, low: value / 2.0, high: 1.0, level: 0.9 });
    let calibrated = Swapped::new(Calibrated::new(Pairwise::new(&model), to_half), OrderPolicy::Average);
    let [given, swapped] = parts(&calibrated, pair("good", "bad"));
    let of = |score: &Score| score.calibrated.unwrap();
    assert_eq!((of(&given).value, of(&given).low, of(&given).high), (given.value, given.value / 2.0, 1.0));
    close(of(&swapped).value, swapped.value);
    close(of(&swapped).low, 0.0);
    close(of(&swapped).high, 1.0 - (1.0 - swapped.value) / 2.0);

    let sampled = Swapped::new(Repeated::new("once", Pairwise::new(&model), 1).unwrap(), OrderPolicy::Average);
    for order in parts(&sampled, pair("good", "bad")) {
        assert_eq!(named(&order), [("0".to_owned(), order.value)]);
    }

    // Each order has the grades of both responses, and both orders.
    let graded = Swapped::new(GradedPair::new(Number), OrderPolicy::Average);
    for order in parts(&graded, pair("3", "1")) {
        assert_eq!(named(&order), [("response_a".to_owned(), 3.0), ("response_b".to_owned(), 1.0)]);
        assert_eq!(order.value, 1.0);
    }
    let twice = Swapped::new(Swapped::new(Pairwise::new(&model), OrderPolicy::Average), OrderPolicy::Average);
    let [given, swapped] = parts(&twice, pair("good", "bad")).map(|order| named(&order));
    for ((name, value), (same, again)) in given.into_iter().zip(swapped) {
        assert_eq!(name, same);
        close(again, value);
    }
}

#[test]
fn one_order_less_its_place_says_what_both_orders_say() {
    let model = pair_model();
    let judge = PlaceCorrected::new(Pairwise::new(&model), 1.0).unwrap();
    check_judge(&judge, &model, [pair("good", "bad"), pair("same", "same")]).unwrap();
    let items = [("good", "bad"), ("bad", "good"), ("same", "other")].map(|(a, b)| (a.into(), pair(a, b)));
    let results = Runner::new(&model, vec![&judge as &dyn Judge<Item>]).collect(items).unwrap();
    for (result, odds) in results.iter().zip([3.0_f64, -3.0, 0.0]) {
        let score = result.verdicts[0].score().unwrap();
        assert!((score.value - 1.0 / (1.0 + (-odds).exp())).abs() < 1e-12, "{odds}: {}", score.value);
        assert!((score.distribution.as_ref().unwrap().probabilities()[1] - score.value).abs() < 1e-12);
    }
    assert!(matches!(PlaceCorrected::new((), f64::NAN), Err(Error::NonFinite { .. })));
    // A verdict without probabilities has no log-odds.
    let written = PlaceCorrected::new(Written::new("grade", ""), 1.0).unwrap();
    let model = ScriptedBackbone::new(2).with_reply(|_| "1".into());
    let error = one::result(&model, &written, item("x")).unwrap_err();
    assert!(error.to_string().contains("distribution over preferences"), "{error}");
}

#[test]
fn an_order_that_is_sure_is_outweighed_by_none() {
    // What one order cannot believe, the other cannot make likely; two that contradict each other cancel.
    let model = |second: f32| {
        ScriptedBackbone::new(2).with_logits(move |before, _, label| match (before.starts_with("A: x"), label) {
            (true, 'A') => 2000.0,
            (false, 'A') => second,
            _ => 0.0,
        })
    };
    for (second, value) in [(0.5, 1.0), (2000.0, 0.5)] {
        let model = model(second);
        let judge = Swapped::new(Pairwise::new(&model), OrderPolicy::LogOdds);
        let found = one::verdict(&model, &judge, pair("x", "y")).value().unwrap();
        assert!((found - value).abs() < 1e-12, "{second}: {found}");
    }
}

#[test]
fn a_grade_is_no_preference() {
    let judge = Swapped::new(Written::new("grade", "a"), OrderPolicy::Average);
    let item: Item = vec![("response", "x"), ("response_a", "1"), ("response_b", "2")];
    let error = one::result(&model(), &judge, item).unwrap_err();
    assert!(error.to_string().contains("expected a preference for the response shown first"), "{error}");
}

/// A model that writes the number of the stream that it is asked for.
fn streams() -> impl TextModel {
    writing(|_, want| {
        let stream = match want.generate.map(|generation| generation.sampling) {
            Some(Sampling::Random { stream, .. }) => stream,
            _ => 99,
        };
        let text = if stream == 1 { "none".to_owned() } else { stream.to_string() };
        Ok(Generated::text_only(text, Finish::EndToken))
    })
}

/// A model that answers one request after another with what `write` makes of its number and of what it wants.
fn writing(write: impl Fn(usize, Want) -> Result<Generated, BackboneError> + Send + Sync) -> impl TextModel {
    Serving(move |exchange: &mut dyn Exchange| {
        let mut number = 0;
        while let Some(request) = exchange.take(1).pop() {
            let mut reading = Reading::default();
            reading.generated = Some(write(number, request.want)?);
            if exchange.give(number, Outcome::Read(reading)).is_break() {
                break;
            }
            number += 1;
        }
        Ok(())
    })
}

#[test]
fn samples_have_streams_of_their_own() {
    let sampling = Sampling::Random { temperature: 1.0, top_k: None, top_p: None, seed: 7, stream: 0 };
    let written = || Written { sampling: sampling.clone(), ..Written::new("written", "a") };
    let run = |judge: &dyn Judge<Item>| one::result(&streams(), judge, item("ab"));
    let three = Repeated::new("three", written(), 3).unwrap();
    let result = run(&three).unwrap();
    assert_eq!(result.verdicts[0].unscored().map(|unscored| unscored.reason), Some(Reason::Unparsed));
    let result = run(&three.with_least(2)).unwrap();
    let score = result.verdicts[0].score().unwrap();
    assert_eq!((score.value, score.parts.len()), (1.0, 3)); // samples 0 and 2
    assert_eq!(score.combined_by, Some(CombinedBy::Samples(3)));

    let greedy = Repeated::new("greedy", Written::new("written", "a"), 2).unwrap();
    assert!(run(&greedy).unwrap_err().to_string().contains("decodes greedily"));
    assert!(matches!(Repeated::new("none", written(), 0), Err(Error::Shape { .. })));
}

#[test]
fn a_calibrator_adds_an_interval_and_leaves_the_value() {
    let around = |value: f64| Calibration { value, low: value - 1.0, high: value + 1.0, level: 0.9 };
    let map = |value: f64| Ok::<_, Error>(around(value / 2.0));
    let judge = Calibrated::new(Written::new("written", "a"), map);
    let found = score(&judge, "ab").unwrap();
    assert_eq!(
        (found.value, found.calibrated),
        (4.0, Some(Calibration { value: 2.0, low: 1.0, high: 3.0, level: 0.9 }))
    );
    let run = |judge: &dyn Judge<Item>| one::result(&model(), judge, item("ab"));
    // An interval without an end costs the item its score, and a check of the judge finds it.
    let unbounded = Calibrated::new(Written::new("written", "a"), |value: f64| {
        Ok::<_, Error>(Calibration { high: f64::INFINITY, ..around(value) })
    });
    let result = run(&unbounded).unwrap();
    let unscored = result.verdicts[0].unscored().unwrap();
    assert_eq!(unscored.to_string(), "non_finite: the upper end is inf, expected a finite number");
    let breach = check_judge(&unbounded, &model(), [item("ab")]).unwrap_err().to_string();
    assert!(
        breach.starts_with("judge written breaks its contract: Calibration { value: 4.0, low: 3.0, high: inf"),
        "{breach}"
    );
    let failing = |_: f64| Err::<Calibration, _>("out of range");
    let ends = run(&Calibrated::new(Written::new("written", "a"), failing)).unwrap_err().to_string();
    assert!(ends.ends_with("out of range"), "{ends}");
}

/// Gives the number that the response is, NaN and infinity included. It does not say what it is.
pub(crate) struct Number;

impl<I: Fields + ?Sized> Judge<I> for Number {
    fn name(&self) -> &str {
        "number"
    }

    fn ask(&self, _: &I) -> Result<Vec<Request>, JudgeError> {
        Ok(Vec::new())
    }

    fn decide(&self, item: &I, _: &Rounds<'_>) -> Result<Score, JudgeError> {
        Ok(Score::new(item.field("response").unwrap().parse().unwrap()))
    }
}

#[test]
fn a_number_that_is_none_is_no_score_of_any_judge() {
    let decide = |judge: &dyn Judge<Item>, item: Item| one::verdict(&model(), judge, item);
    let reason = |verdict: judge_core::Verdict| verdict.unscored().map(|unscored| unscored.reason);
    let doubled = |value: f64| match value.is_finite() {
        true => Ok(Calibration { value, low: value, high: value, level: 0.5 }),
        false => Err("a calibrator is asked about finite numbers only"),
    };
    let answers = || vec![("response_a", "NaN"), ("response_b", "1"), ("response_1", "inf"), ("response_2", "2")];
    for number in ["NaN", "inf", "-inf"] {
        let item = || [("response", number), ("response_a", number)].into_iter().chain(answers()).collect::<Item>();
        assert_eq!(reason(decide(&Number, item())), Some(Reason::NonFinite));
        assert_eq!(reason(decide(&Calibrated::new(Number, doubled), item())), Some(Reason::NonFinite));
        assert_eq!(reason(decide(&Swapped::new(Number, OrderPolicy::Average), item())), Some(Reason::NonFinite));
        assert_eq!(reason(decide(&GradedPair::of_rewards(Number), item())), Some(Reason::NonFinite));
        let written = Written::new("written", "a");
        let panel = Panel::new("panel", vec![&Number as &dyn Judge<Item>, &written], PanelRule::Median).unwrap();
        assert_eq!(reason(decide(&panel, item())), Some(Reason::NonFinite));
    }
    // A member without a number is a member without a score: the others count.
    let best = decide(&EachAnswer::new(Number), answers());
    assert_eq!(best.value(), Some(2.0));
    assert_eq!(best.score().unwrap().parts[0].verdict.unscored().unwrap().reason, Reason::NonFinite);
    // Nor does a part of a judge's own making carry one into a file, or the mass of its labels.
    let scored = |score: Score| {
        let judge = asking::judge("scored", |_: &Item| Ok(Vec::new()), |_: &Item, _: &Rounds<'_>| Ok(score.clone()));
        decide(&judge, answers())
    };
    let part = |value| Part { name: "part".into(), verdict: judge_core::Verdict::Scored(Score::new(value)) };
    let of_parts = Score::new(1.0).with_parts(CombinedBy::Grades, vec![part(f64::NAN), part(1.0)]);
    let found = scored(of_parts);
    let reasons: Vec<Option<Reason>> =
        found.score().unwrap().parts.iter().map(|part| reason(part.verdict.clone())).collect();
    assert_eq!(reasons, [Some(Reason::NonFinite), None]);
    assert_eq!(reason(scored(Score::new(1.0).with_label_mass(Some(f32::NAN)))), Some(Reason::NonFinite));
}

#[test]
fn judges_that_break_their_promise_are_found_out() {
    let request = |text: String| Ok(vec![Request { prompt: Prompt::Raw(text), want: Want::default() }]);
    let times = std::sync::atomic::AtomicU32::default();
    let next = || times.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    // A middle score for what nobody has read.
    let middle = |_: &Item, _: &Rounds<'_>| Ok(Score::new(3.0));
    let moody = asking::judge("moody", |_: &Item| request(next().to_string()), middle);
    let sure = asking::judge("sure", |_: &Item| request("a".into()), middle);
    let breach = |judge: &dyn Judge<Item>| match check_judge(judge, &model(), [item("ab")]) {
        Err(Error::Contract { breach }) => breach,
        other => panic!("expected a breach, found {other:?}"),
    };
    assert!(matches!(breach(&moody), ContractBreach::NotPure { .. }));
    let ContractBreach::Judge { problem, .. } = breach(&sure) else { panic!("a score for nothing") };
    assert!(problem.contains("although nothing was read"));
}

/// Asks for ever about an item whose response is "bad", and about others once.
struct Endless;

impl Judge<Item> for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn ask(&self, _: &Item) -> Result<Vec<Request>, JudgeError> {
        Ok(vec![Request { prompt: Prompt::Raw("a".into()), want: Want::default() }])
    }

    fn follow_up(&self, item: &Item, _: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        if item.field("response").as_deref() == Some("bad") { self.ask(item) } else { Ok(Vec::new()) }
    }

    fn decide(&self, _: &Item, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        rounds.readings().map(|_| Score::new(1.0))
    }
}

#[test]
fn a_judge_that_never_ends_is_found_out_with_its_item() {
    let error = check_judge(&Endless, &model(), [item("good"), item("bad")]).unwrap_err();
    assert!(matches!(&error, Error::TooManyRounds { id: ItemId::Integer(1), .. }), "{error}");
}

/// A service that writes "12.", and can do nothing else.
fn service() -> impl TextModel {
    writing(|request, want| {
        if !want.is_text_only() {
            return Err(BackboneError::Unsupported { request, what: "what is inside" });
        }
        let Some(generation) = want.generate else {
            return Err(BackboneError::Unsupported { request, what: "a prompt's length" });
        };
        let stop = generation.stop.iter().filter_map(|stop| "12.".find(stop.as_str())).min();
        let finish = if stop.is_some() { Finish::StopText } else { Finish::EndToken };
        Ok(Generated::text_only(&"12."[..stop.unwrap_or(3)], finish))
    })
}

#[test]
fn a_judge_of_words_needs_no_more_than_a_service() {
    check_text_model(&service(), &[Prompt::user("a"), Prompt::Raw("b".into())]).unwrap();
    let judge = Written::new("written", "a");
    let verdict = one::verdict(&service(), &judge, item("ab"));
    assert_eq!(verdict.unscored().map(|unscored| unscored.detail.as_str()), None);
    assert_eq!(verdict.value(), Some(12.0));
    // A judge that reads inside is told which request, of which item, the service cannot answer.
    let inside = Pairwise::new(&pair_model());
    let error = one::result(&service(), &inside, pair("a", "b")).unwrap_err().to_string();
    assert_eq!(error, "judge pairwise, item \"one\": request 0: this model does not support what is inside");
    // A model that can be read from the inside is no text-only one.
    let wrong = check_text_model(&model(), &[Prompt::user("a")]).unwrap_err();
    assert!(matches!(wrong, Error::Contract { breach: ContractBreach::NotRefused { case: "label logits", .. } }));
}

#[test]
fn labels_of_several_tokens_are_scored_as_continuations() {
    // "1" then "0" is likelier than "9".
    let model = ScriptedBackbone::new(1).with_log_probs(|before, next| match (before.ends_with('1'), next) {
        (true, '0') => -0.1,
        (false, '1') => -0.2,
        (false, '9') => -2.0,
        _ => -5.0,
    });
    let want = Want { continuations: vec!["9".into(), "10".into()], prompt_log_probs: true, ..Want::default() };
    let mut found = None;
    let request = Request { prompt: Prompt::Raw("ab: ".into()), want };
    model
        .run(&[request], &mut |_, outcome| {
            found = outcome.reading().ok().cloned();
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    let reading = found.unwrap();
    let logits: Vec<f64> = ["9", "10"].map(|label| reading.continuation(label).unwrap().sum()).to_vec();
    assert!((logits[0] + 2.0).abs() < 1e-6 && (logits[1] + 0.3).abs() < 1e-6, "{logits:?}");
    let prompt = reading.prompt_log_probs.unwrap();
    assert_eq!(prompt.tokens, "b: ".chars().map(u32::from).collect::<Vec<_>>());
    assert!((prompt.perplexity().unwrap() - 5.0_f64.exp()).abs() < 1e-3);
    assert_eq!(reading.generated, None);
    assert_eq!(Layer(1), Layer(model.info().n_layers));
}

#[test]
fn a_combination_says_how_much_probability_lay_on_the_labels() {
    let model = ScriptedBackbone::new(2).with_label_mass(|before| if before.contains("low") { 0.02 } else { 0.06 });
    let scale = Scale::integers(1, 5).unwrap();
    let lager = |text: &str| {
        let template = PromptTemplate::new(Prompt::Raw(text.into())).unwrap();
        LagerJudge::new(LagerSettings { template, ..LagerSettings::prompt_end(scale.clone()) }, &model).unwrap()
    };
    let (low, high, written) = (lager("low {response}"), lager("{response}"), Written::new("written", "a"));
    let panel = Panel::new("panel", vec![&low as &dyn Judge<Item>, &high, &written], PanelRule::Mean).unwrap();
    let panel = panel.with_least(2);
    let once = Repeated::new("once", &low, 1).unwrap();
    let best = EachAnswer::new(&low);
    let pair = GradedPair::new(&low);
    let ranked = Tournament::new(&pair, RoundRobin);
    let item: Item =
        vec![("response", "x"), ("response_a", "x"), ("response_b", "y"), ("response_1", "x"), ("response_2", "y")];
    for (judge, expected) in
        [(&panel as &dyn Judge<Item>, 0.04), (&once, 0.02), (&best, 0.02), (&pair, 0.02), (&ranked, 0.02)]
    {
        let summary = Runner::new(&model, vec![judge]).run([("x".into(), item.clone())], |_| ()).unwrap();
        let mass = summary.judges[0].mean_label_mass().unwrap();
        assert!((mass - expected).abs() < 1e-6, "{}: {mass}", judge.name());
    }
}

#[test]
fn a_margin_keeps_the_rule_of_rewards() {
    let decide = |judge: &dyn Judge<Item>, a: &'static str, b: &'static str| {
        one::verdict(&model(), judge, pair(a, b)).value().unwrap()
    };
    let rewards = GradedPair::of_rewards(Number).with_margin(0.1);
    assert_eq!(decide(&rewards, "1.0", "1.05"), 0.5);
    assert!((decide(&rewards, "2", "1") - 1.0 / (1.0 + (-1.0_f64).exp())).abs() < 1e-12);
    let grades = GradedPair::new(Number).with_margin(0.1);
    assert_eq!((decide(&grades, "1.0", "1.05"), decide(&grades, "2", "1")), (0.5, 1.0));
    // A difference of the margin is a tie, however the decimals are rounded: 3.1 - 3.0 is above 0.1, 7.1 - 7.0 below.
    for (a, b) in [("3.1", "3.0"), ("3.0", "3.1"), ("7.1", "7.0"), ("1e300", "1e300")] {
        assert_eq!((decide(&grades, a, b), decide(&rewards, a, b)), (0.5, 0.5), "{a} {b}");
    }
    assert_eq!(decide(&GradedPair::new(Number), "3.0000000000000004", "3"), 1.0);
}
