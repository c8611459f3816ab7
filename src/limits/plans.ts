import type { RequestPrincipal } from '#lib/request-context.ts'
import { type LimitValues, limitValues } from './config.ts'
import type { LimitScope, Meters, RateName, SlotName } from './meters.ts'
import type { RateMeter } from './rate-meter.ts'
import type { SlotMeter } from './slot-meter.ts'

/** The limits of the configuration or of administrators, as they are now. */
export type LimitScopes = {
  readonly default: LimitValues
  readonly group: Readonly<Record<string, LimitValues>>
  readonly user: Readonly<Record<string, LimitValues>>
  readonly model: Readonly<Record<string, LimitValues>>
}

/** A limit that applies to a call, and whose it is. */
export type AppliedRate = {
  readonly scope: LimitScope
  readonly name: RateName
  readonly meter: RateMeter
}
export type AppliedSlot = {
  readonly scope: LimitScope
  readonly name: SlotName
  readonly meter: SlotMeter
}

/** Every limit that applies to the calls of a principal to a model. */
export type Plan = {
  readonly rates: Readonly<Record<RateName, readonly AppliedRate[]>>
  readonly slots: Readonly<Record<SlotName, readonly AppliedSlot[]>>
  /** The meters of model calls, and of speech. */
  readonly calls: MeterGroup
  readonly speech: MeterGroup
}

/** The meters that one kind of work uses. */
export type MeterGroup = {
  readonly rates: readonly RateMeter[]
  readonly slots: readonly SlotMeter[]
}

type CachedPlans = {
  readonly generation: number
  readonly byModel: Map<string, Plan | null>
}

/** Models of one principal with a plan; further ones start over. */
const plansPerPrincipalMax = 256

export const limitNames = Object.keys(limitValues.properties) as readonly (keyof LimitValues)[]

export type Plans = ReturnType<typeof createPlans>

/** Finds the limits of calls; cached by principal, until the limits or the principal change. */
export function createPlans({ meters, scopes }: { meters: Meters; scopes: () => LimitScopes }) {
  let cache = new WeakMap<RequestPrincipal, CachedPlans>()
  let lastScopes: LimitScopes | null = null
  let isConfigured = false

  const build = (principal: RequestPrincipal, model: string | null): Plan | null => {
    const { userId, credential } = principal
    const current = scopes()
    const sources: (readonly [LimitScope, string, LimitValues])[] = [
      ['user', userId, limitsOfUser(current, principal)],
    ]
    const { keyId, limits } = credential ?? {}
    if (keyId !== undefined && limits != null) sources.push(['key', keyId, limits])
    const ofModel = model === null ? undefined : current.model[model]
    if (model !== null && ofModel !== undefined) sources.push(['model', model, ofModel])
    const rates = (name: RateName) =>
      sources.flatMap(([scope, id, { [name]: limit }]) =>
        limit === undefined ? [] : [{ scope, name, meter: meters.rate(scope, id, name, limit) }],
      )
    const slots = (name: SlotName) =>
      sources.flatMap(([scope, id, { [name]: limit }]) =>
        limit === undefined ? [] : [{ scope, name, meter: meters.slot(scope, id, name, limit) }],
      )
    const requests = rates('requests_per_minute')
    const input = rates('input_tokens_per_minute')
    const output = rates('output_tokens_per_minute')
    const minutes = rates('speech_minutes_per_hour')
    const generations = slots('concurrent_generations')
    const sessions = slots('speech_sessions')
    const calls = groupOf([...requests, ...input, ...output], generations)
    const speech = groupOf(minutes, sessions)
    const count = [calls, speech].flatMap((group) => [...group.rates, ...group.slots]).length
    if (count === 0) return null
    return {
      rates: {
        requests_per_minute: requests,
        input_tokens_per_minute: input,
        output_tokens_per_minute: output,
        speech_minutes_per_hour: minutes,
      },
      slots: { concurrent_generations: generations, speech_sessions: sessions },
      calls,
      speech,
    }
  }

  return {
    isConfigured: () => hasValues(scopes()),

    /** Null: no limit applies, as for the gateway's own calls. `model` is null for speech. */
    of(principal: RequestPrincipal, model: string | null): Plan | null {
      const current = scopes()
      if (current !== lastScopes) {
        lastScopes = current
        isConfigured = hasValues(current)
        cache = new WeakMap()
      }
      if (!isConfigured && principal.credential?.limits == null) return null
      if (principal.userId === '') return null
      const generation = meters.generation()
      let cached = cache.get(principal)
      if (
        cached === undefined ||
        cached.generation !== generation ||
        cached.byModel.size >= plansPerPrincipalMax
      ) {
        cached = { generation, byModel: new Map() }
        cache.set(principal, cached)
      }
      const name = model ?? ''
      const known = cached.byModel.get(name)
      if (known !== undefined) return known
      const plan = build(principal, model)
      // Building evicted meters, perhaps of this plan.
      if (meters.generation() !== generation) return build(principal, model)
      cached.byModel.set(name, plan)
      return plan
    },

    /** Of stored bytes; null: unlimited. */
    storedBytesOf(principal: RequestPrincipal): number | null {
      const ofUser = limitsOfUser(scopes(), principal).stored_bytes
      const ofKey = principal.credential?.limits?.['stored_bytes']
      if (ofUser === undefined && ofKey === undefined) return null
      return Math.min(ofUser ?? Number.POSITIVE_INFINITY, ofKey ?? Number.POSITIVE_INFINITY)
    },
  }
}

function groupOf(rates: readonly AppliedRate[], slots: readonly AppliedSlot[]): MeterGroup {
  return { rates: rates.map(({ meter }) => meter), slots: slots.map(({ meter }) => meter) }
}

/** Whether any scope, of limits or of budgets, sets anything. */
export function hasValues(scopes: Readonly<Record<string, object>>): boolean {
  return Object.values(scopes).some((values) => Object.keys(values).length > 0)
}

/** Where a limit of a user comes from: their own entry, a group, or the defaults. */
export type LimitGrant = {
  readonly max: number
  readonly from: { readonly scope: 'user' | 'group' | 'default'; readonly id: string | null }
}

/** One limit of a user; null: unlimited. Of several groups, the most generous holds. */
export function grantOf(
  { default: everyone, group, user }: LimitScopes,
  { userId, groups }: Pick<RequestPrincipal, 'userId' | 'groups'>,
  name: keyof LimitValues,
): LimitGrant | null {
  const own = user[userId]?.[name]
  if (own !== undefined) return { max: own, from: { scope: 'user', id: userId } }
  let found: LimitGrant | null = null
  for (const id of groups) {
    const max = group[id]?.[name]
    if (max !== undefined && max > (found?.max ?? -1)) found = { max, from: { scope: 'group', id } }
  }
  if (found !== null) return found
  const { [name]: max } = everyone
  return max === undefined ? null : { max, from: { scope: 'default', id: null } }
}

function limitsOfUser(scopes: LimitScopes, principal: RequestPrincipal): LimitValues {
  const limits: Partial<Record<keyof LimitValues, number>> = {}
  for (const name of limitNames) {
    const grant = grantOf(scopes, principal, name)
    if (grant !== null) limits[name] = grant.max
  }
  return limits
}
