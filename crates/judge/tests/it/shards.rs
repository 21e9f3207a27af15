//! Commands run by parts: what they write is what one run over the whole file writes, however it is cut, and a check finds what is wrong
//! with parts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use judge_data::{CommandPart, CommandPlan, RunRecord, load, record_path, save};
use serde_json::{Value, json};

use crate::program::{
    Desk, QUICK_PROBES, ended, finished, fixture, judge, ran, refused, succeed, words, write_parquet,
};
use crate::server::{Reply, Server};

const ROWS: usize = 7;

/// The rows of the tests as texts: the columns, and of each row its values.
fn texts() -> ([&'static str; 4], Vec<[String; 4]>) {
    let generated = tiny_judge::planted::generate(tiny_judge::planted::Split::Test, ROWS, 0);
    let row = |(place, item): (usize, tiny_judge::planted::Item)| {
        // One row is without what is judged.
        let response = if place == 4 { String::new() } else { item.response };
        [format!("row {place}"), item.instruction, response, item.rubric.to_owned()]
    };
    (["id", "instruction", "response", "rubric"], generated.into_iter().enumerate().map(row).collect())
}

/// A folder with the same rows as JSON lines and as Parquet.
fn desk() -> Desk {
    let folder = Desk::new();
    let (names, texts) = texts();
    let objects =
        texts.iter().map(|row| names.iter().zip(row).map(|(name, text)| (name.to_string(), json!(text))).collect());
    folder.write("in.jsonl", &objects.map(Value::Object).collect::<Vec<_>>());
    let column = |index: usize| texts.iter().map(|row| row[index].as_str()).collect::<Vec<_>>();
    let columns: Vec<_> = names.iter().enumerate().map(|(index, name)| (*name, column(index))).collect();
    write_parquet(folder.join("in.parquet"), &columns);
    folder
}

/// Runs a command on a whole input, and by parts of so many rows;
/// the files of both whose names end so must be equal, and the command must recognise the joined ones.
fn same_by_parts(folder: &Path, input: &str, command: &str, per_shard: usize, endings: &[&str]) {
    let name = format!("{}-{per_shard}", input.replace('.', "-"));
    let verb: Vec<&str> = command.split_whitespace().take_while(|word| !word.starts_with("--")).collect();
    let options: Vec<&str> = command.split_whitespace().skip(verb.len()).collect();
    let verb = verb.join(" ");
    let stem = format!("{}-{name}", verb.replace(' ', "-"));
    let (whole, joined) = (format!("{stem}.whole{}", endings[0]), format!("{stem}.joined{}", endings[0]));
    let run = |output: &str| ran(&verb, folder, &[&options[..], &["--input", input, "--output", output]].concat());
    let (code, said, stderr) = run(&whole);
    assert_eq!(code, Some(0), "{said}{stderr}");
    let (plan, parts) = (format!("{stem}.plan.json"), format!("{stem}.parts"));
    let cut = per_shard.to_string();
    let planned = ["plan", "--input", input, "--rows-per-shard", &cut, "--output", &plan, "--quiet", "--"];
    succeed("shards", folder, &[&planned[..], &words(command)].concat());
    // Two processes share them, the later half first.
    for share in ["1/2", "0/2"] {
        succeed("shards", folder, &["run", "--plan", &plan, "--output", &parts, "--shard", share, "--quiet"]);
    }
    let said = succeed("shards", folder, &["run", "--plan", &plan, "--output", &parts, "--shard", "0/1"]);
    assert!(said.contains("nothing to do"), "{said}");
    succeed("shards", folder, &["check", "--plan", &plan, "--output", &parts, "--quiet", "--one-device"]);
    succeed("shards", folder, &["export", "--plan", &plan, "--parts", &parts, "--output", &joined, "--quiet"]);
    for ending in endings {
        let files = [&whole, &joined]
            .map(|name| folder.join(format!("{}{ending}", name.strip_suffix(endings[0]).expect("its ending"))));
        let [whole, joined] =
            files.clone().map(|path| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        assert!(whole == joined, "{command} by {per_shard}: {}", files[1].display());
        let [whole, joined] =
            files.map(|path| record_path(&path)).map(|path| load::<RunRecord>(path).expect("a record"));
        assert_eq!(
            (&whole.counts, &whole.settings, &whole.inputs),
            (&joined.counts, &joined.settings, &joined.inputs),
            "{command}"
        );
    }
}

#[test]
fn any_cut_gives_the_rows_of_one_run() {
    let folder = &desk();
    let reward = format!("reward --model {}", fixture("heads/llama"));
    let server = Server::start(|_, _| Reply::text("{\"reason\": \"so\", \"score\": 3}"));
    let label = format!("label --base-url {} --api-model m --no-key --aspects fluency,logicality", server.base_url);
    let logits = "logits --columns prompt=instruction,rubric= --layers 0,2";
    for (input, per_shard) in [("in.jsonl", 1), ("in.jsonl", 3), ("in.parquet", 5)] {
        for command in ["score", "compare", reward.as_str(), label.as_str(), logits] {
            same_by_parts(folder, input, command, per_shard, &[".jsonl"]);
        }
    }
    let model = crate::decide::model(folder, None);
    let decide = format!("decide --model {model} --dtype f32 --columns state=response --questions questions.json");
    folder.put("questions.json", r#"{"q": {"type": "noul", "instructions": "Is it?"}}"#);
    let rag = format!("rag --model {model} --dtype f32 --columns contexts=rubric --measures faithfulness");
    for command in [&decide, &rag] {
        same_by_parts(folder, "in.jsonl", command, 3, &[".jsonl"]);
    }
    same_by_parts(folder, "in.parquet", "states --columns prompt=instruction --layers 1", 3, &[".safetensors"]);
}

#[test]
fn a_selection_is_graded_by_parts_and_made_of_all() {
    let commands = [
        (["select", "--aspects", "relevance,fluency_and_clarity"].as_slice(), "aspects.jsonl"),
        // The states are all that is read from the model.
        (&["select", "--baseline", "random", "--diversity", "0.3"], "states.ids.jsonl"),
    ];
    for (command, kept) in commands {
        let folder = &desk();
        for input in ["in.jsonl", "in.parquet"] {
            let select = |output: &'static str| {
                [&command[1..], &["--input", input, "--top", "0.3", "--overwrite", "--output", output]].concat()
            };
            succeed("select", folder, &select("whole.jsonl"));
            let plan = words("plan --rows-per-shard 3 --output plan.json --overwrite --quiet --input");
            succeed("shards", folder, &[&plan[..], &[input, "--"], command].concat());
            let parts = format!("parts-{input}");
            let run = ["run", "--plan", "plan.json", "--output", &parts, "--shard", "0/1", "--quiet"];
            let said = succeed("shards", folder, &run);
            assert!(said.contains(&format!("rows 6..7 graded -> {parts}/part-00002-of-00003.jsonl.")), "{said}");
            let export = words("export --plan plan.json --output joined.jsonl --overwrite --quiet --parts");
            succeed("shards", folder, &[&export[..], &[&parts]].concat());
            assert!(!folder.join("joined.jsonl").exists() || input == "in.parquet", "nothing is chosen within a part");
            let read = |name: &str| folder.read(name);
            assert!(read(&format!("whole.jsonl.{kept}")) == read(&format!("joined.jsonl.{kept}")), "{command:?}");
            // The choice is that of the whole.
            succeed("select", folder, &select("joined.jsonl"));
            assert!(read("whole.jsonl") == read("joined.jsonl"), "{command:?}");
        }
    }
}

#[test]
fn probes_judge_by_parts() {
    let folder = &desk();
    let graded = |(place, item): (usize, tiny_judge::planted::Item)| json!({"id": place, "instruction": item.instruction, "response": item.response, "aspect": "fluency", "score": item.scores[0]});
    let items = tiny_judge::planted::generate(tiny_judge::planted::Split::Validation, 60, 0);
    folder.write("graded.jsonl", &items.into_iter().enumerate().map(graded).collect::<Vec<_>>());
    succeed("probe train", folder, &words(QUICK_PROBES));
    succeed("probe evaluate", folder, &["--probes", "probes", "--input", "in.jsonl", "--output", "try.jsonl"]);
    for input in ["in.jsonl", "in.parquet"] {
        same_by_parts(folder, input, "probe evaluate --probes probes", 3, &[".jsonl"]);
    }

    // Rows of a pipe are filtered as those of a file.
    let filtered = |input: &str, output: &str| {
        let mut command = judge("probe filter");
        command.args(["--probes", "probes", "--top-share", "0.5", "--input", input, "--output", output]);
        command.current_dir(folder).stdin(File::open(folder.join("in.jsonl")).expect("rows"));
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    filtered("in.jsonl", "kept.jsonl");
    filtered("-", "piped.jsonl");
    assert_eq!(folder.rows("kept.jsonl").len(), 3);
    assert_eq!(folder.rows("kept.jsonl"), folder.rows("piped.jsonl"));
    // All rows are a share of them, the best first.
    succeed("probe evaluate", folder, &words("--probes probes --input in.jsonl --output all.jsonl --top-share 1"));
    let totals: Vec<f64> = folder.rows("all.jsonl").iter().filter_map(|row| row["total_score"].as_f64()).collect();
    assert!(totals.is_sorted_by(|a, b| a >= b) && folder.join("all.jsonl.judged.jsonl").exists(), "{totals:?}");
}

#[test]
fn rows_without_ids_are_numbered_through_all_files_and_an_id_in_two_is_refused() {
    let folder = &Desk::new();
    let row = |place: usize| json!({"prompt": format!("say {place}")});
    folder.write("a.jsonl", &(0..3).map(row).collect::<Vec<_>>());
    folder.write("b.jsonl", &(3..5).map(row).collect::<Vec<_>>());
    let plan = |input: &[&str], more: &[&str]| {
        let plan = words("plan --output plan.json --overwrite --rows-per-shard 2 --input");
        ran("shards", folder, &[&plan[..], input, &["--", "logits", "--layers", "2"], more].concat())
    };
    assert_eq!(plan(&["a.jsonl", "b.jsonl"], &["--columns", "id="]).0, Some(0));
    succeed("shards", folder, &["run", "--plan", "plan.json", "--output", "parts", "--shard", "0/1", "--quiet"]);
    let export = words("export --plan plan.json --parts parts --output out.jsonl --rows all.jsonl --quiet");
    succeed("shards", folder, &export);
    let ids: Vec<_> = folder.rows("out.jsonl").iter().map(|row| row["id"].as_u64()).collect();
    assert_eq!(ids, (0..5).map(Some).collect::<Vec<_>>());
    // The command recognises them by the joined rows.
    let args = ["--layers", "2", "--columns", "id=", "--input", "all.jsonl", "--output", "out.jsonl"];
    assert!(succeed("logits", folder, &args).contains("is complete"));

    // Without `id=` the command wants ids, which the plan says before any model work.
    let (code, _, said) = plan(&["a.jsonl", "b.jsonl"], &[]);
    assert!(code == Some(1) && said.contains("a.jsonl, line 1"), "{said}");
    let named = |id: usize| json!({"id": id, "prompt": "say"});
    folder.write("a.jsonl", &[named(1), named(2), named(3)]);
    folder.write("b.jsonl", &[named(4), named(2)]);
    let (code, _, said) = plan(&["a.jsonl", "b.jsonl"], &[]);
    assert!(code == Some(1) && said.contains("the id 2 occurs twice: a.jsonl row 1, and b.jsonl row 1"), "{said}");
}

/// In JSON lines a command does not number them, so the rows that go with joined results have their numbers.
#[test]
fn rows_of_tables_are_numbered_through_all_files_and_keep_their_numbers() {
    let folder = &Desk::new();
    for (name, text) in [
        ("a.csv", "instruction,response\nsay 0,zero\nsay 1,one\n"),
        ("empty.csv", ""),
        ("z.csv", "instruction,response\nsay 2,two\n"),
    ] {
        folder.put(name, text);
    }
    let plan = |input: &'static str| ["plan", "--overwrite", "--output", "plan.json", "--input", input, "--", "score"];
    refused("shards", folder, &plan("empty.csv"), 1, &["empty.csv has no rows"]);
    succeed("shards", folder, &plan("*.csv"));
    let (_, said) = finished("shards", folder, &words("run --plan plan.json --output parts --shard 0/1"));
    assert!(said.contains("a.csv: no row has an id: rows are numbered from 0"), "{said}");
    assert!(said.contains("z.csv: no row has an id: rows are numbered from 2"), "{said}");
    succeed("shards", folder, &words("export --plan plan.json --parts parts --output out.jsonl --rows all.jsonl"));
    for file in ["all.jsonl", "out.jsonl"] {
        let ids: Vec<_> = folder.rows(file).iter().map(|row| row["id"].as_u64()).collect();
        assert_eq!(ids, [Some(0), Some(1), Some(2)], "{file}");
    }
    let said = succeed("score", folder, &["--input", "all.jsonl", "--output", "out.jsonl"]);
    assert!(said.contains("is complete"), "{said}");
    // From another folder, it is said whose paths those of a plan are.
    let other = &Desk::new();
    let [plan, parts] = ["plan.json", "parts"].map(|name| folder.join(name).to_str().expect("text").to_owned());
    let check = ["check", "--plan", &plan, "--output", &parts];
    refused("shards", other, &check, 1, &["a.csv is not in this folder"]);
}

#[test]
fn a_report_says_what_the_check_of_a_command_found() {
    let folder = &desk();
    succeed("shards", folder, &words("plan --input in.jsonl --rows-per-shard 3 --output plan.json --quiet -- score"));
    succeed("shards", folder, &words("run --plan plan.json --output parts --shard 0/1 --quiet"));
    succeed("shards", folder, &words("check --plan plan.json --output parts --quiet --json check.json"));
    succeed("shards", folder, &words("export --plan plan.json --parts parts --output out.jsonl --quiet"));
    let page = |input: &str| {
        let args = ["--input", input, "--check", "check.json", "--output", "page.html", "--quiet", "--overwrite"];
        succeed("report", folder, &args);
        folder.text("page.html")
    };
    assert!(page("out.jsonl").contains("Complete: the check found the results of every row of the input once"));
    // Results of another run, as many.
    succeed("score", folder, &words("--input in.jsonl --carry response --output other.jsonl --quiet"));
    assert!(page("other.jsonl").contains("The check is of other results"));
}

/// What a part cannot tell, since it may be so of its rows alone.
#[test]
fn a_plan_refuses_what_no_row_has() {
    let folder = &desk();
    let row = |id: usize| json!({"id": id, "instruction": "Add 1 to 2.", "response": "3", "rubric": "Right?", "topic": "sums"});
    folder.write("z.jsonl", &[row(70), row(71)]);
    let plan = |more: &str| {
        let args = words("plan --input in.jsonl z.jsonl --rows-per-shard 3 --output plan.json --overwrite --");
        ran("shards", folder, &[&args[..], &words(more)].concat())
    };
    for (command, expected) in [
        ("score --carry topic,rubrik", "no row has the field \"rubrik\" that is to be carried"),
        ("label --aspects fluency --base-url http://h/v1 --api-model m --no-key --carry all,topics", "\"topics\""),
        ("score --cut respnse=200", "no row has a text in the field \"respnse\" that is to be cut"),
        ("score --cut response=200 --cut response=9:tail", "response=9:tail"),
        ("decide --model none", "in.jsonl: no row can be judged; the first is \"row 0\""),
    ] {
        let (code, said, stderr) = plan(command);
        assert!(code != Some(0) && stderr.contains(expected), "{command}: {said}{stderr}");
        assert!(!folder.join("plan.json").exists(), "{command}");
    }
    // One of the files is enough.
    let (code, _, stderr) = plan("score --carry topic,rubric --cut topic=4");
    assert_eq!(code, Some(0), "{stderr}");
}

/// Either is read by its own columns, and rows of both in one file by those of one.
#[test]
fn files_with_other_columns_are_named_before_any_work() {
    let folder = &Desk::new();
    folder.write("c.jsonl", &[json!({"id": 1, "instruction": "Add 1 to 2.", "response": "3"})]);
    folder.write("d.jsonl", &[json!({"id": 2, "question": "Add 2 to 2.", "answer": "4", "human": 5})]);
    let plan = words("plan --input c.jsonl d.jsonl --output plan.json --overwrite -- score");
    let (_, said) = finished("shards", folder, &plan);
    let both = "instruction=instruction|question,response=response|answer";
    assert!(
        said.contains("instruction is in the column \"instruction\" of c.jsonl and in \"question\" of d.jsonl"),
        "{said}"
    );
    assert!(said.contains(&format!("with --columns '{both}' both are read")), "{said}");
    let (_, said) = finished("shards", folder, &[&plan[..], &["--columns", both]].concat());
    assert!(!said.contains("is in the column"), "{said}");
    succeed("shards", folder, &words("run --plan plan.json --output parts --shard 0/1 --quiet"));
    succeed("shards", folder, &words("export --plan plan.json --parts parts --output out.jsonl --rows all.jsonl"));
    let said = succeed("score", folder, &["--input", "all.jsonl", "--output", "out.jsonl", "--columns", both]);
    assert!(said.contains("is complete: 2 of 2"), "{said}");
}

/// Damages a part, given its file, its run record and its own record.
type Damage = fn([&Path; 3]);

#[test]
fn a_damaged_part_is_made_again() {
    let folder = &desk();
    let plan = "plan --input in.jsonl --rows-per-shard 3 --output plan.json";
    succeed("shards", folder, &[words(plan), words("-- logits --columns prompt=instruction --layers 2")].concat());
    let args = words("run --plan plan.json --output parts --shard 0/1 --quiet");
    succeed("shards", folder, &args);
    let plan: CommandPlan = load(folder.join("plan.json")).expect("a plan");
    let parts = folder.join("parts");
    let part = plan.output(&parts, 1);
    let (run_record, record) = (record_path(&part), CommandPart::path(&parts, &plan, 1));
    let whole = fs::read(&part).expect("a part");
    let damages: [(&str, Damage, bool); 8] = [
        ("cut", |[part, ..]| fs::write(part, &fs::read(part).expect("a part")[..9]).expect("written"), true),
        ("emptied", |[part, ..]| fs::write(part, "").expect("written"), true),
        (
            "edited",
            |[part, ..]| {
                let text = fs::read_to_string(part).expect("a part");
                fs::write(part, text.replacen("row 3", "row 0", 1)).expect("written");
            },
            true,
        ),
        ("gone", |[part, ..]| fs::remove_file(part).expect("removed"), true),
        ("without its run record", |[_, run, _]| fs::remove_file(run).expect("removed"), true),
        ("with half a run record", |[_, run, _]| fs::write(run, "{\"format\": ").expect("written"), true),
        ("without its record", |[.., record]| fs::remove_file(record).expect("removed"), false),
        ("with an empty record", |[.., record]| fs::write(record, "").expect("written"), false),
    ];
    for (what, damage, is_made) in damages {
        damage([&part, &run_record, &record]);
        let (_, said) = finished("shards", folder, &args);
        assert_eq!(said.contains("shard 1: ") && said.contains("it is made again"), is_made, "{what}: {said}");
        assert!(fs::read(&part).expect("a part") == whole, "{what}");
        succeed("shards", folder, &words("check --plan plan.json --output parts --quiet"));
    }
    // What no run made stays.
    fs::remove_file(&run_record).expect("removed");
    fs::remove_file(&record).expect("removed");
    let said = "part-00001-of-00003.jsonl: it is a file that no command of these programs wrote";
    refused("shards", folder, &args, 2, &[said]);
    fs::remove_file(&part).expect("removed");
    // Rows that are others now are not read.
    let text = folder.text("in.jsonl");
    folder.put("in.jsonl", text.replacen("row 0", "row 9", 1));
    refused("shards", folder, &args, 1, &["in.jsonl: it is not the file that the plan was made of"]);
    assert!(!part.exists());
}

#[test]
fn how_tables_are_written_is_no_part_of_a_plan() {
    let folder = &desk();
    let files = words("--input in.parquet --rows-per-shard 4 --quiet --overwrite --output plan.json");
    for (command, behind) in
        [("--tables csv shards", &[][..]), ("shards", &["--tables", "csv"]), ("shards", &["--tables=csv"])]
    {
        succeed(command, folder, &[&["plan"][..], behind, &files[..]].concat());
        succeed("shards", folder, &words("run --plan plan.json --output parts --shard 0/1 --quiet"));
        let command = [&["plan", "--output", "c.json", "--overwrite", "--input", "in.jsonl"], behind, &["--", "score"]];
        succeed("shards", folder, &command.concat());
    }
}

#[test]
fn a_check_names_what_is_wrong_with_parts() {
    let folder = &desk();
    let plan = "plan --input in.jsonl --rows-per-shard 3 --output plan.json --quiet";
    let command = "-- logits --columns prompt=instruction --layers 2";
    succeed("shards", folder, &[words(plan), words(command)].concat());
    let run = || succeed("shards", folder, &words("run --plan plan.json --output parts --shard 0/1 --quiet"));
    run();
    let read: CommandPlan = load(folder.join("plan.json")).expect("a plan");
    let part = |shard| read.output(&folder.join("parts"), shard);
    let check = words("check --plan plan.json --output parts --quiet");
    let fails = |said: &str| _ = refused("shards", folder, &check, 1, &[said]);
    let edit = |path: PathBuf, edit: &dyn Fn(String) -> String| {
        fs::write(&path, edit(fs::read_to_string(&path).expect("a part"))).expect("written");
    };

    // A part that cannot be read hides no other problem.
    let text = fs::read_to_string(part(1)).expect("a part");
    let (record, kept) = (CommandPart::path(&folder.join("parts"), &read, 2), folder.join("kept.json"));
    fs::rename(&record, &kept).expect("renamed");
    edit(part(1), &|text| text.replacen("\n{", "\nx", 1));
    let said = ["is not the file that its record describes", "shard 1: parts/part-00001-of-00003.jsonl, line 2"];
    refused("shards", folder, &check, 1, &[&said[..], &["shard 2: no finished part"]].concat());
    fs::rename(&kept, &record).expect("renamed");
    fs::write(part(1), &text).expect("written");
    // A byte of a result.
    edit(part(1), &|text| text.replacen("row 3", "row 0", 1));
    fails("shard 1: parts/part-00001-of-00003.jsonl is not the file that its record describes");
    // As another program would that knows the format: the same id in two parts.
    let resign = |shard: usize, change: &dyn Fn(&mut RunRecord)| {
        let mut record: RunRecord = load(record_path(&part(shard))).expect("a record");
        let now = judge_data::InputFile::of(part(shard)).expect("the part");
        (record.outputs[0].bytes, record.outputs[0].blake3) = (now.bytes, Some(now.blake3));
        change(&mut record);
        save(record_path(&part(shard)), &record).expect("written");
    };
    resign(1, &|_| ());
    fails("the id \"row 0\" occurs twice: in.jsonl row 0, and in.jsonl row 3");
    fs::write(part(1), &text).expect("written");
    resign(1, &|record| _ = record.settings.insert("lens".to_owned(), json!("normed")));
    fails("was made otherwise than shard 0: settings.lens was \"raw\", is \"normed\"");
    resign(1, &|record| _ = record.settings.insert("lens".to_owned(), json!("raw")));
    // A part that is gone, and one of another plan.
    fs::remove_file(CommandPart::path(&folder.join("parts"), &read, 2)).expect("removed");
    fails("shard 2: no finished part parts/part-00002-of-00003.jsonl");
    folder.put("parts/part-00000-of-00009.json", "{}");
    fails("part-00000-of-00009.json is of no part of this plan");
    fs::remove_file(folder.join("parts/part-00000-of-00009.json")).expect("removed");
    run();
    succeed("shards", folder, &check);
    // Rows that are others now.
    edit(folder.join("in.jsonl"), &|text| text.replacen("row 0", "row 9", 1));
    fails("in.jsonl has changed since it was planned");
}

/// The lines of `docs/clusters.md` for labels and for selection, as they are printed.
#[test]
fn the_lines_of_the_documentation_run() {
    const PAGE: &str = include_str!("../../../../docs/clusters.md");
    let section =
        PAGE.split("## Any other command").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the section");
    let blocks: Vec<&str> = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    let folder = &desk();
    fs::rename(folder.join("in.jsonl"), folder.join("rows.jsonl")).expect("renamed");
    let server = Server::start(|_, _| Reply::text("{\"reason\": \"so\", \"score\": 3}"));
    for line in blocks.concat().lines() {
        let line = line.replace("http://127.0.0.1:8000/v1", &server.base_url).replace("25000", "3");
        let words = words(&line);
        assert_eq!(words[0], "judge", "{line}");
        succeed(words[1], folder, &words[2..]);
    }
    assert_eq!(folder.rows("labels.jsonl").len(), 2 * ROWS);
    assert_eq!(folder.rows("best.jsonl").len(), 1);
}

#[test]
fn what_has_no_parts_is_refused() {
    let folder = &desk();
    let plan = |before: &[&str], command: &[&str]| {
        let args = [&["plan", "--input", "in.jsonl", "--output", "plan.json"], before, &["--"], command].concat();
        let (_, said) = ended("shards", folder, &args, 2);
        said
    };
    let commands = "agree,grade,try,report,calibrate,drift,bench,bias,serve,fit,probe train,probe apply,tune,sft-evaluate,\
                    merge,speed,stream,rows,doctor";
    for command in commands.split(',') {
        let said = plan(&[], &words(command));
        assert!(said.contains(&format!("`judge {command}` makes no rows of rows, so it has no parts")), "{said}");
    }
    assert!(plan(&[], &["probe"]).contains("Usage: judge probe [OPTIONS] <COMMAND>"));
    assert!(plan(&[], &["label", "--json", "x.json"]).contains("--json: it is not for the parts"));
    assert!(plan(&[], &["score", "--no-such-option"]).contains("--no-such-option"));
    assert!(plan(&["--points", "7"], &["score"]).contains("put the options of a command behind it"));
    for option in ["--fit", "--require", "--min-coverage", "--junit"] {
        assert!(plan(&[], &["decide", option, "x"]).contains(&format!("{option}: it is not for the parts")));
    }
    let said = plan(&[], &["compare", "--old", "in.jsonl"]);
    assert!(said.contains("`judge compare --old in.jsonl` reads all rows together, so it has no parts"), "{said}");
    // A part would keep what a model has read.
    assert!(plan(&[], &words("select --baseline longest")).contains("found --baseline longest, for which none does"));
    assert!(plan(&[], &words("select --top 2")).contains("--top 2 is not between 0 and 1"));
    assert!(!folder.join("plan.json").exists());
}
