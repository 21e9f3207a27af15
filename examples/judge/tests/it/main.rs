//! The program as people run it: command lines, files, exit codes.

mod agreement;
mod architecture;
mod calibrate;
mod carried;
mod command_lines;
mod complete;
mod console;
mod data_selection;
mod emotional_understanding;
mod encoders;
mod foreign_outputs;
mod hhh;
mod inspector_train;
mod kill;
mod labels;
mod merge_adapter;
mod mt_bench;
mod newcomer;
mod odd_rows;
mod options;
mod pair_weights;
mod perturbed;
mod probes;
mod program;
mod prompt_tokens;
mod prompted;
mod published;
mod rank_answers;
mod readme;
mod report;
mod rewards;
mod score_files;
mod score_stream;
mod self_knowledge;
#[path = "../../../../crates/judge-models/tests/server/mod.rs"]
mod server;
