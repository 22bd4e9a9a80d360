/**
 * The grammar of Tessera for editors. It accepts what the compiler's parser accepts
 * (`grammar/tessera.lalrpop`); `tests/tests/tree_sitter.rs` holds both to that.
 *
 * Layout, brackets, strings and numbers are tokens of `src/scanner.c`.
 *
 * What can be assigned to is told apart from other expressions while it is read, so that
 * `f(x) = 1` is an error and no second parser has to run beside the first:
 *
 * - `_name`, `_place`: names, fields and elements of names; `_target`: those, and tuples and lists of them;
 * - `_value`: other operands; `_other…`: every expression that is no target.
 *
 * @file Tessera grammar for tree-sitter
 * @license MIT
 */

/// <reference types="tree-sitter-cli/dsl" />
// @ts-check

const PREC = {
  or: 1,
  and: 2,
  not: 3,
  compare: 4,
  bit_or: 5,
  bit_xor: 6,
  bit_and: 7,
  shift: 8,
  sum: 9,
  product: 10,
  unary: 11,
  power: 12,
};

const KEYWORDS = [
  // generated: keywords
  'False', 'None', 'True', 'and', 'as', 'assert', 'async', 'await', 'break', 'class', 'continue', 'def', 'del',
  'elif', 'else', 'except', 'finally', 'for', 'from', 'global', 'if', 'import', 'in', 'is', 'lambda',
  'nonlocal', 'not', 'or', 'pass', 'raise', 'return', 'struct', 'try', 'while', 'with', 'yield',
  // end
];

/** One or more, with commas between. */
const commas = rule => seq(rule, repeat(seq(',', rule)));

/** The same with a comma allowed at the end. */
const commas_closed = rule => seq(commas(rule), optional(','));

/**
 * Parameters: plain ones, those with a default, then `*` or `*rest` and any behind it.
 * Each of the three is a list that a later one continues.
 */
const parameters = (name, plain, with_default, star) => ({
  [`_plain_${name}`]: $ => choice(plain($), seq($[`_plain_${name}`], ',', plain($))),
  [`_default_${name}`]: $ => choice(
    with_default($),
    seq(choice($[`_plain_${name}`], $[`_default_${name}`]), ',', with_default($)),
  ),
  [`_starred_${name}`]: $ => choice(
    star($),
    seq(choice($[`_plain_${name}`], $[`_default_${name}`]), ',', star($)),
    seq($[`_starred_${name}`], ',', choice(plain($), with_default($), $.keyword_separator)),
  ),
  [`_${name}`]: $ => seq(
    choice($[`_plain_${name}`], $[`_default_${name}`], $[`_starred_${name}`]),
    optional(','),
  ),
});

module.exports = grammar({
  name: 'tessera',

  word: $ => $.identifier,

  externals: $ => [
    $._begin,
    $._newline,
    $._indent,
    $._dedent,
    $._line_break,
    $.string_start,
    $.string_content,
    $._escape,
    $.string_end,
    $._interpolation_start,
    $._interpolation_end,
    $._format_start,
    $.conversion,
    $.doctest_prompt,
    $.doctest_code,
    $.integer,
    $.float,
    '(', ')', '[', ']', '{', '}',
    // Stands for what is no token. No rule has it, so it is always an error.
    $._refused,
    // Never found.
    $._never,
  ],

  extras: $ => [/[ \t\f]+/, $.comment, $._line_break],

  reserved: {
    global: _ => KEYWORDS,
  },

  supertypes: $ => [$.expression],

  inline: $ => [$._operand, $._argument],

  rules: {
    module: $ => seq($._begin, repeat($._statement)),

    comment: _ => token(/#[^\r\n]*/),

    // ---- Statements ------------------------------------------------------------------------

    _statement: $ => choice($._line, $._compound),

    _line: $ => seq($._small, repeat(seq(';', $._small)), optional(';'), $._newline),

    _small: $ => choice(
      $.expression_statement,
      $.assignment,
      $.annotated_assignment,
      $.augmented_assignment,
      $.break_statement,
      $.continue_statement,
      $.pass_statement,
      $.return_statement,
      $.assert_statement,
      $.import_statement,
      $.import_from_statement,
      $._foreign,
    ),

    // Words of Python that Tessera does not have: a reserved word must be part of some rule.
    _foreign: $ => seq($._never, choice(
      'async', 'await', 'class', 'try', 'except', 'finally', 'raise', 'yield', 'global', 'nonlocal', 'del',
    )),

    expression_statement: $ => $._expressions,

    assignment: $ => seq(
      field('left', $._targets_before),
      '=',
      field('right', choice($._expressions, $.assignment)),
    ),

    annotated_assignment: $ => seq(
      field('left', $._name),
      ':',
      field('type', $.expression),
      optional(seq('=', field('right', $._expressions))),
    ),

    augmented_assignment: $ => seq(
      field('left', $._place),
      field('operator', choice(
        '+=', '-=', '*=', '/=', '//=', '%=', '**=', '@=', '&=', '|=', '^=', '<<=', '>>=',
      )),
      field('right', $._expressions),
    ),

    break_statement: _ => prec.left('break'),
    continue_statement: _ => prec.left('continue'),
    pass_statement: _ => prec.left('pass'),
    return_statement: $ => seq('return', optional($._expressions)),
    assert_statement: $ => seq(
      'assert',
      field('test', $.expression),
      optional(seq(',', field('message', $.expression))),
    ),

    import_statement: $ => seq('import', commas(choice($.dotted_name, $.aliased_import))),
    aliased_import: $ => seq(field('name', $.dotted_name), 'as', field('alias', $.identifier)),

    import_from_statement: $ => seq(
      'from',
      field('module', $.dotted_name),
      'import',
      choice(commas($._imported), seq('(', optional(commas_closed($._imported)), ')')),
    ),
    _imported: $ => choice(field('name', $.identifier), alias($._imported_as, $.aliased_import)),
    _imported_as: $ => seq(field('name', $.identifier), 'as', field('alias', $.identifier)),

    dotted_name: $ => seq($.identifier, repeat(seq('.', $.identifier))),

    // ---- Blocks ----------------------------------------------------------------------------

    _suite: $ => seq(':', field('body', choice($._indented, alias($._line, $.block)))),
    _indented: $ => seq($._newline, $._indent, $.block),
    block: $ => seq(repeat1($._statement), $._dedent),

    _compound: $ => choice(
      $.if_statement,
      $.while_statement,
      $.for_statement,
      $.with_statement,
      $._definition,
      $.decorated_definition,
    ),

    if_statement: $ => seq(
      'if',
      field('condition', $.expression),
      $._suite,
      repeat(field('alternative', $.elif_clause)),
      optional(field('alternative', $.else_clause)),
    ),
    elif_clause: $ => seq('elif', field('condition', $.expression), $._suite),
    else_clause: $ => seq('else', $._suite),

    while_statement: $ => seq('while', field('condition', $.expression), $._suite),

    for_statement: $ => seq(
      'for',
      field('left', $._targets_before),
      'in',
      field('right', $._expressions),
      $._suite,
    ),

    with_statement: $ => seq('with', commas($.with_item), $._suite),
    with_item: $ => seq(field('value', $.expression), optional(seq('as', field('alias', $._target)))),

    // ---- Definitions -----------------------------------------------------------------------

    _definition: $ => choice($.function_definition, $.struct_definition),

    decorated_definition: $ => seq(repeat1($.decorator), field('definition', $._definition)),
    decorator: $ => seq('@', $.expression, $._newline),

    function_definition: $ => seq(
      'def',
      field('name', $.identifier),
      field('parameters', $.parameters),
      optional(seq('->', field('return_type', $.expression))),
      $._suite,
    ),

    parameters: $ => seq('(', optional($._parameters), ')'),
    ...parameters(

      'parameters',
      $ => alias($._plain_parameter, $.parameter),
      $ => alias($._default_parameter, $.parameter),
      $ => choice($.keyword_separator, $.rest_parameter),
    ),
    _plain_parameter: $ => seq(field('name', $.identifier), optional(seq(':', field('type', $.expression)))),
    _default_parameter: $ => seq(
      field('name', $.identifier),
      optional(seq(':', field('type', $.expression))),
      '=',
      field('value', $.expression),
    ),
    rest_parameter: $ => seq('*', field('name', $.identifier), optional(seq(':', field('type', $.expression)))),
    keyword_separator: _ => '*',

    struct_definition: $ => seq(
      'struct',
      field('name', $.identifier),
      optional(field('type_parameters', $.type_parameters)),
      ':',
      field('body', choice($._struct_indented, alias($._struct_line, $.struct_body))),
    ),
    type_parameters: $ => seq('[', optional(commas_closed($.identifier)), ']'),
    _struct_indented: $ => seq($._newline, $._indent, $.struct_body),
    struct_body: $ => seq(repeat1($._struct_line), $._dedent),
    _struct_line: $ => seq(choice($.field_definition, $.docstring, $.pass_statement), $._newline),
    field_definition: $ => seq(
      field('name', $.identifier),
      ':',
      field('type', $.expression),
      optional(seq('=', field('value', $.expression))),
    ),
    docstring: $ => $._strings,

    // ---- Targets ---------------------------------------------------------------------------

    // Each is an expression, too.
    _name: $ => choice($.identifier, alias($._parenthesized_name, $.parenthesized_expression)),
    _parenthesized_name: $ => seq('(', $._name, ')'),

    // Fields and elements.
    _part: $ => choice(
      alias($._part_attribute, $.attribute),
      alias($._part_subscript, $.subscript),
      alias($._parenthesized_part, $.parenthesized_expression),
    ),
    _part_attribute: $ => seq(field('object', $._place), '.', field('attribute', $.identifier)),
    _part_subscript: $ => seq(field('value', $._place), $._indices),
    _parenthesized_part: $ => seq('(', $._part, ')'),

    _place: $ => choice($._name, $._part),

    _pattern: $ => choice(
      alias($._target_tuple, $.tuple),
      alias($._target_list, $.list),
      alias($._parenthesized_pattern, $.parenthesized_expression),
    ),
    _target_tuple: $ => seq('(', $._target_items, ')'),
    _target_list: $ => seq('[', $._targets, optional(','), ']'),
    _parenthesized_pattern: $ => seq('(', $._pattern, ')'),

    _target: $ => choice($._place, $._pattern),
    _targets: $ => choice($._target, seq($._targets, ',', $._target)),
    // With at least one comma.
    _target_items: $ => seq($._targets, ',', optional($._target)),
    _targets_before: $ => choice($._target, alias($._target_items, $.expression_list)),

    // ---- Expressions -----------------------------------------------------------------------

    expression: $ => choice($._target, $._other),

    // Expressions that are no targets.
    _other: $ => choice($._other_operation, $.conditional_expression, $.lambda, $.function_type),
    // A list with at least one of them.
    _others: $ => choice(
      $._other,
      seq($._targets, ',', $._other),
      seq($._others, ',', $.expression),
    ),
    _other_items: $ => choice(
      seq($._others, ','),
      seq($._targets, ',', $._other),
      seq($._others, ',', $.expression),
    ),

    // With or without a bare tuple.
    _expressions: $ => choice(
      $.expression,
      alias($._target_items, $.expression_list),
      alias($._other_items, $.expression_list),
    ),

    conditional_expression: $ => seq(
      field('consequence', $._operation),
      'if',
      field('condition', $._operation),
      'else',
      field('alternative', $.expression),
    ),

    lambda: $ => seq(
      'lambda',
      optional(field('parameters', $.lambda_parameters)),
      ':',
      field('body', $.expression),
    ),
    lambda_parameters: $ => $._lambda_parameters,
    ...parameters(

      'lambda_parameters',
      $ => alias($._plain_lambda_parameter, $.parameter),
      $ => alias($._default_lambda_parameter, $.parameter),
      $ => choice($.keyword_separator, alias($._rest_lambda_parameter, $.rest_parameter)),
    ),
    _plain_lambda_parameter: $ => field('name', $.identifier),
    _default_lambda_parameter: $ => seq(field('name', $.identifier), '=', field('value', $.expression)),
    _rest_lambda_parameter: $ => seq('*', field('name', $.identifier)),

    function_type: $ => seq(
      field('parameters', $._parenthesized),
      '->',
      field('return_type', $.expression),
    ),
    _parenthesized: $ => choice(
      alias($._empty_tuple, $.tuple),
      alias($._target_tuple, $.tuple),
      alias($._other_tuple, $.tuple),
      alias($._parenthesized_name, $.parenthesized_expression),
      alias($._parenthesized_part, $.parenthesized_expression),
      alias($._parenthesized_pattern, $.parenthesized_expression),
      alias($._parenthesized_other, $.parenthesized_expression),
    ),

    // From `or` to calls.
    _operation: $ => choice($._target, $._other_operation),
    _other_operation: $ => choice(
      $._other_arithmetic,
      $.boolean_operator,
      $.not_operator,
      $.comparison_operator,
    ),

    boolean_operator: $ => choice(
      prec.left(PREC.or, seq(field('left', $._operation), field('operator', 'or'), field('right', $._operation))),
      prec.left(PREC.and, seq(field('left', $._operation), field('operator', 'and'), field('right', $._operation))),
    ),
    not_operator: $ => prec(PREC.not, seq('not', field('argument', $._operation))),
    comparison_operator: $ => prec.left(PREC.compare, seq(
      $._arithmetic,
      repeat1(seq(
        field('operator', choice(
          '==', '!=', '<', '<=', '>', '>=', 'in', 'is',
          alias(seq('not', 'in'), 'not in'),
          alias(seq('is', 'not'), 'is not'),
        )),
        $._arithmetic,
      )),
    )),

    // Below comparisons: `not` cannot stand here.
    _arithmetic: $ => choice($._target, $._other_arithmetic),
    _other_arithmetic: $ => choice($._value, $.binary_operator, $.unary_operator),

    binary_operator: $ => {
      const table = [
        [prec.left, PREC.bit_or, '|'],
        [prec.left, PREC.bit_xor, '^'],
        [prec.left, PREC.bit_and, '&'],
        [prec.left, PREC.shift, '<<'],
        [prec.left, PREC.shift, '>>'],
        [prec.left, PREC.sum, '+'],
        [prec.left, PREC.sum, '-'],
        [prec.left, PREC.product, '*'],
        [prec.left, PREC.product, '/'],
        [prec.left, PREC.product, '//'],
        [prec.left, PREC.product, '%'],
        [prec.left, PREC.product, '@'],
        [prec.right, PREC.power, '**'],
      ];
      return choice(...table.map(([side, level, operator]) => side(level, seq(
        field('left', $._arithmetic),
        field('operator', operator),
        field('right', $._arithmetic),
      ))));
    },
    unary_operator: $ => prec(PREC.unary, seq(
      field('operator', choice('-', '+', '~')),
      field('argument', $._arithmetic),
    )),

    // ---- Operands --------------------------------------------------------------------------

    _operand: $ => choice($._target, $._value),

    _value: $ => choice(
      $.attribute,
      $.subscript,
      $.call,
      $.integer,
      $.float,
      $._strings,
      $.true,
      $.false,
      $.none,
      $.ellipsis,
      alias($._empty_tuple, $.tuple),
      alias($._other_tuple, $.tuple),
      alias($._parenthesized_other, $.parenthesized_expression),
      $.list,
      $.list_comprehension,
      $.dictionary,
    ),

    attribute: $ => seq(field('object', choice($._pattern, $._value)), '.', field('attribute', $.identifier)),

    call: $ => seq(field('function', $._operand), field('arguments', $.argument_list)),
    argument_list: $ => seq('(', optional(commas_closed($._argument)), ')'),
    _argument: $ => choice($.expression, $.keyword_argument, $.star_argument, $.generator),
    keyword_argument: $ => seq(field('name', $.identifier), '=', field('value', $.expression)),
    star_argument: $ => seq('*', $.expression),
    generator: $ => $._comprehension,

    subscript: $ => seq(field('value', choice($._pattern, $._value)), $._indices),
    _indices: $ => seq('[', commas_closed(field('index', choice($._argument, $.slice))), ']'),
    slice: $ => seq(
      optional(field('start', $.expression)),
      ':',
      optional(field('stop', $.expression)),
      optional(seq(':', optional(field('step', $.expression)))),
    ),

    _empty_tuple: _ => seq('(', ')'),
    _other_tuple: $ => seq('(', $._other_items, ')'),
    _parenthesized_other: $ => seq('(', $._other, ')'),

    list: $ => seq('[', optional(seq($._others, optional(','))), ']'),
    list_comprehension: $ => seq('[', $._comprehension, ']'),
    _comprehension: $ => seq(field('body', $.expression), repeat1($.for_clause)),
    for_clause: $ => seq(
      'for',
      field('left', $._targets_before),
      'in',
      field('right', $._operation),
      repeat($.if_clause),
    ),
    if_clause: $ => seq('if', $._operation),

    dictionary: $ => seq('{', optional(commas_closed($.pair)), '}'),
    pair: $ => seq(field('key', $.expression), ':', field('value', $.expression)),

    true: _ => 'True',
    false: _ => 'False',
    none: _ => 'None',
    ellipsis: _ => '...',

    identifier: _ => /[_\p{XID_Start}][_\p{XID_Continue}]*/,

    // ---- Strings ---------------------------------------------------------------------------

    _strings: $ => choice($.string, $.concatenated_string),
    concatenated_string: $ => seq($.string, repeat1($.string)),

    string: $ => seq(
      $.string_start,
      repeat(choice(
        $.string_content,
        alias($._escape, $.escape_sequence),
        $.interpolation,
        $.doctest,
      )),
      $.string_end,
    ),

    // One line of an example in a docstring.
    doctest: $ => seq($.doctest_prompt, optional($.doctest_code)),

    interpolation: $ => seq(
      alias($._interpolation_start, '{'),
      field('expression', $._expressions),
      optional('='),
      optional($.conversion),
      optional($.format_specifier),
      alias($._interpolation_end, '}'),
    ),
    format_specifier: $ => seq(
      alias($._format_start, ':'),
      repeat(choice($.string_content, alias($._escape, $.escape_sequence), $.interpolation)),
    ),
  },
});
