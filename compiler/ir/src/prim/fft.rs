use crate::prim::columns::*;

/// A discrete Fourier transform.
pub struct Fft {
    pub fft: prim::Fft,
}

impl Primitive for Fft {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let f = &self.fft;
        // A twist is a factor for each position of the dims after the axis.
        let twist = at.count() > 2;
        let link = |d: usize| {
            if d == f.axis {
                return Link::Along(f.to);
            }
            if twist && d > f.axis {
                return Link::Whole;
            }
            let among = if d < f.axis { d } else { d - 1 };
            Link::Pass(if among < f.to { among } else { among + 1 })
        };
        at.others_whole((0..at.rank(0)).map(link).collect())
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, _: &mut At) -> Pulled {
        Err("a transform whose operator does not state its derivative")
    }

    fn lifted(&self, dims: usize) -> Lifted {
        let f = self.fft;
        Lifted::First(Prim::Fft(prim::Fft { axis: f.axis + dims, to: f.to + dims, ..f }))
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("has kernels of its own"))
    }
}
