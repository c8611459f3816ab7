import { overflowLabel } from './metric-snapshot.ts'

/** One for each label, in the order of the names. */
export type LabelValues = readonly string[]

/** One level per label, so that finding a series builds no key. */
type SeriesNode<T> = { readonly children: Map<string, SeriesNode<T>>; cell: T | null }

/** The series of one metric. */
export type SeriesTree<T> = {
  /** The cell of a label set. Beyond `seriesMax` sets it is the overflow cell. */
  of(values: LabelValues): T
  list(): readonly (readonly [LabelValues, T])[]
}

export function createSeriesTree<T>(options: {
  seriesMax: number
  labelCount: number
  create: (values: LabelValues) => T
  /** Called each time the overflow cell stands for another label set. */
  onOverflow: () => void
}): SeriesTree<T> {
  const { seriesMax, labelCount, create, onOverflow } = options
  const root: SeriesNode<T> = { children: new Map(), cell: null }
  const known: (readonly [LabelValues, T])[] = []
  const overflow: LabelValues = new Array<string>(labelCount).fill(overflowLabel)

  function of(values: LabelValues): T {
    let node: SeriesNode<T> | undefined = root
    for (const value of values) {
      node = node.children.get(value)
      if (node === undefined) break
    }
    return node?.cell ?? add(values)
  }

  function add(values: LabelValues): T {
    if (known.length >= seriesMax && values !== overflow) {
      onOverflow()
      return of(overflow)
    }
    let node = root
    for (const value of values) {
      const child = node.children.get(value) ?? { children: new Map(), cell: null }
      node.children.set(value, child)
      node = child
    }
    const cell = create(values)
    node.cell = cell
    known.push([values, cell])
    return cell
  }
  return { of, list: () => known }
}
