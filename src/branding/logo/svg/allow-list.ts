import { isValue, type ValueForm } from './value-forms.ts'

/** What may stand in a drawing. Everything else is taken out of it. */

export const svgNamespace = 'http://www.w3.org/2000/svg'

/** Left out: what acts, links, loads, or is drawn once for every point of a line (markers). */
const elements: ReadonlySet<string> = new Set([
  ...['svg', 'g', 'defs', 'symbol', 'use', 'title', 'desc'],
  ...['path', 'rect', 'circle', 'ellipse', 'line', 'polyline', 'polygon', 'text', 'tspan'],
  ...['linearGradient', 'radialGradient', 'stop', 'pattern', 'clipPath', 'mask'],
  ...['filter', 'feBlend', 'feColorMatrix', 'feComposite', 'feDropShadow', 'feFlood'],
  ...['feGaussianBlur', 'feMerge', 'feMergeNode', 'feOffset'],
])

/** Not kept themselves; what is in them is. */
const wrappers: ReadonlySet<string> = new Set(['a', 'switch'])

/** In these, text is part of the drawing. */
const textElements: ReadonlySet<string> = new Set(['text', 'tspan', 'title', 'desc'])

export type Place = 'kept' | 'opened' | 'style' | 'dropped'

export function placeOf(name: string): Place {
  if (elements.has(name)) return 'kept'
  if (wrappers.has(name)) return 'opened'
  return name === 'style' ? 'style' : 'dropped'
}

export function holdsText(name: string): boolean {
  return textElements.has(name)
}

/** Attributes that a style sheet may set as well, which becomes such an attribute. */
const presentation: Readonly<Record<ValueForm, readonly string[]>> = {
  paint: ['fill', 'stroke'],
  color: ['color', 'stop-color', 'flood-color'],
  reference: ['clip-path', 'mask', 'filter'],
  fonts: ['font-family'],
  path: [],
  transform: [],
  identifier: [],
  target: [],
  words: [
    ...['fill-opacity', 'fill-rule', 'stroke-width', 'stroke-linecap', 'stroke-linejoin'],
    ...['stroke-miterlimit', 'stroke-opacity', 'stroke-dasharray', 'stroke-dashoffset'],
    ...['opacity', 'clip-rule', 'stop-opacity', 'flood-opacity', 'display', 'visibility'],
    ...['font-size', 'font-weight', 'font-style', 'font-variant', 'font-stretch'],
    ...['letter-spacing', 'word-spacing', 'text-anchor', 'text-decoration', 'baseline-shift'],
    ...['dominant-baseline', 'alignment-baseline', 'paint-order', 'vector-effect', 'overflow'],
    ...['shape-rendering', 'text-rendering', 'color-interpolation-filters'],
  ],
}

const further: Readonly<Record<ValueForm, readonly string[]>> = {
  paint: [],
  color: [],
  reference: [],
  fonts: [],
  path: ['d'],
  transform: ['transform', 'gradientTransform', 'patternTransform'],
  identifier: ['id', 'in', 'in2', 'result'],
  target: [],
  words: [
    ...['x', 'y', 'x1', 'y1', 'x2', 'y2', 'cx', 'cy', 'r', 'rx', 'ry', 'fx', 'fy', 'fr'],
    ...['width', 'height', 'dx', 'dy', 'rotate', 'points', 'pathLength', 'textLength'],
    ...['lengthAdjust', 'viewBox', 'preserveAspectRatio', 'offset', 'spreadMethod'],
    ...['gradientUnits', 'patternUnits', 'patternContentUnits', 'clipPathUnits', 'maskUnits'],
    ...['maskContentUnits', 'filterUnits', 'primitiveUnits', 'stdDeviation', 'operator'],
    ...['k1', 'k2', 'k3', 'k4', 'mode', 'type', 'values', 'role', 'version'],
  ],
}

const presentationForms = formsOf(presentation)
const attributeForms = new Map([...presentationForms, ...formsOf(further)])

/** Elements that may point at another one by its id. */
const pointers: ReadonlySet<string> = new Set([
  'use',
  'linearGradient',
  'radialGradient',
  'pattern',
])

/** Whether an attribute may stay as it is. */
export function isAllowed(element: string, attribute: string, value: string): boolean {
  if (attribute === 'href') return pointers.has(element) && isValue('target', value)
  const form = attributeForms.get(attribute)
  return form !== undefined && isValue(form, value)
}

/** Whether a declaration of a style sheet may become an attribute. */
export function isStyle(property: string, value: string): boolean {
  const form = presentationForms.get(property)
  return form !== undefined && isValue(form, value)
}

function formsOf(names: Readonly<Record<ValueForm, readonly string[]>>): Map<string, ValueForm> {
  return new Map(
    Object.entries(names).flatMap(([form, attributes]) =>
      attributes.map((attribute): [string, ValueForm] => [attribute, form as ValueForm]),
    ),
  )
}
