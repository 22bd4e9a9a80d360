mod derivative;

use crate::prim::columns::*;
use tessera_ops::prim::Factor as Kind;

/// What matrices are taken apart into.
pub struct Factor {
    pub factor: Kind,
}

/// The dims before the last two, and those.
fn split(shape: &[u64]) -> Option<(&[u64], u64, u64)> {
    match shape {
        [batch @ .., m, n] => Some((batch, *m, *n)),
        _ => None,
    }
}

impl Primitive for Factor {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        dtype_is(x[0], result)?;
        let name = self.factor.name();
        ensure(matches!(result.dtype, DType::F32 | DType::F64), || format!("`{name}` of {}", result.dtype))?;
        let Some((batch, m, n)) = split(x[0].shape) else { return Err(format!("`{name}` of {}", shown(x[0]))) };
        ensure(!self.factor.is_square() || m == n, || format!("`{name}` of a matrix of {m} by {n}"))?;
        // The order of rows is told in the element type.
        ensure(self.factor != Kind::Lu || m <= 1 << 24, || format!("`{name}` of {m} rows"))?;
        shape_is(&[batch, &[self.factor.elems(m, n)]].concat(), result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        self.factor.name().into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        Kind::parse(name).map(|factor| Ok(Prim::Factor(factor)))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::linalg::factor(self.factor, x[0])
    }

    /// Matrices are whole where they are taken apart.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        vec![(0..rank).map(|d| if d + 2 < rank { Link::Pass(d) } else { Link::Whole }).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![Some(derivative::pull(self.factor, at))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Factor(self.factor))
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
        Err(q.refuse("takes matrices apart: each step needs those before it"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        let (batch, m, n) = split(at.shape(0)).unwrap_or((&[], 0, 0));
        let work = self.factor.operations(m, n) * batch.iter().product::<u64>() as f64;
        let time = work * 0.2 + at.touched() * 2.0;
        Cost { operations: work as u64, again: Again::Dear(time), interpreted: time }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        self.factor.name().into()
    }
}
