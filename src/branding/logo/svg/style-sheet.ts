import { isAllowedStyle } from './allow-list.ts'
import type { Removals } from './parse.ts'

/** Property → value. */
type Declarations = ReadonlyMap<string, string>

/** Returns the declarations that match an element, weakest first. */
export type StyleSheet = (element: {
  readonly name: string
  readonly id: string | undefined
  readonly classes: readonly string[]
}) => Iterable<readonly [property: string, value: string]>

type Declaration = { readonly order: number; readonly value: string }

/**
 * Reads the subset of CSS that drawing programs write: rules for a class, an id, an element name or
 * `*`. Everything else is removed, so no text that a browser may read as CSS is left.
 */
export function readStyleSheet(css: string, removals: Removals): StyleSheet {
  const rules = new Map<string, Map<string, Declaration>>()
  let order = 0
  for (const { selectors, body } of readRules(withoutComments(css), removals)) {
    order += 1
    const declarations = readDeclarations(body, 'style', removals)
    for (const selector of selectors.split(',').map((one) => one.trim())) {
      if (!simpleSelector.test(selector)) {
        removals.add(`style rule ${selector}`)
        continue
      }
      const rule = rules.get(selector) ?? new Map<string, Declaration>()
      for (const [property, value] of declarations) rule.set(property, { order, value })
      rules.set(selector, rule)
    }
  }
  return ({ name, id, classes }) => {
    const ofClasses = classes
      .flatMap((one) => [...(rules.get(`.${one}`) ?? [])])
      .toSorted(([, one], [, other]) => one.order - other.order)
    const matches = [
      ...(rules.get('*') ?? []),
      ...(rules.get(name) ?? []),
      ...ofClasses,
      ...((id !== undefined && rules.get(`#${id}`)) || []),
    ]
    return matches.map(([property, { value }]) => [property, value] as const)
  }
}

const simpleSelector = /^(?:\*|[.#]?[A-Za-z_][\w-]*)$/

/** Reads the body of a rule or a `style` attribute. */
export function readDeclarations(text: string, where: string, removals: Removals): Declarations {
  const declarations = new Map<string, string>()
  for (const declaration of text.split(';')) {
    const colon = declaration.indexOf(':')
    const property = declaration.slice(0, Math.max(0, colon)).trim().toLowerCase()
    const value = declaration.slice(colon + 1).trim()
    if (colon !== -1 && isAllowedStyle(property, value)) declarations.set(property, value)
    else if (declaration.trim() !== '') removals.add(`${property || 'a declaration'} in ${where}`)
  }
  return declarations
}

/** Linear in the length of the text, even with unclosed comments. */
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
      removals.add('an incomplete style rule')
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

/** The offset after the semicolon or block of the rule. */
function endOfAtRule(css: string, at: number): number {
  for (let end = at; end < css.length; end++) {
    if (css[end] === ';') return end + 1
    if (css[end] === '{') return endOfBlock(css, end)
  }
  return css.length
}

/** The offset after the brace that closes the one at `open`. */
function endOfBlock(css: string, open: number): number {
  let depth = 0
  for (let end = open; end < css.length; end++) {
    if (css[end] === '{') depth += 1
    if (css[end] === '}') depth -= 1
    if (depth === 0) return end + 1
  }
  return css.length + 1
}
