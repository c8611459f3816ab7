import { invalidSvg, type SvgElement } from './parse.ts'
import { targetOf } from './value-forms.ts'

/**
 * How many elements a browser draws. A few lines that use one another ten times each are billions of
 * them, as are patterns that are filled with patterns.
 */
const drawnMax = 200_000
const paints = ['fill', 'stroke']
const effects = ['clip-path', 'mask', 'filter']

/** How many references lead from one to the next. */
const chainMax = 32

/** Throws `invalid_svg` for a drawing that refers to itself, or that takes too long to draw. */
export function checkDrawingCost(root: SvgElement): void {
  const targets = new Map<string, SvgElement>()
  collectTargets(root, targets)
  const known = new Map<string, number>()
  const open = new Set<string>()

  function costOfTarget(id: string | undefined): number {
    const target = id === undefined ? undefined : targets.get(id)
    if (id === undefined || target === undefined) return 0
    const cost = known.get(id)
    if (cost !== undefined) return cost
    if (open.has(id)) throw invalidSvg(`The element "${id}" of the SVG refers to itself`)
    if (open.size === chainMax) {
      throw invalidSvg(`References of an SVG lead over ${chainMax} elements at most`)
    }
    open.add(id)
    const found = costOf(target)
    open.delete(id)
    known.set(id, found)
    return found
  }

  function costOf({ name, attributes, children }: SvgElement): number {
    const inside = children.reduce(
      (sum, child) => sum + (typeof child === 'string' ? 0 : costOf(child)),
      1 + costOfTarget(attributes.get('href')?.slice(1)),
    )
    const costOfAll = (names: readonly string[]) =>
      names.reduce((sum, one) => sum + costOfTarget(targetOf(attributes.get(one))), 0)
    // What is inside inherits the paint, and each of it is painted on its own.
    const cost = inside * (1 + costOfAll(paints)) + costOfAll(effects)
    if (cost > drawnMax) throw invalidSvg('The SVG takes too long to draw')
    // Drawn along with what it colours.
    return name.endsWith('Gradient') ? 0 : cost
  }

  costOf(root)
}

/** Of two elements with one id, browsers take the first. */
function collectTargets(element: SvgElement, targets: Map<string, SvgElement>): void {
  const id = element.attributes.get('id')
  if (id !== undefined && !targets.has(id)) targets.set(id, element)
  for (const child of element.children) {
    if (typeof child !== 'string') collectTargets(child, targets)
  }
}
