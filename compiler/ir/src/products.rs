//! Products in one operation: what a text of Schedule IR or Tile IR may say in place of a whole kernel.
//!
//! ```text
//! %0 = "tessera.schedule.tile"(%A, %B) {m=128, n=128, k=64, autotune=true}
//! %fragC = "tessera.tile.mma_sync"(%fragA, %fragB, %fragC) {m=16, n=16, k=16, dtype="bf16"}
//! ```
//! The first is a product of matrices that is computed in tiles of `m` by `n` and blocks of `k` steps; how large its
//! matrices are, the text leaves open. The second is a product of fragments of just these sizes, added to a third one, on
//! whatever unit does it. Names that nothing defines are inputs. A result may have the name of what it is made of: from
//! there on the name is that of the result. Both stand for a graph, which becomes kernels as any other.
//!
//! | attribute | |
//! |---|---|
//! | `m`, `n`, `k` | rows, columns, steps: of a tile; of a fragment |
//! | `dtype` | of the factors; `f32` where it is left out |
//! | `accum` | of the sum; `f32`, and `f64` of f64 factors, where it is left out |
//! | `autotune` | of a tile: searched for where it runs |

use crate::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use crate::hints::{Autotune, KernelHints};
use crate::text::{Op, TextError};
use std::collections::{BTreeMap, BTreeSet};
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Steps};

/// A product that is computed in tiles.
pub const TILE: &str = "tessera.schedule.tile";
/// A product of fragments.
pub const FRAGMENTS: &str = "tessera.tile.mma_sync";

/// Rows, columns and steps of one product, at most.
const SIZE_MAX: u64 = 1 << 20;
/// Tiles along each dim of a product whose size is left open.
const TILES: u64 = 2;

/// Sizes that are left open, by their names `M`, `N`, `K`.
pub type Sizes = BTreeMap<String, u64>;

/// What such operations compute.
pub struct Products {
    pub graph: Graph,
    /// The inputs as they are called, with their types.
    pub inputs: Vec<(String, NodeType)>,
    /// Sizes that were chosen.
    pub chosen: Sizes,
    /// Sizes that were left open and given.
    pub given: Sizes,
}

impl Products {
    /// Whether a size of this name is left open.
    pub fn takes(&self, name: &str) -> bool {
        self.chosen.contains_key(name) || self.given.contains_key(name)
    }
}

/// Reads operations that are products, one after the other.
///
/// # Errors
/// The place and what is wrong there; any text is safe.
pub fn read(ops: &[Op], given: &Sizes) -> Result<Products, TextError> {
    let mut r = Reader {
        graph: Graph::default(),
        names: BTreeMap::new(),
        inputs: vec![],
        given,
        chosen: Sizes::new(),
        taken: Sizes::new(),
    };
    let (mut results, mut read) = (vec![], BTreeSet::new());
    for op in ops {
        let id = match op.name.as_str() {
            TILE => r.tiled(op, &mut read)?,
            FRAGMENTS => r.fragments(op, &mut read)?,
            _ => return Err(op.error("is no product")),
        };
        let [name] = &op.results[..] else { return Err(op.error("one result is expected")) };
        r.names.insert(name.clone(), id);
        results.push(id);
    }
    r.graph.outputs = results.into_iter().filter(|id| !read.contains(id)).collect();
    r.graph.name = if ops.iter().all(|op| op.name == TILE) { "tile" } else { "mma_sync" }.into();
    Ok(Products { graph: r.graph, inputs: r.inputs, chosen: r.chosen, given: r.taken })
}

struct Reader<'a> {
    graph: Graph,
    /// What a name means now.
    names: BTreeMap<String, NodeId>,
    inputs: Vec<(String, NodeType)>,
    given: &'a Sizes,
    chosen: Sizes,
    taken: Sizes,
}

/// The sizes and types of one product.
struct Form {
    /// Rows, columns, steps.
    sizes: [u64; 3],
    dtype: DType,
    accum: DType,
}

impl Form {
    fn of(op: &Op) -> Result<Form, TextError> {
        let mut sizes = [0; 3];
        for (size, key) in sizes.iter_mut().zip(["m", "n", "k"]) {
            *size = op.index(key)? as u64;
            if !(1..=SIZE_MAX).contains(size) {
                return Err(op.error(format!("the attribute `{key}` must be from 1 to 2^20")));
            }
        }
        let dtype = |key: &str| match op.attr(key) {
            None => Ok(None),
            Some(_) => {
                let text = op.str(key)?;
                DType::parse(text).map(Some).ok_or_else(|| op.error(format!("`{text}` is no element type")))
            }
        };
        let factors = dtype("dtype")?.unwrap_or(DType::F32);
        let narrow = factors.is_float() && factors != DType::F64;
        let accum = dtype("accum")?.unwrap_or(if narrow { DType::F32 } else { factors });
        let sums = match factors {
            DType::F64 => accum == DType::F64,
            _ if narrow => accum == DType::F32,
            _ => false,
        };
        if !sums {
            return Err(op.error(format!("there is no product of {factors} with a sum of {accum}")));
        }
        Ok(Form { sizes, dtype: factors, accum })
    }
}

impl Reader<'_> {
    fn push(&mut self, prim: Prim, operands: Vec<NodeId>, ty: NodeType, kernel: Option<u32>) -> NodeId {
        let origin = Origin { kernel, ..Origin::default() };
        self.graph.push(Node { prim, operands, ty, results: vec![], origin, policy: Policy::default() })
    }

    /// What a name means; an input of this type if nothing has defined it.
    fn operand(&mut self, op: &Op, name: &str, ty: NodeType) -> Result<NodeId, TextError> {
        if let Some(&id) = self.names.get(name) {
            return match self.graph.ty(id) == &ty {
                true => Ok(id),
                false => Err(op.error(format!("`%{name}` is {}, and {ty} is due", self.graph.ty(id)))),
            };
        }
        let at = self.graph.inputs.len() as u32;
        self.graph.inputs.push(Input { name: name.into(), ty: ty.clone(), scalar: false });
        self.inputs.push((name.to_owned(), ty.clone()));
        let id = self.push(Prim::Input(at), vec![], ty, None);
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The size of a matrix that is left open.
    fn open(&mut self, name: &str, tile: u64) -> u64 {
        match self.given.get(name) {
            Some(&n) => {
                self.taken.insert(name.to_owned(), n);
                n
            }
            None => *self.chosen.entry(name.to_owned()).or_insert(tile * TILES),
        }
    }

    fn tiled(&mut self, op: &Op, read: &mut BTreeSet<NodeId>) -> Result<NodeId, TextError> {
        let [a, b] = &op.operands[..] else { return Err(op.error("two operands are expected")) };
        let Form { sizes: [m, n, k], dtype, accum } = Form::of(op)?;
        let dim =
            |r: &Self, name: &String, i: usize| r.names.get(name).and_then(|&id| r.graph.ty(id).shape.get(i).copied());
        let (rows, columns) = (dim(self, a, 0), dim(self, b, 1));
        let steps = dim(self, a, 1).or(dim(self, b, 0));
        let rows = rows.unwrap_or_else(|| self.open("M", m));
        let columns = columns.unwrap_or_else(|| self.open("N", n));
        let steps = steps.unwrap_or_else(|| self.open("K", k));
        let left = self.operand(op, a, NodeType::new(vec![rows, steps], dtype))?;
        let right = self.operand(op, b, NodeType::new(vec![steps, columns], dtype))?;
        read.extend([left, right]);
        let autotune = op.attr("autotune").is_some() && op.bool("autotune")?;
        let hints = KernelHints {
            kernel: "tile".into(),
            tile: vec![m, n, k],
            autotune: autotune.then(|| Autotune::kept_as("tile")),
            ..KernelHints::default()
        };
        let at = self.graph.kernels.iter().position(|h| *h == hints).unwrap_or_else(|| {
            self.graph.kernels.push(hints);
            self.graph.kernels.len() - 1
        });
        let prim = Prim::dot(accum, Steps::All);
        Ok(self.push(prim, vec![left, right], NodeType::new(vec![rows, columns], dtype), Some(at as u32)))
    }

    fn fragments(&mut self, op: &Op, read: &mut BTreeSet<NodeId>) -> Result<NodeId, TextError> {
        let [a, b, c] = &op.operands[..] else { return Err(op.error("three operands are expected")) };
        let Form { sizes: [m, n, k], dtype, accum } = Form::of(op)?;
        let left = self.operand(op, a, NodeType::new(vec![m, k], dtype))?;
        let right = self.operand(op, b, NodeType::new(vec![k, n], dtype))?;
        let ty = NodeType::new(vec![m, n], accum);
        let third = self.operand(op, c, ty.clone())?;
        read.extend([left, right, third]);
        // A factor is a number of the sum's type, exactly.
        let mut wide = |id: NodeId| match self.graph.ty(id).dtype == accum {
            true => id,
            false => {
                let ty = NodeType { dtype: accum, ..self.graph.ty(id).clone() };
                self.push(Prim::Cast, vec![id], ty, None)
            }
        };
        let (left, right) = (wide(left), wide(right));
        let prim = Prim::dot(accum, Steps::All);
        let product = self.push(prim, vec![left, right], ty.clone(), None);
        Ok(self.push(Prim::Map(MapOp::add), vec![third, product], ty, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;
    use crate::verify::verify;

    fn products(text: &str, given: &[(&str, u64)]) -> Result<Products, TextError> {
        let given = given.iter().map(|(name, n)| (name.to_string(), *n)).collect();
        let read = read(&parse(text)?, &given)?;
        assert_eq!(verify(&read.graph), Vec::<String>::new(), "{}", read.graph);
        Ok(read)
    }

    const TILED: &str = "%0 = \"tessera.schedule.tile\"(%A, %B) {m=128, n=128, k=64, autotune=true}";
    const MMA: &str = "%fragC = \"tessera.tile.mma_sync\"(%fragA, %fragB, %fragC) {m=16, n=16, k=16, dtype=\"bf16\"}";

    #[test]
    fn free_names_are_inputs_of_open_or_given_sizes() {
        let read = products(TILED, &[]).unwrap_or_else(|e| panic!("{e:?}"));
        let types: Vec<String> = read.inputs.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
        assert_eq!(types, ["A: Tensor[256, 128, f32]", "B: Tensor[128, 256, f32]"]);
        assert_eq!(read.graph.kernels[0].to_string(), "tile tile=128x128x64 autotune=tile");
        let read = products(TILED, &[("M", 100), ("N", 10), ("K", 7)]).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(read.inputs[1].1.shape, [7, 10]);
        assert!(read.chosen.is_empty());
    }

    #[test]
    fn a_result_takes_over_the_name_of_its_operand() {
        let twice = format!("{MMA}\n{MMA}");
        let read = products(&twice, &[]).unwrap_or_else(|e| panic!("{e:?}"));
        let names: Vec<&str> = read.inputs.iter().map(|i| i.0.as_str()).collect();
        assert_eq!(names, ["fragA", "fragB", "fragC"]);
        assert_eq!(read.graph.outputs.len(), 1);
        let last = read.graph.node(read.graph.outputs[0]);
        assert_eq!(last.prim, Prim::Map(MapOp::add));
        assert_eq!(last.ty, NodeType::new(vec![16, 16], DType::F32));
    }

    #[test]
    fn what_is_no_product_is_told() {
        for (from, to) in [
            ("m=16", "m=0"),
            ("m=16", "m=-1"),
            ("n=16", "n=9000000"),
            ("k=16", "q=16"),
            ("\"bf16\"", "\"bf17\""),
            ("\"bf16\"", "\"i32\""),
            ("\"bf16\"", "\"bf16\", accum=\"f64\""),
            (", %fragC)", ")"),
            ("%fragC = ", ""),
            ("%fragB, %fragC", "%fragA, %fragA"),
        ] {
            let text = MMA.replace(from, to);
            assert_ne!(text, MMA, "{from}");
            assert!(products(&text, &[]).is_err(), "{text}");
        }
        // Sizes that do not fit what is there.
        let text = format!("{MMA}\n%x = \"tessera.tile.mma_sync\"(%fragC, %fragB, %d) {{m=16, n=16, k=8}}");
        assert!(products(&text, &[]).is_err());
    }
}
