use crate::prim::columns::*;
use tessera_ops::reference::Refused;

/// An operand where an operation of host code has a value for it; elsewhere an error.
pub struct Check {
    pub check: abi::Check,
}

impl Primitive for Check {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        same(x[0], result)?;
        same(x[1], result)?;
        let dtype = if self.check.of_ints() { DType::I64 } else { DType::F64 };
        ensure(result.dtype == dtype, || format!("`{}` is of {}", self.check.name(), dtype.name()))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.str("of", self.check.name());
        "check".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let check = || abi::Check::parse(op.str("of")?).ok_or_else(|| op.error("`of` names no check"));
        (name == "check").then(|| Ok(Prim::Check(check()?)))
    }

    /// Operand 0, unless the check refuses a pair of elements.
    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        let check = self.check;
        let words = |x: ArrayRef| x.bytes.as_chunks::<8>().0.to_vec();
        for operands in words(x[0]).into_iter().zip(words(x[1])).map(|(a, b)| [a, b].map(u64::from_le_bytes)) {
            if !check.holds(operands[0], operands[1]) {
                let message = format!("`{}` has no value here", check.name());
                return Err(EvalError { message, code: 711, refused: Some(Refused { check, operands }) });
            }
        }
        Ok(x[0].bytes.to_vec())
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// The value itself, where it is not refused.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![Some(at.c), None])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Check(self.check))
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
        Err(q.refuse("may stop the program, with what stands in it; kernels only tell positions"))
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
        "check".into()
    }
}
