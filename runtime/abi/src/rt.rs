//! The runtime functions that compiled host code calls: one row each.
//!
//! Types: `i` int or bool (i64), `f` float (f64), `p` a heap object or None (i64 pointer),
//! `w` one word of any type (i64; a float by its bits). Every function takes the context
//! pointer first; `fails` marks functions that can fail: they set `ctx.status` and return 0, and
//! take one more argument at the end, the span id (i64). `consumes` marks functions that take
//! over their first argument; one that fails gives it back unchanged instead of 0, so that the
//! variable it came from keeps its value.

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Word {
    Int,
    Float,
    Ptr,
    Any,
    Unit,
}

/// The signature of a runtime function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtSig {
    pub name: &'static str,
    pub params: &'static [Word],
    pub ret: Word,
    pub fails: bool,
    pub consumes_first: bool,
}

macro_rules! word {
    (i) => {
        Word::Int
    };
    (f) => {
        Word::Float
    };
    (p) => {
        Word::Ptr
    };
    (w) => {
        Word::Any
    };
    (u) => {
        Word::Unit
    };
}
macro_rules! flag {
    () => {
        false
    };
    ($x:tt) => {
        true
    };
}

macro_rules! rt_table {
    ($($(#[doc = $doc:literal])* $name:ident ( $($p:ident),* ) $r:ident $(fails $f:tt)? $(consumes $c:tt)? ;)*) => {
        /// A runtime function.
        #[allow(non_camel_case_types, reason = "variants are the symbols' names")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum RtFn { $($(#[doc = $doc])* $name),* }

        impl RtFn {
            pub const ALL: &[RtFn] = &[$(RtFn::$name),*];

            pub fn sig(self) -> RtSig {
                match self { $(RtFn::$name => RtSig {
                    name: stringify!($name),
                    params: &[$(word!($p)),*],
                    ret: word!($r),
                    fails: flag!($($f)?),
                    consumes_first: flag!($($c)?),
                }),* }
            }
        }
    };
}

rt_table! {
    // Counting. `retain` returns its argument. Types of words are TypeIds where needed.
    /// One more owner of a heap object (0 is allowed).
    retain(p) p;
    /// One owner less; frees the object and its parts.
    release(p) u;
    /// The object itself if it has one owner, else a copy of its top level.
    unique(p) p consumes y;

    // Printing and text.
    /// `print`: a list of (word, type id) pairs is passed piece by piece, then `print_end`.
    print_value(w, i) u fails y;
    /// A separator or any text.
    print_text(p) u fails y;
    /// `str(x)` of a value with its type.
    to_str(w, i) p;
    /// `repr(x)`.
    to_repr(w, i) p;
    /// `format(x, spec)`.
    format_value(w, i, p) p fails y;

    // Strings: lengths and indices count characters.
    str_concat(p, p) p fails y;
    /// `a = a + b` in place when no one else holds `a`.
    str_append(p, p) p fails y consumes y;
    str_repeat(p, i) p fails y;
    str_len(p) i;
    str_index(p, i) p fails y;
    /// start, stop, step; a bound that is absent is i64::MIN.
    str_slice(p, i, i, i) p fails y;
    /// -1, 0, 1.
    str_compare(p, p) i;
    str_contains(p, p) i;
    /// Separator None splits on white space.
    str_split(p, p) p fails y;
    /// At most so many splits; -1 for all.
    str_split_max(p, p, i) p fails y;
    str_join(p, p) p fails y;
    str_strip(p, p) p;
    str_lstrip(p, p) p;
    str_rstrip(p, p) p;
    /// Without the characters of a set: string, set, 0 both ends 1 start 2 end.
    str_strip_chars(p, p, i) p;
    str_replace(p, p, p) p fails y;
    /// At most so many replacements; -1 for all.
    str_replace_count(p, p, p, i) p fails y;
    str_startswith(p, p) i;
    str_endswith(p, p) i;
    str_upper(p) p;
    str_lower(p) p;
    str_find(p, p) i;
    str_rfind(p, p) i;
    /// Fails where it does not occur.
    str_index_of(p, p) i fails y;
    /// By number: 0 isdigit 1 isalpha 2 isalnum 3 isspace 4 isupper 5 islower.
    str_is(p, i) i;
    /// By number: 0 upper 1 lower 2 title 3 capitalize.
    str_case(p, i) p;
    /// String, width, fill, 0 ljust 1 rjust 2 center.
    str_pad(p, i, p, i) p fails y;
    str_zfill(p, i) p fails y;
    /// Its characters as strings.
    str_chars(p) p fails y;
    str_count(p, p) i;
    str_isdigit(p) i;
    str_splitlines(p) p;
    /// `"…".format(args)`: template, list of already formatted `str`.
    str_to_int(p) i fails y;
    str_to_float(p) f fails y;
    chr(i) p fails y;
    ord(p) i fails y;

    // Numbers.
    /// An operation on numbers by its place in the compiler's table of them, on words; of one operand, on it twice.
    number(i, w, w) w fails y;
    /// `round(x, n)`.
    round_digits(f, i) f;
    int_gcd(i, i) i fails y;

    // Equality and order of any two values of one type.
    value_eq(w, w, i) i fails y;
    /// -1, 0, 1; lists and tuples in dictionary order.
    value_compare(w, w, i) i fails y;

    // Lists. Elements are words; the element type id is kept in the list.
    list_new(i, i) p;
    list_push(p, w) p fails y consumes y;
    list_len(p) i;
    /// Owned element.
    list_get(p, i) w fails y;
    list_concat(p, p) p fails y;
    list_repeat(p, i) p fails y;
    list_slice(p, i, i, i) p fails y;
    list_contains(p, w) i fails y;
    list_index(p, w) i fails y;
    list_count(p, w) i fails y;
    list_sorted(p, i) p fails y;
    list_reversed(p) p;
    list_insert(p, i, w) p fails y consumes y;
    list_extend(p, p) p fails y consumes y;
    list_clear(p) p consumes y;
    list_reverse(p) p consumes y;
    list_sort(p, i) p fails y consumes y;
    list_remove(p, w) p fails y consumes y;
    /// Returns the list without the element; the element is what `list_get` gave before.
    list_delete(p, i) p fails y consumes y;
    /// The address of an element's word; the list must be unique.
    list_slot(p, i) i fails y;
    range_list(i, i, i) p fails y;
    /// Sum, least, greatest of a list of ints or floats.
    list_sum_int(p) i fails y;
    list_sum_float(p) f;
    list_min(p) w fails y;
    list_max(p) w fails y;
    /// Of a list of bools.
    list_any(p) i;
    list_all(p) i;
    /// A list in the order of its keys (a list of the same length), stable; 1 for descending.
    list_sorted_by(p, p, i) p fails y;

    // Records (tuples and structs).
    record_new(i, i) p;
    /// The address of a field's word; the record must be unique when it is written through.
    record_slot(p, i) i;

    // Dicts keep insertion order. Keys are strings, ints or bools, as words.
    dict_new(i) p;
    dict_set(p, w, w) p fails y consumes y;
    dict_get(p, w) w fails y;
    /// With a default.
    dict_get_or(p, w, w) w;
    dict_contains(p, w) i;
    dict_len(p) i;
    dict_keys(p) p;
    dict_values(p) p;
    dict_items(p, i) p;
    dict_delete(p, w) p fails y consumes y;
    /// With the entries of another dict.
    dict_update(p, p) p fails y consumes y;
    dict_clear(p) p consumes y;
    /// The address of an entry's word; the dict must be unique; the entry must exist.
    dict_slot(p, w) i fails y;

    // Closures.
    /// Code address, number of captures; captures are stored through `closure_slot`.
    closure_new(i, i) p;
    closure_slot(p, i) i;
    closure_code(p) i;
    /// The type ids of the captures, for release.
    closure_set_type(p, i, i) u;

    // Tensors.
    tensor_rank(p) i;
    /// Size of one dim; negative counts from the end.
    tensor_dim(p, i) i fails y;
    /// A tuple of ints of the type id given.
    tensor_shape(p, i) p;
    tensor_dtype(p) i;
    /// The one element of a tensor with one element, as the scalar asked for.
    tensor_to_float(p) f fails y;
    tensor_to_int(p) i fails y;
    tensor_to_bool(p) i fails y;
    /// A rank-0 f64, i64 or bool tensor.
    tensor_from_float(f) p;
    tensor_from_int(i) p;
    tensor_from_bool(i) p;
    /// Basic indexing without a kernel: for each dim three words in a list of ints
    /// (start, stop, step; `i64::MIN` absent) and a fourth that is 0 slice, 1 int (drops the dim),
    /// 2 new axis. Leading-dim slices share memory; others copy.
    tensor_index(p, p) p fails y;
    /// `x[index] = value` with the same index encoding: base (consumed), index, tensor value
    /// that broadcasts along the dims whose bit is set. In place when unique.
    tensor_assign(p, p, p, i) p fails y consumes y;
    /// Nested list to tensor: list, its type id, dtype code (-1: default).
    tensor_from_list(p, i, i) p fails y;
    /// Tensor to nested lists, given the list's type id.
    tensor_to_list(p, i) p fails y;
    /// One element of the leading dim as a tensor (iteration).
    tensor_row(p, i) p fails y;
    /// Prints which device of a mesh holds what of a tensor.
    tensor_show(p) u;
    tensor_eq_all(p, p) i;
    /// Fails with E0707/E0708 unless rank, dtype and the sizes that are given hold.
    /// tensor, dtype code or -1, list of sizes (i64::MIN = any, i64::MIN + 1 = any leading dims), name,
    /// the declared type in words where the data comes from outside the program (else empty).
    tensor_check(p, i, p, p, p) u fails y;
    /// Sizes are not what the types say (E0708): the message, then a note on each further line, and the ints
    /// that stand for each `{}` in it.
    sizes_differ(p, p) u fails y;

    // Regions: region id, address and number of the argument words, the same of the result words.
    // The arguments belong to the call: a tensor with one owner dies after it, so that its
    // memory may be reused.
    region_call(i, i, i, i, i) u fails y;

    // Input and output.
    io_read_npy(p) p fails y;
    io_write_npy(p, p) u fails y;
    io_read_idx(p) p fails y;
    /// A dict of tensors, given its type id.
    io_read_npz(p, i) p fails y;
    io_write_npz(p, p) u fails y;
    /// path, delimiter, header lines to skip, dtype code.
    io_read_csv(p, p, i, i) p fails y;
    /// path, tensor, delimiter, header line (empty: none).
    io_write_csv(p, p, p, p) u fails y;
    io_read_text(p) p fails y;
    io_write_text(p, p) u fails y;
    io_append_text(p, p) u fails y;
    io_read_lines(p, i) p fails y;
    io_read_safetensors(p, i) p fails y;
    io_write_safetensors(p, p) u fails y;
    /// path, value of any type, its type id.
    io_save(p, w, i) u fails y;
    /// path, value that says what to read, prefix of names, whether more may be there, type id.
    io_load(p, w, p, i, i) w fails y;
    /// path, whether word pieces are for small letters; gives a number.
    io_read_tokenizer(p, i) i fails y;
    /// tokeniser, text, whether with special tokens; a list of ints.
    io_encode(i, p, i) p fails y;
    io_decode(i, p, i) p fails y;
    io_token_id(i, p) i fails y;
    io_token_count(i) i fails y;
    io_read_gguf(p, i) p fails y;
    /// A dict of strings, given its type id.
    io_read_gguf_meta(p, i) p fails y;
    /// The constants of an ONNX file by name.
    io_read_onnx_tensors(p, i) p fails y;
    io_exists(p) i;
    io_read_bytes(p) p fails y;
    /// path, channels; and path, pixels, quality.
    io_read_image(p, i) p fails y;
    io_write_image(p, p, i) u fails y;
    /// path; a tuple of samples and rate, given its type id.
    io_read_wav(p, i) p fails y;
    /// path, samples, rate, bits.
    io_write_wav(p, p, i, i) u fails y;
    /// path, columns (a line each: name, a space, dtype or `str`), delimiter, whether there is a number for missing ones,
    /// which, the first row, how many (the largest int: all); a struct of the columns, given its type id.
    io_read_table(p, p, p, i, i, i, i, i) p fails y;
    /// path, what is read after it, their first rows, bytes of values that may be kept, the rows of the first file (0: not known).
    io_prefetch(p, p, i, i, i, i) u fails y;
    /// path, delimiter.
    io_count_rows(p, p) i fails y;
    /// path, a struct of columns, delimiter, the struct's type id.
    io_write_table(p, w, p, i) u fails y;
    /// path, whether more may be there, type id.
    io_read_json(p, i, i) w fails y;
    /// path, value, its type id.
    io_write_json(p, w, i) u fails y;
    /// Pattern of paths; a list of strings, given its type id.
    io_glob(p, i) p fails y;
    /// A figure, path (empty: the result is text), width, height, the figure's type.
    plot_draw(w, p, i, i, i) p fails y;
    /// Prints a figure, or shows it where pictures can be: figure, width, height, its type.
    plot_show(w, i, i, i) u fails y;

    // Time, system, progress.
    time_now() f;
    /// Seconds of a clock that never goes back.
    time_perf() f;
    time_sleep(f) u fails y;
    sys_args(i) p;
    /// The directory of the program's file, for data that lies beside it.
    sys_dir() p;
    sys_exit(i) u fails y;
    /// A progress bar on stderr when it is a terminal: current, total, text.
    progress(i, i, p) u;
    /// An environment variable, or the default.
    env_get(p, p) p;
    /// A line of the standard input, given what is shown before.
    read_line(p) p fails y;

    // Profiles of functions.
    /// Runs before, and measured runs.
    measure_begin(i, i) u fails y;
    /// A run ended: its value, and the type of that.
    measure_turn(w, i) u fails y;
    /// A list of texts, given its type.
    measure_end(i) p fails y;

    // Failure. Message is a string; code is a number such as 705.
    fail(i, p) u fails y;
    /// The step of a `range` is 0.
    fail_step() u fails y;
    /// A function of the program failed: adds the place of its call to the failure.
    called_from() u fails y;
    /// The stack limit is passed.
    fail_stack() u fails y;
    /// A global that has no value yet, by its id.
    fail_unset(i) u fails y;
    /// Called at loop back edges when the interrupt flag is set.
    interrupted() u fails y;
}
