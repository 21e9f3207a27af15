//! Position bias: the same two answers in both orders. Where the verdict changes, the order decided and not the answers.
//!
//! `cargo run --release --example bias [INPUT [MODEL]]`

use std::{env, error::Error};

use judge_core::{
    Runner,
    combine::{OrderPolicy, Swapped},
    prompted::{PromptFamily, PromptedJudge, VerdictFrom},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::agreement::McNemarTest;
use judge_metrics::bias::position::order_effect;
use judge_metrics::preference::{TwoOrder, Unparsed};
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/pairs.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let family = PromptFamily::built_in("pair-forced")?;
    let judge = PromptedJudge::new(family, VerdictFrom::Logits, None, &model)?;
    let judge = Swapped::new(judge, OrderPolicy::TieUnlessAgreed);

    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let results = Runner::new(&model, vec![&judge]).collect(items)?;

    // What each order says of the two answers, in terms of the given order.
    let orders = results.iter().filter_map(|result| result.verdicts[0].score()?.orders());
    let verdicts: Vec<TwoOrder> = orders.map(TwoOrder::from).collect();
    let effect = order_effect(&verdicts, Unparsed::Refused)?;
    println!("{} pairs", effect.n);
    println!("both orders agree:           {:.2}", effect.consistency().estimate()?);
    println!("the one shown first gains:   {:.2}", effect.prefer_before().estimate()?);
    println!("the one shown second gains:  {:.2}", effect.prefer_after().estimate()?);
    println!("preference fairness:         {:.2} (-1: always the first, 0: fair)", effect.preference_fairness()?);
    println!("by chance (McNemar, exact):  p = {:.3}", effect.mcnemar(McNemarTest::Exact)?.p_value);
    Ok(())
}
