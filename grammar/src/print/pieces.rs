//! The words of one row and the spaces between them.

use super::spelling;
use crate::token::{Tok, Token};
use std::borrow::Cow;

/// A comment inside brackets.
#[derive(Clone, Debug)]
pub(super) struct Note<'t> {
    pub text: Cow<'t, str>,
    /// It has a line of its own.
    pub own_line: bool,
}

/// One word: a token, or a whole f-string.
#[derive(Clone, Debug)]
pub(super) struct Piece<'t> {
    pub kind: Tok,
    pub text: Cow<'t, str>,
    /// Comments between the word before and this one.
    pub notes: Vec<Note<'t>>,
    /// A space stands before it when both are on one line.
    pub space: bool,
    /// A sign before its operand, not between two.
    pub prefix: bool,
    /// For an opening bracket: what it is for.
    pub role: Role,
}

/// What a bracket is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    None,
    Call,
    Params,
    Index,
    /// An index whose base is a capitalised name: by habit a type.
    Type,
    Group,
    List,
    Dict,
}

/// Makes pieces of tokens (of one row, without marks). `notes` gives the comments between two places.
pub(super) fn pieces<'t>(text: &'t str, tokens: &[Token], notes: impl Fn(u32, u32) -> Vec<Note<'t>>) -> Vec<Piece<'t>> {
    let mut out: Vec<Piece<'t>> = Vec::with_capacity(tokens.len());
    let mut i = 0;
    let mut end = tokens.first().map_or(0, |t| t.start);
    while i < tokens.len() {
        let token = tokens[i];
        let before = notes(end, token.start);
        let (kind, word) = if token.kind == Tok::FStart {
            let last = closing(tokens, i);
            i = last;
            (Tok::Str, spelling::f_string(&text[token.start as usize..tokens[last].end as usize]).into())
        } else {
            (token.kind, spelling::spelled(&token, text))
        };
        end = tokens[i].end;
        i += 1;
        out.push(Piece { kind, text: word, notes: before, space: false, prefix: false, role: Role::None });
    }
    Spaces::default().set(&mut out);
    out
}

/// The end of the f-string that begins at `start`.
fn closing(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        match token.kind {
            Tok::FStart => depth += 1,
            Tok::FEnd => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i;
        }
    }
    tokens.len() - 1
}

/// One open bracket, or the row itself.
struct Frame {
    role: Role,
    /// `lambda`s whose `:` has not come yet.
    lambdas: usize,
    /// The current parameter has a type.
    typed: bool,
    /// The current slice has operators or calls in it: its `:` gets spaces.
    roomy: bool,
}

#[derive(Default)]
struct Spaces {
    frames: Vec<Frame>,
}

impl Spaces {
    fn set(mut self, pieces: &mut [Piece]) {
        self.frames.push(Frame { role: Role::None, lambdas: 0, typed: false, roomy: false });
        let first = pieces.first().map_or(Tok::Newline, |p| p.kind);
        for i in 0..pieces.len() {
            let kind = pieces[i].kind;
            let before = i.checked_sub(1).map(|b| pieces[b].kind);
            if kind.is_closer() && self.frames.len() > 1 {
                self.frames.pop();
            }
            let operand_before = before.is_some_and(Tok::ends_operand);
            pieces[i].prefix =
                !operand_before && matches!(kind, Tok::Minus | Tok::Plus | Tok::Tilde | Tok::Star | Tok::StarStar);
            pieces[i].space = i > 0 && self.space(pieces, i, first);
            if kind.closer().is_some() {
                let role = role(pieces, i, first);
                pieces[i].role = role;
                let roomy = role_is_index(role) && is_roomy(pieces, i + 1);
                self.frames.push(Frame { role, lambdas: 0, typed: false, roomy });
            } else {
                self.step(kind, pieces, i);
            }
        }
    }

    fn step(&mut self, kind: Tok, pieces: &[Piece], i: usize) {
        let Some(frame) = self.frames.last_mut() else { return };
        match kind {
            Tok::Lambda => frame.lambdas += 1,
            Tok::Colon if frame.lambdas > 0 => frame.lambdas -= 1,
            Tok::Colon => frame.typed = true,
            Tok::Comma if frame.lambdas == 0 => {
                frame.typed = false;
                frame.roomy = role_is_index(frame.role) && is_roomy(pieces, i + 1);
            }
            _ => {}
        }
    }

    /// Whether a space stands before piece `i`.
    fn space(&self, pieces: &[Piece], i: usize, first: Tok) -> bool {
        let (before, piece) = (&pieces[i - 1], &pieces[i]);
        let (b, k) = (before.kind, piece.kind);
        let Some(frame) = self.frames.last() else { return true };
        if b.closer().is_some() || k.is_closer() || before.prefix {
            return false;
        }
        let slice = |lambdas: usize| role_is_index(frame.role) && lambdas == 0;
        match (b, k) {
            // `2.L` would begin with another number.
            (Tok::Number, Tok::Dot) => true,
            (_, Tok::Comma | Tok::Semi | Tok::BlockColon | Tok::Dot) | (Tok::Dot, _) => false,
            (Tok::Comma, _) => true,
            (Tok::At, _) if i == 1 && first == Tok::At => false,
            // `x[a : b + 1]` but `x[a:b]`
            (_, Tok::Colon) => slice(frame.lambdas) && frame.roomy,
            (Tok::Colon, _) if slice(frame.lambdas) && !lambda_colon(pieces, i - 1) => frame.roomy,
            (_, Tok::LParen | Tok::LBracket) if b.ends_operand() => false,
            (Tok::Assign, _) | (_, Tok::Assign) => match frame.role {
                Role::None => frame.lambdas == 0,
                Role::Params => frame.typed && frame.lambdas == 0,
                _ => false,
            },
            _ if self.tight(b, before.prefix) || self.tight(k, piece.prefix) => false,
            _ => true,
        }
    }

    /// Operators of types are written without spaces: `Tensor[B@dp, 4*D, f32]`.
    fn tight(&self, kind: Tok, prefix: bool) -> bool {
        let in_type = self.frames.last().is_some_and(|f| f.role == Role::Type);
        in_type && !prefix && matches!(kind, Tok::At | Tok::Star | Tok::SlashSlash)
    }
}

fn role_is_index(role: Role) -> bool {
    matches!(role, Role::Index | Role::Type)
}

/// Whether the `:` at `colon` ends the parameters of a `lambda`.
fn lambda_colon(pieces: &[Piece], colon: usize) -> bool {
    let mut depth = 0;
    let mut colons = 0;
    for piece in pieces[..colon].iter().rev() {
        match piece.kind {
            kind if kind.is_closer() => depth += 1,
            kind if kind.closer().is_some() => {
                if depth == 0 {
                    return false;
                }
                depth -= 1;
            }
            Tok::Colon if depth == 0 => colons += 1,
            Tok::Lambda if depth == 0 => {
                if colons == 0 {
                    return true;
                }
                colons -= 1;
            }
            _ => {}
        }
    }
    false
}

fn role(pieces: &[Piece], at: usize, first: Tok) -> Role {
    let before = at.checked_sub(1).map(|b| &pieces[b]);
    let operand = before.is_some_and(|p| p.kind.ends_operand());
    match pieces[at].kind {
        Tok::LParen if first == Tok::Def && at == 2 => Role::Params,
        Tok::LParen if operand => Role::Call,
        Tok::LParen => Role::Group,
        Tok::LBracket if operand => {
            let capital = before
                .is_some_and(|p| p.kind == Tok::Name && p.text.starts_with(char::is_uppercase) && p.text.len() > 1);
            if capital { Role::Type } else { Role::Index }
        }
        Tok::LBracket => Role::List,
        _ => Role::Dict,
    }
}

/// Whether the slice that begins at `from` has operators or calls beside its `:`.
fn is_roomy(pieces: &[Piece], from: usize) -> bool {
    let mut depth = 0;
    let mut before = Tok::Comma;
    for piece in &pieces[from.min(pieces.len())..] {
        let kind = piece.kind;
        if depth == 0 && (kind == Tok::Comma || kind.is_closer()) {
            return false;
        }
        if depth == 0
            && before.ends_operand()
            && (kind.is_infix() || kind == Tok::LParen || matches!(kind, Tok::If | Tok::Else))
        {
            return true;
        }
        depth += usize::from(kind.closer().is_some());
        depth -= usize::from(kind.is_closer());
        before = kind;
    }
    false
}
