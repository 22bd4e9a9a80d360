//! What assertions say.

use crate::ir::{FormatPart, Program, TExpr, TKind, TStmt};
use crate::walk::each_stmt;
use std::collections::BTreeSet;
use tessera_base::Span;

/// A text that is known before the program runs: written out, or with ints of the call in it.
pub fn known_text(e: &TExpr) -> Option<String> {
    let part = |part: &FormatPart| match part {
        FormatPart::Text(text) => Some(text.to_string()),
        FormatPart::Value { value, repr: false, spec: None } => {
            value.ty.const_int().map(|n| n.to_string()).or_else(|| known_text(value))
        }
        FormatPart::Value { .. } => None,
    };
    match &e.kind {
        TKind::Str(text) => Some(text.to_string()),
        TKind::Format(parts) => parts.iter().map(part).collect(),
        _ => None,
    }
}

impl Program {
    /// What the assertion at a place says where it fails, if that is known before anything runs and the same in all calls.
    pub fn said_by_assertion(&self, at: Span) -> Option<String> {
        let mut found = BTreeSet::new();
        for f in &self.insts {
            each_stmt(&f.body, &mut |s| {
                if let TStmt::Assert { message: Some(m), span, .. } = s
                    && *span == at
                {
                    found.insert(known_text(m));
                }
            });
        }
        if found.len() == 1 { found.pop_first().flatten() } else { None }
    }
}
