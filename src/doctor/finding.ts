/** The result of one check, for the operator. */
export type Finding = {
  readonly verdict: Verdict
  /** The checked object: `database`, `upstream "local"`. */
  readonly check: string
  readonly detail: string
  /** The remedy; null if none is needed. */
  readonly advice: string | null
}

/** `skip`: not checked or not in use. */
export type Verdict = 'ok' | 'warn' | 'fail' | 'skip'

export function ok(check: string, detail: string): Finding {
  return { verdict: 'ok', check, detail, advice: null }
}

export function warn(check: string, detail: string, advice: string): Finding {
  return { verdict: 'warn', check, detail, advice }
}

export function fail(check: string, detail: string, advice: string): Finding {
  return { verdict: 'fail', check, detail, advice }
}

export function skip(check: string, detail: string): Finding {
  return { verdict: 'skip', check, detail, advice: null }
}
