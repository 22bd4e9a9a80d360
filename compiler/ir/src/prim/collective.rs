use crate::prim::columns::*;

/// What devices do together.
pub struct Collective<'a> {
    pub what: &'a prim::Collective,
}

impl Primitive for Collective<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let c = self.what;
        use prim::CollectiveKind::{Gather, Max, Min, Rank, Rows, Scatter, Sum, Turn};
        if c.kind == Rank {
            count(x, 0)?;
            integer(result)?;
            return shape_is(&[], result);
        }
        count(x, 1)?;
        dtype_is(x[0], result)?;
        let mut shape = x[0].shape.to_vec();
        let mut scale = |dim: usize, up: bool| -> rule::Check {
            axis_in(dim, x[0].shape)?;
            ensure(up || shape[dim].is_multiple_of(c.devices.max(1)), || {
                format!("{} parts of {}", c.devices, shape[dim])
            })?;
            shape[dim] = if up { shape[dim].saturating_mul(c.devices) } else { shape[dim] / c.devices.max(1) };
            Ok(())
        };
        match &c.kind {
            Rank | Sum | Max | Min => {}
            Gather { dim } => scale(*dim, true)?,
            Scatter { dim } => scale(*dim, false)?,
            Turn { from, to } => {
                scale(*to, false)?;
                scale(*from, true)?;
            }
            Rows { from } => {
                let fits = from.len() as u64 == c.devices && from.iter().all(|&d| d < c.devices);
                ensure(fits, || format!("{} devices, and {} senders", c.devices, from.len()))?;
            }
        }
        shape_is(&shape, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        let (name, attrs) = attrs(self.what);
        attrs.into_iter().for_each(|(key, value)| put.put(key, value));
        name.into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        NAMES.contains(&name).then(|| Ok(Prim::Collective(Arc::new(of_name(name, op)?))))
    }

    /// It belongs to the devices of a mesh.
    fn meaning(&self, _: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Err("this node has no kernel of its own".to_string().into())
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.whole(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, _: &mut At) -> Pulled {
        Err("a collective, from inside per-device code")
    }

    /// The same of blocks with more dims in front.
    fn lifted(&self, dims: usize) -> Lifted {
        use prim::CollectiveKind::{Gather, Scatter, Turn};
        let kind = match &self.what.kind {
            Gather { dim } => Gather { dim: dim + dims },
            Scatter { dim } => Scatter { dim: dim + dims },
            Turn { from, to } => Turn { from: from + dims, to: to + dims },
            other => other.clone(),
        };
        Lifted::All(Prim::Collective(Arc::new(prim::Collective { kind, ..self.what.clone() })))
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
        Err(q.refuse("is what devices do together"))
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
        "collective".into()
    }
}

const NAMES: &[&str] = &[
    "rank",
    "all_reduce",
    "all_reduce_max",
    "all_reduce_min",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "permute",
];

/// What a collective is called, and its attributes.
pub fn attrs(c: &prim::Collective) -> (&'static str, Vec<(&'static str, Attr)>) {
    use prim::CollectiveKind as Kind;
    let at = |dim: &usize| Attr::Int(*dim as i64);
    let (name, own) = match &c.kind {
        Kind::Rank => ("rank", vec![]),
        Kind::Sum => ("all_reduce", vec![]),
        Kind::Max => ("all_reduce_max", vec![]),
        Kind::Min => ("all_reduce_min", vec![]),
        Kind::Gather { dim } => ("all_gather", vec![("dim", at(dim))]),
        Kind::Scatter { dim } => ("reduce_scatter", vec![("dim", at(dim))]),
        Kind::Turn { from, to } => ("all_to_all", vec![("from_dim", at(from)), ("to_dim", at(to))]),
        Kind::Rows { from } => ("permute", vec![("from", Attr::sizes(from))]),
    };
    let over = [("over", Attr::Str(c.axis.to_string())), ("devices", Attr::Int(c.devices as i64))];
    (name, over.into_iter().chain(own).collect())
}

/// Reads what [`attrs`] gives.
///
/// # Errors
/// The name is that of no collective, or an attribute is missing.
pub fn of_name(name: &str, op: &Op) -> Result<prim::Collective, TextError> {
    use prim::CollectiveKind as Kind;
    let kind = match name {
        "rank" => Kind::Rank,
        "all_reduce" => Kind::Sum,
        "all_reduce_max" => Kind::Max,
        "all_reduce_min" => Kind::Min,
        "all_gather" => Kind::Gather { dim: op.index("dim")? },
        "reduce_scatter" => Kind::Scatter { dim: op.index("dim")? },
        "all_to_all" => Kind::Turn { from: op.index("from_dim")?, to: op.index("to_dim")? },
        "permute" => Kind::Rows { from: op.sizes("from")? },
        other => return Err(op.error(format!("`{other}` is no collective"))),
    };
    Ok(prim::Collective { axis: op.str("over")?.into(), devices: op.index("devices")? as u64, kind })
}
