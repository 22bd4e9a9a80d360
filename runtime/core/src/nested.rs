//! Nested lists of numbers as tensors, and back.

use crate::fault::Fault;
use crate::tensor::Tensor;
use crate::tensor_index::{convert, fitting, shape_text};
use crate::tensor_print::{Element, element};
use crate::value::{TypeId, TypeInfo, TypeTable, list_words, new_list, record_words, tensor};
use tessera_base::DType;

/// A tensor of the numbers in nested lists or tuples, which must be regular. Without a dtype:
/// bool, i64 or f32 as the numbers are, or the type of the tensors inside.
///
/// # Safety
/// `word` is a live value of type `ty`.
pub unsafe fn to_tensor(types: &TypeTable, word: u64, ty: TypeId, dtype: Option<DType>) -> Result<Tensor, Fault> {
    let mut gathered = Gathered { shape: vec![], dtype: DType::F32, data: vec![], wanted: dtype };
    // SAFETY: the caller's promise.
    unsafe { gather(types, word, ty, 0, &mut gathered) }?;
    let dtype = dtype.unwrap_or(gathered.dtype);
    Ok(Tensor::from_bytes(dtype, &gathered.shape, &gathered.data)?)
}

struct Gathered {
    shape: Vec<u64>,
    /// Of the leaves.
    dtype: DType,
    data: Vec<u8>,
    wanted: Option<DType>,
}

impl Gathered {
    /// Notes the length of a list at a depth; all lists of one depth have one length.
    fn level(&mut self, depth: usize, len: usize) -> Result<(), Fault> {
        match self.shape.get(depth) {
            None => {
                self.shape.push(len as u64);
                Ok(())
            }
            Some(&n) if n == len as u64 => Ok(()),
            Some(&n) => Err(Fault::new(
                708,
                format!("the nested lists are not regular: one has {n} elements, another {len} at depth {}", depth + 1),
            )),
        }
    }

    fn leaf(&mut self, value: Element, dtype: DType) {
        self.dtype = dtype;
        self.data.extend(convert(value, self.wanted.unwrap_or(dtype)));
    }
}

/// # Safety
/// `word` is a live value of type `ty`.
unsafe fn gather(types: &TypeTable, word: u64, ty: TypeId, depth: usize, out: &mut Gathered) -> Result<(), Fault> {
    match types.get(ty) {
        TypeInfo::Int => {
            let n = word as i64;
            out.leaf(out.wanted.map_or(Ok(Element::Int(n)), |dtype| fitting(n, dtype))?, DType::I64)
        }
        TypeInfo::Bool => out.leaf(Element::Bool(word != 0), DType::Bool),
        TypeInfo::Float => out.leaf(Element::Float(f64::from_bits(word)), DType::F32),
        TypeInfo::List(elem) => {
            // SAFETY: a word of a list type.
            let words = unsafe { list_words(word) };
            out.level(depth, words.len())?;
            for &w in words {
                // SAFETY: the list's words are of its element type.
                unsafe { gather(types, w, *elem, depth + 1, out) }?;
            }
        }
        TypeInfo::Tuple(items) => {
            // SAFETY: a word of a tuple type.
            let words = unsafe { record_words(word) };
            out.level(depth, words.len())?;
            for (&w, &item) in words.iter().zip(items) {
                // SAFETY: the record's words are of its field types.
                unsafe { gather(types, w, item, depth + 1, out) }?;
            }
        }
        TypeInfo::Tensor => {
            // SAFETY: a word of the tensor type.
            let t = unsafe { tensor(word) };
            for (i, &n) in t.shape.iter().enumerate() {
                out.level(depth + i, n as usize)?;
            }
            (0..t.elems()).for_each(|i| out.leaf(element(t, i), t.dtype));
        }
        _ => return Err(Fault::new(712, "only numbers can become a tensor")),
    }
    Ok(())
}

/// The elements of a tensor as lists nested as the type says.
pub fn from_tensor(types: &TypeTable, t: &Tensor, ty: TypeId) -> Result<u64, Fault> {
    let mut next = 0;
    let word = list(types, t, ty, 0, &mut next);
    word.ok_or_else(|| {
        Fault::new(708, format!("a tensor of shape {} does not nest like the list", shape_text(&t.shape)))
    })
}

fn list(types: &TypeTable, t: &Tensor, ty: TypeId, depth: usize, next: &mut usize) -> Option<u64> {
    if depth == t.rank() {
        let e = element(t, *next);
        *next += 1;
        return match (types.get(ty), e) {
            (TypeInfo::Int, Element::Int(n)) => Some(n as u64),
            (TypeInfo::Bool, Element::Bool(b)) => Some(u64::from(b)),
            (TypeInfo::Float, Element::Float(x)) => Some(x.to_bits()),
            (TypeInfo::Float, Element::Int(n)) => Some((n as f64).to_bits()),
            _ => None,
        };
    }
    let TypeInfo::List(elem) = types.get(ty) else { return None };
    let words: Option<Vec<u64>> = (0..t.shape[depth]).map(|_| list(types, t, *elem, depth + 1, next)).collect();
    Some(new_list(types, *elem, words?))
}
