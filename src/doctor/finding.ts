/** The result of one check, for the operator. */
export type Finding = {
  readonly verdict: Verdict
  /** The checked object: `database`, `upstream "local"`. */
  readonly check: string
  readonly told: string
  /** The remedy; null if none is needed. */
  readonly advice: string | null
}

/** `skip`: not checked or not in use. */
export type Verdict = 'ok' | 'warn' | 'fail' | 'skip'

export function ok(check: string, told: string): Finding {
  return { verdict: 'ok', check, told, advice: null }
}

export function warn(check: string, told: string, advice: string): Finding {
  return { verdict: 'warn', check, told, advice }
}

export function fail(check: string, told: string, advice: string): Finding {
  return { verdict: 'fail', check, told, advice }
}

export function skip(check: string, told: string): Finding {
  return { verdict: 'skip', check, told, advice: null }
}
