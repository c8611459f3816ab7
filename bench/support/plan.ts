/**
 * What one stream of the mock upstream shall be, agreed between it and the load client. The plan
 * travels as words inside the prompt, so that it passes through any gateway unchanged, and both
 * ends compute the same tokens and the same schedule from it.
 */
export type Plan = {
  /** How many tokens the answer has; each is one delta event of the upstream. */
  readonly tokens: number
  /** The length of one token; 0 leaves it as short as its number allows. */
  readonly tokenBytes: number
  /** The pace; 0 sends the whole answer at once. */
  readonly tokensPerSecond: number
  /**
   * The stream begins at a multiple of so many milliseconds, as the tokens of all sequences in one
   * engine's batch come in step; 0 begins at once, so that streams are spread over time.
   */
  readonly stepMs: number
  /** The longest pause that the seed may put between two tokens; 0 means none. */
  readonly pauseSecondsMax: number
  /** The stream stays open at least so long. */
  readonly lastsMs: number
  readonly seed: number
  /** A silence after the first token, in which further streams can be opened; none without it. */
  readonly restMs?: number
}

/** One token, as short as it can be and at once, and the end; plans say in what they differ. */
export const barePlan: Plan = {
  tokens: 1,
  tokenBytes: 0,
  tokensPerSecond: 0,
  stepMs: 0,
  pauseSecondsMax: 0,
  lastsMs: 0,
  seed: 0,
}

export const modelName = 'bench'

/** A plan beyond these bounds is refused, so that no request can hold a process for ever. */
const tokensMax = 1_000_000
const tokenBytesMax = 65_536

/** Pauses come once in so many tokens on average. */
const tokensPerPause = 60

const planKeys = [
  'tokens',
  'tokenBytes',
  'tokensPerSecond',
  'stepMs',
  'pauseSecondsMax',
  'lastsMs',
  'seed',
  'restMs',
] as const

/** `plan tokens=8 tokenBytes=0 …;` filled up with further words to `bytes`. */
export function writePlan(plan: Plan, bytes = 0): string {
  const words = `plan ${planKeys.map((key) => `${key}=${plan[key] ?? 0}`).join(' ')};`
  return words.padEnd(bytes, ' and so on')
}

export function readPlan(prompt: string): Plan | undefined {
  const words = /plan ([^;]*);/.exec(prompt)?.[1]
  if (words === undefined) return undefined
  const values = new Map(words.split(' ').map((pair) => pairOf(pair)))
  const read = (key: (typeof planKeys)[number]) => values.get(key) ?? 0
  const plan: Plan = {
    tokens: read('tokens'),
    tokenBytes: read('tokenBytes'),
    tokensPerSecond: read('tokensPerSecond'),
    stepMs: read('stepMs'),
    pauseSecondsMax: read('pauseSecondsMax'),
    lastsMs: read('lastsMs'),
    seed: read('seed'),
    restMs: read('restMs'),
  }
  const sane = plan.tokens >= 1 && plan.tokens <= tokensMax && plan.tokenBytes <= tokenBytesMax
  return sane && Object.values(plan).every((value) => value >= 0) ? plan : undefined
}

function pairOf(pair: string): [key: string, value: number] {
  const [key = '', value = ''] = pair.split('=')
  return [key, Number(value)]
}

/**
 * The text of one token: `t7 `. The first one also says when the stream began, in milliseconds of
 * the wall clock (`t0@1700000000000.125 `), against which lateness is measured.
 */
export function tokenText(plan: Plan, index: number, startedAtMs: number): string {
  const word = index === 0 ? `t0@${startedAtMs.toFixed(3)}` : `t${index}`
  return `${word.padEnd(plan.tokenBytes - 1, 'x')} `
}

/** The wall clock with the resolution of `performance.now()`, comparable between processes. */
export function wallClockMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Gives the due time of token 0, 1, 2 … in milliseconds after the start of the stream. */
export function createSchedule(plan: Plan): () => number {
  const stepMs = plan.tokensPerSecond === 0 ? 0 : 1000 / plan.tokensPerSecond
  const random = seededRandom(plan.seed)
  let index = 0
  let pausedMs = 0
  return () => {
    const pauses = plan.pauseSecondsMax > 0 && index > 0 && random() < 1 / tokensPerPause
    if (index === 1) pausedMs += plan.restMs ?? 0
    if (pauses) pausedMs += random() * plan.pauseSecondsMax * 1000
    return index++ * stepMs + pausedMs
  }
}

/** The number of tokens that the schedule puts into the first `seconds`. */
export function tokensWithin(plan: Omit<Plan, 'tokens'>, seconds: number): number {
  const nextDueMs = createSchedule({ ...plan, tokens: tokensMax })
  let tokens = 0
  while (tokens < tokensMax && nextDueMs() <= seconds * 1000) tokens++
  return Math.max(1, tokens)
}

/** mulberry32: small, good enough for pauses, the same in all processes. From 0 to below 1. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
