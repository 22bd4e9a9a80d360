//! Operator precedence, Python's: one table, one climb.

use super::Tree;
use crate::ast::*;
use std::vec::IntoIter;
use tessera_base::{Code, Diagnostic};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Infix {
    Or,
    And,
    Cmp(CmpOp),
    Bin(BinOp),
}

/// A piece of a chain such as `a + -b * c`; positions are token indices.
pub enum Link {
    Value(Expr),
    Prefix(UnOp, u32),
    Infix(Infix, u32),
}

const NOT: u8 = 3;
const COMPARE: u8 = 4;
const UNARY: u8 = 11;

/// How tightly an operator binds.
fn level(op: Infix) -> u8 {
    match op {
        Infix::Or => 1,
        Infix::And => 2,
        Infix::Cmp(_) => COMPARE,
        Infix::Bin(op) => match op {
            BinOp::BitOr => 5,
            BinOp::BitXor => 6,
            BinOp::BitAnd => 7,
            BinOp::Shl | BinOp::Shr => 8,
            BinOp::Add | BinOp::Sub => 9,
            BinOp::Mul | BinOp::Div | BinOp::FloorDiv | BinOp::Mod | BinOp::MatMul => 10,
            BinOp::Pow => 12,
        },
    }
}

impl Tree<'_> {
    pub fn link(&self, mut chain: Vec<Link>, op: Link, prefixes: Vec<Link>, value: Expr) -> Vec<Link> {
        chain.push(op);
        chain.extend(prefixes);
        chain.push(Link::Value(value));
        chain
    }

    /// Puts a chain in order. Recursion is bounded by [`crate::depth`].
    pub fn chain(&self, links: Vec<Link>) -> Expr {
        Climb { tree: self, rest: links.into_iter(), ahead: None }.climb(0)
    }
}

struct Climb<'a, 't> {
    tree: &'a Tree<'t>,
    rest: IntoIter<Link>,
    ahead: Option<(Infix, u32)>,
}

impl Climb<'_, '_> {
    /// The next operator, if it binds at least as tightly as `least`.
    fn operator(&mut self, least: u8) -> Option<(Infix, u32)> {
        if self.ahead.is_none()
            && let Some(Link::Infix(op, at)) = self.rest.next()
        {
            self.ahead = Some((op, at));
        }
        self.ahead.take_if(|(op, _)| level(*op) >= least)
    }

    fn climb(&mut self, least: u8) -> Expr {
        let mut left = self.operand(least);
        while let Some((op, at)) = self.operator(least) {
            left = match op {
                Infix::Or | Infix::And => {
                    let right = self.climb(level(op) + 1);
                    let span = left.span.to(right.span);
                    Expr {
                        kind: ExprKind::Logic { and: op == Infix::And, left: Box::new(left), right: Box::new(right) },
                        span,
                    }
                }
                Infix::Cmp(op) => self.compare(left, op),
                Infix::Bin(op) => {
                    // `**` takes a unary operator, and itself, on its right.
                    let right = self.climb(if op == BinOp::Pow { UNARY } else { level(Infix::Bin(op)) + 1 });
                    let span = left.span.to(right.span);
                    let op_span = self.tree.token_span(at);
                    Expr { kind: ExprKind::Binary { op, op_span, left: Box::new(left), right: Box::new(right) }, span }
                }
            };
        }
        left
    }

    fn compare(&mut self, first: Expr, op: CmpOp) -> Expr {
        let mut rest = vec![(op, self.climb(COMPARE + 1))];
        while let Some((Infix::Cmp(op), _)) = self.operator(COMPARE) {
            rest.push((op, self.climb(COMPARE + 1)));
        }
        let end = rest.last().map_or(first.span, |(_, e)| e.span);
        let span = first.span.to(end);
        Expr { kind: ExprKind::Compare { first: Box::new(first), rest }, span }
    }

    fn operand(&mut self, least: u8) -> Expr {
        match self.rest.next() {
            Some(Link::Value(value)) => value,
            Some(Link::Prefix(op, at)) => {
                let span = self.tree.token_span(at);
                if op == UnOp::Not && least > NOT {
                    let diagnostic =
                        Diagnostic::new(Code::E0002, span, "`not` binds looser than the operator before it")
                            .help("put it in parentheses: `(not …)`");
                    self.tree.say(at, diagnostic);
                }
                let operand = self.climb(if op == UnOp::Not { NOT } else { UNARY });
                let span = span.to(operand.span);
                Expr { kind: ExprKind::Unary { op, operand: Box::new(operand) }, span }
            }
            // The grammar puts an operand or a prefix after every operator.
            Some(Link::Infix(_, at)) => Expr { kind: ExprKind::Error, span: self.tree.token_span(at) },
            None => Expr { kind: ExprKind::Error, span: tessera_base::Span::NONE },
        }
    }
}
