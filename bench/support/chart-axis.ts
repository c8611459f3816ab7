/** `values`: logarithmic with a tick per value; `log`: logarithmic with round ticks. */
export type Scale = 'linear' | 'values' | 'log'

export type Axis = {
  readonly ticks: readonly number[]
  /** Position of a value in the drawing. */
  place(value: number): number
}

/** Maximum readable number of ticks. */
const ticksMax = 6
/** Minimum distance of ticks: numbers side by side, and in rows. */
const tickGapMin = { values: 34, log: 20 }

/** An axis with round ticks for these values. `from` and `to`: its ends in the drawing. */
export function axisOf(
  values: readonly number[],
  { scale, from, to }: { readonly scale: Scale; readonly from: number; readonly to: number },
): Axis {
  if (scale === 'linear') return linearAxis(values, from, to)
  const known = values.filter((value) => value > 0)
  const ticks = scale === 'values' ? [...new Set(known)] : roundValues(known)
  return logAxis(
    ticks.toSorted((one, other) => one - other),
    { from, to, gapMin: tickGapMin[scale] },
  )
}

function linearAxis(values: readonly number[], from: number, to: number): Axis {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const step = roundStep((most - least || Math.abs(most) || 1) / (ticksMax - 1))
  const [first, last] = [Math.floor(least / step), Math.ceil(most / step)]
  const count = Math.max(1, last - first)
  return {
    ticks: Array.from({ length: count + 1 }, (_, at) => clean((first + at) * step)),
    place: (value) => from + ((value / step - first) / count) * (to - from),
  }
}

/** 1, 2 and 5 times powers of ten, covering the range of the values. */
function roundValues(values: readonly number[]): number[] {
  const most = roundStep(Math.max(...values))
  const rounds: number[] = []
  let value = roundStep(Math.min(...values) / 2.5)
  for (; value < most; value = roundStep(value * 1.5)) rounds.push(value)
  return [...rounds, most]
}

/** Rounded up to 1, 2 or 5 times a power of ten. */
function roundStep(target: number): number {
  const power = 10 ** Math.floor(Math.log10(target))
  const times = [1, 2, 5, 10].find((factor) => factor * power >= target * (1 - 1e-9)) ?? 10
  return times * power
}

/** Removes binary rounding errors. */
function clean(value: number): number {
  return Number(value.toPrecision(12))
}

/** Drops ticks that are too close to the previous one. */
function logAxis(
  known: readonly number[],
  { from, to, gapMin }: { readonly from: number; readonly to: number; readonly gapMin: number },
): Axis {
  const [least = 1, most = least] = [known[0], known.at(-1)]
  const span = Math.log(most / least) || 1
  const place = (value: number) =>
    from + (Math.log(Math.max(value, least) / least) / span) * (to - from)
  const ticks: number[] = []
  for (const value of known) {
    const last = ticks.at(-1)
    const isFar = last === undefined || Math.abs(place(value) - place(last)) >= gapMin
    if (isFar) ticks.push(value)
  }
  return { ticks, place }
}

/** Formats 9500 as `9,500`. */
export function formatTick(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 6 })
}
