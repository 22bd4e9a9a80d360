use crate::prim::columns::*;
use crate::prim::gather::{counted, numbered};

/// An operand with values written or added at positions from data.
pub struct Scatter {
    pub add: bool,
}

impl Primitive for Scatter {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        at_least(x, 2)?;
        same(x[0], result)?;
        dtype_is(x[1], result)?;
        shape_is(&indexed(x[0].shape, &x[2..])?, x[1])
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.bool("add", self.add);
        "scatter".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "scatter").then(|| Ok(Prim::Scatter { add: op.bool("add")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::index::scatter(x[0], x[1], &x[2..], self.add)
    }

    /// What is not indexed goes along.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let (depth, more) = (at.count() - 2, at.rank(2));
        // By dim of the positions the dim of the base that it counts.
        let counts = |along: usize| (0..depth).find(|d| counted(at, 2, *d) == Some(along));
        let base = |d: usize| if d < depth && counted(at, 2, d).is_none() { Link::Whole } else { Link::Pass(d) };
        let position = |d: usize| counts(d).map_or(Link::Whole, Link::Pass);
        let value = |d: usize| if d < more { position(d) } else { Link::Pass(d - more + depth) };
        let both = [(0..at.rank(0)).map(base).collect(), (0..at.rank(1)).map(value).collect()];
        both.into_iter().chain((2..at.count()).map(|i| (0..at.rank(i)).map(position).collect())).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// Operands: base, values, indices….
    fn pull(&self, at: &mut At) -> Pulled {
        let mut out = vec![None; at.x.len()];
        let index = at.x[2..].to_vec();
        if at.needed[0] {
            out[0] = Some(if self.add {
                at.c
            } else {
                let zeros = at.zeros(at.x[1]);
                let operands = [&[at.c, zeros], &index[..]].concat();
                at.like(at.x[0], Prim::Scatter { add: false }, &operands)
            });
        }
        if at.needed[1] {
            let operands = [&[at.c], &index[..]].concat();
            let picked = at.like(at.x[1], Prim::Gather, &operands);
            out[1] = Some(if self.add { picked } else { only_last(at, picked, &index) });
        }
        Ok(out)
    }

    /// Positions are those of the first dims.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    /// The number of the value is one more position.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let mut operands = vec![lift.each(node.operands[0]), lift.each(node.operands[1])];
        operands.extend(numbered(lift, &node.operands[2..]));
        Some(lift.push(node, Prim::Scatter { add: self.add }, &operands))
    }

    /// Sums go in order, in code of the runtime. What has no elements still has positions that are checked.
    fn role(&self, at: Site) -> Role {
        if self.add || at.is_empty() || at.elems_of(1) == 0 { Role::Alone } else { Role::Update }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        if self.add {
            return Err(q.refuse("adds where data says, in order"));
        }
        let (base, values) = (q.operand(0)?, q.operand(1)?);
        let indices = &q.node.operands[2..];
        let depth = indices.first().map_or(0, |&i| b.graph.ty(i).shape.len());
        let (index_at, rest) = q.at.split_at(depth.min(q.at.len()));
        let mut by = vec![];
        for (axis, &index) in indices.iter().enumerate() {
            by.push((axis, b.position(q, (index, index_at), (base, axis), None)?));
        }
        b.write_at(q, &[vec![Index::default(); indices.len()].as_slice(), rest].concat(), &by);
        b.value(values, q.at, q.guards, q.part)
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
        "scatter".into()
    }
}

/// Of the values written to one place only the last has an influence: zeros for the others.
fn only_last(at: &mut At, picked: Id, index: &[Id]) -> Id {
    let Some(&first) = index.first() else { return picked };
    let (base, positions) = (at.shape(at.x[0]), at.shape(first));
    let places = base[..index.len()].to_vec();
    let count: u64 = positions.iter().product();
    let numbers = expand::iota(at.w, &[count], 0);
    let numbers = expand::reshape(at.w, numbers, &positions);
    let zeros = at.zeros_of(&places, DType::I64);
    let operands = [&[zeros, numbers], index].concat();
    let winners = at.w.push(Prim::Scatter { add: false }, &operands, places, DType::I64);
    let operands = [&[winners], index].concat();
    let winner = at.w.push(Prim::Gather, &operands, positions.clone(), DType::I64);
    let last = expand::map(at.w, MapOp::eq, &[winner, numbers]);
    let shape = at.shape(picked);
    let last = expand::broadcast_dims(at.w, last, &shape, (0..positions.len()).collect());
    let zero = at.zeros(picked);
    expand::select(at.w, last, picked, zero)
}
