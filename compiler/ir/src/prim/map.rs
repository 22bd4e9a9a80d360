use crate::prim::columns::*;

/// An elementwise function; its own row is in `tessera_ops::map`.
pub struct Map {
    pub op: MapOp,
}

impl Primitive for Map {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, at: Site, of: Summand) -> bool {
        let op = self.op;
        match of.monoid {
            Monoid::Sum => {
                op == MapOp::neg && at.count() == 1
                    || (op == MapOp::add || op == MapOp::sub) && of.others_alike
                    || op == MapOp::mul && of.others_same
                    || op == MapOp::div && of.operand == 0 && of.others_same
            }
            Monoid::Max => op == MapOp::maximum && of.others_alike || op == MapOp::add && of.others_same,
            Monoid::Min => op == MapOp::minimum && of.others_alike || op == MapOp::add && of.others_same,
            _ => false,
        }
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
