//! The runtime function behind a function of the host library.
//!
//! Host code calls it, and so does the interpreter. What is not here takes more than a call: see the places that ask.

use tessera_abi::rt::RtFn::{self, *};

/// How a function of the host library is had from the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Symbol {
    /// A function of the same arguments.
    Direct(RtFn),
    /// With the type of the result behind the arguments.
    Typed(RtFn),
    /// With a number behind the arguments.
    Numbered(RtFn, i64),
    /// `math` of a float, by its number.
    Math(i64),
    /// `math2` of two floats, by its number.
    Math2(i64),
}

use Symbol::{Direct, Math, Math2, Numbered, Typed};

/// By the name that [`crate::ir::TKind::Builtin`] carries.
const SYMBOLS: &[(&str, Symbol)] = &[
    ("range", Direct(range_list)),
    ("chr", Direct(chr)),
    ("ord", Direct(ord)),
    ("float.round", Direct(round_int)),
    ("float.round_digits", Direct(round_digits)),
    ("list.min", Direct(list_min)),
    ("list.max", Direct(list_max)),
    ("list.any", Direct(list_any)),
    ("list.all", Direct(list_all)),
    ("list.sorted", Direct(list_sorted)),
    ("list.sorted_by", Direct(list_sorted_by)),
    ("list.reversed", Direct(list_reversed)),
    ("list.index", Direct(list_index)),
    ("list.count", Direct(list_count)),
    ("dict.keys", Direct(dict_keys)),
    ("dict.values", Direct(dict_values)),
    ("dict.get", Direct(dict_get_or)),
    ("str.list", Direct(str_chars)),
    ("str.splitlines", Direct(str_splitlines)),
    ("str.join", Direct(str_join)),
    ("str.startswith", Direct(str_startswith)),
    ("str.endswith", Direct(str_endswith)),
    ("str.upper", Direct(str_upper)),
    ("str.lower", Direct(str_lower)),
    ("str.find", Direct(str_find)),
    ("str.rfind", Direct(str_rfind)),
    ("str.index", Direct(str_index_of)),
    ("str.count", Direct(str_count)),
    ("str.zfill", Direct(str_zfill)),
    ("str.replace", Direct(str_replace_count)),
    ("str.split", Direct(str_split_max)),
    ("io.read_npy", Direct(io_read_npy)),
    ("io.write_npy", Direct(io_write_npy)),
    ("io.read_idx", Direct(io_read_idx)),
    ("io.write_npz", Direct(io_write_npz)),
    ("io.write_safetensors", Direct(io_write_safetensors)),
    ("io.read_csv", Direct(io_read_csv)),
    ("io.write_csv", Direct(io_write_csv)),
    ("io.read_text", Direct(io_read_text)),
    ("io.write_text", Direct(io_write_text)),
    ("io.append_text", Direct(io_append_text)),
    ("io.read_tokenizer", Direct(io_read_tokenizer)),
    ("io.encode", Direct(io_encode)),
    ("io.decode", Direct(io_decode)),
    ("io.token_id", Direct(io_token_id)),
    ("io.token_count", Direct(io_token_count)),
    ("io.exists", Direct(io_exists)),
    ("io.read_bytes", Direct(io_read_bytes)),
    ("io.draw_lines", Direct(plot_lines)),
    ("io.draw_heat", Direct(plot_heat)),
    ("dist.show", Direct(tensor_show)),
    ("time.now", Direct(time_now)),
    ("time.perf_counter", Direct(time_perf)),
    ("time.sleep", Direct(time_sleep)),
    ("sys.exit", Direct(sys_exit)),
    ("sys.dir", Direct(sys_dir)),
    ("sys.env", Direct(env_get)),
    ("sys.progress", Direct(progress)),
    ("math.gcd", Direct(int_gcd)),
    ("sizes.differ", Direct(sizes_differ)),
    ("tensor.tolist", Typed(tensor_to_list)),
    ("io.read_npz", Typed(io_read_npz)),
    ("io.read_safetensors", Typed(io_read_safetensors)),
    ("io.read_gguf", Typed(io_read_gguf)),
    ("io.read_gguf_meta", Typed(io_read_gguf_meta)),
    ("io.read_onnx_tensors", Typed(io_read_onnx_tensors)),
    ("io.read_lines", Typed(io_read_lines)),
    ("io.load", Typed(io_load)),
    ("sys.args", Typed(sys_args)),
    ("str.isdigit", Numbered(str_is, 0)),
    ("str.isalpha", Numbered(str_is, 1)),
    ("str.isalnum", Numbered(str_is, 2)),
    ("str.isspace", Numbered(str_is, 3)),
    ("str.isupper", Numbered(str_is, 4)),
    ("str.islower", Numbered(str_is, 5)),
    ("str.title", Numbered(str_case, 2)),
    ("str.capitalize", Numbered(str_case, 3)),
    ("str.strip", Numbered(str_strip_chars, 0)),
    ("str.lstrip", Numbered(str_strip_chars, 1)),
    ("str.rstrip", Numbered(str_strip_chars, 2)),
    ("str.ljust", Numbered(str_pad, 0)),
    ("str.rjust", Numbered(str_pad, 1)),
    ("str.center", Numbered(str_pad, 2)),
    ("math.sqrt", Math(0)),
    ("math.exp", Math(1)),
    ("math.log", Math(2)),
    ("math.sin", Math(3)),
    ("math.cos", Math(4)),
    ("math.tan", Math(5)),
    ("math.floor", Math(6)),
    ("math.ceil", Math(7)),
    ("math.tanh", Math(8)),
    ("math.log2", Math(9)),
    ("math.log10", Math(10)),
    ("math.trunc", Math(11)),
    ("math.expm1", Math(12)),
    ("math.log1p", Math(13)),
    ("math.asin", Math(14)),
    ("math.acos", Math(15)),
    ("math.atan", Math(16)),
    ("math.sinh", Math(17)),
    ("math.cosh", Math(18)),
    ("math.erf", Math(19)),
    ("math.atan2", Math2(0)),
    ("math.pow", Math2(1)),
    ("math.hypot", Math2(2)),
];

/// The runtime function behind a function of the host library, where one call is all.
pub fn symbol(name: &str) -> Option<Symbol> {
    SYMBOLS.iter().find(|(n, _)| *n == name).map(|(_, symbol)| *symbol)
}

/// What changes a list or dict in place: the runtime function that takes the old value and the arguments, by the
/// type that holds it and the method's name.
pub fn change(of_dict: bool, method: &str) -> Option<RtFn> {
    Some(match (of_dict, method) {
        (false, "append") => list_push,
        (false, "extend") => list_extend,
        (false, "insert") => list_insert,
        (false, "pop") => list_delete,
        (false, "remove") => list_remove,
        (false, "sort") => list_sort,
        (false, "reverse") => list_reverse,
        (false, "clear") => list_clear,
        (true, "pop") => dict_delete,
        (true, "update") => dict_update,
        (true, "clear") => dict_clear,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::interned;

    #[test]
    fn each_belongs_to_a_function_and_takes_what_it_gives() {
        for (name, symbol) in SYMBOLS {
            assert!(interned(name).is_some(), "`{name}` is no function of the host library");
            let Some(row) = crate::builtins::find(name) else { continue };
            let (func, more) = match *symbol {
                Direct(func) => (func, 0),
                Typed(func) | Numbered(func, _) => (func, 1),
                Math(_) => (math, 1),
                Math2(_) => (math2, 1),
            };
            assert_eq!(func.sig().params.len(), row.params.len() + more, "`{name}`");
        }
    }
}
