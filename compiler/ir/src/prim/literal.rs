use crate::prim::columns::*;

/// Elements that are known when a program is compiled.
pub struct Literal<'a> {
    pub bytes: &'a [u8],
}

impl Primitive for Literal<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 0)?;
        let want = elems(result.shape).and_then(|n| n.checked_mul(result.dtype.bytes()));
        ensure(want == Some(self.bytes.len()), || format!("{} bytes for {}", self.bytes.len(), shown(result)))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.str("bytes", &self.bytes.iter().map(|b| format!("{b:02x}")).collect::<String>());
        "literal".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "literal").then(|| {
            let text = op.str("bytes")?;
            let byte = |i: usize| text.get(i..i + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
            let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
            let bytes = bytes.ok_or_else(|| op.error("`bytes` must be pairs of hexadecimal digits"))?;
            Ok(Prim::Literal(Arc::from(bytes)))
        })
    }

    fn meaning(&self, _: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(self.bytes.to_vec())
    }

    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// It has no operands.
    fn pull(&self, _: &mut At) -> Pulled {
        Ok(vec![])
    }

    /// It has no operands.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Source
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("lies in memory: groups read it"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    /// It is there.
    fn cost(&self, _: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: 0.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: false, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "literal".into()
    }
}
