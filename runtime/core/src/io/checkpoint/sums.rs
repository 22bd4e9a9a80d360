//! Checksums of a file: a text in its header that has one of each tensor, and one of all texts.

use crate::fault::Fault;
use crate::io::safetensors::Content;
use crate::tensor::Tensor;
use std::collections::BTreeMap;

/// The name of the text.
pub const KEY: &str = "tessera.blake3";
/// Under what the checksum of the texts stands: no tensor has that name.
const TEXTS: &str = "";
/// Bytes of a checksum: 2^-64 of damaged files pass at the most.
const BYTES: usize = 16;

/// Checksums by name.
pub type Sums = BTreeMap<String, String>;

fn hex(hash: blake3::Hash) -> String {
    hash.to_hex()[..2 * BYTES].to_owned()
}

/// Of a tensor: its type and its elements.
pub fn of_tensor(t: &Tensor) -> Result<String, Fault> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{} {:?}", t.dtype, t.shape).as_bytes());
    hasher.update(t.whole()?.host()?);
    Ok(hex(hasher.finalize()))
}

fn of_text(text: &str) -> String {
    hex(blake3::hash(text.as_bytes()))
}

/// Of all texts but the checksums.
fn of_texts(content: &Content) -> String {
    let texts = content.texts.iter().filter(|(name, _)| *name != KEY);
    of_text(&serde_json::Value::from_iter(texts.map(|(name, text)| (name.clone(), text.clone()))).to_string())
}

/// Puts the checksums of all there is into the content; their hash.
pub fn add(content: &mut Content) -> Result<String, Fault> {
    let mut sums = Sums::from([(TEXTS.into(), of_texts(content))]);
    for (name, t) in &content.tensors {
        sums.insert(name.clone(), of_tensor(t)?);
    }
    content.texts.insert(KEY.into(), serde_json::Value::from_iter(sums).to_string());
    Ok(hash(content).unwrap_or_default())
}

/// The hash of the checksums; `None` without any.
pub fn hash(content: &Content) -> Option<String> {
    content.texts.get(KEY).map(|text| of_text(text))
}

/// The checksums that a file has, unless another program wrote it.
pub fn read(content: &Content) -> Option<Sums> {
    serde_json::from_str(content.texts.get(KEY)?).ok()
}

/// Whether the texts are as their checksum says.
pub fn texts_fit(sums: &Sums, content: &Content) -> bool {
    sums.get(TEXTS).is_some_and(|sum| *sum == of_texts(content))
}
