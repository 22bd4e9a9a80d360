use crate::prim::columns::*;
use tessera_ops::prim::Transfer;

/// A part of a tensor from parts of several devices.
pub struct Exchange<'a> {
    pub what: &'a prim::Exchange,
}

impl Primitive for Exchange<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let e = self.what;
        count(x, 1)?;
        dtype_is(x[0], result)?;
        let inside = |t: &Transfer, shape: &[u64]| {
            t.start.len() == shape.len()
                && t.size.len() == shape.len()
                && t.start.iter().zip(&t.size).zip(shape).all(|((a, n), all)| a + n <= *all)
        };
        let fits = e.sends.iter().all(|t| inside(t, x[0].shape)) && e.receives.iter().all(|t| inside(t, result.shape));
        ensure(fits, || format!("`{}` takes parts outside {} or {}", e.name, shown(x[0]), shown(result)))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        let e = self.what;
        put.str("what", &e.name);
        put.int("tag", e.tag);
        if e.batch != e.tag {
            put.int("batch", e.batch);
        }
        put.put("to", transfers(&e.sends));
        put.put("from", transfers(&e.receives));
        "exchange".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let number = |of: &str| u32::try_from(op.index(of)?).map_err(|_| op.error(format!("`{of}` is too large")));
        (name == "exchange").then(|| {
            let tag = number("tag")?;
            Ok(Prim::Exchange(Arc::new(prim::Exchange {
                name: op.str("what")?.into(),
                tag,
                batch: if op.attr("batch").is_some() { number("batch")? } else { tag },
                sends: read_transfers(op, "to")?,
                receives: read_transfers(op, "from")?,
            })))
        })
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
        Err("a graph of one device of a mesh")
    }

    /// Only in graphs of one device.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
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
        Flags { work: true, step: false, selects: false, cheap: false, kept: true }
    }

    fn word(&self) -> Word {
        self.what.name.to_string().into()
    }
}

/// `[[peer, start…, size…], …]`.
fn transfers(parts: &[Transfer]) -> Attr {
    let one = |t: &Transfer| Attr::sizes([&[t.peer], &t.start[..], &t.size[..]].concat().as_slice());
    Attr::List(parts.iter().map(one).collect())
}

fn read_transfers(op: &Op, key: &str) -> Result<Vec<Transfer>, TextError> {
    let bad = || op.error(format!("`{key}` is a list of `[peer, start…, size…]`"));
    let Some(Attr::List(rows)) = op.attr(key) else { return Err(bad()) };
    let mut parts = vec![];
    for row in rows {
        let Attr::List(items) = row else { return Err(bad()) };
        let number = |a: &Attr| if let Attr::Int(n) = a { u64::try_from(*n).ok() } else { None };
        let numbers: Vec<u64> = items.iter().map(number).collect::<Option<_>>().ok_or_else(bad)?;
        let (Some((&peer, rest)), 1) = (numbers.split_first(), numbers.len() % 2) else { return Err(bad()) };
        let (start, size) = rest.split_at(rest.len() / 2);
        parts.push(Transfer { peer, start: start.to_vec(), size: size.to_vec() });
    }
    Ok(parts)
}
