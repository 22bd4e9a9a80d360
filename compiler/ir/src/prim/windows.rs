use crate::prim::columns::*;
use crate::prim::slice::place;

/// Sliding windows over the last dims.
pub struct Windows<'a> {
    pub stride: &'a [u64],
    pub dilation: &'a [u64],
}

impl Primitive for Windows<'_> {
    /// Every window lies inside the operand.
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let (stride, dilation) = (self.stride, self.dilation);
        count(x, 1)?;
        dtype_is(x[0], result)?;
        let (n, rank) = (stride.len(), x[0].shape.len());
        ensure(dilation.len() == n && n <= rank, || format!("{n} strides for a rank {rank} array"))?;
        ensure(result.shape.len() == rank + n, || format!("{} dims instead of {}", result.shape.len(), rank + n))?;
        let lead = rank - n;
        ensure(result.shape[..lead] == x[0].shape[..lead], || "the leading dims differ".into())?;
        for i in 0..n {
            let (d, o, k) = (x[0].shape[lead + i], result.shape[lead + i], result.shape[rank + i]);
            ensure(stride[i] > 0 && dilation[i] > 0, || format!("stride or dilation {i} is 0"))?;
            let last = |count: u64, step: u64| u128::from(count.saturating_sub(1)) * u128::from(step);
            let inside = o == 0 || k == 0 || last(o, stride[i]) + last(k, dilation[i]) < u128::from(d);
            ensure(inside, || format!("{o} windows of {k} leave dim {} of size {d}", lead + i))?;
        }
        Ok(())
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.sizes("stride", self.stride);
        put.sizes("dilation", self.dilation);
        "windows".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let read = || Ok(Prim::Windows { stride: op.sizes("stride")?, dilation: op.sizes("dilation")? });
        (name == "windows").then(read)
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::windows(x[0], self.stride, self.dilation, result.shape))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        let before = rank.saturating_sub(self.stride.len());
        let link = |d: usize| {
            let Some(i) = d.checked_sub(before) else { return Link::Pass(d) };
            let count = at.result()[rank + i].saturating_sub(1) * self.dilation[i] + 1;
            Link::Reach(d, Reach::Steps { start: 0, step: self.stride[i] as i64, count })
        };
        vec![(0..rank).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// Every place in the window puts its elements back; the windows of one place do not overlap.
    fn pull(&self, at: &mut At) -> Pulled {
        let (n, whole, shape) = (self.stride.len(), at.shape(at.x[0]), at.shape(at.c));
        let lead = whole.len() - n;
        let (counts, kernel) = (shape[lead..lead + n].to_vec(), shape[lead + n..].to_vec());
        let part_shape = [&whole[..lead], &counts[..]].concat();
        let places: u64 = kernel.iter().product();
        let mut sum: Option<Id> = None;
        for place_number in 0..places {
            let (mut rest, mut offset) = (place_number, vec![0; n]);
            for d in (0..n).rev() {
                offset[d] = rest % kernel[d];
                rest /= kernel[d];
            }
            let start: Vec<i64> = [vec![0; lead + n], offset.iter().map(|&o| o as i64).collect()].concat();
            let mut one = part_shape.clone();
            one.extend(vec![1; n]);
            let dtype = at.dtype(at.c);
            let step = vec![1; start.len()];
            let picked = at.w.push(Prim::Slice { start, step }, &[at.c], one, dtype);
            let picked = expand::reshape(at.w, picked, &part_shape);
            let from: Vec<i64> =
                (0..lead).map(|_| 0).chain(offset.iter().zip(self.dilation).map(|(o, d)| (o * d) as i64)).collect();
            let step: Vec<i64> = (0..lead).map(|_| 1).chain(self.stride.iter().map(|&s| s as i64)).collect();
            let back = place(at, at.x[0], picked, &from, &step);
            sum = Some(match sum {
                None => back,
                Some(sum) => expand::map(at.w, MapOp::add, &[sum, back]),
            });
        }
        Ok(vec![sum])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Windows { stride: self.stride.to_vec(), dilation: self.dilation.to_vec() })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let rank = b.graph.ty(x).shape.len();
        let lead = rank.saturating_sub(self.stride.len());
        let windowed = self
            .stride
            .iter()
            .zip(self.dilation)
            .enumerate()
            .map(|(i, (s, d))| q.along(lead + i).times(*s as i64).plus(&q.along(rank + i).times(*d as i64)));
        let inner: Vec<Index> = (0..lead).map(|i| q.along(i)).chain(windowed).collect();
        b.value(x, &inner, q.guards, q.part)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(1)
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(0.0), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: false, step: false, selects: true, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "windows".into()
    }
}
