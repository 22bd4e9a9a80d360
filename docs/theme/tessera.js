// Colours of Tessera's programs in the book. The lists are the compiler's: `TESSERA_BLESS=1 cargo test --test editors`.
const tessera = {
    keywords: [
        // generated: keywords
        'and', 'as', 'assert', 'break', 'continue', 'def', 'elif', 'else', 'for', 'from', 'if', 'import', 'in', 'is',
        'lambda', 'not', 'or', 'pass', 'return', 'struct', 'while', 'with',
        // end
    ],
    constants: [
        // generated: constants
        'False', 'None', 'True',
        // end
    ],
    functions: [
        // generated: functions
        'abs', 'all', 'any', 'bool', 'chr', 'dict', 'divmod', 'enumerate', 'filter', 'float', 'int', 'isinstance',
        'len', 'list', 'map', 'max', 'min', 'ord', 'pow', 'print', 'range', 'repr', 'reversed', 'round', 'sorted',
        'str', 'sum', 'tuple', 'zip',
        // end
    ],
    modules: [
        // generated: modules
        'autodiff', 'dist', 'graph', 'io', 'math', 'numerics', 'op', 'random', 'schedule', 'std', 'sys', 'tile',
        'time', 'tree',
        // end
    ],
    dtypes: [
        // generated: dtypes
        'bf16', 'bool', 'c64', 'f16', 'f32', 'f64', 'fp8_e4m3', 'fp8_e5m2', 'i16', 'i32', 'i64', 'i8', 'tf32', 'u8',
        // end
    ],
    operators: [
        // generated: operators
        'abs', 'acos', 'acosh', 'add', 'all', 'all_reduce', 'angle', 'any', 'arange', 'argmax', 'argmin', 'argsort',
        'argwhere', 'array', 'asin', 'asinh', 'atan', 'atan2', 'atanh', 'attention', 'avg_pool', 'batch_norm',
        'betainc', 'betainc_da', 'betainc_dx', 'betaln', 'bincount', 'bit_and', 'bit_not', 'bit_or', 'bit_xor',
        'broadcast_to', 'cast', 'cbrt', 'ceil', 'cholesky', 'clip', 'complex', 'concat', 'conj', 'conv1d', 'conv2d',
        'conv3d', 'conv_transpose2d', 'copysign', 'cos', 'cosh', 'count_unique', 'cross_entropy', 'cummax', 'cummin',
        'cumprod', 'cumsum', 'dequantize', 'diag', 'digamma', 'div', 'dot', 'dropout', 'eig', 'eigh', 'eigvals',
        'eigvalsh', 'einsum', 'elu', 'embedding', 'empty', 'empty_like', 'eq', 'erf', 'erfc', 'erfinv', 'exp', 'exp2',
        'expand', 'expand_dims', 'expm1', 'eye', 'fake_quantize', 'fft', 'fft2', 'fftfreq', 'fftshift', 'flatten',
        'flip', 'floor', 'floor_div', 'fma', 'full', 'full_like', 'gamma', 'gammainc', 'gammainc_da', 'gammainc_dx',
        'gammaincc', 'gather', 'ge', 'gelu', 'gelu_tanh', 'gt', 'hypot', 'i0', 'i0e', 'i1', 'i1e', 'ifft', 'ifft2',
        'ifftshift', 'imag', 'irfft', 'irfft2', 'isfinite', 'isinf', 'isnan', 'l1', 'layer_norm', 'le', 'leaky_relu',
        'lgamma', 'linspace', 'log', 'log10', 'log1p', 'log2', 'log_ndtr', 'log_sigmoid', 'log_softmax', 'logaddexp',
        'logcumsumexp', 'logical_and', 'logical_not', 'logical_or', 'logical_xor', 'logit', 'logsumexp', 'lt',
        'lu_factor', 'matmul', 'max', 'max_pool', 'maximum', 'mean', 'median', 'min', 'minimum', 'mod', 'moe_combine',
        'moe_dispatch', 'moveaxis', 'mse', 'mul', 'ndtr', 'ndtri', 'ne', 'neg', 'nonzero', 'one_hot', 'ones',
        'ones_like', 'outer', 'pad', 'percentile', 'permute', 'polygamma', 'pow', 'prod', 'qr', 'quantile',
        'quantize', 'random.bernoulli', 'random.beta', 'random.binomial', 'random.categorical', 'random.cauchy',
        'random.chisquare', 'random.choice', 'random.dirichlet', 'random.exponential', 'random.fold_in',
        'random.gamma', 'random.geometric', 'random.gumbel', 'random.key', 'random.laplace', 'random.loggamma',
        'random.logistic', 'random.normal', 'random.permutation', 'random.poisson', 'random.rademacher',
        'random.randint', 'random.split', 'random.t', 'random.truncated_normal', 'random.uniform', 'real',
        'reciprocal', 'relu', 'repeat', 'reshape', 'rfft', 'rfft2', 'rfftfreq', 'rms_norm', 'roll', 'rope', 'round',
        'rsqrt', 'scatter_add', 'searchsorted', 'segment_max', 'segment_mean', 'segment_min', 'segment_sum', 'shl',
        'shr', 'sigmoid', 'sign', 'silu', 'sin', 'sinc', 'sinh', 'slice', 'softmax', 'softplus', 'softsign', 'solve',
        'solve_triangular', 'sort', 'spectral_conv', 'split', 'sqrt', 'square', 'squeeze', 'stack', 'std', 'sub',
        'sum', 'svd', 'svdvals', 'swapaxes', 'take', 'take_along_axis', 'tan', 'tanh', 'tensordot', 'tile', 'topk',
        'trace', 'transpose', 'tri', 'tril', 'triu', 'trunc', 'unique', 'unsqueeze', 'var', 'where', 'xlog1py',
        'xlogy', 'zeros', 'zeros_like',
        // end
    ],
};

hljs.registerLanguage("tessera", () => {
    const words = { keyword: tessera.keywords.join(" "), literal: tessera.constants.join(" ") };
    const any = (list) => "(?:" + list.join("|").replaceAll(".", "\\.") + ")";
    const number = { className: "number", begin: /\b(?:0x[\da-f_]+|0o[0-7_]+|0b[01_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?)\b|\.\d+/i, relevance: 0 };
    // What stands in the braces of an f-string is a program again.
    const inner = { className: "subst", begin: /\{(?!\{)/, end: /\}/, keywords: words, contains: [number] };
    const escaped = { begin: /\\[\s\S]/, relevance: 0 };
    const string = (begin, end, contains) => ({ className: "string", begin, end, contains });
    const strings = [
        string(/\bf"""/, /"""/, [escaped, inner]),
        string(/\br?"""/, /"""/, [escaped]),
        string(/"""/, /"""/, [escaped]),
        string(/\bf"/, /"/, [escaped, inner]),
        string(/\bf'/, /'/, [escaped, inner]),
        string(/"/, /"|$/, [escaped]),
        string(/'/, /'|$/, [escaped]),
    ];
    const named = [
        { className: "built_in", begin: "\\b" + any(tessera.modules) + "(?=\\s*\\.)", relevance: 0 },
        { className: "built_in", begin: "\\b" + any(tessera.functions) + "(?=\\s*\\()", relevance: 0 },
        { className: "type", begin: "\\b(?:Tensor|" + any(tessera.dtypes) + ")\\b", relevance: 0 },
    ];
    // A member of anything but `op` has no colour, whatever else has its name.
    const member = { begin: /\.\s*[^\W\d]\w*/, relevance: 0 };
    const operator = { className: "built_in", begin: "\\bop\\." + any(tessera.operators) + "\\b", relevance: 0 };
    inner.contains.push(operator, ...named, member);
    return {
        keywords: words,
        contains: [
            { className: "comment", begin: /#/, end: /$/ },
            ...strings,
            number,
            { className: "meta", begin: /^\s*@/, end: /$/ },
            {
                className: "function",
                beginKeywords: "def struct",
                end: /[(\[:]|$/,
                excludeEnd: true,
                contains: [{ className: "title", begin: /[^\W\d]\w*/, relevance: 0 }],
            },
            operator,
            ...named,
            member,
        ],
    };
});
for (const block of document.querySelectorAll("code.language-tessera")) {
    block.textContent = block.textContent;
    hljs.highlightBlock(block);
}
