# scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"""Writes crates/judge-metrics/tests/fixtures/distribution.json: tails and quantiles with 40 digits by mpmath.

    python scripts/metrics/distribution_fixtures.py

The incomplete beta function is computed from its continued fraction, the incomplete gamma function from its power series and
Legendre's continued fraction; where mpmath's own functions finish, they are compared. Quantiles are refined from
SciPy's by secant steps. The binomial test is scipy.stats.binomtest's, its rule summed term by term with
40 digits for n up to 5000.
"""

import json
from fractions import Fraction

import mpmath as mp
import numpy as np
from scipy import stats

from common import require, write_lines

VERSIONS = require()
mp.mp.dps = 40
TINY = 1e-290


def beta_lower(a, b, x, y):
    """DLMF 8.17.22 by its convergents, good where x lies below the mean."""
    before, here = (mp.mpf(1), mp.mpf(0)), (mp.mpf(1), mp.mpf(1))
    value, m = mp.mpf(0), 0
    while True:
        for d in (-(a + m) * (a + b + m) / ((a + 2 * m) * (a + 2 * m + 1)), (m + 1) * (b - m - 1) / ((a + 2 * m + 1) * (a + 2 * m + 2))):
            before, here = here, (here[0] + d * x * before[0], here[1] + d * x * before[1])
        m += 1
        last, value = value, here[1] / here[0]
        if abs(value - last) < abs(value) * mp.mpf(10) ** -30:
            log = a * mp.log(x) + b * mp.log(y) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
            return mp.exp(log) / a * value


def beta(a, b, x, y=None):
    """(I_x(a, b), 1 − I_x(a, b))"""
    a, b, x = mp.mpf(a), mp.mpf(b), mp.mpf(x)
    y = 1 - x if y is None else mp.mpf(y)
    if x * (a + b) <= a:
        lower = beta_lower(a, b, x, y)
        return lower, 1 - lower
    upper = beta_lower(b, a, y, x)
    return 1 - upper, upper


def t_tail(t, dof):
    t, dof = mp.mpf(t), mp.mpf(dof)
    s = dof + t * t
    return beta(dof / 2, mp.mpf(1) / 2, dof / s, t * t / s)


def f_upper(x, d1, d2):
    x, d1, d2 = mp.mpf(x), mp.mpf(d1), mp.mpf(d2)
    s = d2 + d1 * x
    return beta(d1 / 2, d2 / 2, d1 * x / s, d2 / s)[1]


def root(function, start):
    """Of a smooth function, from a start good to some digits."""
    w, function = [mp.mpf(start), mp.mpf(start) + mp.mpf(10) ** -7], mp.memoize(function)
    for _ in range(8):
        difference = function(w[-1]) - function(w[-2])
        if difference == 0 or abs(w[-1] - w[-2]) < mp.mpf(10) ** -20:
            break
        w.append(w[-1] - function(w[-1]) * (w[-1] - w[-2]) / difference)
    assert abs(function(w[-1])) < mp.mpf(10) ** -18, (w, function(w[-1]))
    return w[-1]


def check(ours, theirs, rel=1e-25):
    assert abs(ours - theirs) <= rel * abs(theirs), (ours, theirs)


check(beta(2.5, 0.5, 0.3)[0], mp.betainc(2.5, 0.5, 0, 0.3, regularized=True))
check(beta(40, 7.5, 0.99)[1], mp.betainc(40, 7.5, 0.99, 1, regularized=True))

rows = []


def row(name, arguments, value):
    value = float(value)
    if value > TINY or value < 0 or name == "binomial_two_sided":
        rows.append([name, [float(argument) for argument in arguments], value])


for z in (-38.0, -20.5, -6.0, -1.96, -1e-9, 0.0, 0.3, 1.0, 2.5, 8.0):
    row("normal_cdf", [z], mp.ncdf(z))
    row("normal_tail", [z], mp.erfc(abs(mp.mpf(z)) / mp.sqrt(2)))
for p in (1e-280, 1e-30, 1e-9, 0.001, 0.025, 0.2, 0.25, 0.3, 0.4999999, 0.5, 0.51, 0.7, 0.75, 0.9, 0.975, 0.995, 1 - 1e-12):
    row("normal_quantile", [p], mp.sqrt(2) * mp.erfinv(2 * mp.mpf(p) - 1) if p > 1e-10 else root(lambda z: mp.log(mp.ncdf(z) / mp.mpf(p)), stats.norm.ppf(p)))
for level in (1e-9, 0.1, 0.49, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999999):
    row("normal_two_sided_quantile", [level], mp.sqrt(2) * mp.erfinv(mp.mpf(level)))
for dof in (0.1, 0.5, 1, 2, 3, 7.5, 30, 317, 1e4, 1e6, 1e9, 1e12):
    for t in (1e-9, 0.01, 0.5, 1, 1.96, 3, 8, 25, 1e4):
        if t * t < 4000 or dof < 40:
            row("student_t_tail", [t, dof], t_tail(t, dof)[0])
for dof in (0.3, 1, 2, 3.5, 10, 317, 1e5, 1e9):
    for p in (1e-12, 0.005, 0.025, 0.3, 0.4999, 0.6, 0.95, 0.975, 0.999999):
        q, centre = 2 * min(mp.mpf(p), 1 - mp.mpf(p)), abs(2 * mp.mpf(p) - 1)
        log = root(lambda s: -mp.log(t_tail(mp.exp(s), dof)[0] / q) if q < 0.5 else mp.log(t_tail(mp.exp(s), dof)[1] / centre),
                   np.log(abs(stats.t.ppf(p, dof))))
        row("student_t_quantile", [p, dof], mp.sign(mp.mpf(p) - 0.5) * mp.exp(log))
shapes = [(0.5, 0.5), (0.01, 3), (1, 1), (1, 50), (2, 3), (17.25, 0.75), (40, 60), (1000.5, 0.5), (3, 5e5), (5e5, 5e5), (1e5, 2.5e6)]
for a, b in shapes:
    for p in (1e-12, 0.025, 0.5, 0.8, 0.999):
        def log_cdf(w):
            lower, upper = beta(a, b, 1 / (1 + mp.exp(-w)), 1 / (1 + mp.exp(w)))
            return mp.log(lower / mp.mpf(p)) if p <= 0.5 else -mp.log(upper / (1 - mp.mpf(p)))
        start = stats.beta.ppf(p, a, b)
        if start > 0:
            row("beta_quantile", [a, b, p], 1 / (1 + mp.exp(-root(log_cdf, np.log(start) - np.log1p(-start)))))
for d1, d2 in ((1, 1), (2, 7), (79, 237), (4, 1e6), (1e5, 3), (1e5, 1e5), (0.5, 20)):
    for x in (1e-6, 0.3, 0.99, 1.0, 1.02, 2.5, 30):
        row("f_sf", [x, d1, d2], f_upper(x, d1, d2))
    for p in (1e-6, 0.025, 0.5, 0.975, 0.99999):
        q = 1 - mp.mpf(p)
        function = lambda w: -mp.log(f_upper(mp.exp(w), d1, d2) / q) if p > 0.5 else mp.log((1 - f_upper(mp.exp(w), d1, d2)) / mp.mpf(p))
        row("f_quantile", [p, d1, d2], mp.exp(root(function, np.log(stats.f.ppf(p, d1, d2)))))


def rule(k, n, p):
    """binomtest's rule, summed term by term with 40 digits."""
    if k == Fraction(p) * n:
        return 1.0
    term = [mp.mpf(1)]
    for i in range(n):
        term.append(term[-1] * (n - i) / (i + 1))
    p = mp.mpf(p)
    up, down = [mp.mpf(1)], [mp.mpf(1)]
    for i in range(n):
        up.append(up[-1] * p)
        down.append(down[-1] * (1 - p))
    probabilities = [term[i] * up[i] * down[n - i] for i in range(n + 1)]
    limit = probabilities[k] * (1 + mp.mpf(10) ** -7)
    return float(mp.fsum(q for q in probabilities if q <= limit))


for n in (1, 2, 5, 20, 41, 200, 5000, 1_000_000):
    for p in (0.5, 0.1, 0.37, 1 / 3, 0.0, 1.0, 0.999):
        for share in (0.0, 0.08, 0.33, 0.45, 0.5, 0.501, 0.56, 0.9, 1.0):
            k = round(share * n)
            value = float(stats.binomtest(k, n, p).pvalue)
            if n <= 5000:
                exact = rule(k, n, p)
                assert abs(exact - value) <= 1e-9 * exact + 1e-300, (k, n, p, exact, value)
                value = exact
            elif value < 1e-10:
                continue
            row("binomial_two_sided", [k, n, p], value)

rows = [list(r) for r in {json.dumps(r): r for r in rows}.values()]
write_lines("distribution.json", VERSIONS, cases=rows)
