import type { Admit, Reservation } from '#inference/inference.ts'
import type { CallRecord } from '#inference/open-call.ts'
import { AppError } from '#lib/errors.ts'
import { createRequestContext, type RequestPrincipal } from '#lib/request-context.ts'
import { createAdmission } from '#limits/admission.ts'
import type { LimitValues } from '#limits/config.ts'
import { createOutputEstimate } from '#limits/estimate.ts'
import { createMeters } from '#limits/meters.ts'
import { createPlans, type LimitScopes } from '#limits/plans.ts'
import { makeRequest, userMessage } from '#test/support/generation.ts'
import { recordOf, silentTarget } from '#test/support/token-counting.ts'

export const noScopes: LimitScopes = { default: {}, group: {}, user: {}, model: {} }

export type Caller = {
  readonly userId?: string
  readonly groups?: readonly string[]
  readonly keyId?: string
  readonly limits?: LimitValues
}

/** Admission with a clock and limits that the test sets. */
export function createAdmitting(options: { scopes?: Partial<LimitScopes> }) {
  let nowMs = 1_000
  let scopes: LimitScopes = { ...noScopes, ...options.scopes }
  const clockMs = () => nowMs
  const meters = createMeters({ term: null, clockMs })
  const refused: string[] = []
  const admission = createAdmission({
    plans: createPlans({ meters, scopes: () => scopes }),
    outputs: createOutputEstimate(),
    leases: null,
    onRefused: ({ scope, name }) => refused.push(`${scope} ${name}`),
    clockMs,
    now: () => new Date(nowMs),
  })
  const admit = (caller: Caller, call: TestCall = {}) =>
    admission.admit(...generationCall(caller, call))
  /** Null: refused. */
  const tryAdmit = (caller: Caller, call: TestCall = {}) => {
    try {
      return admit(caller, call)
    } catch {
      return null
    }
  }
  return {
    meters,
    refused,
    admit,
    tryAdmit,
    /** The error of a refusal; null if admitted. */
    refusal(caller: Caller, call: TestCall = {}): AppError | null {
      try {
        void admit(caller, call)
        return null
      } catch (error) {
        if (error instanceof AppError) return error
        throw error
      }
    },
    rateLimits: (caller: Caller, model = 'model-1') =>
      admission.rateLimits(principalOf(caller), model),
    pass(ms: number) {
      nowMs += ms
    },
    nowMs: clockMs,
    configure(changed: Partial<LimitScopes>) {
      scopes = { ...noScopes, ...changed }
    },
  }
}

type TestCall = {
  readonly kind?: 'generate' | 'embed'
  readonly model?: string
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly continues?: boolean
}

/** The arguments of `admit` for a call of this size. */
export function generationCall(caller: Caller, call: TestCall = {}): Parameters<Admit> {
  const context = createRequestContext({
    requestId: 'req_1',
    principal: principalOf(caller),
    signal: new AbortController().signal,
  })
  return [
    call.kind ?? 'generate',
    { context, targets: [silentTarget], continues: call.continues ?? false },
    call.model ?? 'model-1',
    makeRequest({
      items: [userMessage('x'.repeat((call.inputTokens ?? 1) * 4))],
      sampling: { ...makeRequest().sampling, maxOutputTokens: call.outputTokens ?? 1 },
    }),
  ]
}

const principals = new Map<string, RequestPrincipal>()

/** One object per caller, as for a cached credential. */
function principalOf(caller: Caller): RequestPrincipal {
  const id = JSON.stringify(caller)
  const known = principals.get(id)
  if (known !== undefined) return known
  const { userId = 'user-1', groups = [], keyId, limits } = caller
  const credential = {
    kind: keyId === undefined ? 'jwt' : 'api-key',
    ...(keyId === undefined ? {} : { keyId }),
    ...(limits === undefined ? {} : { limits }),
  }
  const principal = { userId, groups, credential }
  principals.set(id, principal)
  return principal
}

/** The record of a call with this usage; null: it failed before its first output. */
export function ended(usage: { input: number; output: number } | null): CallRecord {
  const record = recordOf(silentTarget, usage?.input ?? 0)
  if (usage === null || record.usage === null) {
    return { ...record, outcome: 'failed', usage: null, firstEventMs: null }
  }
  return { ...record, usage: { ...record.usage, outputTokens: usage.output } }
}

export function settle(
  reservation: ReturnType<ReturnType<typeof createAdmitting>['admit']>,
  usage: { input: number; output: number } | null,
): void {
  if (reservation === null || reservation instanceof Promise) throw new Error('not reserved')
  const held: Reservation = reservation
  held.settle(ended(usage))
}
