import { invalidSvg } from '../image.ts'
import type { Removals } from './parse.ts'

/** Drawing programs declare about ten namespaces. */
const entitiesMax = 100
/** Of one entity, with those that it contains. */
const entityCharsMax = 4_096
/** Of all references in the document together, which bounds what a short upload can expand to. */
const expandedCharsMax = 524_288

const name = '[\\p{L}_:][\\p{L}\\p{N}_.:-]{0,127}'
/** A declaration, a comment or a processing instruction of an internal subset. */
const declaration = new RegExp(
  `<!ENTITY\\s+(${name})\\s+(?:"([^"]*)"|'([^']*)')\\s*>|<!ENTITY\\s+(%?\\s*${name})\\s[^>]*>|<!--[^]*?-->|<\\?[^]*?\\?>`,
  'gu',
)
const reference = new RegExp(`&(?:#(\\d{1,7})|#x([0-9a-fA-F]{1,6})|(${name}));|%`, 'gu')
const predefined = new Map<string, string>([
  ...[['amp', '&'] as const, ['lt', '<'] as const, ['gt', '>'] as const],
  ...[['quot', '"'] as const, ['apos', "'"] as const],
])

/**
 * Defines the internal entities of a DOCTYPE, as Illustrator writes them for namespaces, in `table`,
 * from which the parser takes them as text. What refers to other files is dropped. Throws
 * `invalid_svg` for entities that expand without a bound.
 */
export function defineEntities(
  doctype: string,
  table: Record<string, string>,
  removals: Removals,
): void {
  const values = new Map<string, string>()
  const subset = /\[([\s\S]*)\]/.exec(doctype)?.[1] ?? ''
  for (const [, entity, double, single, dropped] of subset.matchAll(declaration)) {
    if (dropped !== undefined) removals.add(`<!ENTITY ${dropped}>`)
    const declared = entity ?? dropped
    // The first declaration of a name counts, and only earlier ones can be part of it.
    if (declared === undefined || values.has(declared) || predefined.has(declared)) continue
    if (values.size === entitiesMax) {
      throw invalidSvg(`An SVG may declare at most ${entitiesMax} entities`)
    }
    const value = entity === undefined ? '' : expand(double ?? single ?? '', values)
    // Elements in an entity are not parsed, and are no text that somebody should see.
    const isMarkup = value.includes('<')
    if (isMarkup) removals.add(`<!ENTITY ${declared}>`)
    values.set(declared, isMarkup ? '' : value)
  }
  let chars = 0
  for (const [entity, value] of values) {
    Object.defineProperty(table, entity, {
      get() {
        chars += value.length
        if (chars > expandedCharsMax) throw invalidSvg('The entities of the SVG expand to too much')
        return value
      },
    })
  }
}

function expand(text: string, values: ReadonlyMap<string, string>): string {
  let chars = 0
  return text.replace(reference, (_, decimal?: string, hex?: string, entity?: string) => {
    const code = Number.parseInt(decimal ?? hex ?? '', decimal === undefined ? 16 : 10)
    const value =
      entity === undefined ? codePoint(code) : (predefined.get(entity) ?? values.get(entity) ?? '')
    chars += value.length
    if (chars > entityCharsMax) throw invalidSvg('An entity of the SVG is too long')
    return value
  })
}

/** Empty for what is no character. */
function codePoint(code: number): string {
  const isCharacter = code >= 0x20 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
  return isCharacter ? String.fromCodePoint(code) : ''
}
