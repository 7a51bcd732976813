import ts from 'typescript'

/** One small change of one place in a source file. */
export interface Mutant {
  readonly id: number
  readonly file: string
  readonly line: number
  /** The function it is in, and its line of code: what a mutant is known by when others shift it. */
  readonly within: string
  readonly code: string
  /** The text that is changed, and what it becomes; nothing: it is left out. */
  readonly from: string
  readonly to: string
}

/** A source with all its mutants in it: which one is on is asked at run time, by `__mutant(id)`. */
export interface Instrumented {
  readonly code: string
  readonly mutants: readonly Mutant[]
}

/** A mutation of one node: the text that takes its place. Undefined: the statement is left out. */
interface Mutation {
  readonly node: ts.Node
  readonly to: string | undefined
}

const SWAPS: ReadonlyMap<ts.SyntaxKind, readonly string[]> = new Map([
  [ts.SyntaxKind.LessThanToken, ['<=', '>=']],
  [ts.SyntaxKind.LessThanEqualsToken, ['<', '>']],
  [ts.SyntaxKind.GreaterThanToken, ['>=', '<=']],
  [ts.SyntaxKind.GreaterThanEqualsToken, ['>', '<']],
  [ts.SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [ts.SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [ts.SyntaxKind.PlusToken, ['-']],
  [ts.SyntaxKind.MinusToken, ['+']],
  [ts.SyntaxKind.AsteriskToken, ['/']],
  [ts.SyntaxKind.AmpersandAmpersandToken, ['||']],
  [ts.SyntaxKind.BarBarToken, ['&&']],
])

const LOGICAL: ReadonlySet<ts.SyntaxKind> = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
])

const NAMES: ReadonlyMap<string, string> = new Map([
  ['min', 'max'],
  ['max', 'min'],
  ['every', 'some'],
  ['some', 'every'],
])

/** Calls whose object says what changes: each of its fields is left out once. */
const CHANGES: ReadonlySet<string> = new Set(['set', 'hold', 'proof', 'ending'])

/** Puts every mutant of a source into it. */
export function instrument(file: string, source: string, firstId: number): Instrumented {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.ES2022, true)
  const mutants: Mutant[] = []
  const lines = source.split('\n')
  const text = (node: ts.Node): string => source.slice(node.getStart(tree), node.end)

  const emit = (node: ts.Node): string => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node))
      return source.slice(node.pos, node.end)
    if (ts.isImportDeclaration(node)) return source.slice(node.pos, node.end)
    const own = [...mutationsOf(node, text)]
    const whole = inner(node)
    if (own.length === 0) return whole
    const lead = source.slice(node.pos, node.getStart(tree))
    return lead + own.reduce((rest, mutation) => wrap(rest, mutation), whole.slice(lead.length))
  }

  const inner = (node: ts.Node): string => {
    let code = ''
    let at = node.pos
    node.forEachChild((child) => {
      code += source.slice(at, child.pos) + emit(child)
      at = child.end
    })
    return code + source.slice(at, node.end)
  }

  const wrap = (rest: string, { node, to }: Mutation): string => {
    const id = firstId + mutants.length
    const line = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1
    const from = oneLine(text(node))
    const place = { file, line, within: functionOf(node), code: codeOf(node, lines) }
    mutants.push({ id, ...place, from, to: oneLine(to ?? '') })
    if (ts.isStatement(node)) return `if (__mutant(${id})) {${to ?? ''}} else {${rest}}`
    if (ts.isPropertyAssignment(node) || ts.isShorthandPropertyAssignment(node))
      return `...(__mutant(${id}) ? {} : {${rest}})`
    if (ts.isSpreadAssignment(node)) return `...(__mutant(${id}) ? {} : {${rest}})`
    return `(__mutant(${id}) ? (${to ?? 'undefined'}) : (${rest}))`
  }

  return { code: inner(tree), mutants }
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** The innermost named function, or the constant, that a node is in. */
function functionOf(node: ts.Node): string {
  if (ts.isSourceFile(node)) return ''
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || isConstant(node))
    return node.name?.getText() ?? ''
  return ts.isGetAccessorDeclaration(node) ? node.name.getText() : functionOf(node.parent)
}

function isConstant(node: ts.Node): node is ts.VariableDeclaration {
  return ts.isVariableDeclaration(node) && ts.isSourceFile(node.parent.parent.parent)
}

/** The line that a node begins on; where it is all there is on that line, the line of what it is in. */
function codeOf(node: ts.Node, lines: readonly string[]): string {
  const tree = node.getSourceFile()
  for (let at = node; ; at = at.parent) {
    const { line } = tree.getLineAndCharacterOfPosition(at.getStart(tree))
    const code = lines[line]?.trim() ?? ''
    if (code !== node.getText(tree) || ts.isSourceFile(at.parent)) return code
  }
}

function* mutationsOf(node: ts.Node, text: (node: ts.Node) => string): Generator<Mutation> {
  if (ts.isStatement(node)) yield* ofStatement(node)
  if (ts.isBinaryExpression(node)) yield* ofBinary(node, text)
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
    yield { node, to: text(node.operand) }
  if (ts.isConditionalExpression(node)) {
    yield { node, to: text(node.whenTrue) }
    yield { node, to: text(node.whenFalse) }
  }
  if (isCondition(node)) yield { node, to: `!(${text(node)})` }
  yield* ofLiteral(node, text)
  if (ts.isCallExpression(node)) yield* ofCall(node, text)
  if (isField(node)) yield { node, to: undefined }
}

function* ofStatement(node: ts.Statement): Generator<Mutation> {
  const removable =
    ts.isExpressionStatement(node) ||
    ts.isIfStatement(node) ||
    ts.isForOfStatement(node) ||
    ts.isContinueStatement(node) ||
    (ts.isReturnStatement(node) && node.expression === undefined)
  // `satisfies never` says something to the compiler only.
  const silent = ts.isExpressionStatement(node) && ts.isSatisfiesExpression(node.expression)
  if (removable && !silent) yield { node, to: undefined }
}

function* ofBinary(
  node: ts.BinaryExpression,
  text: (node: ts.Node) => string,
): Generator<Mutation> {
  const { left, right, operatorToken } = node
  const texts = [left, right].some(
    (side) => ts.isStringLiteralLike(side) || ts.isTemplateExpression(side),
  )
  const joins = operatorToken.kind === ts.SyntaxKind.PlusToken && texts
  if (!joins)
    for (const to of SWAPS.get(operatorToken.kind) ?? [])
      yield { node, to: `${text(left)} ${to} ${text(right)}` }
  if (operatorToken.kind === ts.SyntaxKind.PlusEqualsToken)
    yield { node, to: `${text(left)} -= ${text(right)}` }
  if (!LOGICAL.has(operatorToken.kind)) return
  yield { node, to: text(left) }
  yield { node, to: text(right) }
}

/** A condition that no other mutation of its own negates. */
function isCondition(node: ts.Node): node is ts.Expression {
  const { parent } = node
  const asked =
    (ts.isIfStatement(parent) && parent.expression === node) ||
    (ts.isConditionalExpression(parent) && parent.condition === node)
  const comparison = ts.isBinaryExpression(node) && SWAPS.has(node.operatorToken.kind)
  return asked && !comparison && !ts.isPrefixUnaryExpression(node)
}

function* ofLiteral(node: ts.Node, text: (node: ts.Node) => string): Generator<Mutation> {
  if (ts.isNumericLiteral(node)) {
    yield { node, to: `${text(node)} + 1` }
    if (node.text !== '0') yield { node, to: `${text(node)} - 1` }
  }
  if (node.kind === ts.SyntaxKind.TrueKeyword) yield { node, to: 'false' }
  if (node.kind === ts.SyntaxKind.FalseKeyword) yield { node, to: 'true' }
  if (node.kind === ts.SyntaxKind.NullKeyword && ts.isReturnStatement(node.parent))
    yield { node, to: 'undefined' }
  // Texts for people are no rules; a word is one.
  if (ts.isStringLiteral(node) && /^[a-z-]+$/.test(node.text) && isValue(node))
    yield { node, to: "'another'" }
}

/** A string that is a value, and no name of a property, module or case. */
function isValue(node: ts.StringLiteral): boolean {
  const { parent } = node
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node
  if (ts.isBinaryExpression(parent)) return !SWAPS.has(parent.operatorToken.kind)
  return (
    !ts.isCaseClause(parent) &&
    !ts.isLiteralTypeNode(parent) &&
    !ts.isElementAccessExpression(parent)
  )
}

function* ofCall(node: ts.CallExpression, text: (node: ts.Node) => string): Generator<Mutation> {
  const { expression } = node
  if (!ts.isPropertyAccessExpression(expression)) return
  const to = NAMES.get(expression.name.text)
  if (to === undefined) return
  const whole = text(node)
  const at = expression.name.getStart() - node.getStart()
  yield { node, to: whole.slice(0, at) + to + whole.slice(at + expression.name.text.length) }
}

/** A field of what a call changes. */
function isField(node: ts.Node): boolean {
  if (!ts.isObjectLiteralElementLike(node) || ts.isMethodDeclaration(node)) return false
  const call = node.parent.parent
  if (!ts.isObjectLiteralExpression(node.parent) || !ts.isCallExpression(call)) return false
  const { expression } = call
  return ts.isPropertyAccessExpression(expression) && CHANGES.has(expression.name.text)
}
