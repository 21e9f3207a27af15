# torch==2.15.0 transformers==5.24.0 peft==0.21.2
"""Loads folders that training has written with transformers and PEFT, and compares their losses with the runs of
make_training_fixtures.py.

    JUDGE_TUNED_OUT=OUT cargo test -p judge-models --features train --lib train::tests::parity
    python scripts/parity/check_tuned.py OUT

Every folder of OUT is the end of the run of its name. Its loss must be the last of the run's, within 1e-4 of it.
"""

import json
import sys
from pathlib import Path

import torch
from make_training_fixtures import ROOT, STEPS, count, load_base, of_example
from peft import PeftModel
from safetensors.torch import load_file


def main():
    folders = sorted(path for path in Path(sys.argv[1]).iterdir() if path.is_dir())
    assert folders, f"no folders in {sys.argv[1]}"
    for folder in folders:
        case = json.loads((ROOT / f"{folder.name}.json").read_text())
        expected = load_file(ROOT / f"{folder.name}.safetensors")["loss"][STEPS].item()
        if "lora" in case:
            model = PeftModel.from_pretrained(load_base(case, None), folder).eval()
        else:
            model = load_base(case, folder).eval()
        batch = case["batches"][STEPS % len(case["batches"])]
        with torch.no_grad():
            found = sum(of_example(model, case, example, count(case, batch)).item() for example in batch)
        print(f"{folder.name}: {found:.6f}, expected {expected:.6f}")
        if abs(found - expected) > 1e-4 * max(abs(expected), 0.1):
            raise SystemExit(f"{folder.name} is another model")


if __name__ == "__main__":
    main()
