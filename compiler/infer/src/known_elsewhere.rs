//! What people who come from Python, NumPy, PyTorch and JAX write, and what stands for it here. Names are looked up when they
//! mean nothing in the program.

/// Modules of Python, by the first part of their path.
pub fn module(path: &str) -> Option<&'static str> {
    Some(match path.split('.').next().unwrap_or(path) {
        "matplotlib" | "seaborn" | "plotly" => "figures are in `std.plot`",
        "typing" | "types" | "collections" | "abc" => {
            "types need no import: `int`, `list[int]`, `dict[str, float]`, `tuple[int, str]`, `(A) -> B`, `Tensor[N, D, f32]`"
        }
        "__future__" => "leave it out: types are checked before the program runs",
        "os" | "pathlib" | "shutil" | "glob" => {
            "files are read and written with `io`; `sys.dir`, `sys.args` and `sys.env(name, default)` tell of the program"
        }
        "json" => {
            "JSON is read as a value of a type: `io.read_json(path, list[float])`, and written with `io.write_json`"
        }
        "PIL" | "cv2" | "imageio" => "pictures are read with `io.read_image(path)`, as `u8` tensors",
        "wave" | "soundfile" | "torchaudio" | "librosa" => "sound is read with `io.read_wav(path)`",
        "pickle" | "h5py" => "values are kept with `io.save(path, value)` and `io.load(path, like=value)`",
        "csv" | "pandas" => "tables are read with `io.read_table(path, Columns)`, matrices with `io.read_csv(path)`",
        "argparse" | "click" => "the options of a program are read with `std.args`",
        "functools" => "functions take functions: a `lambda` binds arguments, and a loop reduces",
        "itertools" => "there are `range`, `zip`, `enumerate` and comprehensions with several `for`",
        "dataclasses" => "`struct` makes records with typed fields",
        "copy" => "values do not share, so `b = a` is a copy",
        "torchvision" | "sklearn" | "datasets" => "data is shuffled, split and cut into batches with `std.data`",
        "transformers" | "tokenizers" => "tokenisers are in `std.tokens`, layers and whole models in `std.nn`",
        "optax" => "optimisers are in `std.optim`",
        "einops" => "there are `op.einsum`, `x.reshape(…)` and `x.permute(…)`",
        "tqdm" => "loops go over their values as they are: leave it out",
        "re" => "strings have methods: `split`, `replace`, `find`, `startswith`",
        "numpy" | "torch" | "jax" | "tensorflow" | "keras" | "flax" | "scipy" => {
            "operators are in `op`, without an import; layers, optimisers and data in `std.nn`, `std.optim`, `std.data`"
        }
        _ => return None,
    })
}

/// Names that nothing defines.
pub fn name(name: &str) -> Option<&'static str> {
    Some(match name {
        "np" | "numpy" | "torch" | "jnp" | "jax" | "tf" | "F" => {
            "the operators are in `op`, layers and losses in `std`"
        }
        "nn" | "optim" => "it is a module of the library: `from std import nn, optim`",
        "linalg" => "it is a module of the library: `import std.linalg as linalg`",
        "plt" => "figures are in `std.plot`",
        "type" => "types are known before the program runs: use `isinstance`, or `:type` at the prompt",
        "input" => "`sys.read_line(prompt)` gives a line with its end, and an empty text where no more comes",
        "open" => "files are read with `io.read_text(path)`, arguments are in `sys.args`",
        "jit" | "compile" => "not needed: every program is compiled, whole and before it runs",
        "self" | "super" | "object" => "there are no methods: functions take structs as parameters",
        "staticmethod" | "classmethod" | "property" => {
            "there are no methods: leave it out, and call the function by its name"
        }
        "dataclass" => "leave it out: `struct` makes records with typed fields",
        "__name__" => "leave the `if` out: what stands at the top level of a file runs when the file does",
        "exit" | "quit" => "`sys.exit(code)`",
        "set" | "frozenset" => "there are no sets: a dict has each key once, and `key in d` asks for it",
        "map" => "a comprehension: `[f(x) for x in xs]`",
        "filter" => "a comprehension: `[x for x in xs if f(x)]`",
        "iter" | "next" => "there are no iterators: a loop goes over lists, and `xs[i]` is one element",
        "hasattr" | "getattr" | "setattr" => "fields are known before the program runs: `s.field`",
        "Exception" | "ValueError" | "RuntimeError" | "NotImplementedError" => {
            "there are no exceptions: `assert condition, message` states what must hold"
        }
        "id" | "hash" => "values have no identity: equal values are the same",
        "breakpoint" => "print what is to be seen; `tessera view` shows functions, graphs and times",
        _ => return None,
    })
}

/// Members that a built-in module does not have.
pub fn member(module: &str, name: &str) -> Option<&'static str> {
    Some(match (module, name) {
        ("op", "hstack" | "column_stack") => {
            "matrices side by side: `op.concat([a, b], axis=1)`; vectors: `op.concat([a, b])`"
        }
        ("op", "vstack" | "row_stack") => {
            "matrices one above the other: `op.concat([a, b])`; vectors as rows: `op.stack([a, b])`"
        }
        ("op", "dstack") => "`op.stack([a, b], axis=2)`",
        ("op" | "random", "randn" | "standard_normal" | "gauss") => {
            "numbers come from keys: `random.normal(random.key(0), (3, 4))`"
        }
        ("op" | "random", "rand" | "random" | "random_sample") => {
            "numbers come from keys: `random.uniform(random.key(0), (3, 4))`"
        }
        ("op", "randint" | "randperm") => "numbers come from keys: see `random.randint` and `random.permutation`",
        ("random", "seed" | "manual_seed" | "PRNGKey" | "default_rng") => {
            "there is no hidden state: `key = random.key(0)` makes a key, which each draw takes first"
        }
        ("random", "shuffle" | "randperm" | "sample") => {
            "`random.permutation(key, n)` gives the positions in a new order"
        }
        ("random", "choices") => "`random.choice(key, …)`",
        ("random", "multivariate_normal") => {
            "`mean + random.normal(key, (n, d)) @ root.T`, where `root @ root.T` is the covariance"
        }
        ("random", "lognormal") => "`op.exp(mean + sigma * random.normal(key, shape))`",
        ("random", "weibull") => "`random.exponential(key, shape) ** (1.0 / a)`",
        ("random", "pareto") => "`op.exp(random.exponential(key, shape) / a)`",
        ("random", "rayleigh") => "`op.sqrt(2.0 * random.exponential(key, shape))`",
        ("op", "histogram" | "histc" | "cov" | "corrcoef" | "mode" | "zscore" | "skew" | "kurtosis") => {
            "statistics are in `std.stats`: `from std import stats`"
        }
        ("op", "beta" | "factorial") => "`op.exp(op.betaln(a, b))`, and `op.gamma(n + 1.0)`",
        ("op", "special" | "stats") => "special functions are in `op`, statistics in `op` and `std.stats`",
        ("op", "no_grad" | "enable_grad") => {
            "not needed: gradients are computed where `autodiff.grad(f)` asks for them"
        }
        ("op", "manual_seed") => {
            "there is no hidden state: `key = random.key(0)` makes a key, which each draw takes first"
        }
        ("op", "save" | "load" | "savez") => "`io.save(path, value)` and `io.load(path, like=value)`",
        ("op", "shape" | "ndim" | "size") => "they are attributes: `x.shape`, `x.ndim`, `x.size`",
        ("op", "nonzero" | "unique" | "masked_select" | "argwhere" | "flatnonzero") => {
            "how many there are only the data tells, and shapes are checked before: `op.where(mask, x, y)` keeps the shape"
        }
        ("op", "linalg" | "scipy") => "linear algebra is in the library: `import std.linalg as linalg`",
        (
            "op",
            "inv" | "inverse" | "det" | "logdet" | "slogdet" | "lstsq" | "pinv" | "matrix_power" | "matrix_exp"
            | "expm" | "matrix_rank" | "cond" | "norm" | "kron" | "cho_solve" | "cholesky_solve",
        ) => "it is in the library: `import std.linalg as linalg`",
        ("op", "newaxis") => "`None` in an index adds a dim: `x[:, None]`",
        ("op", "float32" | "float64" | "int64" | "int32") => {
            "element types are names of their own: `f32`, `f64`, `i64`, `i32`"
        }
        ("autodiff", "backward") => "gradients are functions: `autodiff.grad(f)(x)`",
        ("autodiff", "jacfwd" | "jacrev" | "jacobian" | "hessian") => {
            "rows by `autodiff.vmap` over `autodiff.vjp`, columns over `autodiff.jvp`"
        }
        ("autodiff", "jit") => "not needed: every program is compiled, whole and before it runs",
        ("sys", "stderr" | "stdout" | "stdin") => "`print` writes to the standard output, `io.write_text` into a file",
        ("sys", "argv") => "`sys.args` are the arguments, without the file",
        ("sys", "path") => "`import helpers` reads `helpers.tsr` from the folder of the importing file",
        ("time", "time") => "`time.now()`",
        ("io", "open" | "read" | "write") => "`io.read_text(path)` and `io.write_text(path, text)`",
        ("tree", "tree_map") => "`tree.map(f, t)`",
        ("tree", "flatten" | "tree_leaves" | "tree_flatten") => "`tree.leaves(t)`",
        _ => return None,
    })
}

/// Methods that a struct is asked for.
pub fn method(name: &str) -> Option<&'static str> {
    Some(match name {
        "parameters" | "named_parameters" => {
            "a model is its parameters: `tree.map(f, model)` goes over them, and `tree.leaves(model)` lists those of one type"
        }
        "state_dict" => "a model is its parameters: `io.save(path, model)` writes them",
        "load_state_dict" => "`model = io.load(path, like=model)`",
        "zero_grad" => "not needed: gradients are values, new at each call of `autodiff.grad(f)`",
        "step" => {
            "an optimiser is a function that gives new parameters and its state: `model, state = optim.adam(model, grads, state)`"
        }
        "train" | "eval" => "there are no modes: what differs in training is an argument of the function",
        "cuda" | "cpu" => "not needed: the compiler places values (`tessera run --target …`)",
        "to" | "half" | "float" | "bfloat16" => "convert every tensor: `tree.map(lambda x: x.to(bf16), model)`",
        "apply" => "`tree.map(f, model)` goes over all tensors of a model",
        "copy" | "clone" => "values do not share, so `b = a` is a copy",
        "replace" | "_replace" => "fields are assigned: `b = a`, then `b.field = …`, which leaves `a` as it was",
        _ => return None,
    })
}

/// Decorators, by their last name.
pub fn decorator(name: &str) -> Option<&'static str> {
    Some(match name {
        "jit" | "compile" | "script" | "njit" | "filter_jit" => {
            "leave it out: every program is compiled, whole and before it runs"
        }
        "no_grad" | "inference_mode" => "leave it out: gradients are computed where `autodiff.grad(f)` asks for them",
        "lru_cache" | "cache" => "leave it out: keep the value in a variable or a dict",
        "checkpoint" | "remat" => "leave it out, and call `autodiff.checkpoint(f)`",
        "vmap" | "grad" | "value_and_grad" => "write it at the call: `autodiff.vmap(f)(x)`, `autodiff.grad(f)(x)`",
        "partial" => "leave it out: what `jit` needs to know is known, and a `lambda` binds arguments",
        "dataclass" => "leave it out, and write `struct` instead of `class`",
        _ => return None,
    })
}

/// Parameters of functions that make other functions.
pub fn parameter(function: &str, name: &str) -> Option<&'static str> {
    Some(match (function, name) {
        ("autodiff.grad" | "autodiff.value_and_grad" | "autodiff.vjp", "argnums" | "argnum") => {
            "it is called `wrt`, and takes a position, a name, or a tuple of them"
        }
        (_, "has_auxiliary") => "it is called `has_aux`",
        (_, "in_dims") => "it is called `in_axes`",
        (_, "out_dims") => "it is called `out_axes`",
        (_, "device") => "leave it out: the compiler places values (`tessera run --target …`)",
        _ => return None,
    })
}

/// The name of a function that goes with a struct: `layer_norm` for `LayerNorm`.
pub fn in_lower_case(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.char_indices() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Words for what has another one here.
pub fn word(name: &str) -> Option<&'static str> {
    Some(match name {
        "true" => "True",
        "false" => "False",
        "none" | "null" | "nil" => "None",
        _ => return None,
    })
}
