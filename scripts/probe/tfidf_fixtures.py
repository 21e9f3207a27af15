# scikit-learn==1.9.1 numpy==2.4.6
"""Writes the fixture of judge-probe's TF-IDF weights: what scikit-learn's TfidfVectorizer makes of a few texts.

    python scripts/probe/tfidf_fixtures.py
"""

import json
import pathlib

from sklearn.feature_extraction.text import TfidfVectorizer

from versions import require

VERSIONS = {"sklearn": "1.9.1", "numpy": "2.4.6"}
require(VERSIONS)

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-probe/tests/fixtures/tfidf.json"

TEXTS = [
    "First, 12 apples cost 3 * 12 = 36 dollars. So the answer is 36.",
    "the Answer is: 36!! The the THE",
    "Step_1: x = 4; step_2: y = x**2 = 16, a b c d",
    "",
    "Ça coûte 3,50 € chez l'épicier; e\u0301te\u0301 naïve Straße STRASSE",
    "ΟΔΥΣΣΕΥΣ ΟΔΟΣ και İstanbul ﬁn",
    "東京は大きい 数字 二〇二六 ½ m² x² ²³ Ⅷ٣٤",
    "snake_case __init__ 0x1F 3.14 1e-5 don't",
    "line\nbreak\ttab\u00a0nbsp\u2003em-dash—word\u200bzero\u00adsoft",
    "😀😀 ok ok 👍🏽",
]
UNSEEN = ["the apples and the answer", "nothing known here", "STEP_1 straße 36"]

cases = []
for min_df in (1, 2):
    vectorizer = TfidfVectorizer(min_df=min_df).fit(TEXTS)
    cases.append({
        "min_df": min_df, "words": vectorizer.get_feature_names_out().tolist(), "idf": vectorizer.idf_.tolist(),
        "weights": [[[int(i), float(v)] for i, v in zip(row.indices, row.data)] for row in vectorizer.transform(TEXTS + UNSEEN)],
    })

header = json.dumps({"script": "scripts/probe/tfidf_fixtures.py", "versions": VERSIONS, "texts": TEXTS, "unseen": UNSEEN})[:-1]
OUT.write_text(header + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n")
print(len(cases), "cases", OUT.stat().st_size, "bytes", cases[0]["words"])
