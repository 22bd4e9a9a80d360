//! Random texts: nothing panics, hangs or loses a byte, and what can be formatted keeps its tree.

use crate::{format, highlight, needs_more, parse_item, show, split, token::lex};
use std::time::{Duration, Instant};
use tessera_base::ItemId;

/// xorshift64*: small, and the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const WORDS: &[&str] = &[
    "def ",
    "struct ",
    "if ",
    "elif ",
    "else",
    "for ",
    " in ",
    "while ",
    "return ",
    "with ",
    " as ",
    "import ",
    "from ",
    "lambda ",
    "not ",
    " and ",
    " or ",
    " is ",
    "pass",
    "break",
    "assert ",
    "class ",
    "try",
    "yield ",
    "None",
    "True",
    "f",
    "x",
    "größe",
    "Tensor",
    "1",
    "2.5e-3",
    "0x",
    "3x",
    ".5",
    "'a'",
    "\"b",
    "'''",
    "\"\"\"",
    "f'",
    "f\"{",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    ";",
    ".",
    "...",
    "->",
    "=",
    "==",
    "+",
    "-",
    "*",
    "**",
    "/",
    "@",
    "<",
    "!",
    "&&",
    ":=",
    "+=",
    "#c",
    "\\",
    "\n",
    "\n",
    "\n",
    "\n    ",
    "\n    ",
    "\n\t",
    "\n        ",
    " ",
    "  ",
    "\r\n",
    "\\\n",
    "$",
    "“",
    "\u{FEFF}",
    "\u{0}",
    "😀",
];

const PROGRAM: &str = "@op.kernel
def f(x: Tensor[B@dp, 4*D, f32], *, eps=1e-5) -> (A) -> B:
    '''Doc.'''
    z = x @ w + eps * (x.sum(axis=-1) - 3.0)  # note
    for i, j in range(10):
        if not i % 2 == 0 and z[i, :3] < 0.5: continue
        else:
            print(f\"{i!r:>{j}} {z=}\", *q); a, b = b, a

    # end
    return [a if b else c for a in x if a], {'k': lambda u, v=1: u}
struct S[D]:
    x: float = 1
y = (
    1,  # one
    # own
    [2, 3]
)
while y: y += \"\"\"s
t\"\"\"
";

/// A random expression; `inside`: in brackets, where lines may end and comments stand.
fn expression(random: &mut Random, depth: usize, inside: bool) -> String {
    let name = |random: &mut Random| "abcdefghijklmnopqrstuvwxyz"[..1 + random.below(26)].to_string();
    let space = |random: &mut Random| match random.below(12) {
        0 if inside => "\n",
        1 if inside => " # c\n",
        2 if inside => "\n  # own\n\n",
        3 => "",
        _ => " ",
    };
    if depth == 0 || random.below(6) == 0 {
        let name = name(random);
        return [name.as_str(), "1.5", "'s'", "f'{x}'", "-1", "..."]
            [random.below(12).min(5).saturating_sub(random.below(5))]
        .to_string();
    }
    let (a, b) = (space(random), space(random));
    let e = |random: &mut Random, inside: bool| expression(random, depth - 1, inside);
    let list = |random: &mut Random| {
        let count = random.below(5);
        let mut out = String::new();
        for n in 0..count {
            out += &expression(random, depth - 1, true);
            out += ["", "\n", " # t\n"][random.below(6).min(2)];
            out += if n + 1 < count || random.below(4) == 0 { "," } else { "" };
            out += ["", "\n", " # u\n", "\n # v\n"][random.below(8).min(3)];
        }
        out
    };
    match random.below(11) {
        0 => format!("({a}{}{b})", e(random, true)),
        1 => format!("[{a}{}]", list(random)),
        2 => format!("{}({b}{})", name(random), list(random)),
        3 => format!("{}[{a}{}{b}:{}]", name(random), e(random, true), e(random, true)),
        4 => format!("{}({}={})", name(random), name(random), e(random, true)),
        5 => format!("[{}{a}for{b} x, y in{a} {}{b}]", e(random, true), name(random)),
        6 => format!("{{{a}'k':{b}{}}}", e(random, true)),
        7 => format!("({}) if ({}) else {}", e(random, true), e(random, true), name(random)),
        8 => format!("{}.{}({})", name(random), name(random), list(random)),
        _ => {
            let sign = random.pick(&["+", "*", "@", "**", "and ", "or ", "<", "|", "not in "]);
            format!("{} {a} {sign} {b} {}", e(random, inside), e(random, inside))
        }
    }
}

/// A tree without its places.
fn tree(text: &str) -> String {
    show(&parse_item(text, ItemId(0)).stmts)
}

fn check(text: &str) {
    let covered: usize = lex(text).iter().map(|t| t.range().len()).sum();
    assert_eq!(covered, text.len(), "{text:?}");
    let mut end = 0;
    for item in split(text).items {
        assert!(item.range.start >= end, "{text:?}");
        end = item.range.end;
        let part = &text[item.range.start as usize..item.range.end as usize];
        for diagnostic in parse_item(part, ItemId(0)).diagnostics {
            let labels = diagnostic.labels.iter().map(|l| l.span);
            let edits = diagnostic.fixes.iter().flat_map(|f| f.edits.iter().map(|e| e.span));
            for span in labels.chain(edits).chain([diagnostic.span]) {
                let (start, end) = (span.start as usize, span.end as usize);
                assert!(
                    start <= end && part.is_char_boundary(start) && part.is_char_boundary(end),
                    "{part:?}: {diagnostic:?}"
                );
            }
        }
    }
    highlight(text);
    needs_more(text);
    if let Ok(once) = format(text) {
        assert_eq!(tree(text), tree(&once), "{text:?}\n{once}");
        assert_eq!(format(&once).as_ref(), Ok(&once), "{text:?}");
    }
}

/// Runs `make` over growing seeds for a while.
fn run(milliseconds: u64, make: impl Fn(&mut Random) -> String) {
    let start = Instant::now();
    for seed in 1u64.. {
        let text = make(&mut Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let before = Instant::now();
        check(&text);
        assert!(before.elapsed() < Duration::from_secs(5), "too slow: {text:?}");
        if start.elapsed() > Duration::from_millis(milliseconds) {
            break;
        }
    }
}

#[test]
fn random_bytes() {
    run(100, |random| {
        let bytes: Vec<u8> = (0..random.below(200))
            .map(|_| if random.below(4) == 0 { random.below(256) } else { 32 + random.below(95) } as u8)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    });
}

#[test]
fn token_soup() {
    run(200, |random| {
        let count = random.below(60);
        (0..count).map(|_| random.pick(WORDS)).collect()
    });
}

#[test]
fn programs_with_damage() {
    run(300, |random| {
        let mut text = PROGRAM.to_string();
        for _ in 0..1 + random.below(3) {
            let tokens = lex(&text);
            let at = tokens[random.below(tokens.len())].range();
            let other = tokens[random.below(tokens.len())].text(&text).to_string();
            let word = random.pick(WORDS).to_string();
            match random.below(4) {
                0 => text.replace_range(at, ""),
                1 => text.replace_range(at, &other),
                2 => text.replace_range(at, &word),
                _ => text.insert_str(at.start, &word),
            }
        }
        text
    });
}

#[test]
fn long_expressions() {
    run(200, |random| {
        let depth = 1 + random.below(5);
        let (a, b) = (expression(random, depth, false), expression(random, 2, false));
        ["x = A\n", "def f(a=A): return B\n", "if A: x[B] = A\n", "f(A, B)\n", "assert A, B # c\n"][random.below(5)]
            .replace('A', &a)
            .replace('B', &b)
    });
}
