//! `mask & x < 2`: operators of bits bind tighter than comparisons, which whoever combines conditions does not mean.

use super::cx::Cx;
use crate::db;
use tessera_base::{Code, Diagnostic, Span};
use tessera_grammar::ast::{BinOp, CmpOp, Expr, ExprKind};

/// What is wrong with `a < b < c` of tensors.
pub const CHAINED: &str = "comparisons of tensors do not chain";

/// The operands of a chain of `&`, `|` and `^` without parentheses, first and last, and the places of its operators.
struct Bits {
    first: Span,
    last: Span,
    operators: Vec<Span>,
}

impl Cx<'_> {
    /// Where a comparison failed because `&`, `|` or `^` took what was to be compared, one error says which parentheses are
    /// missing. What was reported since there were `before` errors is of this comparison.
    pub fn say_precedence(&mut self, first: &Expr, rest: &[(CmpOp, Expr)], before: usize) {
        let operands: Vec<&Expr> = std::iter::once(first).chain(rest.iter().map(|(_, e)| e)).collect();
        let bits: Vec<Option<Bits>> = operands.iter().map(|e| self.bits(e)).collect();
        let operators: Vec<Span> = bits.iter().flatten().flat_map(|b| b.operators.iter().copied()).collect();
        let [operator, ..] = operators[..] else { return };
        let follows = |d: &Diagnostic| d.code == Code::E0205 && (operators.contains(&d.span) || d.message == CHAINED);
        let at = before.min(self.diagnostics.len());
        let Some(found) = self.diagnostics[at..].iter().position(follows).map(|i| at + i) else { return };
        let compared = compared(&operands, &bits);
        let whole = first.span.to(rest.last().map_or(first.span, |(_, e)| e.span));
        let symbol = self.source_of(operator).unwrap_or_else(|| "&".into());
        let title = match self.with_parentheses(whole, &compared) {
            Some(text) => format!("write the parentheses: `{text}`"),
            None => "write parentheses around the comparisons".to_owned(),
        };
        let d = Diagnostic::new(Code::E0205, operator, format!("`{symbol}` binds tighter than comparisons"))
            .note("it takes what stands beside it, and the result is compared")
            .around(title, &compared, "(", ")");
        let later = self.diagnostics.split_off(found);
        self.report(d);
        self.diagnostics.extend(later.into_iter().filter(|d| !follows(d)));
    }

    fn bits(&self, e: &Expr) -> Option<Bits> {
        let ExprKind::Binary { op: BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor, op_span, left, right } = &e.kind
        else {
            return None;
        };
        // The place of an expression in parentheses is that with them.
        if e.span.start < left.span.start || e.span.end > right.span.end {
            return None;
        }
        let mut bits = self.bits(left).unwrap_or(Bits { first: left.span, last: left.span, operators: vec![] });
        bits.operators.push(*op_span);
        bits.last = right.span;
        Some(bits)
    }

    fn source_of(&self, span: Span) -> Option<String> {
        let item = db::item_of(self.db, span.item)?;
        item.text(self.db).get(span.start as usize..span.end as usize).map(str::to_owned)
    }

    /// A short text of one line with parentheses around some parts of it.
    fn with_parentheses(&self, whole: Span, parts: &[Span]) -> Option<String> {
        const LENGTH_MAX: usize = 80;
        let mut text = self.source_of(whole).filter(|t| !t.contains('\n') && t.chars().count() <= LENGTH_MAX)?;
        for part in parts.iter().rev() {
            text.insert((part.end.checked_sub(whole.start)?) as usize, ')');
            text.insert((part.start.checked_sub(whole.start)?) as usize, '(');
        }
        Some(text)
    }
}

/// The comparisons that were meant: each from behind an operator of bits to the next one.
fn compared(operands: &[&Expr], bits: &[Option<Bits>]) -> Vec<Span> {
    let mut out = vec![];
    let mut start: Option<Span> = None;
    for (i, (operand, bits)) in operands.iter().zip(bits).enumerate() {
        let (first, last) = bits.as_ref().map_or((operand.span, operand.span), |b| (b.first, b.last));
        let ends = bits.is_some() || i + 1 == operands.len();
        match start {
            None => start = Some(last),
            Some(from) if ends => {
                out.push(from.to(first));
                start = Some(last);
            }
            Some(_) => {}
        }
    }
    out
}
