//! What the results of a register tile read beside the product is asked for while the product is
//! computed, so that memory works meanwhile.

use super::Product;
use crate::nest::Nest;
use tessera_ir::schedule::{ValueId, ValueOp};
use tessera_ir::tile::Panel;

impl<'s> Product<'s> {
    /// Operands that the results of the register tile at the present places read element by element:
    /// those that differ from row to row and lie side by side in a row.
    pub(super) fn ahead(&self, n: &mut Nest<'s>) -> Vec<Panel> {
        let (Some(rows), Some(columns), true) = (self.m, self.n, self.prefetch) else { return vec![] };
        let mut todo: Vec<ValueId> = self.s.stores.iter().map(|st| st.value).collect();
        let mut out: Vec<Panel> = vec![];
        while let Some(v) = todo.pop() {
            if let ValueOp::Load { operand, at, .. } = &self.s.value(v).op
                && let (Some(1), Some(row @ 1..), Some(buf)) =
                    (at.stride(columns), at.stride(rows), n.declared(*operand))
            {
                let panel = Panel { buf, at: n.resolve(at), row, step: 1 };
                if !out.contains(&panel) {
                    out.push(panel);
                }
            }
            if v != self.dot {
                todo.extend(self.s.args(v));
            }
        }
        out.sort_by_key(|p| p.buf);
        out
    }
}
