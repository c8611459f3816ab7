import type { LimitUse } from '../../api/generated/types.ts'
import { isRecord, type Schema } from '../../ui/schema/schema.ts'
import type { Configuration } from '../settings/config.ts'

export const scopes = ['default', 'group', 'user', 'model', 'key'] as const
export type Scope = (typeof scopes)[number]

type Values = Readonly<Record<string, number>>

/** Limits and budgets of one owner; null: the settings have none. */
export type Entry = {
  readonly id: string
  readonly limits: Values | null
  readonly budgets: Values | null
}

/** From here on somebody is near a limit. */
export const nearShare = 0.8

/** The entries of the settings. Limits of keys are in the keys. */
export function entriesOf(values: unknown, scope: Scope): Entry[] {
  const of = (section: string) => valuesOf(valuesOf(values, section), scope)
  if (scope === 'default') return [{ id: '', limits: of('limits'), budgets: of('budgets') }]
  const [limits, budgets] = [of('limits'), of('budgets')]
  const ids = [...new Set([...Object.keys(limits ?? {}), ...Object.keys(budgets ?? {})])]
  return ids.map((id) => ({ id, limits: valuesOf(limits, id), budgets: valuesOf(budgets, id) }))
}

function valuesOf(parent: unknown, name: string): Values | null {
  const value = isRecord(parent) ? parent[name] : undefined
  return isRecord(value) ? (value as Values) : null
}

/** The fields of limits, or of budgets. */
export function fieldsOf({ settings }: Configuration, section: 'limits' | 'budgets'): Schema {
  return settings.find(({ key }) => key === `${section}.default`)?.schema ?? {}
}

/** The fullest use of a limit of an entry; of defaults and groups, that of one of their users. */
export function useOf(
  uses: readonly LimitUse[],
  { scope, id, limit }: { scope: Scope; id: string; limit: string },
): LimitUse | undefined {
  return uses.find(
    (use) =>
      use.limit === limit &&
      (scope === 'default'
        ? use.set_by.scope === 'default'
        : use.set_by.scope === scope && use.set_by.id === id),
  )
}
