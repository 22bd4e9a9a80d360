//! Leaves of a product ([`tessera_ops::prim::fold`]) and its blocks: which steps a block holds, and where sums wait for others.

use super::{Compute, Product};
use crate::nest::Nest;
use tessera_ir::index::Index;
use tessera_ir::tile::{Fold, Panel};
use tessera_ops::prim::fold::{block, levels};

impl<'s> Product<'s> {
    /// Steps of a block of about `kc` positions along the contracted axis.
    pub(super) fn block_steps(&self, kc: u64) -> u64 {
        block(kc, self.depth(), self.leaf, self.order.unit().max(self.lanes as u64))
    }

    fn leaves(&self) -> u64 {
        self.depth().div_ceil(self.leaf)
    }

    /// Levels of the tree that are empty between blocks: all where there is one block.
    fn inner(&self) -> u64 {
        let (all, per_block) = (u64::from(levels(self.leaves())), self.kc / self.leaf);
        match self.blocks() {
            1 => all,
            _ if per_block.is_power_of_two() => u64::from(per_block.ilog2()).min(all),
            _ => 0,
        }
    }

    /// Room for the sums that wait, of `tiles` register tiles where they last from block to block.
    pub(super) fn slots(&self, n: &mut Nest<'s>, tiles: u64) -> Option<u32> {
        let all = u64::from(levels(self.leaves()));
        let elems = (self.inner() + tiles * (all - self.inner())) * self.tile_elems() as u64;
        (all > 0).then(|| n.scratch("waiting", self.accum, elems))
    }

    fn tile_elems(&self) -> i64 {
        (self.rows * self.panel()) as i64
    }
}

impl<'s> Compute<'_, 's> {
    /// How the leaves of a block meet in register tile number `tile`.
    pub(super) fn fold(&self, n: &mut Nest<'s>, block: &Index, tile: &Index) -> Option<Fold> {
        let (p, buf) = (self.p, self.slots?);
        let (leaf, per_block) = (p.leaf as i64, (p.kc / p.leaf) as i64);
        let (levels, inner, apart) = (i64::from(levels(p.leaves())), p.inner() as i64, p.tile_elems());
        let first = |block: &Index| if p.blocks() == 1 { Index::default() } else { block.times(per_block) };
        let reached = self.reach.as_ref().map(|r| r.offset(leaf - 1).div(leaf, &|v| n.range(v)));
        Some(Fold {
            leaf: leaf / p.span() as i64,
            first: first(block),
            begin: first(&self.first),
            leaves: [Index::constant(p.leaves() as i64)].into_iter().chain(reached).collect(),
            slots: Panel { buf, at: Index::default(), row: p.panel() as i64, step: 0 },
            apart,
            inner,
            lasting: tile.times((levels - inner) * apart).offset(inner * apart),
            levels,
        })
    }
}
