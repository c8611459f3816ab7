/** What one check has found, in words for the operator. */
export type Finding = {
  readonly verdict: Verdict
  /** What was looked at: `database`, `upstream "local"`. */
  readonly check: string
  readonly told: string
  /** What to do about it; null where there is nothing to do. */
  readonly advice: string | null
}

/** `skip`: it could not be looked at, or is not in use. */
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
