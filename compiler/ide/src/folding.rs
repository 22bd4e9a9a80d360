//! Parts of a text that can be folded, and what is selected step by step from the inside out.

use crate::analysis::Analysis;
use crate::path::every_stmt;
use std::ops::Range;
use tessera_base::{FileId, Span};
use tessera_grammar::ast::*;
use tessera_grammar::token::{Tok, lex};

/// Bytes that can be folded, and whether they are a comment or imports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fold {
    pub range: Range<usize>,
    pub sort: Sort,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Code,
    Comment,
    Imports,
}

/// The folds of a file: blocks, brackets and texts of several lines, comments and imports that follow each other.
pub fn folds(cx: &Analysis, file: FileId) -> Vec<Fold> {
    let text = cx.text(file);
    let lines = |r: &Range<usize>| text.get(r.clone()).is_some_and(|t| t.contains('\n'));
    let mut out: Vec<Fold> = vec![];
    let mut imports: Option<Range<usize>> = None;
    for head in cx.heads(file).iter() {
        let Some(item) = cx.item(head.id) else { continue };
        every_stmt(&item.syntax(cx.db).stmts, &mut |stmt| {
            let Some(place) = cx.place(stmt.span) else { return };
            match &stmt.kind {
                StmtKind::Import { .. } | StmtKind::FromImport { .. } => {
                    let start = imports.as_ref().map_or(place.start, |i| i.start);
                    imports = Some(start..place.end);
                    return;
                }
                StmtKind::Def(_) | StmtKind::Struct(_) | StmtKind::If { .. } | StmtKind::For { .. } => {}
                StmtKind::While { .. } | StmtKind::With { .. } => {}
                _ => return,
            }
            out.push(Fold { range: place.range(), sort: Sort::Code });
        });
        let import = |s: &Stmt| matches!(s.kind, StmtKind::Import { .. } | StmtKind::FromImport { .. });
        if !item.syntax(cx.db).stmts.iter().all(import) {
            out.extend(imports.take().map(|range| Fold { range, sort: Sort::Imports }));
        }
    }
    out.extend(imports.map(|range| Fold { range, sort: Sort::Imports }));
    let (mut open, mut comment): (Vec<usize>, Option<Range<usize>>) = (vec![], None);
    let mut breaks = 0;
    for t in lex(&text) {
        match t.kind {
            Tok::Comment => {
                let start = comment.as_ref().map_or(t.start as usize, |c| c.start);
                comment = Some(start..t.end as usize);
                breaks = 0;
                continue;
            }
            Tok::Space => continue,
            Tok::Break => {
                breaks += 1;
                if breaks > 1 {
                    out.extend(comment.take().map(|range| Fold { range, sort: Sort::Comment }));
                }
                continue;
            }
            Tok::Str => out.push(Fold { range: t.range(), sort: Sort::Code }),
            kind if kind.closer().is_some() => open.push(t.start as usize),
            kind if kind.is_closer() => {
                if let Some(start) = open.pop() {
                    out.push(Fold { range: start..t.end as usize, sort: Sort::Code });
                }
            }
            _ => {}
        }
        out.extend(comment.take().map(|range| Fold { range, sort: Sort::Comment }));
    }
    out.extend(comment.map(|range| Fold { range, sort: Sort::Comment }));
    out.retain(|f| lines(&f.range));
    out.sort_by_key(|f| (f.range.start, std::cmp::Reverse(f.range.end)));
    out.dedup_by_key(|f| f.range.clone());
    out
}

/// What lies around a byte, from the smallest to the whole file.
pub fn selections(cx: &Analysis, file: FileId, byte: usize) -> Vec<Range<usize>> {
    let text = cx.text(file);
    let whole = 0..text.len();
    let mut out = Vec::from([whole]);
    if let Some((item, at)) = cx.item_at(file, byte) {
        let around = |span: Span| span.start <= at && at <= span.end;
        let stmts = &item.syntax(cx.db).stmts;
        let mut add = |span: Span| out.extend(cx.place(span).filter(|_| around(span)).map(|p| p.range()));
        every_stmt(stmts, &mut |s| add(s.span));
        for e in crate::path::every_expr(stmts) {
            add(e.span);
            if let ExprKind::Call { args, .. } = &e.kind
                && let (Some(first), Some(last)) = (args.first(), args.last())
            {
                add(first.value.span.to(last.value.span));
            }
        }
    }
    out.extend(lex(&text).iter().map(|t| t.range()).filter(|r| r.start <= byte && byte <= r.end && !r.is_empty()));
    out.sort_by_key(|r| (r.end - r.start, r.start));
    out.dedup();
    // Each holds the one before it.
    let mut nested: Vec<Range<usize>> = vec![];
    for r in out {
        if nested.last().is_none_or(|inner| r.start <= inner.start && inner.end <= r.end) {
            nested.push(r);
        }
    }
    nested
}
