# matplotlib==3.11.2
"""Draws the pictures of docs/trained.md from the figures of results/.

    python scripts/trained/figures.py [FOLDER]

pairs     accuracy of each layer on sets of pairs, both orders averaged, with 95 % intervals of the larger model; layer 0, where every pair is a
          tie, is left out
formats   agreement of each layer between four formats of one question

The pictures go to FOLDER, docs by default. Colours are those of Okabe and Ito, which people of all kinds of sight tell apart, and lines differ
in their marks too.
"""

import argparse
import json
import pathlib

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {"Qwen2.5-Coder-1.5B": "qwen2.5-coder-1.5b-instruct", "SmolLM2-135M": "smollm2-135m-instruct"}
# What stands for a set in every picture.
STYLES = {
    "PandaLM": ("#0072B2", "o"),
    "LLMBar": ("#D55E00", "s"),
    "JudgeBench, GPT-4o": ("#009E73", "^"),
    "JudgeBench, Claude 3.5 Sonnet": ("#CC79A7", "v"),
    "RM-Bench, chat": ("#666666", "D"),
    "MT-bench": ("#0072B2", "o"),
    "emotions": ("#D55E00", "s"),
    "QAGS": ("#009E73", "^"),
    "FaithBench": ("#666666", "D"),
}


def panels(found, part, first, figure, what, chance, banded):
    """One panel for each model: a line for each set, of `figure(layer)` from layer `first` on, with its interval where `banded` says so."""
    fig, axes = plt.subplots(1, len(found), figsize=(8.4, 3.4), sharey=True, layout="constrained")
    for axis, (name, results) in zip(axes, found.items()):
        for which in (which for which in STYLES if which in results[part]):
            colour, mark = STYLES[which]
            of_set = [layer for layer in results[part][which]["layers"] if layer["layer"] >= first]
            layers = [layer["layer"] for layer in of_set]
            found_in = [figure(layer) for layer in of_set]
            axis.plot(layers, [one["estimate"] for one in found_in], color=colour, marker=mark, markersize=3, linewidth=1.2, label=which)
            if name in banded:
                # Where all rows are ties there is no interval.
                low, high = ([one.get(end, one["estimate"]) for one in found_in] for end in ("low", "high"))
                axis.fill_between(layers, low, high, color=colour, alpha=0.12, linewidth=0)
        axis.axhline(chance, color="black", linewidth=0.8, linestyle="--")
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("layer")
        axis.legend(fontsize=7, frameon=False, loc="best")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(what)
    return fig


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=ROOT / "docs")
    args = parser.parse_args()
    if matplotlib.__version__ != "3.11.2":
        raise SystemExit(f"matplotlib 3.11.2 is needed, found {matplotlib.__version__}")
    # The same figures give the same file.
    plt.rcParams.update({"svg.hashsalt": "trained", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    found = {name: json.loads((ROOT / f"results/trained-{file}.json").read_text()) for name, file in MODELS.items()}
    for name, drawn in {
        "pairs": panels(found, "pairs", 1, lambda layer: layer["accuracy_mean_log_odds"], "accuracy, both orders averaged", 0.5, ["Qwen2.5-Coder-1.5B"]),
        "formats": panels(found, "formats", 0, lambda layer: layer["agreement"], "agreement between four formats", 0.0, list(MODELS)),
    }.items():
        drawn.savefig(args.folder / f"trained-{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
