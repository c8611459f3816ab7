/** What became of an operation, as its client saw it. */
type Outcome =
  | 'acknowledged'
  /** An error response, in the shape of its surface. */
  | 'refused'
  /** The connection broke, so the operation may have taken effect. */
  | 'unknown'

export type Operation = {
  readonly number: number
  readonly client: string
  readonly kind: string
  readonly startedMs: number
  endedMs: number
  outcome: Outcome | 'running' | 'violated'
  /** Ids and error codes. */
  readonly facts: string[]
}

export type FaultRecord = {
  readonly kind: string
  readonly target: string
  readonly startedMs: number
  endedMs: number
}

type Violation = { readonly invariant: string; readonly detail: string }

/** Everything that happened, in the order of its start. */
export type Book = {
  readonly operations: Operation[]
  readonly faults: FaultRecord[]
  readonly violations: Violation[]
  violate(invariant: string, detail: string): void
}

/** Only the first violations are printed; the others are often their consequences. */
const shownMax = 20

export function createBook(): Book {
  const violations: Violation[] = []
  return {
    operations: [],
    faults: [],
    violations,
    violate(invariant, detail) {
      violations.push({ invariant, detail })
    },
  }
}

/** An invariant that an operation found broken. */
export class ViolationError extends Error {
  readonly invariant: string

  constructor(invariant: string, detail: string) {
    super(detail)
    this.invariant = invariant
  }
}

export function describeOperation(operation: Operation): string {
  const { number, client, kind, startedMs, endedMs, outcome, facts } = operation
  const span = `${Math.round(startedMs)}–${Math.round(endedMs)} ms`
  return `#${number} ${client} ${kind} ${outcome} (${span}) ${facts.join(' ')}`
}

export function describeViolations({ violations }: Book): string {
  const lines = violations.slice(0, shownMax).map((each) => `${each.invariant}: ${each.detail}`)
  const hidden = violations.length - lines.length
  return [...lines, ...(hidden > 0 ? [`and ${hidden} more`] : [])].join('\n')
}

/** Counts of outcomes by kind of operation, for reading. */
export function summarise({ operations, faults }: Book): string {
  const kinds = [...new Set(operations.map(({ kind }) => kind))].toSorted()
  const outcomes = ['acknowledged', 'refused', 'unknown', 'violated'] as const
  const lines = kinds.map((kind) => {
    const own = operations.filter((each) => each.kind === kind)
    const counts = outcomes.map((outcome) => {
      const count = own.filter((each) => each.outcome === outcome).length
      return count === 0 ? '' : `${count} ${outcome}`
    })
    return `  ${kind}: ${counts.filter(Boolean).join(', ')}`
  })
  const faultKinds = [...new Set(faults.map(({ kind }) => kind))].toSorted()
  const faultCounts = faultKinds.map(
    (kind) => `${faults.filter((each) => each.kind === kind).length} × ${kind}`,
  )
  return `${operations.length} operations:\n${lines.join('\n')}\nfaults: ${faultCounts.join(', ')}`
}
