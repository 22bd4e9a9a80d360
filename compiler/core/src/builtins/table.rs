//! The rows of [`Builtin`].

use super::rules::{is_int_list, is_number, is_ordered, is_text_list, is_truth};
use super::{Def, Does, Fallback, Gives, How, Kind, Made as M, Param, Rule, Traced, Tracing as T};
use crate::ty::{Ty, same_form};
use Fallback::{Bool as B, DType as D, Int as I, Str as S};
use How::{Direct, Made, Number, Numbered, Typed, Valued};
use Traced::{As, Known, Never};
use tessera_abi::rt::RtFn::*;
use tessera_base::DType;
use tessera_ops::numbers::NumberOp as N;

host_functions! {
    str_split "str.split" (text: Str, sep: Str = S(""), maxsplit: Int = I(-1)) StrList, Pure, Direct(str_split_max), Known,
        "The parts between separators; white space where none is given.";
    str_splitlines "str.splitlines" (text: Str) StrList, Pure, Direct(str_splitlines), Known,
        "The lines, without their ends.";
    str_join "str.join" (sep: Str, parts: StrList) Str, Pure, Direct(str_join), Known,
        "The parts with the string between them.";
    str_strip "str.strip" (text: Str, chars: Str = S("")) Str, Pure, Numbered(str_strip_chars, 0), Known,
        "Without white space (or `chars`) at both ends.";
    str_lstrip "str.lstrip" (text: Str, chars: Str = S("")) Str, Pure, Numbered(str_strip_chars, 1), Known,
        "Without white space (or `chars`) at the start.";
    str_rstrip "str.rstrip" (text: Str, chars: Str = S("")) Str, Pure, Numbered(str_strip_chars, 2), Known,
        "Without white space (or `chars`) at the end.";
    str_replace "str.replace" (text: Str, old: Str, new: Str, count: Int = I(-1)) Str, Pure, Direct(str_replace_count), Known,
        "With `old` replaced by `new`, at most `count` times.";
    str_startswith "str.startswith" (text: Str, prefix: Str) Bool, Pure, Direct(str_startswith), Known,
        "Whether it starts with the prefix.";
    str_endswith "str.endswith" (text: Str, suffix: Str) Bool, Pure, Direct(str_endswith), Known,
        "Whether it ends with the suffix.";
    str_upper "str.upper" (text: Str) Str, Pure, Direct(str_upper), Known,
        "In capitals.";
    str_lower "str.lower" (text: Str) Str, Pure, Direct(str_lower), Known,
        "In small letters.";
    str_title "str.title" (text: Str) Str, Pure, Numbered(str_case, 2), Known,
        "With a capital at each word.";
    str_capitalize "str.capitalize" (text: Str) Str, Pure, Numbered(str_case, 3), Known,
        "With one capital at the start.";
    str_find "str.find" (text: Str, sub: Str) Int, Pure, Direct(str_find), Known,
        "Where `sub` occurs first, or -1.";
    str_rfind "str.rfind" (text: Str, sub: Str) Int, Pure, Direct(str_rfind), Known,
        "Where `sub` occurs last, or -1.";
    str_index "str.index" (text: Str, sub: Str) Int, Pure, Direct(str_index_of), Known,
        "Where `sub` occurs first. Fails where it does not.";
    str_count "str.count" (text: Str, sub: Str) Int, Pure, Direct(str_count), Known,
        "How often `sub` occurs without overlap.";
    str_isdigit "str.isdigit" (text: Str) Bool, Pure, Numbered(str_is, 0), Known,
        "Whether all characters are digits, and there is one.";
    str_isalpha "str.isalpha" (text: Str) Bool, Pure, Numbered(str_is, 1), Known,
        "Whether all characters are letters, and there is one.";
    str_isalnum "str.isalnum" (text: Str) Bool, Pure, Numbered(str_is, 2), Known,
        "Whether all characters are letters or digits, and there is one.";
    str_isspace "str.isspace" (text: Str) Bool, Pure, Numbered(str_is, 3), Known,
        "Whether all characters are white space, and there is one.";
    str_isupper "str.isupper" (text: Str) Bool, Pure, Numbered(str_is, 4), Known,
        "Whether all letters are capitals, and there is one.";
    str_islower "str.islower" (text: Str) Bool, Pure, Numbered(str_is, 5), Known,
        "Whether all letters are small, and there is one.";
    str_ljust "str.ljust" (text: Str, width: Int, fill: Str = S(" ")) Str, Pure, Numbered(str_pad, 0), Known,
        "Filled up at the end.";
    str_rjust "str.rjust" (text: Str, width: Int, fill: Str = S(" ")) Str, Pure, Numbered(str_pad, 1), Known,
        "Filled up at the start.";
    str_center "str.center" (text: Str, width: Int, fill: Str = S(" ")) Str, Pure, Numbered(str_pad, 2), Known,
        "Filled up at both ends.";
    str_zfill "str.zfill" (text: Str, width: Int) Str, Pure, Direct(str_zfill), Known,
        "Filled up with zeros behind the sign.";

    io_read_npy "io.read_npy" (path: Str) AnyTensor, Acts, Direct(io_read_npy), Never("it reads or writes files"),
        "The tensor in a `.npy` file.";
    io_write_npy "io.write_npy" (path: Str, x: Tensor) None, Acts, Direct(io_write_npy), Never("it reads or writes files"),
        "Writes a `.npy` file, atomically.";
    io_read_idx "io.read_idx" (path: Str) AnyTensor, Acts, Direct(io_read_idx), Never("it reads or writes files"),
        "The tensor in an IDX file, as MNIST has them; gzip is unpacked.";
    io_read_bytes "io.read_bytes" (path: Str) AnyTensor, Acts, Direct(io_read_bytes), Never("it reads or writes files"),
        "The bytes of a file as a `u8` tensor of rank 1.";
    io_read_npz "io.read_npz" (path: Str) TensorDict, Acts, Typed(io_read_npz), Never("it reads or writes files"),
        "The tensors in a `.npz` file by name.";
    io_write_npz "io.write_npz" (path: Str, tensors: TensorDict) None, Acts, Direct(io_write_npz), Never("it reads or writes files"),
        "Writes a `.npz` file, atomically.";
    io_read_safetensors "io.read_safetensors" (path: Str) TensorDict, Acts, Typed(io_read_safetensors), Never("it reads or writes files"),
        "The tensors in a safetensors file by name.";
    io_write_safetensors "io.write_safetensors" (path: Str, tensors: TensorDict) None, Acts, Direct(io_write_safetensors), Never("it reads or writes files"),
        "Writes a safetensors file, atomically.";
    io_read_gguf "io.read_gguf" (path: Str) TensorDict, Acts, Typed(io_read_gguf), Never("it reads or writes files"),
        "The tensors in a GGUF file by name; quantised ones as blocks of bytes for `op.dequantize`.";
    io_read_gguf_meta "io.read_gguf_meta" (path: Str) StrDict, Acts, Typed(io_read_gguf_meta), Never("it reads or writes files"),
        "The metadata in a GGUF file by key, as texts; lists of texts are left out.";
    io_read_onnx_tensors "io.read_onnx_tensors" (path: Str) TensorDict, Acts, Typed(io_read_onnx_tensors), Never("it reads or writes files"),
        "The constants in an ONNX file by name; what `io.read_onnx` reads weights with.";
    io_read_csv "io.read_csv" (path: Str, delimiter: Str = S(","), skip: Int = I(0), dtype: DType = D(DType::F32)) Matrix, Acts, Direct(io_read_csv), Never("it reads or writes files"),
        "The numbers of a CSV file as a matrix; `skip` lines are left out at the top.";
    io_write_csv "io.write_csv" (path: Str, x: Tensor, delimiter: Str = S(","), header: Str = S("")) None, Acts, Direct(io_write_csv), Never("it reads or writes files"),
        "Writes a matrix as CSV, atomically.";
    io_read_text "io.read_text" (path: Str) Str, Acts, Direct(io_read_text), Never("it reads or writes files"),
        "The UTF-8 text of a file.";
    io_write_text "io.write_text" (path: Str, text: Str) None, Acts, Direct(io_write_text), Never("it reads or writes files"),
        "Writes a text file, atomically.";
    io_append_text "io.append_text" (path: Str, text: Str) None, Acts, Direct(io_append_text), Never("it reads or writes files"),
        "Appends to a text file.";
    io_read_lines "io.read_lines" (path: Str) StrList, Acts, Typed(io_read_lines), Never("it reads or writes files"),
        "The lines of a text file, without their ends.";
    io_read_tokenizer "io.read_tokenizer" (path: Str, lowercase: Bool = B(true)) Int, Acts, Direct(io_read_tokenizer), Never("it reads or writes files"),
        "The number of the tokeniser in a `tokenizer.json` or a GGUF file, or of the word pieces in a `vocab.txt`; `std.tokens` has it as a struct.";
    io_encode "io.encode" (tokenizer: Int, text: Str, special: Bool = B(true)) IntList, Acts, Direct(io_encode), Never("tokenisers belong to host code"),
        "The tokens of a text; with `special` also those that mark its ends.";
    io_decode "io.decode" (tokenizer: Int, ids: IntList, special: Bool = B(false)) Str, Acts, Direct(io_decode), Never("tokenisers belong to host code"),
        "The text of tokens; with `special` also those that stand for no text.";
    io_token_id "io.token_id" (tokenizer: Int, token: Str) Int, Acts, Direct(io_token_id), Never("tokenisers belong to host code"),
        "The number of a token as it stands in the vocabulary, or -1.";
    io_token_count "io.token_count" (tokenizer: Int) Int, Acts, Direct(io_token_count), Never("tokenisers belong to host code"),
        "How many tokens a tokeniser has.";
    io_read_image "io.read_image" (path: Str, channels: Int = I(3)) Image, Acts, Direct(io_read_image), Never("it reads or writes files"),
        "The pixels of a PNG, JPEG or WebP file from 0 to 255: 1 channel is grey, 3 are red, green and blue, 4 have the opacity as well.";
    io_write_image "io.write_image" (path: Str, x: Image, quality: Int = I(90)) None, Acts, Direct(io_write_image), Never("it reads or writes files"),
        "Writes `u8` pixels [height, width] or [height, width, channels] as `.png`, `.webp` (both keep every bit) or `.jpg` (of a quality from 1 to 100), atomically.";
    io_read_wav "io.read_wav" (path: Str) Sound, Acts, Typed(io_read_wav), Never("it reads or writes files"),
        "The samples of a WAV file between -1 and 1, a row for each channel, and how many there are in a second.";
    io_write_wav "io.write_wav" (path: Str, x: Sound, rate: Int, bits: Int = I(16)) None, Acts, Direct(io_write_wav), Never("it reads or writes files"),
        "Writes `f32` samples [samples] or [channels, samples] as a WAV file, atomically: whole numbers of 16 or 24 `bits`, or floats of 32.";
    io_count_rows "io.count_rows" (path: Str, delimiter: Str = S(",")) Int, Acts, Direct(io_count_rows), Never("it reads or writes files"),
        "How many rows a table has: comma-separated text (without its heading), JSON lines or Parquet. The file may be larger than the memory.";
    io_prefetch "io.prefetch" (path: Str, next: Str, first: Int = I(0), next_first: Int = I(0), keep: Int = I(0), rows: Int = I(0)) None, Acts, Direct(io_prefetch), Never("it reads or writes files"),
        "Says that `next` is read after `path`, in the same way: when the program has read `path`, a thread reads and decodes `next` while the program goes on. Of tables `first` and `next_first` are their first rows. Of what was read, values of `keep` bytes in all are kept for the next time. Where `rows` says how many rows the table `path` has, another number is an error (E0707) when it is read. What the program gets is the same with and without it.";
    io_glob "io.glob" (pattern: Str) StrList, Acts, Typed(io_glob), Never("it reads or writes files"),
        "The paths of files and folders that a pattern fits, in order: `*` is any part of a name, `?` one character, `**` folders of any depth.";
    io_exists "io.exists" (path: Str) Bool, Acts, Direct(io_exists), Never("it reads or writes files"),
        "Whether a file or folder of this path exists.";

    dist_show "dist.show" (x: Tensor) None, Acts, Direct(tensor_show), Never("it prints"),
        "Prints which device of the mesh holds what of a tensor.";

    time_now "time.now" () Float, Acts, Direct(time_now), Never("it looks at the clock"),
        "Seconds since 1970.";
    time_perf_counter "time.perf_counter" () Float, Acts, Direct(time_perf), Never("it looks at the clock"),
        "Seconds of a clock that never goes back.";
    time_sleep "time.sleep" (seconds: Float) None, Acts, Direct(time_sleep), Never("it waits"),
        "Waits.";

    sys_exit "sys.exit" (code: Int = I(0)) Never, Acts, Direct(sys_exit), Never("it ends the program"),
        "Ends the program with an exit code.";
    sys_env "sys.env" (name: Str, default: Str = S("")) Str, Acts, Direct(env_get), Never("it looks at the world outside"),
        "An environment variable.";
    sys_read_line "sys.read_line" (prompt: Str = S("")) Str, Acts, Direct(read_line), Never("it looks at the world outside"),
        "Shows the prompt and gives the next line of the standard input with its end, as Python's `sys.stdin.readline`; empty where no more comes.";
    sys_progress "sys.progress" (current: Int, total: Int, text: Str = S("")) None, Acts, Direct(progress), Never("it shows progress"),
        "Shows how far a loop is, with the time that is left: on a line of a terminal, which is written over, or as a bar in a notebook; nothing elsewhere. It draws ten times a second at most.";

    math_sqrt "math.sqrt" (x: Float) Float, Pure, Number(N::math_sqrt), As(T::Number),
        "The square root; fails for negative numbers.";
    math_exp "math.exp" (x: Float) Float, Certain, Number(N::math_exp), As(T::Number),
        "The exponential.";
    math_expm1 "math.expm1" (x: Float) Float, Certain, Number(N::math_expm1), As(T::Number),
        "exp(x) - 1, exact near 0.";
    math_log "math.log" (x: Float) Float, Pure, Number(N::math_log), As(T::Number),
        "The natural logarithm; fails for numbers that are not positive.";
    math_log1p "math.log1p" (x: Float) Float, Pure, Number(N::math_log1p), As(T::Number),
        "log(1 + x), exact near 0.";
    math_log2 "math.log2" (x: Float) Float, Pure, Number(N::math_log2), As(T::Number),
        "The logarithm to base 2.";
    math_log10 "math.log10" (x: Float) Float, Pure, Number(N::math_log10), As(T::Number),
        "The logarithm to base 10.";
    math_sin "math.sin" (x: Float) Float, Pure, Number(N::math_sin), As(T::Number),
        "The sine.";
    math_cos "math.cos" (x: Float) Float, Pure, Number(N::math_cos), As(T::Number),
        "The cosine.";
    math_tan "math.tan" (x: Float) Float, Pure, Number(N::math_tan), As(T::Number),
        "The tangent.";
    math_asin "math.asin" (x: Float) Float, Pure, Number(N::math_asin), As(T::Number),
        "The inverse sine.";
    math_acos "math.acos" (x: Float) Float, Pure, Number(N::math_acos), As(T::Number),
        "The inverse cosine.";
    math_atan "math.atan" (x: Float) Float, Certain, Number(N::math_atan), As(T::Number),
        "The inverse tangent.";
    math_atan2 "math.atan2" (y: Float, x: Float) Float, Certain, Number(N::math_atan2), As(T::Number),
        "The angle of a point.";
    math_sinh "math.sinh" (x: Float) Float, Certain, Number(N::math_sinh), As(T::Number),
        "The hyperbolic sine.";
    math_cosh "math.cosh" (x: Float) Float, Certain, Number(N::math_cosh), As(T::Number),
        "The hyperbolic cosine.";
    math_tanh "math.tanh" (x: Float) Float, Certain, Number(N::math_tanh), As(T::Number),
        "The hyperbolic tangent.";
    math_erf "math.erf" (x: Float) Float, Certain, Number(N::math_erf), As(T::Number),
        "The error function.";
    math_erfc "math.erfc" (x: Float) Float, Certain, Number(N::math_erfc), As(T::Number),
        "One minus the error function, with the digits of its tail.";
    math_asinh "math.asinh" (x: Float) Float, Certain, Number(N::math_asinh), As(T::Number),
        "The inverse hyperbolic sine.";
    math_cbrt "math.cbrt" (x: Float) Float, Certain, Number(N::math_cbrt), As(T::Number),
        "The cube root.";
    math_pow "math.pow" (x: Float, y: Float) Float, Pure, Number(N::math_pow), As(T::Number),
        "x to the power y.";
    math_hypot "math.hypot" (x: Float, y: Float) Float, Certain, Number(N::math_hypot), As(T::Number),
        "The length of a vector.";
    math_floor "math.floor" (x: Float) Int, Pure, Number(N::float_floor), As(T::Number),
        "The greatest int that is not greater.";
    math_ceil "math.ceil" (x: Float) Int, Pure, Number(N::float_ceil), As(T::Number),
        "The least int that is not less.";
    math_trunc "math.trunc" (x: Float) Int, Pure, Number(N::float_trunc), As(T::Number),
        "Without the fraction.";
    math_fabs "math.fabs" (x: Float) Float, Certain, Number(N::float_abs), As(T::Number),
        "The absolute value.";
    math_isnan "math.isnan" (x: Float) Bool, Certain, Number(N::math_isnan), As(T::Number),
        "Whether it is NaN.";
    math_isinf "math.isinf" (x: Float) Bool, Certain, Number(N::math_isinf), As(T::Number),
        "Whether it is infinite.";
    math_isfinite "math.isfinite" (x: Float) Bool, Certain, Number(N::math_isfinite), As(T::Number),
        "Whether it is neither NaN nor infinite.";
    math_gcd "math.gcd" (a: Int, b: Int) Int, Pure, Direct(int_gcd), Known,
        "The greatest common divisor.";

    chr "chr" (code: Int) Str, Pure, Direct(chr), Known,
        "The character of a code point.";

    ord "ord" (c: Str) Int, Pure, Direct(ord), Known,
        "The code point of one character.";

    // With a rule of their own in the checker and in `verify::host`; their text says what they take.
    print "print" by ([sep, end, ..], _ => [sep, end].iter().all(|t| matches!(t, Ty::Str | Ty::None))), Acts, Made(M::Print), Never("it prints"),
        "sep: str, end: str, then the values";
    len "len" by ([x], Ty::Int(_) => matches!(x, Ty::Str | Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_)) || x.is_tensor()), Certain, Made(M::Len), As(T::Len),
        "x: str, list or dict -> int";
    range "range" by ([Ty::Int(_), Ty::Int(_), Ty::Int(_)], ty => is_int_list(ty)), Pure, Direct(range_list), As(T::Range),
        "start, stop, step: int -> list[int]";
    int_abs "int.abs" by ([Ty::Int(_)], Ty::Int(_) => true), Pure, Number(N::int_abs), As(T::Number),
        "int -> int";
    float_abs "float.abs" by ([Ty::Float], Ty::Float => true), Certain, Number(N::float_abs), As(T::Number),
        "float -> float";
    float_round "float.round" by ([Ty::Float], Ty::Int(_) => true), Pure, Number(N::float_round), As(T::Number),
        "float -> int, half to even";
    float_round_digits "float.round_digits" by ([Ty::Float, Ty::Int(_)], Ty::Float => true), Pure, Direct(round_digits), Known,
        "float, digits: int -> float";
    min "min" by ([first, rest @ ..], ty => is_ordered(first) && rest.iter().all(|t| same_form(first, t)) && same_form(first, ty)), Certain, Made(M::Least), As(T::Least),
        "two or more ints, floats or strs of one type";
    max "max" by ([first, rest @ ..], ty => is_ordered(first) && rest.iter().all(|t| same_form(first, t)) && same_form(first, ty)), Certain, Made(M::Greatest), As(T::Greatest),
        "two or more ints, floats or strs of one type";
    list_min "list.min" by ([Ty::List(t)], ty => same_form(t, ty)), Pure, Direct(list_min), As(T::ListLeast),
        "list of int, float or str; fails when empty";
    list_max "list.max" by ([Ty::List(t)], ty => same_form(t, ty)), Pure, Direct(list_max), As(T::ListGreatest),
        "list of int, float or str; fails when empty";
    list_sum "list.sum" by ([Ty::List(t)], ty => is_number(ty) && same_form(t, ty)), Pure, Made(M::Sum), As(T::Sum),
        "list of int or float";
    list_any "list.any" by ([Ty::List(t)], Ty::Bool => is_truth(t)), Pure, Direct(list_any), As(T::Any),
        "list[bool]";
    list_all "list.all" by ([Ty::List(t)], Ty::Bool => is_truth(t)), Pure, Direct(list_all), As(T::All),
        "list[bool]";
    list_sorted "list.sorted" by ([list @ Ty::List(_), Ty::Bool], ty => same_form(list, ty)), Pure, Direct(list_sorted), As(T::Sorted),
        "list, reverse: bool -> list";
    list_sorted_by "list.sorted_by" by ([list @ Ty::List(_), Ty::List(_), Ty::Bool], ty => same_form(list, ty)), Pure, Direct(list_sorted_by), As(T::SortedBy),
        "list, keys: list of the same length, reverse: bool -> list";
    list_reversed "list.reversed" by ([list @ Ty::List(_)], ty => same_form(list, ty)), Pure, Direct(list_reversed), As(T::Reversed),
        "list -> list";
    list_index "list.index" by ([Ty::List(t), x], Ty::Int(_) => same_form(t, x)), Pure, Direct(list_index), As(T::Index),
        "list, element -> int; fails where it does not occur";
    list_count "list.count" by ([Ty::List(t), x], Ty::Int(_) => same_form(t, x)), Pure, Direct(list_count), As(T::Count),
        "list, element -> int";
    dict_keys "dict.keys" by ([Ty::Dict(k, _)], Ty::List(t) => same_form(t, k)), Pure, Direct(dict_keys), As(T::Keys),
        "dict -> list";
    dict_values "dict.values" by ([Ty::Dict(_, v)], Ty::List(t) => same_form(t, v)), Pure, Direct(dict_values), As(T::Values),
        "dict -> list";
    dict_items "dict.items" by ([Ty::Dict(k, v)], Ty::List(t) => matches!(&**t, Ty::Tuple(ts) if ts.len() == 2 && same_form(&ts[0], k) && same_form(&ts[1], v))), Pure, Made(M::Items), As(T::Items),
        "dict -> list of (key, value)";
    dict_get "dict.get" by ([Ty::Dict(k, v), key, default], ty => same_form(k, key) && same_form(v, default) && same_form(v, ty)), Pure, Direct(dict_get_or), As(T::Get),
        "dict, key, default -> value";
    str_list "str.list" by ([Ty::Str], ty => is_text_list(ty)), Pure, Direct(str_chars), Known,
        "str -> list[str], its characters";
    tile_program_id "tile.program_id" by ([_], _ => true), Acts, Made(M::Tile), As(T::ProgramId),
        "axis: int -> int; in tile programs only";
    tile_load "tile.load" by ([_, _, _, _], _ => true), Acts, Made(M::Tile), As(T::Load),
        "tensor, tuple of ints (which tile), tuple of ints (its sizes), number (where it sticks out) -> tile";
    tile_store "tile.store" by ([_, _, _], _ => true), Acts, Made(M::Tile), As(T::Store),
        "output, tuple of ints (which tile), tile";
    io_save "io.save" by ([Ty::Str, _], Ty::None => true), Acts, Valued(io_save, 1), Never("it writes files"),
        "path: str, value";
    io_draw "io.draw" by ([_, Ty::Str, Ty::Int(_), Ty::Int(_)], Ty::Str => true), Acts, Valued(plot_draw, 0), Never("it draws"),
        "figure, path: str, width: int, height: int -> str, the figure as text where there is no path";
    io_show "io.show" by ([_, Ty::Int(_), Ty::Int(_)], Ty::None => true), Acts, Valued(plot_show, 0), Never("it draws"),
        "figure, width: int, height: int";
    io_load "io.load" by ([Ty::Str, like, Ty::Str, Ty::Bool], ty => same_form(like, ty)), Acts, Typed(io_load), Never("it reads files"),
        "path: str, like: value, prefix: str, extra: bool -> the type of like";
    io_read_table "io.read_table" by ([Ty::Str, Ty::Str, Ty::Str, Ty::Bool, Ty::Int(_), Ty::Int(_), Ty::Int(_)], Ty::Struct(_) => true), Acts, Typed(io_read_table), Never("it reads files"),
        "path: str, columns: str, delimiter: str, has missing: bool, missing: int, first: int, rows: int (negative: all) -> a struct of columns";
    io_write_table "io.write_table" by ([Ty::Str, Ty::Struct(_), Ty::Str], Ty::None => true), Acts, Valued(io_write_table, 1), Never("it writes files"),
        "path: str, a struct of columns, delimiter: str";
    io_read_json "io.read_json" by ([Ty::Str, Ty::Bool], _ => true), Acts, Typed(io_read_json), Never("it reads files"),
        "path: str, extra: bool -> a value of the type that is asked for";
    io_write_json "io.write_json" by ([Ty::Str, _], Ty::None => true), Acts, Valued(io_write_json, 1), Never("it writes files"),
        "path: str, value";
    sys_args "sys.args" by ([], ty => is_text_list(ty)), Acts, Typed(sys_args), Never("it looks at the world outside"),
        "no arguments -> list[str]";
    sys_dir "sys.dir" by ([], Ty::Str => true), Acts, Direct(sys_dir), Never("it looks at the world outside"),
        "no arguments -> str";

    // Names that no program spells: what the checker calls for it.
    measure_begin "measure.begin" by ([Ty::Int(_), Ty::Int(_)], Ty::None => true), Acts, Direct(measure_begin), Never("it measures"),
        "runs before: int, measured runs: int; begins a profile of a function";
    measure_turn "measure.turn" by ([_], Ty::None => true), Acts, Valued(measure_turn, 0), Never("it measures"),
        "value; a run of the function that is profiled ended with it";
    measure_end "measure.end" by ([], ty => is_text_list(ty)), Acts, Typed(measure_end), Never("it measures"),
        "no arguments -> list[str], the rows of the profile";
    sizes_differ "sizes.differ" by ([Ty::Str, sizes], _ => is_int_list(sizes)), Pure, Direct(sizes_differ), As(T::Differ),
        "text, values: list[int]; stops the program, the text with the values in its braces";
    tensor_size "tensor.size" by ([x], Ty::Int(_) => x.is_tensor()), Certain, Made(M::Size), As(T::Size),
        "tensor -> int, how many elements it has";
    tensor_tolist "tensor.tolist" by ([x], _ => x.is_tensor()), Pure, Typed(tensor_to_list), Never("it reads what a tensor holds"),
        "tensor -> nested lists";
    list_sum_of_none "list.sum_of_none" by ([], _ => true), Pure, Made(M::NoSum), As(T::NoSum),
        "stops the program: a sum of tensors has none to start with";
}
