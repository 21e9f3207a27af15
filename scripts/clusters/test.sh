#!/usr/bin/env bash
# Runs the glue of examples/clusters, Ray, Spark, GNU parallel and Slurm, with workers, actors, executors, nodes and tasks that are killed.
#
#     scripts/clusters/test.sh [limits|glue|ray|spark|parallel|slurm …]
#
# Installs the packages of requirements.txt into an environment that is thrown away (some 1.5 GB). Needs Python, Java 17 for Spark, and the network for the installation.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet -r "$checkout/scripts/clusters/requirements.txt"
cargo build --locked --release --manifest-path "$checkout/Cargo.toml" -p judge
"$environment/bin/python" "$checkout/scripts/clusters/test_clusters.py" "${CARGO_TARGET_DIR:-$checkout/target}/release/judge" "$@"
