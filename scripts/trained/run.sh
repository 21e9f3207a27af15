#!/usr/bin/env bash
# Is this model worth it? Its readings of rows, of pairs and of formats, as docs/trained.md has them, in one file of results/.
#
#     JUDGE_TEST_DATA=FOLDER scripts/trained/run.sh MODEL OUTPUT [results/trained-MODEL.json]
#
# MODEL is a folder or a GGUF file. Stopped, the same command goes on. On two cores a model of 1.5 billion parameters takes hours to a day.
set -euo pipefail
if [ $# -lt 2 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
model=$1 output=$2
results=${3:-$output/results.json}
here=$(cd "$(dirname "$0")" && pwd)
cargo build --locked --release -p judge --manifest-path "$here/../../Cargo.toml"
mkdir -p "$output"
for part in readings pairs formats; do
    python3 "$here/$part.py" "$output/$part" --model "$model" --results "$results" | tee "$output/$part.md"
done
echo "the figures are in $results; please add them to results/, so that the model stands beside others" >&2
