// Colours of Tessera's programs in the book. The lists are the compiler's: `TESSERA_BLESS=1 cargo test --test editors`.
const tessera = {
    keywords: [
        // generated: keywords
        // end
    ],
    constants: [
        // generated: constants
        // end
    ],
    functions: [
        // generated: functions
        // end
    ],
    modules: [
        // generated: modules
        // end
    ],
    dtypes: [
        // generated: dtypes
        // end
    ],
    operators: [
        // generated: operators
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
