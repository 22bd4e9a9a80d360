//! The text form of a contraction.

use std::fmt;
use tessera_base::Code;

/// A named dim: a letter, or a dim of the ellipsis counted from the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Label(u32);

/// Labels from here on are dims of the ellipsis.
const ELLIPSIS: u32 = 1 << 24;

impl Label {
    /// A label without a letter.
    pub fn numbered(n: u32) -> Label {
        Label(n)
    }

    pub fn is_ellipsis(self) -> bool {
        self.0 >= ELLIPSIS
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match char::from_u32(self.0) {
            Some(c) if !self.is_ellipsis() => write!(f, "{c}"),
            _ => write!(f, "...[-{}]", self.0 - ELLIPSIS + 1),
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Equation {
    pub inputs: Vec<Vec<Label>>,
    pub output: Vec<Label>,
}

type Error = (Code, String);

/// Reads `ij,jk->ik` for operands of the ranks given.
pub fn parse(text: &str, ranks: &[usize]) -> Result<Equation, Error> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match text.split_once("->") {
        Some((l, r)) => (l, Some(r)),
        None => (text.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != ranks.len() {
        return Err((
            Code::E0104,
            format!("the equation names {} operands, and {} are given", terms.len(), ranks.len()),
        ));
    }
    let mut inputs = vec![];
    let mut widest = 0;
    for (i, (term, &rank)) in terms.iter().zip(ranks).enumerate() {
        let (letters, dots) = read(term)?;
        let spare = rank.checked_sub(letters.len()).filter(|n| *n == 0 || dots.is_some());
        let Some(spare) = spare else {
            return Err((
                Code::E0207,
                format!("`{term}` names {} dims, and operand {i} has rank {rank}", letters.len()),
            ));
        };
        widest = widest.max(spare);
        inputs.push(expand_ellipsis(&letters, dots, spare));
    }
    let output = match right {
        Some(term) => explicit(term, &inputs, widest)?,
        None => implicit(&inputs, widest),
    };
    Ok(Equation { inputs, output })
}

/// The letters of a term and where its ellipsis stands among them.
fn read(term: &str) -> Result<(Vec<Label>, Option<usize>), Error> {
    let mut letters = vec![];
    let mut dots = None;
    let mut rest = term;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if dots.is_some() {
                return Err((Code::E0204, format!("`{term}` has two ellipses")));
            }
            dots = Some(letters.len());
            rest = after;
        } else if c.is_ascii_alphabetic() {
            letters.push(Label(u32::from(c)));
            rest = &rest[1..];
        } else {
            return Err((Code::E0204, format!("dims are named by letters, and `{c}` in `{term}` is none")));
        }
    }
    Ok((letters, dots))
}

/// The labels with `spare` dims where the ellipsis stands.
fn expand_ellipsis(letters: &[Label], dots: Option<usize>, spare: usize) -> Vec<Label> {
    let at = dots.unwrap_or(letters.len());
    let ellipsis = (0..spare).rev().map(|k| Label(ELLIPSIS + k as u32));
    letters[..at].iter().copied().chain(ellipsis).chain(letters[at..].iter().copied()).collect()
}

fn explicit(term: &str, inputs: &[Vec<Label>], widest: usize) -> Result<Vec<Label>, Error> {
    let (letters, dots) = read(term)?;
    for (i, label) in letters.iter().enumerate() {
        if letters[..i].contains(label) {
            return Err((Code::E0204, format!("`{label}` stands twice in the output `{term}`")));
        }
        if !inputs.iter().any(|labels| labels.contains(label)) {
            return Err((Code::E0204, format!("`{label}` of the output `{term}` names a dim of no operand")));
        }
    }
    Ok(expand_ellipsis(&letters, dots, if dots.is_some() { widest } else { 0 }))
}

/// The ellipsis, then the letters that occur once, in alphabetical order.
fn implicit(inputs: &[Vec<Label>], widest: usize) -> Vec<Label> {
    let all: Vec<Label> = inputs.iter().flatten().copied().collect();
    let mut once: Vec<Label> =
        all.iter().copied().filter(|l| !l.is_ellipsis() && all.iter().filter(|m| *m == l).count() == 1).collect();
    once.sort_unstable();
    expand_ellipsis(&once, Some(0), widest)
}
