; Where several patterns fit, the last one counts.

(identifier) @variable

; ---- Names that the language gives ----

(call function: (identifier) @function.call)
(attribute attribute: (identifier) @property)
(call function: (attribute attribute: (identifier) @function.method.call))

((identifier) @type
  (#match? @type "^[A-Z]"))

((identifier) @constant
  (#match? @constant "^[A-Z][A-Z0-9_]+$"))

((identifier) @type.builtin
  (#any-of? @type.builtin
    ; generated: dtypes
    "bf16" "bool" "c64" "f16" "f32" "f64" "fp8_e4m3" "fp8_e5m2" "i16" "i32" "i64" "i8" "tf32" "u8"
    ; end
  ))

((identifier) @type.builtin
  (#any-of? @type.builtin "Tensor" "int" "float" "bool" "str" "list" "dict" "tuple" "Any"))

((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin
    ; generated: functions
    "abs" "all" "any" "bool" "chr" "dict" "divmod" "enumerate" "filter" "float" "int" "isinstance" "len" "list"
    "map" "max" "min" "ord" "pow" "print" "range" "repr" "reversed" "round" "sorted" "str" "sum" "tuple" "zip"
    ; end
  ))

((attribute object: (identifier) @module)
  (#any-of? @module
    ; generated: modules
    "autodiff" "dist" "graph" "io" "math" "numerics" "op" "random" "schedule" "std" "sys" "tile" "time" "tree"
    ; end
  ))

((attribute
  object: (identifier) @module
  attribute: (identifier) @function.builtin)
  (#eq? @module "op")
  (#any-of? @function.builtin
    ; generated: operators
    "abs" "acos" "acosh" "add" "all" "all_reduce" "angle" "any" "arange" "argmax" "argmin" "argsort" "argwhere"
    "array" "asin" "asinh" "atan" "atan2" "atanh" "attention" "avg_pool" "batch_norm" "betainc" "betainc_da"
    "betainc_dx" "betaln" "bincount" "bit_and" "bit_not" "bit_or" "bit_xor" "broadcast_to" "cast" "cbrt" "ceil"
    "cholesky" "clip" "complex" "concat" "conj" "conv1d" "conv2d" "conv3d" "conv_transpose2d" "copysign" "cos"
    "cosh" "count_unique" "cross_entropy" "cummax" "cummin" "cumprod" "cumsum" "dequantize" "diag" "digamma" "div"
    "dot" "dropout" "eig" "eigh" "eigvals" "eigvalsh" "einsum" "elu" "embedding" "empty" "empty_like" "eq" "erf"
    "erfc" "erfinv" "exp" "exp2" "expand" "expand_dims" "expm1" "eye" "fake_quantize" "fft" "fft2" "fftfreq"
    "fftshift" "flatten" "flip" "floor" "floor_div" "fma" "full" "full_like" "gamma" "gammainc" "gammainc_da"
    "gammainc_dx" "gammaincc" "gather" "ge" "gelu" "gelu_tanh" "gt" "hypot" "i0" "i0e" "i1" "i1e" "ifft" "ifft2"
    "ifftshift" "imag" "irfft" "irfft2" "isfinite" "isinf" "isnan" "l1" "layer_norm" "le" "leaky_relu" "lgamma"
    "linspace" "log" "log10" "log1p" "log2" "log_ndtr" "log_sigmoid" "log_softmax" "logaddexp" "logcumsumexp"
    "logical_and" "logical_not" "logical_or" "logical_xor" "logit" "logsumexp" "lt" "lu_factor" "matmul" "max"
    "max_pool" "maximum" "mean" "median" "min" "minimum" "mod" "moe_combine" "moe_dispatch" "moveaxis" "mse" "mul"
    "ndtr" "ndtri" "ne" "neg" "nonzero" "one_hot" "ones" "ones_like" "outer" "pad" "percentile" "permute"
    "polygamma" "pow" "prod" "qr" "quantile" "quantize" "random.bernoulli" "random.beta" "random.binomial"
    "random.categorical" "random.cauchy" "random.chisquare" "random.choice" "random.dirichlet"
    "random.exponential" "random.fold_in" "random.gamma" "random.geometric" "random.gumbel" "random.key"
    "random.laplace" "random.loggamma" "random.logistic" "random.normal" "random.permutation" "random.poisson"
    "random.rademacher" "random.randint" "random.split" "random.t" "random.truncated_normal" "random.uniform"
    "real" "reciprocal" "relu" "repeat" "reshape" "rfft" "rfft2" "rfftfreq" "rms_norm" "roll" "rope" "round"
    "rsqrt" "scatter_add" "searchsorted" "segment_max" "segment_mean" "segment_min" "segment_sum" "shl" "shr"
    "sigmoid" "sign" "silu" "sin" "sinc" "sinh" "slice" "softmax" "softplus" "softsign" "solve" "solve_triangular"
    "sort" "spectral_conv" "split" "sqrt" "square" "squeeze" "stack" "std" "sub" "sum" "svd" "svdvals" "swapaxes"
    "take" "take_along_axis" "tan" "tanh" "tensordot" "tile" "topk" "trace" "transpose" "tri" "tril" "triu"
    "trunc" "unique" "unsqueeze" "var" "where" "xlog1py" "xlogy" "zeros" "zeros_like"
    ; end
  ))

; ---- Definitions ----

(function_definition name: (identifier) @function)
(struct_definition name: (identifier) @type.definition)
(type_parameters (identifier) @type)
(field_definition name: (identifier) @property)
(parameter name: (identifier) @variable.parameter)
(rest_parameter name: (identifier) @variable.parameter)
(keyword_argument name: (identifier) @variable.parameter)

(decorator "@" @attribute)
(decorator (identifier) @attribute)
(decorator (attribute attribute: (identifier) @attribute))
(decorator (call function: (identifier) @attribute))
(decorator (call function: (attribute attribute: (identifier) @attribute)))

(dotted_name (identifier) @module)
(aliased_import alias: (identifier) @module)
(import_from_statement name: (identifier) @variable)

; ---- Literals ----

(comment) @comment
(integer) @number
(float) @number.float
[(true) (false)] @boolean
[(none) (ellipsis)] @constant.builtin

(string) @string
(escape_sequence) @string.escape
(conversion) @string.special
(format_specifier) @string.special
(interpolation ["{" "}"] @punctuation.special)
(doctest_prompt) @punctuation.special
(docstring) @string.documentation
(module . (expression_statement (string) @string.documentation))
(function_definition body: (block . (expression_statement (string) @string.documentation)))

; ---- Words and signs ----

[
  ; generated: keywords
  "and" "as" "assert" "break" "continue" "def" "elif" "else" "for" "from" "if" "import" "in" "is" "lambda" "not"
  "or" "pass" "return" "struct" "while" "with"
  ; end
] @keyword

[
  "->" "=" "+" "-" "*" "/" "//" "%" "**" "@" "&" "|" "^" "~" "<<" ">>"
  "<" "<=" ">" ">=" "==" "!="
  "+=" "-=" "*=" "/=" "//=" "%=" "**=" "@=" "&=" "|=" "^=" "<<=" ">>="
] @operator

["and" "or" "not" "in" "is" "not in" "is not"] @keyword.operator

["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter

; The axis behind a size, as in `Tensor[B@dp, f32]`.
(subscript
  index: (binary_operator operator: "@" @punctuation.special right: (identifier) @attribute))
