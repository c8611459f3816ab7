import { expectedText } from './load-request.ts'
import { barePlan, type Plan, readPlan, tokenText, writePlan } from './plan.ts'

/** Transient upstream faults before any output. */
export const passingFaults = ['status-429', 'status-500', 'status-503', 'hang-up'] as const
/** Permanent upstream faults. */
const lastingFaults = ['status-400', 'no-stream', 'silence'] as const
/** Faults during a response. */
const breakingFaults = ['cut', 'early-end', 'stall', 'nonsense', 'error-event'] as const

export type FaultName =
  | 'none'
  | (typeof passingFaults)[number]
  | (typeof lastingFaults)[number]
  | (typeof breakingFaults)[number]

/** A response of the faulty upstream: a plan and its fault. */
export type SoakPlan = {
  readonly plan: Plan
  readonly fault: FaultName
  /** Tokens before the fault. */
  readonly at: number
  /** Number of failing attempts of a transient fault. */
  readonly tries: number
  /** Identifies the attempts of one request. */
  readonly id: number
}

/** A gateway tries four times: this many failures are recovered, or not. */
const triesThatPass = 2
const triesThatFail = 99
/** Share of responses per kind of fault. */
const shares = { passing: 0.08, lasting: 0.04, breaking: 0.1 }

export function drawPlan(random: () => number): SoakPlan {
  const tokens = 5 + below(45, random)
  const plan = plainPlan({ tokens, tokensPerSecond: random() < 0.3 ? 0 : 20 + below(180, random) })
  const { fault, tries } = drawFault(random)
  return { plan, fault, tries, at: 1 + below(tokens - 1, random), id: below(2 ** 31, random) }
}

/** A response without a fault. */
export function drawGoodPlan(random: () => number): SoakPlan {
  return { ...drawPlan(random), fault: 'none', tries: 0 }
}

export function plainPlan(wanted: Pick<Plan, 'tokens' | 'tokensPerSecond'>): Plan {
  return { ...barePlan, ...wanted }
}

function drawFault(random: () => number): Pick<SoakPlan, 'fault' | 'tries'> {
  const chance = random()
  if (chance < shares.breaking) return { fault: pick(breakingFaults, random), tries: 0 }
  if (chance < shares.breaking + shares.lasting) {
    return { fault: pick(lastingFaults, random), tries: 0 }
  }
  if (chance < shares.breaking + shares.lasting + shares.passing) {
    const tries = random() < 0.7 ? 1 + below(triesThatPass, random) : triesThatFail
    return { fault: pick(passingFaults, random), tries }
  }
  return { fault: 'none', tries: 0 }
}

/** Whether the client must receive an error. */
export function mustReturnError({ fault, tries }: SoakPlan): boolean {
  if (fault === 'none') return false
  return isIn(passingFaults, fault) ? tries > triesThatPass : true
}

export function promptOf({ plan, fault, at, tries, id }: SoakPlan): string {
  return `${writePlan(plan)} fault name=${fault} at=${at} tries=${tries} id=${id};`
}

/** Reads the last plan of a body, since earlier turns precede it. */
export function readSoakPlan(body: string): SoakPlan | undefined {
  const prompt = body.slice(Math.max(0, body.lastIndexOf('plan tokens=')))
  const plan = readPlan(prompt)
  const [, fault, at, tries, id] =
    /fault name=([\w-]+) at=(\d+) tries=(\d+) id=(\d+);/.exec(prompt) ?? []
  if (plan === undefined || !isFault(fault)) return undefined
  return { plan, fault, at: Number(at), tries: Number(tries), id: Number(id) }
}

/** Whether a text is the complete response, or a prefix of it. */
export function matches({ plan }: SoakPlan, text: string, part: 'whole' | 'beginning'): boolean {
  if (part === 'beginning' && text === '') return true
  const expected = expectedText(plan, text)
  return part === 'whole' ? text === expected : expected.startsWith(text)
}

export function textOf(plan: Plan, startedAtMs: number): string {
  return Array.from({ length: plan.tokens }, (_, index) =>
    tokenText(plan, index, startedAtMs),
  ).join('')
}

function isFault(name: string | undefined): name is FaultName {
  const known: readonly string[] = ['none', ...passingFaults, ...lastingFaults, ...breakingFaults]
  return name !== undefined && known.includes(name)
}

export function isIn<Name extends FaultName>(
  names: readonly Name[],
  name: FaultName,
): name is Name {
  return (names as readonly FaultName[]).includes(name)
}

export function below(count: number, random: () => number): number {
  return Math.floor(random() * count)
}

export function pick<Entry>(entries: readonly Entry[], random: () => number): Entry {
  const entry = entries[below(entries.length, random)]
  if (entry === undefined) throw new Error('there is nothing to pick from')
  return entry
}
