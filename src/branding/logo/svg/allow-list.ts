/**
 * Allow-list of SVG elements, attributes and attribute values. Browsers read many values as CSS, where
 * a backslash escapes any letter and functions load resources, so no form allows a backslash and each
 * names its functions.
 */

export const svgNamespace = 'http://www.w3.org/2000/svg'

/** Without scripts, links, external resources, and markers, which are drawn once per vertex. */
const elements: ReadonlySet<string> = new Set([
  ...['svg', 'g', 'defs', 'symbol', 'use', 'title', 'desc'],
  ...['path', 'rect', 'circle', 'ellipse', 'line', 'polyline', 'polygon', 'text', 'tspan'],
  ...['linearGradient', 'radialGradient', 'stop', 'pattern', 'clipPath', 'mask'],
  ...['filter', 'feBlend', 'feColorMatrix', 'feComposite', 'feDropShadow', 'feFlood'],
  ...['feGaussianBlur', 'feMerge', 'feMergeNode', 'feOffset'],
])

/** Removed, with their children kept. */
const wrappers: ReadonlySet<string> = new Set(['a', 'switch'])

const textElements: ReadonlySet<string> = new Set(['text', 'tspan', 'title', 'desc'])

export type ElementClass = 'kept' | 'unwrapped' | 'style' | 'removed'

export function classifyElement(name: string): ElementClass {
  if (elements.has(name)) return 'kept'
  if (wrappers.has(name)) return 'unwrapped'
  return name === 'style' ? 'style' : 'removed'
}

export function holdsText(name: string): boolean {
  return textElements.has(name)
}

type ValueForm = keyof typeof forms

const identifier = '[\\p{L}\\p{N}_][\\p{L}\\p{N}_.:-]{0,127}'
const localUrl = `url\\(\\s*(?:#${identifier}|'#${identifier}'|"#${identifier}")\\s*\\)`
const color =
  '(?:#[0-9a-fA-F]{3,8}|[A-Za-z-]{1,40}|(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch)\\([\\w\\s.,%/+-]{1,100}\\))'
const transform = '(?:matrix|translate|scale|rotate|skewX|skewY)\\s*\\([\\d\\s.,eE+-]{0,400}\\)'

const forms = {
  keywords: /^[\w\s.,%+-]*$/,
  path: /^[\s\d.,+MmZzLlHhVvCcSsQqTtAaEe-]*$/,
  identifier: new RegExp(`^${identifier}$`, 'u'),
  fonts: /^[\p{L}\p{N}\s,'"._-]*$/u,
  color: new RegExp(`^\\s*${color}\\s*$`),
  paint: new RegExp(`^\\s*(?:${color}|${localUrl}(?:\\s+${color})?)\\s*$`, 'u'),
  reference: new RegExp(`^\\s*(?:none|${localUrl})\\s*$`, 'u'),
  transform: new RegExp(`^\\s*(?:none|(?:${transform}[\\s,]*)*)$`),
}

const fragment = new RegExp(`^#${identifier}$`, 'u')

const localUrlTarget = new RegExp(`url\\(\\s*['"]?#(${identifier})`, 'u')

/** The id that a value of `url(#…)` points at. */
export function targetOf(value: string | undefined): string | undefined {
  return value === undefined ? undefined : localUrlTarget.exec(value)?.[1]
}

type FormTable = Readonly<Partial<Record<ValueForm, readonly string[]>>>

/** CSS properties; style sheet declarations become attributes of these names. */
const presentationAttributes: FormTable = {
  paint: ['fill', 'stroke'],
  color: ['color', 'stop-color', 'flood-color'],
  reference: ['clip-path', 'mask', 'filter'],
  fonts: ['font-family'],
  keywords: [
    ...['fill-opacity', 'fill-rule', 'stroke-width', 'stroke-linecap', 'stroke-linejoin'],
    ...['stroke-miterlimit', 'stroke-opacity', 'stroke-dasharray', 'stroke-dashoffset'],
    ...['opacity', 'clip-rule', 'stop-opacity', 'flood-opacity', 'display', 'visibility'],
    ...['font-size', 'font-weight', 'font-style', 'font-variant', 'font-stretch'],
    ...['letter-spacing', 'word-spacing', 'text-anchor', 'text-decoration', 'baseline-shift'],
    ...['dominant-baseline', 'alignment-baseline', 'paint-order', 'vector-effect', 'overflow'],
    ...['shape-rendering', 'text-rendering', 'color-interpolation-filters'],
  ],
}

const otherAttributes: FormTable = {
  path: ['d'],
  transform: ['transform', 'gradientTransform', 'patternTransform'],
  identifier: ['id', 'in', 'in2', 'result'],
  keywords: [
    ...['x', 'y', 'x1', 'y1', 'x2', 'y2', 'cx', 'cy', 'r', 'rx', 'ry', 'fx', 'fy', 'fr'],
    ...['width', 'height', 'dx', 'dy', 'rotate', 'points', 'pathLength', 'textLength'],
    ...['lengthAdjust', 'viewBox', 'preserveAspectRatio', 'offset', 'spreadMethod'],
    ...['gradientUnits', 'patternUnits', 'patternContentUnits', 'clipPathUnits', 'maskUnits'],
    ...['maskContentUnits', 'filterUnits', 'primitiveUnits', 'stdDeviation', 'operator'],
    ...['k1', 'k2', 'k3', 'k4', 'mode', 'type', 'values', 'role', 'version'],
  ],
}

const presentationForms = formsOf(presentationAttributes)
const attributeForms = new Map([...presentationForms, ...formsOf(otherAttributes)])

/** Elements whose `href` may point at another element of the document. */
const referencingElements: ReadonlySet<string> = new Set([
  'use',
  'linearGradient',
  'radialGradient',
  'pattern',
])

export function isAllowed(element: string, attribute: string, value: string): boolean {
  if (attribute === 'href') return referencingElements.has(element) && fragment.test(value)
  const form = attributeForms.get(attribute)
  return form !== undefined && forms[form].test(value)
}

/** Whether a style sheet declaration may become an attribute. */
export function isAllowedStyle(property: string, value: string): boolean {
  const form = presentationForms.get(property)
  return form !== undefined && forms[form].test(value)
}

function formsOf(table: FormTable): Map<string, ValueForm> {
  return new Map(
    Object.entries(table).flatMap(([form, attributes]) =>
      attributes.map((attribute): [string, ValueForm] => [attribute, form as ValueForm]),
    ),
  )
}
