import ts from 'typescript-api'

/** A small change of a source file that makes it wrong. */
export type Mutant = {
  readonly file: string
  readonly line: number
  readonly start: number
  readonly end: number
  readonly replacement: string
  /** `a < b → a <= b`, in one line. */
  readonly change: string
}

/** Each operator and what takes its place. */
const operators: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '%': '*',
  '+=': '-=',
  '-=': '+=',
  '++': '--',
  '--': '++',
}

/** Statements without which a program is still right: log lines and assertions. */
const unobservable = /^(await )?(\w+\.)*(log\??\.\w+|assert\w*)\(/

/** Larger numbers are limits, which no test reaches to the digit. */
const numberMax = 999

/** Whether a moment is before or at a time makes no difference. */
const boundary = /^[<>]=?$/
const clock = /\bperformance\.now\(\)|\bnow(Ms)?\b|\b\w*(ed|es)At(Ms)?\b/
/** Whether a duration is a millisecond longer, too. */
const duration = /Ms$/

/** Texts with a space are written for people. */
const prose = / /

/** All mutants of a file, in the order of its text. Types, imports and log lines have none. */
export function listMutants(file: string, text: string): Mutant[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.ESNext, true)
  const mutants: Mutant[] = []

  const replace = (node: ts.Node, replacement: string) => {
    const start = node.getStart(source)
    const { line } = source.getLineAndCharacterOfPosition(start)
    const original = oneLine(text.slice(start, node.end))
    const change = `${original} → ${oneLine(replacement) || 'removed'}`
    mutants.push({ file, line: line + 1, start, end: node.end, replacement, change })
  }

  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return
    if (ts.isExpressionStatement(node) && unobservable.test(node.getText(source))) return
    for (const replacement of replacements(node)) replace(node, replacement)
    ts.forEachChild(node, visit)
  }

  ts.forEachChild(source, visit)
  return mutants.toSorted((a, b) => a.start - b.start)
}

function replacements(node: ts.Node): string[] {
  const text = node.getText()
  if (ts.isIfStatement(node)) return isGuard(node) ? [''] : []
  if (ts.isExpressionStatement(node)) return isEffect(node.expression) ? [';'] : []
  if (ts.isBinaryExpression(node)) return [...negation(node), ...swaps(node)]
  if (ts.isPostfixUnaryExpression(node)) return [node.operand.getText() + swapped(text.slice(-2))]
  if (node.kind === ts.SyntaxKind.TrueKeyword) return ['false']
  if (node.kind === ts.SyntaxKind.FalseKeyword) return ['true']
  if (ts.isArrayLiteralExpression(node)) return node.elements.length > 0 ? ['[]'] : []
  if (ts.isNumericLiteral(node)) return isExact(node) ? [`(${text} + 1)`] : []
  if (ts.isStringLiteral(node)) {
    if (isKey(node) || prose.test(node.text)) return []
    return [node.text === '' ? "'mutated'" : "''"]
  }
  return negation(node)
}

/** An `if` without `else` that only leaves. */
function isGuard({ thenStatement, elseStatement }: ts.IfStatement): boolean {
  if (elseStatement !== undefined) return false
  const last = ts.isBlock(thenStatement) ? thenStatement.statements.at(-1) : thenStatement
  if (last === undefined) return false
  return (
    ts.isThrowStatement(last) ||
    ts.isReturnStatement(last) ||
    ts.isContinueStatement(last) ||
    ts.isBreakStatement(last)
  )
}

function isEffect(node: ts.Expression): boolean {
  if (ts.isAwaitExpression(node) || ts.isYieldExpression(node)) return true
  return ts.isCallExpression(node) || (ts.isBinaryExpression(node) && isAssignment(node))
}

function isAssignment({ operatorToken }: ts.BinaryExpression): boolean {
  return operatorToken.kind === ts.SyntaxKind.EqualsToken
}

/** What decides about a branch is negated. */
function negation(node: ts.Node): string[] {
  const { parent } = node
  const decides =
    ((ts.isIfStatement(parent) || ts.isWhileStatement(parent)) && parent.expression === node) ||
    (ts.isConditionalExpression(parent) && parent.condition === node)
  if (decides) return [`!(${node.getText()})`]
  const isNot = ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken
  return isNot ? [node.operand.getText()] : []
}

function swaps(node: ts.BinaryExpression): string[] {
  const operator = node.operatorToken.getText()
  const replacement = swapped(operator)
  if (replacement === '') return []
  if (boundary.test(operator) && clock.test(node.getText())) return []
  // `!(a === b)` is there already, and texts have no difference.
  if (operator.endsWith('==') && negation(node).length > 0) return []
  const isText = [node.left, node.right].some((side) => ts.isStringLiteralLike(side))
  if (operator.startsWith('+') && (isText || /[`']/.test(node.getText()))) return []
  return [`${node.left.getText()} ${replacement} ${node.right.getText()}`]
}

function swapped(operator: string): string {
  return operators[operator] ?? ''
}

function isExact({ parent, text }: ts.NumericLiteral): boolean {
  const isNamed =
    ts.isVariableDeclaration(parent) ||
    ts.isPropertyAssignment(parent) ||
    ts.isPropertyDeclaration(parent)
  if (isNamed && duration.test(parent.name.getText())) return false
  return Number(text) <= numberMax
}

function isKey(node: ts.StringLiteral): boolean {
  return ts.isPropertyAssignment(node.parent) && node.parent.name === node
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length > 100 ? `${line.slice(0, 99)}…` : line
}
