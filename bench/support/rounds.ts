/** One value per round. */
export type RoundFigures = ReadonlyMap<number, number>

/** Rotates the order with each round, so that no target always follows the same. */
export function inTurn<Entry>(entries: readonly Entry[], round: number): Entry[] {
  const first = entries.length === 0 ? 0 : Math.max(0, round) % entries.length
  return [...entries.slice(first), ...entries.slice(0, first)]
}

export function figuresOf<Result extends { readonly round: number }>(
  results: readonly Result[],
  figure: (result: Result) => number,
): RoundFigures {
  return new Map(results.map((result) => [result.round, figure(result)]))
}

/** `left` minus `right` within each round, so that a slow minute affects both. */
export function differences(left: RoundFigures, right: RoundFigures): number[] {
  return withinRounds(left, right, (one, other) => one - other)
}

/** `left` divided by `right` within each round. */
export function ratios(left: RoundFigures, right: RoundFigures): number[] {
  return withinRounds(left, right, (one, other) => one / other)
}

function withinRounds(
  left: RoundFigures,
  right: RoundFigures,
  how: (left: number, right: number) => number,
): number[] {
  return [...left].flatMap(([round, value]) => {
    const other = right.get(round)
    return other === undefined ? [] : [how(value, other)]
  })
}
