#!/usr/bin/env bash
# Runs the glue of examples/clusters, and Ray and Spark with it, against workers, actors and executors that are killed.
#
#     scripts/clusters/test.sh [glue|ray|spark …]
#
# Installs the packages of requirements.txt into an environment that is thrown away (some 1.5 GB). Needs Python, Java 17 for Spark, and the network for the installation.
set -euo pipefail
checkout=$(cd "$(dirname "$0")/../.." && pwd)
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet -r "$checkout/scripts/clusters/requirements.txt"
cargo build --locked --release --manifest-path "$checkout/Cargo.toml" -p judge-examples --example score_stream
"$environment/bin/python" "$checkout/scripts/clusters/test_glue.py" "${CARGO_TARGET_DIR:-$checkout/target}/release/examples" "$@"
