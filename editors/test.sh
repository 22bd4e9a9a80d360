#!/bin/sh
# The tests of the files for editors that need programs beside Rust. What is not there is left out, and said.
set -u
cd "$(dirname "$0")"

tools=${TESSERA_EDITOR_TOOLS:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/tessera/editor-tools}
failed=0
left_out=""

step() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        echo "ok       $name"
    else
        echo "FAILED   $name"
        printf '%s\n' "$output"
        failed=1
    fi
}

leave_out() {
    left_out="$left_out
left out: $1"
}

have() {
    command -v "$1" >/dev/null 2>&1
}

# Installs a package of npm outside of the repository; `$tools/node_modules/.bin` has its programs.
fetched() {
    have npm || return 1
    [ -d "$tools/node_modules/$1" ] || npm install --prefix "$tools" --no-audit --no-fund "$1@$2" >/dev/null 2>&1
}

# ---- tree-sitter ----------------------------------------------------------------------------

tree_sitter=tree-sitter
if ! have tree-sitter; then
    fetched tree-sitter-cli 0.26
    tree_sitter="$tools/node_modules/.bin/tree-sitter"
fi

corpus() { (cd tree-sitter-tessera && "$tree_sitter" test); }

# Every name in a query is one of the grammar.
queries() {
    for query in tree-sitter-tessera/queries/*.scm zed/languages/tessera/*.scm; do
        (cd tree-sitter-tessera && "$tree_sitter" query "../$query" ../../std/nn.tsr >/dev/null) || return 1
    done
}

generated() {
    copy=$(mktemp -d)
    cp -r tree-sitter-tessera/. "$copy"
    (cd "$copy" && "$tree_sitter" generate) && cmp "$copy/src/grammar.json" tree-sitter-tessera/src/grammar.json &&
        cmp "$copy/src/node-types.json" tree-sitter-tessera/src/node-types.json
    same=$?
    rm -rf "$copy"
    return $same
}

if "$tree_sitter" --version >/dev/null 2>&1; then
    step "tree-sitter: trees" corpus
    step "tree-sitter: queries" queries
    step "tree-sitter: the generated files are those of grammar.js" generated
else
    leave_out "the tests of tree-sitter (no tree-sitter; \`cargo install tree-sitter-cli\` makes one)"
fi

if have cc; then
    step "tree-sitter: the scanner compiles without warnings" \
        cc -std=c11 -Wall -Wextra -Werror -Itree-sitter-tessera/src -c tree-sitter-tessera/src/scanner.c -o /dev/null
else
    leave_out "compiling the scanner (no cc)"
fi

# ---- VS Code ----------------------------------------------------------------------------------

if have node; then
    for file in vscode/src/extension.js vscode/test/client.js; do
        step "VS Code: $file" node --check "$file"
    done
    for file in vscode/package.json vscode/language-configuration.json vscode/syntaxes/tessera.tmLanguage.json; do
        step "VS Code: $file" node -e 'JSON.parse(require("fs").readFileSync(process.argv[1]))' "$file"
    done
else
    leave_out "VS Code (no node)"
fi

if have node && fetched vscode-tmgrammar-test 0.1; then
    step "VS Code: colours" "$tools/node_modules/.bin/vscode-tmgrammar-test" \
        -g vscode/syntaxes/tessera.tmLanguage.json 'vscode/test/grammar/*.tsr'
else
    leave_out "the colours of VS Code (no npm, or it cannot fetch vscode-tmgrammar-test)"
fi

# The program under test.
server=${TESSERA:-$PWD/../target/release/tessera}
if [ ! -x "$server" ]; then
    leave_out "the language server (no $server)"
elif have node && fetched vscode-languageserver-protocol 3; then
    step "VS Code: the library of its client, against the language server" \
        env NODE_PATH="$tools/node_modules" TESSERA="$server" node vscode/test/client.js
else
    leave_out "the library of VS Code's client (no npm, or it cannot fetch vscode-languageserver-protocol)"
fi

# ---- Neovim and Emacs ---------------------------------------------------------------------------

vim_colours() {
    found=$(nvim --headless -u NONE --cmd "set runtimepath+=$PWD/neovim" -c 'filetype plugin on' -c 'syntax on' \
        -c 'edit ../std/nn.tsr' -c 'echo &filetype b:current_syntax v:errmsg' -c 'qa!' 2>&1)
    echo "$found"
    [ "$(echo $found)" = "tessera tessera" ]
}

emacs_compiles() {
    copy=$(mktemp -d)
    cp emacs/tessera-mode.el "$copy"
    emacs -Q --batch --eval '(setq byte-compile-error-on-warn t)' -f batch-byte-compile "$copy/tessera-mode.el"
    good=$?
    rm -rf "$copy"
    return $good
}

vim_session() {
    TESSERA="$server" nvim --headless -u NONE -c 'luafile neovim/test/session.lua' 2>&1
}

if have nvim; then
    step "Neovim: file type and colours" vim_colours
    [ ! -x "$server" ] || step "Neovim: a session with the language server" vim_session
else
    leave_out "Neovim (no nvim)"
fi
if have emacs; then step "Emacs: the mode compiles without warnings" emacs_compiles; else leave_out "Emacs (no emacs)"; fi

[ -z "$left_out" ] || echo "$left_out" | sed '/^$/d'
exit $failed
