use crate::prim::columns::*;

/// Positions of an axis in another order.
pub struct Rows<'a> {
    pub axis: usize,
    pub from: &'a [u64],
}

impl Primitive for Rows<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let (axis, from) = (self.axis, self.from);
        count(x, 1)?;
        same(x[0], result)?;
        axis_in(axis, x[0].shape)?;
        let n = x[0].shape[axis];
        ensure(from.len() as u64 == n && from.iter().all(|&i| i < n), || {
            format!("{} positions of {n} along axis {axis}", from.len())
        })
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        put.sizes("from", self.from);
        "rows".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "rows").then(|| Ok(Prim::Rows { axis: op.index("axis")?, from: op.sizes("from")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::rows(x[0], self.axis, self.from))
    }

    /// Devices that have one position each send them to each other (`tessera_shard::layout`).
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass(0)]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// Each row gets back what was made of it: one row where all are read once, else their sum.
    fn pull(&self, at: &mut At) -> Pulled {
        let (axis, from) = (self.axis, self.from);
        let readers = |row: u64| (0..from.len() as u64).filter(move |&i| from[i as usize] == row);
        let back: Vec<Vec<u64>> = (0..from.len() as u64).map(|row| readers(row).collect()).collect();
        if back.iter().all(|b| b.len() == 1) {
            let from = back.into_iter().flatten().collect();
            return Ok(vec![Some(at.like(at.c, Prim::Rows { axis, from }, &[at.c]))]);
        }
        let (mut shape, dtype) = (at.shape(at.c), at.dtype(at.c));
        shape[axis] = 1;
        let mut parts = vec![];
        for readers in &back {
            let rows: Vec<Id> = readers.iter().map(|&i| expand::slice(at.w, at.c, axis, i, 1)).collect();
            parts.push(match rows[..] {
                [] => at.zeros_of(&shape, dtype),
                [row] => row,
                _ => {
                    let all = expand::concat(at.w, &rows, axis);
                    expand::reduce(at.w, all, Reduction::Sum, &[axis], true)
                }
            });
        }
        Ok(vec![Some(expand::concat(at.w, &parts, axis))])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Rows { axis: self.axis + dims, from: self.from.to_vec() })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("is a table of positions"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "rows".into()
    }
}
