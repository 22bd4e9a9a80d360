//! Directives outside kernels, which hold for what follows in their block; and whether anything
//! follows what a directive asks for.

use super::cx::Cx;
use super::directives::replaced;
use super::numerics::Numerics;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::{TKind, TStmt};
use tessera_core::walk::each_expr_in;
use tessera_ir::hints::KernelHints;
use tessera_types::tensor::tile::{Asked, element_bytes, misfit};

/// What a statement sets for the rest of its block; `start`: where that begins in what is written of the block.
#[derive(Clone, Debug)]
pub enum Rest {
    Numerics {
        start: usize,
        set: Numerics,
        before: Numerics,
    },
    Directive {
        start: usize,
        name: &'static str,
        span: Span,
        /// With what was asked for before.
        hints: KernelHints,
        before: KernelHints,
    },
}

/// Operations that can follow a directive.
#[derive(Default)]
pub struct Consumers {
    operators: usize,
    /// Of the operators, matrix products: bytes of what each multiplies. Those with a tile of their own are not among
    /// them.
    products: Vec<u64>,
    /// What is in a function that is called is not looked at.
    calls: usize,
}

impl Consumers {
    pub fn of(body: &[TStmt]) -> Consumers {
        let mut found = Consumers::default();
        each_expr_in(body, &mut |e| match &e.kind {
            TKind::Op { def, hints, .. } => {
                found.operators += 1;
                if def.factors().is_some() && hints.tile_shape.is_none() {
                    found.products.push(element_bytes(e));
                }
            }
            TKind::Builtin { name, .. } if name.is_tile() => found.calls += 1,
            TKind::Call { .. }
            | TKind::CallValue { .. }
            | TKind::Scan { .. }
            | TKind::Fori { .. }
            | TKind::Flow { .. }
            | TKind::Derive { .. } => found.calls += 1,
            _ => {}
        });
        found
    }
}

impl Cx<'_> {
    /// A directive of a block that is no kernel.
    pub fn follow(&mut self, name: &'static str, hints: KernelHints, span: Span) {
        let function = self.func.as_ref().map_or_else(|| "main".into(), |f| f.f.sig.name.clone());
        let hints = KernelHints { kernel: function, span, ..hints };
        let before = std::mem::replace(&mut self.asked, hints.clone());
        self.rest.push(Rest::Directive { start: self.out.len(), name, span, hints, before });
    }

    /// Ends what statements of a block set for the rest of it: what came after each is wrapped.
    pub fn close_rest(&mut self, depth: usize) {
        self.directives_consumed(depth);
        while self.rest.len() > depth {
            match self.rest.pop() {
                Some(Rest::Numerics { start, set, before }) => {
                    if set.policy != before.policy {
                        let body = self.out.split_off(start.min(self.out.len()));
                        self.out.push(TStmt::WithPolicy { policy: set.policy, body });
                    }
                    self.set_numerics(before);
                }
                Some(Rest::Directive { start, hints, before, .. }) => {
                    let body = self.out.split_off(start.min(self.out.len()));
                    if !body.is_empty() {
                        self.out.push(TStmt::WithHints { hints: Arc::new(hints), body });
                    }
                    self.asked = before;
                }
                None => {}
            }
        }
    }

    /// Reports what is wrong with the directives of a block for what follows them, before it is wrapped.
    fn directives_consumed(&mut self, depth: usize) {
        let given: Vec<(usize, &'static str, Span, KernelHints)> = self.rest[depth.min(self.rest.len())..]
            .iter()
            .filter_map(|r| match r {
                Rest::Directive { start, name, span, hints, .. } => Some((*start, *name, *span, hints.clone())),
                Rest::Numerics { .. } => None,
            })
            .collect();
        for (i, (start, name, span, hints)) in given.iter().enumerate() {
            let next = given[i + 1..].iter().find(|(_, n, ..)| n == name && *name != "parallel");
            let end = next.map_or(self.out.len(), |(end, ..)| *end).min(self.out.len());
            let found = Consumers::of(&self.out[(*start).min(end)..end]);
            match next {
                Some((.., by, _)) if found.operators + found.calls == 0 => self.report(replaced(name, *span, *by)),
                _ => self.consumed(name, hints, *span, &found, "no operation on tensors follows it in its block"),
            }
        }
    }

    /// E0506, W0502 and W0503 for a directive and the operations that follow it.
    pub fn consumed(&mut self, name: &str, hints: &KernelHints, span: Span, found: &Consumers, missing: &str) {
        let bytes = found.products.iter().copied().max();
        if let ("tile", Some(bytes)) = (name, bytes)
            && let Some(d) = misfit(self.db.limits(), &hints.tile, bytes, Asked::Directive, span)
        {
            self.report(d);
        }
        // Where something is wrong or left out, less is known than follows.
        let unknown = self.guessing || self.decided_end || self.diagnostics.iter().any(Diagnostic::is_error);
        if found.calls > 0 || unknown {
            return;
        }
        let why = match name {
            _ if found.operators == 0 => missing,
            "use_shared_memory" if found.products.is_empty() && hints.shared == Some(true) => {
                "only operands of matrix products are staged, and there are none"
            }
            "tile" if hints.tile.len() == 1 && found.products.len() == found.operators => {
                "a tile of a matrix product has rows, columns and depth: `schedule.tile((128, 128, 64))`"
            }
            _ => return,
        };
        let d = Diagnostic::new(Code::W0503, span, format!("nothing consumes this `schedule.{name}`")).note(why);
        self.report(d);
    }
}
