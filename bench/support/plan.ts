/**
 * Plan of one stream, shared by mock upstream and load client. It travels as words in the prompt,
 * so any gateway passes it unchanged, and both ends compute the same tokens and schedule.
 */
export type Plan = {
  /** Number of tokens; each is one delta event of the upstream. */
  readonly tokens: number
  /** Length of a token in bytes; 0: as short as possible. */
  readonly tokenBytes: number
  /** Pace; 0: unpaced. */
  readonly tokensPerSecond: number
  /**
   * The stream starts at a multiple of this interval, like sequences in one engine batch; 0:
   * immediately.
   */
  readonly stepMs: number
  /** Maximum random pause between two tokens; 0: none. */
  readonly pauseSecondsMax: number
  /** Minimum duration of the stream. */
  readonly lastsMs: number
  readonly seed: number
  /** Pause after the first token, in which further streams are opened; optional. */
  readonly restMs?: number
}

/** Default plan: one short token, immediately; plans override it. */
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

/** Bounds of plans, so that no request runs for ever. */
const tokensMax = 1_000_000
const tokenBytesMax = 65_536

/** Average number of tokens per pause. */
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

/** `plan tokens=8 tokenBytes=0 …;` padded to `bytes`. */
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
 * Text of a token: `t7 `. The first token also contains the start time of the stream in wall clock
 * milliseconds (`t0@1700000000000.125 `), from which lateness is computed.
 */
export function tokenText(plan: Plan, index: number, startedAtMs: number): string {
  const word = index === 0 ? `t0@${startedAtMs.toFixed(3)}` : `t${index}`
  return `${word.padEnd(plan.tokenBytes - 1, 'x')} `
}

/** Wall clock with the resolution of `performance.now()`, comparable between processes. */
export function wallClockMs(): number {
  return performance.timeOrigin + performance.now()
}

/** Returns the due time of token 0, 1, 2 … in milliseconds after the start of the stream. */
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

/** Number of tokens scheduled in the first `seconds`. */
export function tokensWithin(plan: Omit<Plan, 'tokens'>, seconds: number): number {
  const nextDueMs = createSchedule({ ...plan, tokens: tokensMax })
  let tokens = 0
  while (tokens < tokensMax && nextDueMs() <= seconds * 1000) tokens++
  return Math.max(1, tokens)
}

/** mulberry32: the same sequence in all processes; values in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
