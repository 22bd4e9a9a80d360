"""Writes tests/data/special.txt: correctly rounded values of special functions, which a test in compiler/ops holds theirs to.

    pip install mpmath
    python3 tests/data/special.py > tests/data/special.txt

One value a line: the function, its operands and the result, as the bits of f64 in hexadecimal. Computed with 60 digits.
"""

import random
import struct

import mpmath as mp

mp.mp.dps = 60
rng = random.Random(7)


def bits(x):
    return f"{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016x}"


def upper(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def lower(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def by_parameter(a, x):
    """The derivative of the lower function by its parameter, by the series of the function, term by term."""
    with mp.workdps(60 + int(x)):
        term = x**a * mp.exp(-x) / mp.gamma(a + 1)
        ln, total, n = mp.log(x), mp.mpf(0), 0
        while n < 10 or abs(term) > mp.mpf(10) ** -50 * abs(total):
            total += term * (ln - mp.digamma(a + n + 1))
            n += 1
            term *= x / (a + n)
        return total


def beta_density(a, b, x):
    return mp.exp((a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x)) / mp.beta(a, b)


def spread(lo, hi, n=24):
    """Numbers of every size in between."""
    return [float(mp.mpf(lo) * (mp.mpf(hi) / lo) ** rng.random()) for _ in range(n)]


def even(lo, hi, n=24):
    return [lo + (hi - lo) * rng.random() for _ in range(n)]


both = lambda xs: xs + [-x for x in xs]
positive = spread(1e-300, 1e300) + spread(1e-3, 100)
near = both(even(0, 6) + spread(1e-20, 1))
parameters = [(a, x) for a in spread(1e-6, 1e4, 40) + even(0.1, 20, 30) for x in [a * rng.uniform(0.3, 2.5), rng.uniform(0, 3)]]

UNARY = {
    "asinh": (mp.asinh, both(positive)),
    "acosh": (mp.acosh, [1 + x for x in spread(1e-10, 10)] + spread(2, 1e300)),
    "atanh": (mp.atanh, both(even(0, 1) + spread(1e-20, 1))),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), both(positive)),
    "erfc": (mp.erfc, near + even(0, 26)),
    "erfinv": (mp.erfinv, both(even(0, 1) + [1 - x for x in spread(1e-15, 0.5)] + spread(1e-20, 1))),
    "ndtr": (mp.ncdf, near + even(-37, 0)),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)) if x < 0 else mp.log1p(-mp.ncdf(-x)), near + even(-37, 0) + [-50.0, -200.0, -1e5, 8.0, 20.0]),
    "ndtri": (
        lambda p: -mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(p)) if p > 1e-20 else mp.findroot(
            lambda z: mp.log(mp.ncdf(z)) - mp.log(p), -mp.sqrt(-2 * mp.log(p)) + 0.1),
        even(0, 1) + spread(1e-15, 0.5) + [1 - x for x in spread(1e-10, 0.4)] + spread(1e-300, 1e-20, 8),
    ),
    "gamma": (mp.gamma, [x for x in even(0, 171) + even(0, 12) + even(-20, 0) + spread(1e-20, 1)]),
    "lgamma": (lambda x: mp.log(abs(mp.gamma(x))) if x < 1e5 else mp.loggamma(x), positive + even(0.5, 12, 48)),
    "digamma": (mp.digamma, [x for x in positive if x < 1e15] + even(0.5, 12, 48)),
    "i0": (lambda x: mp.besseli(0, x), both(even(0, 20) + spread(1e-10, 700))),
    "i1": (lambda x: mp.besseli(1, x), both(even(0, 20) + spread(1e-10, 700))),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(mp.mpf(x))), both(even(0, 20) + spread(1e-10, 1e3))),
    "i1e": (lambda x: mp.besseli(1, x) * mp.exp(-abs(mp.mpf(x))), both(even(0, 20) + spread(1e-10, 1e3))),
    "sinc": (lambda x: mp.sincpi(x), both(even(0, 5) + spread(1e-12, 1))),
    "logit": (lambda p: mp.log(p) - mp.log1p(-mp.mpf(p)), even(0, 1, 48) + spread(1e-20, 1) + [0.5 + x for x in spread(1e-12, 0.1)]),
    "softsign": (lambda x: x / (1 + abs(mp.mpf(x))), near),
    "log_sigmoid": (lambda x: -mp.log1p(mp.exp(-mp.mpf(x))), near + even(-700, 700)),
}  # fmt: skip
BINARY = {
    "polygamma": (lambda n, x: mp.psi(int(n), x), [(float(n), x) for n in (1, 2, 3, 5) for x in spread(1e-3, 1e4, 12)]),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), [(a, b) for a in spread(1e-3, 1e5, 16) for b in spread(1e-2, 1e4, 4)]),
    "gammainc": (lower, parameters),
    "gammaincc": (upper, parameters),
    "gammainc_dx": (lambda a, x: mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a)), parameters),
    "gammainc_da": (by_parameter, [(a, x) for a, x in parameters if x < 300]),
    "logaddexp": (lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), list(zip(even(-30, 30), even(-30, 30)))),
    "xlogy": (lambda a, b: a * mp.log(b), list(zip(near, positive))),
    "xlog1py": (lambda a, b: a * mp.log1p(mp.mpf(b)), list(zip(near, positive))),
}
def beta_by_parameter(a, b, x):
    with mp.workdps(80):
        return mp.diff(lambda p: mp.betainc(p, b, 0, x, regularized=True), a)


TERNARY = {
    "betainc": (
        lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        [(a, b, x) for a, b in zip(spread(1e-2, 300, 40), spread(1e-2, 300, 40)) for x in [rng.random(), min(0.99, a / (a + b) * rng.uniform(0.5, 1.5))]],
    ),
    "betainc_da": (
        beta_by_parameter,
        [(a, b, x) for a, b in zip(spread(1e-1, 50, 20), spread(1e-1, 50, 20)) for x in [rng.random(), a / (a + b)]],
    ),
    "betainc_dx": (beta_density, [(a, b, x) for a, b in zip(spread(1e-2, 1e3), spread(1e-2, 1e3)) for x in [rng.random(), a / (a + b)]]),
}  # fmt: skip


def main():
    for table in (UNARY, BINARY, TERNARY):
        for name, (f, operands) in table.items():
            for args in operands:
                args = args if isinstance(args, tuple) else (args,)
                y = f(*[mp.mpf(a) for a in args])
                # What is no normal number is left out: there the bound is one of absolute error.
                if y == 0 or mp.mpf(2) ** -1020 < abs(y) < mp.mpf(2) ** 1023:
                    print(name, *[bits(a) for a in args], bits(y))


main()
