import { isStyle } from './allow-list.ts'
import type { Removals } from './removals.ts'

/** Property → value, of those that may become attributes. */
export type Declarations = ReadonlyMap<string, string>

/** The declarations for an element, in the order in which they take effect. */
export type StyleSheet = (element: {
  readonly name: string
  readonly id: string | undefined
  readonly classes: readonly string[]
}) => Iterable<readonly [property: string, value: string]>

type Rule = { readonly order: number; readonly value: string }
type Rules = Map<string, Map<string, Rule>>

/**
 * Reads the part of CSS that drawing programs write: rules for a class, an id, an element or all of
 * them. Whatever else there is, is left out; so nothing that a browser takes for CSS stays.
 */
export function readStyleSheet(css: string, removals: Removals): StyleSheet {
  const rules: Rules = new Map()
  let order = 0
  for (const { selectors, body } of readRules(withoutComments(css), removals)) {
    order += 1
    const declarations = readDeclarations(body, 'style', removals)
    for (const selector of selectors.split(',').map((one) => one.trim())) {
      if (simpleSelector.test(selector)) addRule(rules, { selector, declarations, order })
      else removals.add(`style rule ${selector}`)
    }
  }
  return ({ name, id, classes }) => {
    const ofClasses = classes
      .flatMap((one) => [...(rules.get(`.${one}`) ?? [])])
      .toSorted(([, one], [, other]) => one.order - other.order)
    const found = [
      ...(rules.get('*') ?? []),
      ...(rules.get(name) ?? []),
      ...ofClasses,
      ...((id !== undefined && rules.get(`#${id}`)) || []),
    ]
    return found.map(([property, { value }]) => [property, value] as const)
  }
}

const simpleSelector = /^(?:\*|[.#]?[A-Za-z_][\w-]*)$/

function addRule(
  rules: Rules,
  {
    selector,
    declarations,
    order,
  }: { selector: string; declarations: Declarations; order: number },
): void {
  const known = rules.get(selector) ?? new Map<string, Rule>()
  for (const [property, value] of declarations) known.set(property, { order, value })
  rules.set(selector, known)
}

/** Of a rule, or of a `style` attribute. */
export function readDeclarations(text: string, where: string, removals: Removals): Declarations {
  const declarations = new Map<string, string>()
  for (const declaration of text.split(';')) {
    const colon = declaration.indexOf(':')
    const property = declaration.slice(0, Math.max(0, colon)).trim().toLowerCase()
    const value = declaration.slice(colon + 1).trim()
    if (colon !== -1 && isStyle(property, value)) declarations.set(property, value)
    else if (declaration.trim() !== '') removals.add(`${property || 'a declaration'} in ${where}`)
  }
  return declarations
}

/** Never goes back, whatever is open and never closed. */
export function withoutComments(css: string): string {
  const kept: string[] = []
  let at = 0
  while (at < css.length) {
    const open = css.indexOf('/*', at)
    kept.push(css.slice(at, open === -1 ? css.length : open))
    const close = open === -1 ? -1 : css.indexOf('*/', open + 2)
    at = close === -1 ? css.length : close + 2
  }
  return kept.join(' ')
}

function* readRules(
  css: string,
  removals: Removals,
): Generator<{ selectors: string; body: string }, void, void> {
  for (let at = skipSpace(css, 0); at < css.length; at = skipSpace(css, at)) {
    if (css[at] === '@') {
      removals.add(`style rule ${/^@[\w-]*/.exec(css.slice(at, at + 40))?.[0]}`)
      at = endOfAtRule(css, at)
      continue
    }
    const open = css.indexOf('{', at)
    if (open === -1) {
      removals.add('a style rule that is cut off')
      return
    }
    const close = endOfBlock(css, open)
    const body = css.slice(open + 1, close - 1)
    if (body.includes('{')) removals.add('a nested style rule')
    else yield { selectors: css.slice(at, open), body }
    at = close
  }
}

function skipSpace(css: string, from: number): number {
  let at = from
  while (at < css.length && /\s/.test(css.charAt(at))) at += 1
  return at
}

/** Behind the semicolon, or behind the block. */
function endOfAtRule(css: string, at: number): number {
  for (let end = at; end < css.length; end++) {
    if (css[end] === ';') return end + 1
    if (css[end] === '{') return endOfBlock(css, end)
  }
  return css.length
}

/** Behind the brace that closes the one at `open`. */
function endOfBlock(css: string, open: number): number {
  let depth = 0
  for (let end = open; end < css.length; end++) {
    if (css[end] === '{') depth += 1
    if (css[end] === '}') depth -= 1
    if (depth === 0) return end + 1
  }
  return css.length + 1
}
