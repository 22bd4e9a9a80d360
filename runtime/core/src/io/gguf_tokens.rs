//! The tokeniser in a GGUF file's metadata: byte-level BPE, put in the words of a `tokenizer.json`.

use super::gguf::{self, File, List, Value as Meta};
use super::tokens;
use crate::fault::{Fault, shown};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Kinds of tokens, as `token_type` numbers them.
const CONTROL: u64 = 3;
const USER_DEFINED: u64 = 4;

/// The number of the tokeniser in a file.
pub fn read(path: &Path) -> Result<usize, Fault> {
    let what = format!("`{}` has no readable tokeniser", shown(path));
    let found =
        gguf::with_file(path, |_, file| description(&file).map_err(|why| Fault::new(707, format!("{what}: {why}"))))?;
    tokens::register(&found.to_string(), &what)
}

fn text<'a>(file: &File<'a>, key: &str) -> Option<&'a str> {
    match file.get(key) {
        Some(Meta::Text(t)) => Some(t),
        _ => None,
    }
}

fn list<'f, 'a>(file: &'f File<'a>, key: &str) -> Result<&'f List<'a>, String> {
    match file.get(key) {
        Some(Meta::List(l)) => Ok(l),
        _ => Err(format!("the list `{key}` is missing")),
    }
}

/// A number that is not negative.
fn count(value: &Meta) -> Option<u64> {
    match value {
        Meta::Unsigned(n) => Some(*n),
        Meta::Int(n) => u64::try_from(*n).ok(),
        _ => None,
    }
}

/// How texts are divided before pairs are merged.
fn divider(kind: &str) -> Option<Value> {
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    match kind {
        "default" | "gpt-2" => Some(bytes),
        "smollm" | "starcoder" | "refact" | "command-r" => {
            let digits = json!({"type": "Digits", "individual_digits": true});
            Some(json!({"type": "Sequence", "pretokenizers": [digits, bytes]}))
        }
        _ => None,
    }
}

fn description(file: &File) -> Result<Value, String> {
    let model = text(file, "tokenizer.ggml.model").ok_or("`tokenizer.ggml.model` is missing")?;
    if model != "gpt2" {
        return Err(format!("its model is `{model}`; byte-level BPE (`gpt2`) can be read"));
    }
    let kind = text(file, "tokenizer.ggml.pre").unwrap_or("default");
    let divider = divider(kind).ok_or_else(|| format!("how it divides texts (`{kind}`) is not known here"))?;
    let pieces: Vec<&str> = list(file, "tokenizer.ggml.tokens")?.texts().collect();
    let merges: Vec<&str> = list(file, "tokenizer.ggml.merges")?.texts().collect();
    let mut added = vec![];
    if let Ok(kinds) = list(file, "tokenizer.ggml.token_type") {
        for (id, (piece, kind)) in pieces.iter().zip(kinds.numbers()).enumerate() {
            let kind = count(&kind);
            if matches!(kind, Some(CONTROL | USER_DEFINED)) {
                added.push(json!({"id": id, "content": piece, "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": kind == Some(CONTROL)}));
            }
        }
    }
    let first = match (file.get("tokenizer.ggml.add_bos_token"), file.get("tokenizer.ggml.bos_token_id")) {
        (Some(Meta::Bool(true)), Some(id)) => {
            count(id).and_then(|id| usize::try_from(id).ok()).filter(|id| *id < pieces.len())
        }
        _ => None,
    };
    let vocabulary: Map<String, Value> = pieces.iter().enumerate().map(|(i, p)| ((*p).to_owned(), json!(i))).collect();
    Ok(json!({
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": divider,
        "post_processor": first.map(|id| begins_with(pieces[id], id)),
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": merges},
    }))
}

/// Texts begin with a token.
fn begins_with(piece: &str, id: usize) -> Value {
    let first = json!({"SpecialToken": {"id": piece, "type_id": 0}});
    let sequence = |name: &str, at: u32| json!({"Sequence": {"id": name, "type_id": at}});
    json!({
        "type": "TemplateProcessing",
        "single": [first, sequence("A", 0)],
        "pair": [first, sequence("A", 0), sequence("B", 1)],
        "special_tokens": {piece: {"id": piece, "ids": [id], "tokens": [piece]}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(parts: &[&str]) -> Vec<u8> {
        let mut out = [8u32.to_le_bytes().to_vec(), (parts.len() as u64).to_le_bytes().to_vec()].concat();
        for p in parts {
            out.extend((p.len() as u64).to_le_bytes());
            out.extend(p.as_bytes());
        }
        out
    }

    fn word(t: &str) -> Vec<u8> {
        [(t.len() as u64).to_le_bytes().to_vec(), t.into()].concat()
    }

    fn sample(kind: &str, bos: u8) -> Vec<u8> {
        let pieces = ["<s>", "h", "i", "Ġ", "1", "2", "hi", "Ġhi"];
        let types =
            [5u32.to_le_bytes().to_vec(), 8u64.to_le_bytes().to_vec(), vec![3, 0, 0, 0], [1, 0, 0, 0].repeat(7)];
        let keys: [(&str, u32, Vec<u8>); 7] = [
            ("tokenizer.ggml.model", 8, word("gpt2")),
            ("tokenizer.ggml.pre", 8, word(kind)),
            ("tokenizer.ggml.tokens", 9, texts(&pieces)),
            ("tokenizer.ggml.merges", 9, texts(&["h i", "Ġ hi"])),
            ("tokenizer.ggml.token_type", 9, types.concat()),
            ("tokenizer.ggml.add_bos_token", 7, vec![bos]),
            ("tokenizer.ggml.bos_token_id", 4, vec![0; 4]),
        ];
        gguf::tests::file(&keys, &[])
    }

    fn made(bytes: &[u8]) -> Result<i64, String> {
        let file = gguf::parse(bytes)?;
        Ok(tokens::register(&description(&file)?.to_string(), "test").map_err(|f| f.message)? as i64)
    }

    #[test]
    fn texts_become_merged_pairs_and_single_digits() -> Result<(), String> {
        let t = made(&sample("smollm", 0))?;
        let encode = |text: &str| tokens::encode(t, text, true).map_err(|f| f.message);
        assert_eq!(encode("hi hi12<s>")?, [6, 7, 4, 5, 0]);
        assert_eq!(tokens::decode(t, &[6, 7, 4, 5, 0], true).map_err(|f| f.message)?, "hi hi12<s>");
        assert_eq!(tokens::decode(t, &[6, 7, 4, 5, 0], false).map_err(|f| f.message)?, "hi hi12");
        let t = made(&sample("gpt-2", 1))?;
        assert_eq!(tokens::encode(t, "hi", true).map_err(|f| f.message)?, [0, 6]);
        Ok(())
    }

    #[test]
    fn what_is_not_known_is_told() {
        assert_eq!(made(&sample("x", 0)).err().as_deref(), Some("how it divides texts (`x`) is not known here"));
        let none = gguf::tests::file(&[], &[]);
        assert_eq!(made(&none).err().as_deref(), Some("`tokenizer.ggml.model` is missing"));
    }
}
