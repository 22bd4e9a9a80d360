use crate::prim::columns::*;

/// A loop over a body of the graph.
pub struct Scan {
    pub body: u32,
    pub carry: usize,
    pub sequences: usize,
    pub trips: u64,
    pub reversed: bool,
    pub until: bool,
}

impl Primitive for Scan {
    /// The graph around it is looked at ([`Primitive::stands`]).
    fn shape(&self, _: &[TypeRef], _: TypeRef) -> rule::Check {
        Ok(())
    }

    /// Carries keep their types; sequences lose their leading dim inside; the results are the carries and the stacked outputs.
    fn stands(&self, at: Site) -> rule::Check {
        let (n, carry, trips) = (at.node, self.carry, self.trips);
        let body = at.g.bodies.get(self.body as usize).ok_or("its body does not exist")?;
        if body.inputs.len() != n.operands.len() {
            return Err(format!("its body has {} inputs for {} operands", body.inputs.len(), n.operands.len()));
        }
        for (i, (&o, input)) in n.operands.iter().zip(&body.inputs).enumerate() {
            let outside: &NodeType = at.g.ty(o);
            let inside = if (carry..carry + self.sequences).contains(&i) {
                if outside.shape.first() != Some(&trips) {
                    return Err(format!("sequence {i} has no leading dim of {trips}"));
                }
                NodeType::new(outside.shape[1..].to_vec(), outside.dtype)
            } else {
                outside.unsharded()
            };
            if inside != input.ty {
                return Err(format!("operand {i} is {inside} inside, the body declares {}", input.ty));
            }
        }
        if self.until {
            let leads = [DType::Bool, DType::I64].map(|dtype| NodeType::new(vec![], dtype));
            let carried = body.inputs.iter().take(carry).map(|i| &i.ty);
            ensure(leads.iter().eq(carried.take(leads.len())) && self.sequences == 0, || {
                "a loop that ends by itself carries a bool and an i64 first, and has no sequences".into()
            })?;
        }
        let result = |(i, &o): (usize, &NodeId)| {
            let ty = body.ty(o);
            if i < carry { ty.unsharded() } else { ty.stacked(trips) }
        };
        let expected: Vec<NodeType> = body.outputs.iter().enumerate().map(result).collect();
        ensure(expected == n.results, || "its results are not those of its body".into())
    }

    /// Its body is a region of the operation.
    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("carry", self.carry);
        put.place("sequences", self.sequences);
        put.size("trips", self.trips);
        if self.reversed {
            put.bool("reversed", true);
        }
        if self.until {
            put.bool("until", true);
        }
        "scan".into()
    }

    fn read(name: &str, op: &Op, around: &mut Around) -> Option<Read> {
        (name == "scan").then(|| {
            Ok(Prim::Scan {
                body: around.body(op)?,
                carry: op.index("carry")?,
                sequences: op.index("sequences")?,
                trips: op.index("trips")? as u64,
                reversed: op.bool("reversed").unwrap_or(false),
                until: op.bool("until").unwrap_or(false),
            })
        })
    }

    /// It belongs to the graph around it (`tessera_ir::interpret`).
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

    /// The walk goes through loops and their results itself (`tessera_autodiff`).
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    /// Its body is another one.
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
        Err(q.refuse("is a loop over kernels"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    /// What its turns cost comes on top.
    fn cost(&self, _: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: 0.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "scan".into()
    }
}
