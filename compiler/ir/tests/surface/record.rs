//! A graph builder that only records types, and notes the first node that is not well formed.

use tessera_base::DType;
use tessera_ir::reference::shape_check;
use tessera_ops::prim::Prim;
use tessera_ops::reference::TypeRef;
use tessera_ops::surface::*;

#[derive(Default)]
pub struct Recorder {
    pub nodes: Vec<(Vec<u64>, DType)>,
    pub wrong: Option<String>,
    /// Whether a matrix product is among them.
    pub product: bool,
    /// Whether an elementwise function, a conversion or a constant is.
    pub steps: bool,
    /// Whether anything is whose elements depend on others than those at their place.
    pub others: bool,
}

impl Recorder {
    pub fn input(&mut self, shape: Vec<u64>, dtype: DType) -> Id {
        self.nodes.push((shape, dtype));
        Id(self.nodes.len() as u32 - 1)
    }
}

impl Build for Recorder {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.nodes[id.0 as usize].0.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.nodes[id.0 as usize].1
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let types: Vec<TypeRef> = operands
            .iter()
            .map(|o| {
                let (shape, dtype) = &self.nodes[o.0 as usize];
                TypeRef { dtype: *dtype, shape }
            })
            .collect();
        if let Err(why) = shape_check(&prim, &types, TypeRef { dtype, shape: &shape }) {
            let text = format!("{prim:?} of {types:?} as {shape:?} {dtype}: {why}");
            self.wrong.get_or_insert(text);
        }
        let trailing: Vec<usize> = (0..shape.len()).rev().collect();
        match &prim {
            Prim::Map(_) | Prim::Check(_) | Prim::Cast | Prim::Part { .. } | Prim::Complex | Prim::Full { .. } => {
                self.steps = true;
            }
            // As operands of an elementwise function broadcast.
            Prim::Broadcast { dims } => self.others |= !dims.iter().rev().eq(trailing.iter().take(dims.len())),
            _ => self.others = true,
        }
        self.product |= matches!(prim, Prim::Dot { .. });
        self.input(shape, dtype)
    }
}
