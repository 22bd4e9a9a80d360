// Layout, brackets, strings and numbers of Tessera, as the compiler reads them
// (`grammar/src/token.rs`, `layout.rs`, `lines.rs` and `literal.rs`).
//
// The scanner never asks which tokens the parser expects, except for the one at the beginning:
// what a text is made of does not depend on whether it is right. A token that is found where
// the grammar has none is how most errors are noticed.

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"
#include <string.h>

enum Token {
    BEGIN,
    NEWLINE,
    INDENT,
    DEDENT,
    LINE_BREAK,
    STRING_START,
    STRING_CONTENT,
    ESCAPE,
    STRING_END,
    INTERPOLATION_START,
    INTERPOLATION_END,
    FORMAT_START,
    CONVERSION,
    DOCTEST_PROMPT,
    DOCTEST_CODE,
    INTEGER,
    FLOAT,
    LEFT_PAREN,
    RIGHT_PAREN,
    LEFT_BRACKET,
    RIGHT_BRACKET,
    LEFT_BRACE,
    RIGHT_BRACE,
    REFUSED,
    NEVER,
};

// What is open. The low bits of a frame.
enum Kind { PAREN, BRACKET, BRACE, STRING, F_TEXT, F_CODE, F_FORMAT };

#define KIND 0x07
#define DOUBLE 0x08 // quotes are `"`
#define TRIPLE 0x10
#define RAW 0x20
#define LINE_START 0x40 // of a string: a prompt may stand here
#define EXAMPLE 0x80    // of a string: the line before is part of an example

// The compiler's bound on brackets, and on blocks, inside each other.
#define NESTING_MAX 199
#define FRAMES_MAX 320
#define INDENT_MAX 1024
// Changes between tabs and spaces in one indentation.
#define RUNS_MAX 60
#define DIGITS_MAX 4000

enum Between {
    // Inside a logical line.
    NO,
    // Behind one.
    YES,
    // The same, and the comments before the next line belong to the open block.
    NO_DEDENT,
};

typedef struct {
    uint8_t between;
    uint16_t frame_count;
    uint8_t frames[FRAMES_MAX];
    // The white space of the innermost block, and how much of it each block has.
    uint16_t indent_length;
    char indent[INDENT_MAX];
    uint16_t level_count;
    uint16_t levels[NESTING_MAX];
} Scanner;

static uint8_t top(const Scanner *s) { return s->frame_count ? s->frames[s->frame_count - 1] : PAREN; }

static bool in_text(const Scanner *s) {
    uint8_t kind = top(s) & KIND;
    return s->frame_count && (kind == STRING || kind == F_TEXT || kind == F_FORMAT);
}

static bool push(Scanner *s, uint8_t frame) {
    unsigned depth = 0;
    for (unsigned i = 0; i < s->frame_count; i++) {
        uint8_t kind = s->frames[i] & KIND;
        depth += kind != F_FORMAT && kind != STRING;
    }
    if (s->frame_count == FRAMES_MAX || (depth >= NESTING_MAX && (frame & KIND) != STRING)) return false;
    s->frames[s->frame_count++] = frame;
    return true;
}

static void pop(Scanner *s) {
    if (s->frame_count) s->frame_count--;
}

static bool is_break(int32_t c) { return c == '\n' || c == '\r'; }

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\f'; }

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }

static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_word(int32_t c) { return is_digit(c) || is_letter(c) || c == '_'; }

static int hex_value(int32_t c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

static void advance(TSLexer *lexer) { lexer->advance(lexer, false); }

static void pass_break(TSLexer *lexer) {
    bool carriage_return = lexer->lookahead == '\r';
    advance(lexer);
    if (carriage_return && lexer->lookahead == '\n') advance(lexer);
}

static bool found(TSLexer *lexer, enum Token token) {
    lexer->result_symbol = token;
    return true;
}

static bool found_here(TSLexer *lexer, enum Token token) {
    lexer->mark_end(lexer);
    return found(lexer, token);
}

// ---- Indentation ---------------------------------------------------------------------------

typedef struct {
    char text[INDENT_MAX];
    unsigned length;
    bool too_long;
} Indent;

enum Relation { SAME, DEEPER, SHALLOWER, MIXED };

static enum Relation relation(const Scanner *s, const Indent *indent) {
    unsigned old = s->level_count ? s->levels[s->level_count - 1] : 0;
    unsigned common = indent->length < old ? indent->length : old;
    if (indent->too_long || memcmp(indent->text, s->indent, common)) return MIXED;
    if (indent->length == old) return SAME;
    return indent->length > old ? DEEPER : SHALLOWER;
}

static bool open_level(Scanner *s, const Indent *indent) {
    unsigned runs = 0;
    for (unsigned i = 0; i < indent->length; i++) runs += !i || indent->text[i] != indent->text[i - 1] || i % 255 == 0;
    if (s->level_count == NESTING_MAX || runs > RUNS_MAX) return false;
    memcpy(s->indent, indent->text, indent->length);
    s->indent_length = indent->length;
    s->levels[s->level_count++] = indent->length;
    return true;
}

static void close_level(Scanner *s) {
    s->level_count--;
    s->indent_length = s->level_count ? s->levels[s->level_count - 1] : 0;
}

// Between logical lines: blank lines and comments, then the blocks that open or close before
// the next line. Made tokens stand behind the line before, so that a block ends with its text.
// Only they and the steps of `between` have no width; whatever is refused has some, or an error
// would be met again and again.
static bool between(Scanner *s, TSLexer *lexer) {
    Indent indent = {.length = 0, .too_long = false};
    bool moved = false, joined = false, comment = false;
    lexer->mark_end(lexer);
    for (;;) {
        int32_t c = lexer->lookahead;
        if (is_blank(c)) {
            if (!joined && indent.length < INDENT_MAX) indent.text[indent.length++] = (char)c;
            else if (!joined) indent.too_long = true;
            advance(lexer);
        } else if (is_break(c)) {
            pass_break(lexer);
            indent.length = 0;
            indent.too_long = joined = false;
        } else if (c == '\\') {
            advance(lexer);
            if (!is_break(lexer->lookahead)) {
                s->between = NO;
                return found_here(lexer, REFUSED);
            }
            pass_break(lexer);
            joined = true;
        } else if (c == '#') {
            if (!comment) {
                enum Relation place = relation(s, &indent);
                if (place != SHALLOWER || s->between == NO_DEDENT) {
                    if (!moved) return false;
                    return found_here(lexer, LINE_BREAK);
                }
            }
            // A comment left of the block ends it only if the next line does.
            comment = true;
            while (!lexer->eof(lexer) && !is_break(lexer->lookahead)) advance(lexer);
        } else {
            break;
        }
        moved = true;
    }
    bool end = lexer->eof(lexer);
    if (end) {
        indent.length = 0;
        indent.too_long = false;
    }
    switch (relation(s, &indent)) {
        case SHALLOWER:
            close_level(s);
            s->between = YES;
            return found(lexer, DEDENT);
        case DEEPER:
            if (comment) break;
            // A level that cannot be kept is refused like one that is not expected.
            if (open_level(s, &indent)) return found(lexer, INDENT);
            s->between = NO;
            return found_here(lexer, REFUSED);
        case MIXED:
            if (comment) break;
            s->between = NO;
            return found_here(lexer, REFUSED);
        case SAME:
            break;
    }
    if (comment) {
        s->between = NO_DEDENT;
        return found(lexer, LINE_BREAK);
    }
    if (end) return moved ? found_here(lexer, LINE_BREAK) : false;
    s->between = NO;
    return found_here(lexer, LINE_BREAK);
}

// ---- Words that end a bracket ----------------------------------------------------------------

// Words that begin a statement and that no expression contains. A bracket that is open before
// one of them was never closed; it must not swallow the rest of the file.
static const char *const STATEMENTS[] = {
    "assert", "break", "continue", "def", "elif", "from", "import", "pass", "return", "struct", "while", "with", NULL,
};

static bool at_statement(TSLexer *lexer) {
    char word[10];
    unsigned length = 0;
    while (is_blank(lexer->lookahead)) advance(lexer);
    while (is_word(lexer->lookahead)) {
        if (length == sizeof word - 1) return false;
        word[length++] = (char)lexer->lookahead;
        advance(lexer);
    }
    word[length] = 0;
    for (const char *const *statement = STATEMENTS; *statement; statement++) {
        if (!strcmp(word, *statement)) return lexer->lookahead < 0x80;
    }
    return false;
}

// A line ends while something is open.
static bool inner_break(Scanner *s, TSLexer *lexer) {
    bool in_f_string = false;
    for (unsigned i = 0; i < s->frame_count; i++) in_f_string |= (s->frames[i] & KIND) == F_CODE;
    pass_break(lexer);
    lexer->mark_end(lexer);
    if (!in_f_string && at_statement(lexer)) {
        s->frame_count = 0;
        s->between = YES;
        return found(lexer, NEWLINE);
    }
    return found(lexer, LINE_BREAK);
}

// ---- Numbers -----------------------------------------------------------------------------------

typedef struct {
    char last;         // the last character
    bool underscores;  // each `_` so far stands between digits
    bool doubled;      // two `_` in a row
    bool dot, exponent, exponent_digits, foreign;
    bool leading_zero, only_zeros;
    unsigned digits;
} Number;

static void number_step(Number *n, char c) {
    if (n->last == '_' && !is_digit(c)) n->underscores = false;
    if (n->last == '_' && c == '_') n->doubled = true;
    if (c == '_' && !is_digit(n->last)) n->underscores = false;
    if (is_digit(c)) {
        if (!n->digits && c == '0') n->leading_zero = true;
        if (c != '0') n->only_zeros = false;
        n->digits++;
        if (n->exponent) n->exponent_digits = true;
    } else if (c == '.') {
        n->foreign |= n->dot || n->exponent;
        n->dot = true;
    } else if (c == 'e' || c == 'E') {
        n->foreign |= n->exponent;
        n->exponent = true;
    } else if (c == '+' || c == '-') {
        n->foreign |= n->last != 'e' && n->last != 'E';
    } else if (c != '_') {
        n->foreign = true;
    }
    n->last = c;
}

// `0x…`, `0o…`, `0b…`; the letter is next.
static bool prefixed(TSLexer *lexer, int radix) {
    bool good = true, doubled = false;
    unsigned count = 0;
    advance(lexer);
    bool free = lexer->lookahead == '_';
    int32_t last = 0;
    while (is_word(lexer->lookahead)) {
        int32_t c = lexer->lookahead;
        if (c == '_') doubled |= last == '_';
        else if (hex_value(c) < radix) count++;
        else good = false;
        last = c;
        advance(lexer);
    }
    good &= count && count <= DIGITS_MAX && (free || (!doubled && last != '_'));
    return found_here(lexer, good ? INTEGER : REFUSED);
}

// A number with whatever clings to it, as far as the compiler's lexer takes it.
static bool number(TSLexer *lexer, bool dot) {
    Number n = {.last = 0, .underscores = true, .only_zeros = true};
    bool plain = true; // only digits, `_` and one dot so far: an exponent may have a sign
    if (dot) number_step(&n, '.');
    for (;;) {
        int32_t c = lexer->lookahead;
        if (n.digits == 1 && n.leading_zero && n.last == '0' && !n.dot) {
            int radix = c == 'x' || c == 'X' ? 16 : c == 'o' || c == 'O' ? 8 : c == 'b' || c == 'B' ? 2 : 0;
            if (radix) return prefixed(lexer, radix);
        }
        if (is_word(c)) {
            bool exponent = plain && (c == 'e' || c == 'E');
            plain &= is_digit(c) || c == '_';
            number_step(&n, (char)c);
            advance(lexer);
            if (exponent && (lexer->lookahead == '+' || lexer->lookahead == '-')) {
                // The sign belongs to the number if a digit follows.
                lexer->mark_end(lexer);
                char sign = (char)lexer->lookahead;
                advance(lexer);
                if (!is_digit(lexer->lookahead)) return found(lexer, REFUSED);
                number_step(&n, sign);
                plain = false;
            }
        } else if (c == '.' && plain && !n.dot) {
            number_step(&n, '.');
            advance(lexer);
        } else {
            break;
        }
    }
    lexer->mark_end(lexer);
    if (n.last == '_') n.underscores = false;
    if (!n.underscores || n.doubled || n.foreign) return found(lexer, REFUSED);
    if (n.dot || n.exponent) return found(lexer, n.exponent && !n.exponent_digits ? REFUSED : FLOAT);
    bool good = n.digits <= DIGITS_MAX && (!n.leading_zero || n.only_zeros);
    return found(lexer, good ? INTEGER : REFUSED);
}

// ---- Strings -----------------------------------------------------------------------------------

// The opening of a string; `prefix` has been passed.
static bool string_start(Scanner *s, TSLexer *lexer, uint8_t frame) {
    int32_t quote = lexer->lookahead;
    if (quote == '"') frame |= DOUBLE;
    advance(lexer);
    lexer->mark_end(lexer);
    if (lexer->lookahead == quote) {
        advance(lexer);
        if (lexer->lookahead == quote) {
            advance(lexer);
            lexer->mark_end(lexer);
            frame |= TRIPLE;
            if ((frame & KIND) == STRING) frame |= LINE_START;
        }
    }
    return found(lexer, push(s, frame) ? STRING_START : REFUSED);
}

static bool maybe_string(Scanner *s, TSLexer *lexer) {
    uint8_t frame = STRING;
    bool f = false, r = false, u = false;
    for (int i = 0; i < 2 && is_letter(lexer->lookahead); i++) {
        int32_t c = lexer->lookahead | 0x20;
        if ((c == 'f' && !f && !u) || (c == 'r' && !r && !u) || (c == 'u' && !i)) {
            f |= c == 'f';
            r |= c == 'r';
            u |= c == 'u';
            advance(lexer);
        } else {
            return false;
        }
    }
    if (lexer->lookahead != '"' && lexer->lookahead != '\'') return false;
    if (f) frame = F_TEXT;
    if (r) frame |= RAW;
    return string_start(s, lexer, frame);
}

// An escape; the backslash has been passed. Whether it is one.
static bool escape(TSLexer *lexer) {
    int32_t c = lexer->lookahead;
    if (lexer->eof(lexer)) return false;
    if (is_break(c)) {
        pass_break(lexer);
        return true;
    }
    advance(lexer);
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits) {
        uint32_t value = 0;
        for (int i = 0; i < digits; i++) {
            int digit = hex_value(lexer->lookahead);
            if (digit > 15) return false;
            value = value * 16 + (uint32_t)digit;
            advance(lexer);
        }
        return value < 0xD800 || (value > 0xDFFF && value <= 0x10FFFF);
    }
    if (c == '0') return !(lexer->lookahead >= '0' && lexer->lookahead <= '7');
    return c < 0x80 && c && strchr("ntr\\'\"abfv", (int)c) != NULL;
}

// The quotes that close a string, if they stand here; passes them.
static bool closing_quotes(TSLexer *lexer, uint8_t frame, int32_t quote) {
    int count = frame & TRIPLE ? 3 : 1;
    for (int i = 0; i < count; i++) {
        if (lexer->lookahead != quote) return false;
        advance(lexer);
    }
    return true;
}

static bool prompt(TSLexer *lexer, char c) {
    for (int i = 0; i < 3; i++) {
        if (lexer->lookahead != c) return false;
        advance(lexer);
    }
    return lexer->lookahead == ' ' || is_break(lexer->lookahead);
}

// The rest of a line behind the prompt of an example, with its end.
static bool example(Scanner *s, TSLexer *lexer) {
    uint8_t *frame = &s->frames[s->frame_count - 1];
    int32_t quote = *frame & DOUBLE ? '"' : '\'';
    bool good = true;
    *frame = (*frame & ~EXAMPLE) | LINE_START;
    for (;;) {
        lexer->mark_end(lexer);
        int32_t c = lexer->lookahead;
        if (lexer->eof(lexer)) break;
        if (c == quote) {
            if (closing_quotes(lexer, *frame, quote)) {
                *frame &= ~LINE_START;
                return found(lexer, good ? DOCTEST_CODE : REFUSED);
            }
        } else if (is_break(c)) {
            pass_break(lexer);
            lexer->mark_end(lexer);
            *frame |= EXAMPLE;
            break;
        } else if (c == '\\') {
            advance(lexer);
            if (!(*frame & RAW)) good &= escape(lexer);
            else if (is_break(lexer->lookahead)) pass_break(lexer);
            else advance(lexer);
        } else {
            advance(lexer);
        }
    }
    return found(lexer, good ? DOCTEST_CODE : REFUSED);
}

// A piece of a string, up to where something else begins. `false` at the end of a line that a
// string may not cross.
static bool text(Scanner *s, TSLexer *lexer, bool *line_ended) {
    uint8_t *frame = &s->frames[s->frame_count - 1];
    uint8_t kind = *frame & KIND;
    int32_t quote = *frame & DOUBLE ? '"' : '\'';
    bool content = false;
    for (;;) {
        int32_t c = lexer->lookahead;
        lexer->mark_end(lexer);
        if (lexer->eof(lexer)) {
            s->frame_count = content ? s->frame_count : 0;
            return content && found(lexer, STRING_CONTENT);
        }
        if (*frame & LINE_START && kind == STRING) {
            if (is_blank(c)) {
                content = true;
                advance(lexer);
                continue;
            }
            bool more = *frame & EXAMPLE;
            if (c == '>' || (c == '.' && more)) {
                if (prompt(lexer, (char)c)) {
                    if (content) return found(lexer, STRING_CONTENT);
                    if (lexer->lookahead == ' ') advance(lexer);
                    *frame = (*frame & ~LINE_START) | EXAMPLE;
                    return found_here(lexer, DOCTEST_PROMPT);
                }
                content = true;
            }
            *frame &= ~(LINE_START | EXAMPLE);
            continue;
        }
        if (c == quote) {
            if (closing_quotes(lexer, *frame, quote)) {
                if (content) return found(lexer, STRING_CONTENT);
                if (kind == F_FORMAT) {
                    // The braces are not closed.
                    pop(s);
                    pop(s);
                    pop(s);
                    return found_here(lexer, REFUSED);
                }
                pop(s);
                return found_here(lexer, STRING_END);
            }
            content = true;
        } else if (is_break(c)) {
            if (!(*frame & TRIPLE)) {
                if (content) return found(lexer, STRING_CONTENT);
                *line_ended = true;
                return false;
            }
            pass_break(lexer);
            content = true;
            if (kind == STRING) *frame |= LINE_START;
        } else if (c == '\\') {
            advance(lexer);
            int32_t next = lexer->lookahead;
            bool brace = kind != STRING && (next == '{' || next == '}');
            if (brace && (*frame & RAW || kind == F_FORMAT)) {
                content = true;
            } else if (brace) {
                // A backslash before a value stands for itself; before a brace that is text it
                // is no escape.
                lexer->mark_end(lexer);
                advance(lexer);
                return found(lexer, next == '{' && lexer->lookahead != '{' ? STRING_CONTENT : REFUSED);
            } else if (*frame & RAW) {
                content = true;
                if (is_break(next)) pass_break(lexer);
                else if (!lexer->eof(lexer)) advance(lexer);
            } else {
                if (content) return found(lexer, STRING_CONTENT);
                bool good = escape(lexer);
                return found_here(lexer, good ? ESCAPE : REFUSED);
            }
        } else if (c == '{' && kind != STRING) {
            if (content) return found(lexer, STRING_CONTENT);
            advance(lexer);
            lexer->mark_end(lexer);
            if (kind == F_TEXT && lexer->lookahead == '{') {
                advance(lexer);
                return found_here(lexer, ESCAPE);
            }
            bool room = push(s, F_CODE | (*frame & (DOUBLE | TRIPLE | RAW)));
            return found(lexer, room ? INTERPOLATION_START : REFUSED);
        } else if (c == '}' && kind != STRING) {
            if (content) return found(lexer, STRING_CONTENT);
            advance(lexer);
            lexer->mark_end(lexer);
            if (kind == F_FORMAT) {
                pop(s);
                pop(s);
                return found(lexer, INTERPOLATION_END);
            }
            if (lexer->lookahead != '}') return found(lexer, REFUSED);
            advance(lexer);
            return found_here(lexer, ESCAPE);
        } else {
            advance(lexer);
            content = true;
        }
    }
}

// A line ends inside strings that may not span lines: they end with it, up to one that may.
static void break_off(Scanner *s) {
    unsigned keep = s->frame_count;
    for (unsigned i = s->frame_count; i > 0; i--) {
        uint8_t frame = s->frames[i - 1];
        if ((frame & KIND) <= BRACE) continue;
        if (frame & TRIPLE) break;
        keep = i - 1;
    }
    s->frame_count = keep;
}

// ---- Brackets ----------------------------------------------------------------------------------

static bool open(Scanner *s, TSLexer *lexer, uint8_t kind, enum Token token) {
    advance(lexer);
    return found_here(lexer, push(s, kind) ? token : REFUSED);
}

static bool close(Scanner *s, TSLexer *lexer, uint8_t kind, enum Token token) {
    advance(lexer);
    // A bracket that was not closed inside this one ends with it.
    for (unsigned i = s->frame_count; i > 0; i--) {
        uint8_t open = s->frames[i - 1] & KIND;
        if (open == kind || (open == F_CODE && kind == BRACE)) {
            s->frame_count = i - 1;
            return found_here(lexer, open == F_CODE ? INTERPOLATION_END : token);
        }
        if (open > BRACE) break;
    }
    return found_here(lexer, token);
}

// ---- The scanner -------------------------------------------------------------------------------

static bool code(Scanner *s, TSLexer *lexer) {
    while (is_blank(lexer->lookahead)) lexer->advance(lexer, true);
    int32_t c = lexer->lookahead;
    bool value = s->frame_count && (top(s) & KIND) == F_CODE;
    if (lexer->eof(lexer) || is_break(c)) {
        if (is_break(c)) {
            // Only the innermost string counts.
            for (unsigned i = s->frame_count; i > 0; i--) {
                uint8_t frame = s->frames[i - 1];
                if ((frame & KIND) == F_CODE && !(frame & TRIPLE)) break_off(s);
                if ((frame & KIND) == F_CODE) break;
            }
            if (s->frame_count) return inner_break(s, lexer);
        }
        if (s->frame_count) return false;
        s->between = YES;
        return found_here(lexer, NEWLINE);
    }
    switch (c) {
        case '(': return open(s, lexer, PAREN, LEFT_PAREN);
        case '[': return open(s, lexer, BRACKET, LEFT_BRACKET);
        case '{': return open(s, lexer, BRACE, LEFT_BRACE);
        case ')': return close(s, lexer, PAREN, RIGHT_PAREN);
        case ']': return close(s, lexer, BRACKET, RIGHT_BRACKET);
        case '}': return close(s, lexer, BRACE, RIGHT_BRACE);
        case '"':
        case '\'': return string_start(s, lexer, STRING);
        case '\\':
            advance(lexer);
            if (!is_break(lexer->lookahead)) return found_here(lexer, REFUSED);
            pass_break(lexer);
            return found_here(lexer, LINE_BREAK);
        case '.':
            advance(lexer);
            return is_digit(lexer->lookahead) && number(lexer, true);
        case ':':
            if (!value) return false;
            advance(lexer);
            lexer->mark_end(lexer);
            return found(lexer, push(s, F_FORMAT | (top(s) & (DOUBLE | TRIPLE | RAW))) ? FORMAT_START : REFUSED);
        case '!':
            if (!value) return false;
            advance(lexer);
            c = lexer->lookahead;
            if (!is_letter(c)) return false;
            advance(lexer);
            return found_here(lexer, c == 'r' || c == 's' ? CONVERSION : REFUSED);
        default:
            if (is_digit(c)) return number(lexer, false);
            return is_letter(c) && maybe_string(s, lexer);
    }
}

bool tree_sitter_tessera_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
    Scanner *s = payload;
    if (valid[BEGIN] && !valid[REFUSED]) {
        lexer->mark_end(lexer);
        int32_t c = lexer->lookahead;
        s->between = lexer->eof(lexer) || is_blank(c) || is_break(c) || c == '#' || c == '\\' ? YES : NO;
        return found(lexer, BEGIN);
    }
    if (in_text(s)) {
        uint8_t frame = top(s);
        if ((frame & KIND) == STRING && (frame & EXAMPLE) && !(frame & LINE_START)) return example(s, lexer);
        bool line_ended = false;
        if (text(s, lexer, &line_ended)) return true;
        if (!line_ended) return false;
        break_off(s);
        if (in_text(s)) return false;
    } else if (s->between) {
        return between(s, lexer);
    }
    return code(s, lexer);
}

void *tree_sitter_tessera_external_scanner_create(void) { return ts_calloc(1, sizeof(Scanner)); }

void tree_sitter_tessera_external_scanner_destroy(void *payload) { ts_free(payload); }

// Between, frames, levels, indentation as runs of equal characters. The bounds above keep it
// within the buffer.
unsigned tree_sitter_tessera_external_scanner_serialize(void *payload, char *buffer) {
    const Scanner *s = payload;
    unsigned n = 0;
    buffer[n++] = (char)s->between;
    buffer[n++] = (char)(s->frame_count & 0xFF);
    buffer[n++] = (char)(s->frame_count >> 8);
    memcpy(buffer + n, s->frames, s->frame_count);
    n += s->frame_count;
    buffer[n++] = (char)s->level_count;
    for (unsigned i = 0; i < s->level_count; i++) {
        buffer[n++] = (char)(s->levels[i] & 0xFF);
        buffer[n++] = (char)(s->levels[i] >> 8);
    }
    for (unsigned i = 0; i < s->indent_length;) {
        unsigned count = 1;
        while (i + count < s->indent_length && count < 255 && s->indent[i + count] == s->indent[i]) count++;
        buffer[n++] = (char)count;
        buffer[n++] = s->indent[i];
        i += count;
    }
    return n;
}

void tree_sitter_tessera_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
    Scanner *s = payload;
    s->between = NO;
    s->frame_count = s->indent_length = s->level_count = 0;
    if (!length) return;
    const uint8_t *in = (const uint8_t *)buffer;
    unsigned n = 0;
    s->between = in[n++];
    s->frame_count = (uint16_t)(in[n] | in[n + 1] << 8);
    n += 2;
    memcpy(s->frames, in + n, s->frame_count);
    n += s->frame_count;
    s->level_count = in[n++];
    for (unsigned i = 0; i < s->level_count; i++, n += 2) s->levels[i] = (uint16_t)(in[n] | in[n + 1] << 8);
    while (n + 1 < length) {
        memset(s->indent + s->indent_length, in[n + 1], in[n]);
        s->indent_length = (uint16_t)(s->indent_length + in[n]);
        n += 2;
    }
}
