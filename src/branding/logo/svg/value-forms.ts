/**
 * How the value of an attribute may look. Browsers read many of them as CSS, where a backslash spells
 * any letter and functions load things, so no form has a backslash, and each names its functions.
 */
export type ValueForm = keyof typeof forms

const identifier = '[\\p{L}\\p{N}_][\\p{L}\\p{N}_.:-]{0,127}'
const localUrl = `url\\(\\s*(?:#${identifier}|'#${identifier}'|"#${identifier}")\\s*\\)`
const color =
  '(?:#[0-9a-fA-F]{3,8}|[A-Za-z-]{1,40}|(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch)\\([\\w\\s.,%/+-]{1,100}\\))'
const transform = '(?:matrix|translate|scale|rotate|skewX|skewY)\\s*\\([\\d\\s.,eE+-]{0,400}\\)'

const forms = {
  words: /^[\w\s.,%+-]*$/,
  path: /^[\s\d.,+MmZzLlHhVvCcSsQqTtAaEe-]*$/,
  identifier: new RegExp(`^${identifier}$`, 'u'),
  fonts: /^[\p{L}\p{N}\s,'"._-]*$/u,
  color: new RegExp(`^\\s*${color}\\s*$`),
  paint: new RegExp(`^\\s*(?:${color}|${localUrl}(?:\\s+${color})?)\\s*$`, 'u'),
  reference: new RegExp(`^\\s*(?:none|${localUrl})\\s*$`, 'u'),
  target: new RegExp(`^#${identifier}$`, 'u'),
  transform: new RegExp(`^\\s*(?:none|(?:${transform}[\\s,]*)*)$`),
}

export function isValue(form: ValueForm, value: string): boolean {
  return forms[form].test(value)
}

const target = new RegExp(`url\\(\\s*['"]?#(${identifier})`, 'u')

/** The id that a value of `url(#…)` points at. */
export function targetOf(value: string | undefined): string | undefined {
  return value === undefined ? undefined : target.exec(value)?.[1]
}
