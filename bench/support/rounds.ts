/** One value per round. */
export type RoundValues = ReadonlyMap<number, number>

/** Rotates the order with each round, so that no target always follows the same. */
export function inTurn<Entry>(entries: readonly Entry[], round: number): Entry[] {
  const first = entries.length === 0 ? 0 : Math.max(0, round) % entries.length
  return [...entries.slice(first), ...entries.slice(0, first)]
}

export function valuesByRound<Result extends { readonly round: number }>(
  results: readonly Result[],
  metric: (result: Result) => number,
): RoundValues {
  return new Map(results.map((result) => [result.round, metric(result)]))
}

/** `left` minus `right` within each round, so that a slow minute affects both. */
export function differences(left: RoundValues, right: RoundValues): number[] {
  return withinRounds(left, right, (one, other) => one - other)
}

/** `left` divided by `right` within each round. */
export function ratios(left: RoundValues, right: RoundValues): number[] {
  return withinRounds(left, right, (one, other) => one / other)
}

function withinRounds(
  left: RoundValues,
  right: RoundValues,
  how: (left: number, right: number) => number,
): number[] {
  return [...left].flatMap(([round, value]) => {
    const other = right.get(round)
    return other === undefined ? [] : [how(value, other)]
  })
}
