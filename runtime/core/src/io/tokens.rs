//! Tokenisers: text to numbers and back, as a `tokenizer.json` or a `vocab.txt` says.
//!
//! A program holds a tokeniser by its number; the process keeps what was read, each content once.

use super::files;
use crate::fault::{Fault, shown};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokenizers::Tokenizer;

/// Largest description that is read.
const BYTES_MAX: usize = 256 << 20;

/// The pieces of a BERT vocabulary that stand for no text.
const BERT_SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];

/// What was read, with the hash of the description.
static KNOWN: Mutex<Vec<(blake3::Hash, Arc<Tokenizer>)>> = Mutex::new(vec![]);

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread is caught here and told as a fault, so that a panic hook has
/// nothing to say about it.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// Runs library code that may panic on data that it did not expect; nothing where it did.
pub(super) fn quietly<T>(f: impl FnOnce() -> T) -> Option<T> {
    GUARDED.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(f));
    GUARDED.set(false);
    outcome.ok()
}

fn guarded<T>(what: &str, f: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, Fault> {
    match quietly(f) {
        Some(Ok(value)) => Ok(value),
        Some(Err(e)) => Err(Fault::new(707, format!("{what}: {e}"))),
        None => Err(Fault::new(707, format!("{what}: its description contradicts itself"))),
    }
}

/// The number of the tokeniser in a file: a `tokenizer.json`, the one inside a GGUF file, or else a list of word pieces, one
/// a line, as BERT uses them (`lowercase` says whether its texts are to be in small letters).
pub fn read(path: &Path, lowercase: bool) -> Result<usize, Fault> {
    if files::begins_with(path, b"GGUF")? {
        return super::gguf_tokens::read(path);
    }
    let text = files::read_text(path)?;
    let what = format!("`{}` is not a readable tokeniser", shown(path));
    if text.trim_start().starts_with('{') {
        return register(&text, &what);
    }
    let pieces: Vec<&str> = text.lines().map(str::trim_end).collect();
    match word_pieces(&pieces, lowercase) {
        Some(description) => register(&description.to_string(), &what),
        None => Err(Fault::new(707, format!("{what}: neither JSON nor a list of word pieces with {BERT_SPECIAL:?}"))),
    }
}

/// The description of a BERT tokeniser; `None` if it lacks a special piece.
fn word_pieces(pieces: &[&str], lowercase: bool) -> Option<Value> {
    let id = |piece: &str| pieces.iter().position(|p| *p == piece);
    let mut added = vec![];
    for piece in BERT_SPECIAL {
        added.push(json!({"id": id(piece)?, "content": piece, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true}));
    }
    let vocabulary: Map<String, Value> = pieces.iter().enumerate().map(|(i, p)| ((*p).to_owned(), json!(i))).collect();
    Some(json!({
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
            "strip_accents": null, "lowercase": lowercase},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", id("[SEP]")?], "cls": ["[CLS]", id("[CLS]")?]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    }))
}

/// The number of the tokeniser that a description (the text of a `tokenizer.json`) makes; `what`
/// begins the message if it makes none. Padding and truncation of the description are left out:
/// programs pad and cut what they need.
pub fn register(description: &str, what: &str) -> Result<usize, Fault> {
    if description.len() > BYTES_MAX {
        return Err(Fault::new(
            707,
            format!("{what}: it is larger than {}", crate::fault::human_bytes(BYTES_MAX as u64)),
        ));
    }
    let hash = blake3::hash(description.as_bytes());
    let mut known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(at) = known.iter().position(|(h, _)| *h == hash) {
        return Ok(at);
    }
    let made = guarded(what, || {
        let mut made = Tokenizer::from_bytes(description)?;
        made.with_padding(None);
        made.with_truncation(None)?;
        Ok(made)
    })?;
    known.push((hash, Arc::new(made)));
    Ok(known.len() - 1)
}

fn find(number: i64) -> Result<Arc<Tokenizer>, Fault> {
    let known = KNOWN.lock().unwrap_or_else(|e| e.into_inner());
    let found = usize::try_from(number).ok().and_then(|i| known.get(i));
    found.map(|(_, t)| t.clone()).ok_or_else(|| {
        Fault::new(711, format!("there is no tokeniser {number}")).note("`io.read_tokenizer` gives the number of one")
    })
}

/// The numbers of a text's tokens; with `special`, also those that mark its ends.
pub fn encode(number: i64, text: &str, special: bool) -> Result<Vec<u32>, Fault> {
    let tokenizer = find(number)?;
    guarded("the text cannot be divided into tokens", || Ok(tokenizer.encode_fast(text, special)?.get_ids().to_vec()))
}

/// The text of tokens; with `special`, also those that stand for no text.
pub fn decode(number: i64, ids: &[i64], special: bool) -> Result<String, Fault> {
    let tokenizer = find(number)?;
    let size = tokenizer.get_vocab_size(true);
    let id = |&id: &i64| {
        let known = u32::try_from(id).ok().filter(|&i| (i as usize) < size || tokenizer.id_to_token(i).is_some());
        known.ok_or_else(|| Fault::new(711, format!("there is no token {id}: the tokeniser has {size}")))
    };
    let ids: Vec<u32> = ids.iter().map(id).collect::<Result<_, Fault>>()?;
    guarded("the tokens do not make a text", || tokenizer.decode(&ids, !special))
}

/// The number of a token by its text as it stands in the vocabulary; -1 where it does not.
pub fn id_of(number: i64, token: &str) -> Result<i64, Fault> {
    Ok(find(number)?.token_to_id(token).map_or(-1, i64::from))
}

/// How many tokens there are, with those added to the vocabulary.
pub fn size(number: i64) -> Result<i64, Fault> {
    Ok(find(number)?.get_vocab_size(true) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&str; 10] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##want", "##ed", "run", ","];

    fn sample() -> Result<i64, Fault> {
        let description = word_pieces(&PIECES, true).ok_or_else(|| Fault::new(707, "no description"))?;
        Ok(register(&description.to_string(), "test")? as i64)
    }

    #[test]
    fn word_pieces_are_the_longest_that_fit() -> Result<(), Fault> {
        let t = sample()?;
        assert_eq!(encode(t, "Unwanted, RUN", true)?, [2, 5, 6, 7, 9, 8, 3]);
        assert_eq!(encode(t, "run walk", false)?, [8, 1]);
        assert_eq!(decode(t, &[2, 5, 6, 7, 9, 8, 3], false)?, "unwanted, run");
        assert_eq!((id_of(t, "run")?, id_of(t, "walk")?, size(t)?), (8, -1, 10));
        assert_eq!(decode(t, &[10], false).err().map(|e| e.code), Some(711));
        assert_eq!(sample()?, t, "the same description is the same tokeniser");
        Ok(())
    }

    #[test]
    fn bad_descriptions_are_faults() -> Result<(), Fault> {
        assert!(word_pieces(&PIECES[1..], true).is_none());
        for bad in
            ["{", "{}", "{\"decoder\":\"byte_f\"}", "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[\"a b\"]}}"]
        {
            assert_eq!(register(bad, "test").err().map(|e| e.code), Some(707), "{bad}");
        }
        assert_eq!(encode(1 << 40, "", false).err().map(|e| e.code), Some(711));
        let whole = word_pieces(&PIECES, false).unwrap_or_default().to_string();
        // Any prefix, and the text without any one byte.
        for cut in (0..whole.len()).step_by(7) {
            let _ = register(&whole[..cut], "test");
            let _ = register(&format!("{}{}", &whole[..cut], &whole[cut + 1..]), "test");
        }
        Ok(())
    }
}
